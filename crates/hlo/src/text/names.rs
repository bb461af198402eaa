//! Names as XLA's text allows them.

use crate::computation::Computation;
use crate::ids::{ComputationId, InstructionId};
use crate::module::Module;
use std::collections::{BTreeMap, BTreeSet};

/// Words of the grammar, which no name may be. Names of element types are reserved too.
const KEYWORDS: [&str; 16] = [
    "ENTRY",
    "HloModule",
    "ROOT",
    "false",
    "inf",
    "last_tile_dim_replicate",
    "manual",
    "maximal",
    "nan",
    "replicated",
    "shard_as",
    "shard_like",
    "true",
    "unknown",
    "unreduced",
    "token",
];

/// XLA's element types that have no counterpart here, but are reserved words there.
const FOREIGN_TYPES: [&str; 3] = ["opaque", "opaque_type", "primitive_type_invalid"];

fn is_reserved(name: &str) -> bool {
    KEYWORDS.contains(&name) || FOREIGN_TYPES.contains(&name) || name.parse::<shape::PrimitiveType>().is_ok()
}

/// The name with everything replaced that XLA's text does not allow in it.
pub(crate) fn sanitized(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let mut name: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    // The lexer would take `x-` before `>` for an arrow.
    while name.ends_with('-') {
        name.pop();
        name.push('_');
    }
    match name.as_bytes() {
        [] => name.push_str("name"),
        // XLA keeps names that start with two underscores for itself.
        [b'_', b'_', rest @ ..] if !rest.starts_with(b"xla_") => name.replace_range(..1, "a"),
        [first, ..] if !first.is_ascii_alphabetic() && *first != b'_' => name.replace_range(..1, "_"),
        _ => {}
    }
    if name.starts_with("__") && !name.starts_with("__xla_") {
        name.replace_range(..1, "a");
    }
    if is_reserved(&name) {
        name.push('_');
    }
    name
}

/// A printable name for each item. Names that are printable as they are stay; the others give way.
fn printable<Id: Copy + Ord>(names: &[(Id, &str)]) -> BTreeMap<Id, String> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut result = BTreeMap::new();
    for &(id, name) in names {
        if sanitized(name) == name && taken.insert(name.to_owned()) {
            result.insert(id, name.to_owned());
        }
    }
    let mut suffixes: BTreeMap<String, u32> = BTreeMap::new();
    for &(id, name) in names {
        if result.contains_key(&id) {
            continue;
        }
        let stem = sanitized(name);
        let mut wish = stem.clone();
        let suffix = suffixes.entry(stem.clone()).or_insert(0);
        while !taken.insert(wish.clone()) {
            *suffix += 1;
            wish = format!("{stem}.{suffix}");
        }
        result.insert(id, wish);
    }
    result
}

/// Printable names of a module's computations.
pub(super) fn computation_names(module: &Module) -> BTreeMap<ComputationId, String> {
    printable(&module.computations().map(|(id, c)| (id, c.name())).collect::<Vec<_>>())
}

/// Printable names of a computation's instructions.
pub(super) fn instruction_names(computation: &Computation) -> BTreeMap<InstructionId, String> {
    printable(&computation.instructions().map(|(id, i)| (id, i.name())).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_what_xla_would_make_of_them() {
        for (name, expected) in [
            ("tower/dense:0", "tower_dense_0"),
            ("3x", "_x"),
            ("", "name"),
            ("s4", "s4_"),
            ("__init", "a_init"),
            ("a.b-c_1", "a.b-c_1"),
            ("ROOT", "ROOT_"),
        ] {
            assert_eq!(sanitized(name), expected);
        }
    }

    #[test]
    fn a_name_that_is_printable_keeps_it_whatever_comes_before() {
        let names = printable(&[(0, "a/b"), (1, "a_b"), (2, "a:b")]);
        assert_eq!(names.values().collect::<Vec<_>>(), ["a_b.1", "a_b", "a_b.2"]);
    }
}
