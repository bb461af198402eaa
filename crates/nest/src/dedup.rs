//! Deduplication of functions that differ only in their names, or also in numbers.

mod numbers;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::language::{Function, FunctionId, Linkage, Parameter, Program};
use support::{Id, IdVec};

/// Replaces calls of a function that equals an earlier one by calls of that one, and drops the
/// later function. The first function keeps its name. Callees come before callers, so callers of
/// equal functions become equal in turn. Functions that still differ in numbers read these from
/// memory, if one function can then take the place of several.
pub fn dedup(program: &mut Program) {
    let mut unique: IdVec<FunctionId, Function> = IdVec::new();
    let mut renumbered: Vec<FunctionId> = Vec::with_capacity(program.functions.len());
    let mut by_fingerprint: BTreeMap<u64, Vec<FunctionId>> = BTreeMap::new();
    for mut function in std::mem::take(&mut program.functions).into_values() {
        function.body.walk_mut(&mut |statement| {
            if let Some(callee) = statement.callee_mut() {
                *callee = renumbered.get(callee.index()).copied().unwrap_or(*callee);
            }
        });
        let alike = by_fingerprint.entry(fingerprint(&function)).or_default();
        let earlier = alike.iter().copied().find(|&id| same_code(&unique[id], &function));
        renumbered.push(earlier.unwrap_or_else(|| {
            let id = unique.push(function);
            alike.push(id);
            id
        }));
    }
    program.functions = unique;
    numbers::share(program);
}

/// Returns a hash of a function's code. Other code rarely has the same hash, even if it differs
/// only in a number, as thousands of kernels may.
fn fingerprint(function: &Function) -> u64 {
    let mut hasher = DefaultHasher::new();
    for parameter in &function.parameters {
        (parameter.value, parameter.pointer).hash(&mut hasher);
    }
    function.values.len().hash(&mut hasher);
    function.body.hash(&mut hasher);
    hasher.finish()
}

fn same_code(a: &Function, b: &Function) -> bool {
    let same_parameter = |(p, q): (&Parameter, &Parameter)| p.value == q.value && p.pointer == q.pointer;
    a.linkage == b.linkage
        && a.linkage != Linkage::Entry
        && a.values == b.values
        && a.parameters.len() == b.parameters.len()
        && a.parameters.iter().zip(&b.parameters).all(same_parameter)
        && a.body == b.body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FunctionBuilder, PointerFacts, ScalarType, Statement, Type};

    fn leaf(name: &str, constant: f64) -> Function {
        let mut b = FunctionBuilder::new(name, Linkage::Internal);
        let out = b.parameter(name, Type::PTR, PointerFacts::default());
        let value = b.float(Type::scalar(ScalarType::F32), constant);
        b.store(value, out, 4);
        b.finish()
    }

    fn caller(name: &str, callee: FunctionId, linkage: Linkage) -> Function {
        let mut b = FunctionBuilder::new(name, linkage);
        let out = b.parameter("out", Type::PTR, PointerFacts::default());
        b.call(callee, vec![out]);
        b.finish()
    }

    #[test]
    fn equal_functions_become_one_up_the_calls() {
        let mut program = Program::default();
        let a = program.functions.push(leaf("a", 1.0));
        let b = program.functions.push(leaf("b", 1.0));
        let c = program.functions.push(leaf("c", 2.0));
        let d = program.functions.push(caller("d", a, Linkage::Internal));
        let e = program.functions.push(caller("e", b, Linkage::Internal));
        let f = program.functions.push(caller("f", c, Linkage::Internal));
        let mut entry = FunctionBuilder::new("entry", Linkage::Entry);
        let out = entry.parameter("frame", Type::PTR, PointerFacts::default());
        for callee in [d, e, f] {
            entry.call(callee, vec![out]);
        }
        program.functions.push(entry.finish());

        dedup(&mut program);

        let names: Vec<&str> = program.functions.values().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["a", "c", "d", "f", "entry"]);
        let entry = program.functions.values().last().expect("expected the entry");
        let calls: Vec<usize> = entry
            .body
            .statements
            .iter()
            .map(|s| match s {
                Statement::Call { function, .. } => function.index(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(calls, [2, 2, 3]);
    }

    #[test]
    fn the_sign_of_a_zero_tells_functions_apart() {
        let mut program = Program::default();
        program.functions.push(leaf("a", 0.0));
        program.functions.push(leaf("b", -0.0));
        dedup(&mut program);
        assert_eq!(program.functions.len(), 2);
    }

    #[test]
    fn facts_about_parameters_tell_functions_apart() {
        let mut program = Program::default();
        program.functions.push(leaf("a", 1.0));
        let mut other = leaf("b", 1.0);
        other.parameters[0].pointer.alignment = 64;
        program.functions.push(other);
        dedup(&mut program);
        assert_eq!(program.functions.len(), 2);
    }
}
