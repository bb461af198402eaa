//! Names that XLA's text allows.

use crate::computation::Computation;
use crate::ids::{ComputationId, InstructionId};
use crate::module::Module;
use std::collections::{BTreeMap, BTreeSet};

/// Words of the grammar, which cannot be names. Names of element types are reserved, too.
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

/// XLA's element types without a counterpart here, which are reserved words in XLA.
const FOREIGN_TYPES: [&str; 3] = ["opaque", "opaque_type", "primitive_type_invalid"];

fn is_reserved(name: &str) -> bool {
    KEYWORDS.contains(&name) || FOREIGN_TYPES.contains(&name) || name.parse::<shape::PrimitiveType>().is_ok()
}

/// Replaces everything in a name that XLA's text does not allow.
pub(crate) fn sanitize(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let mut name: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    // The lexer would read `x-` before `>` as a word and an arrow.
    while name.ends_with('-') {
        name.pop();
        name.push('_');
    }
    match name.as_bytes() {
        [] => name.push_str("name"),
        // XLA reserves names that start with two underscores.
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

/// Returns a printable name for each item. Names that are already printable are kept; the others
/// are changed.
fn printable_names<Id: Copy + Ord>(names: &[(Id, &str)]) -> BTreeMap<Id, String> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut result = BTreeMap::new();
    for &(id, name) in names {
        if sanitize(name) == name && taken.insert(name.to_owned()) {
            result.insert(id, name.to_owned());
        }
    }
    let mut suffixes: BTreeMap<String, u32> = BTreeMap::new();
    for &(id, name) in names {
        if result.contains_key(&id) {
            continue;
        }
        let stem = sanitize(name);
        let mut candidate = stem.clone();
        let suffix = suffixes.entry(stem.clone()).or_insert(0);
        while !taken.insert(candidate.clone()) {
            *suffix += 1;
            candidate = format!("{stem}.{suffix}");
        }
        result.insert(id, candidate);
    }
    result
}

/// Returns printable names of a module's computations.
pub(super) fn computation_names(module: &Module) -> BTreeMap<ComputationId, String> {
    printable_names(&module.computations().map(|(id, c)| (id, c.name())).collect::<Vec<_>>())
}

/// Returns printable names of a computation's instructions.
pub(super) fn instruction_names(computation: &Computation) -> BTreeMap<InstructionId, String> {
    printable_names(&computation.instructions().map(|(id, i)| (id, i.name())).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sanitized_like_in_xla() {
        for (name, expected) in [
            ("tower/dense:0", "tower_dense_0"),
            ("3x", "_x"),
            ("", "name"),
            ("s4", "s4_"),
            ("__init", "a_init"),
            ("a.b-c_1", "a.b-c_1"),
            ("ROOT", "ROOT_"),
        ] {
            assert_eq!(sanitize(name), expected);
        }
    }

    #[test]
    fn a_printable_name_is_kept_regardless_of_the_order() {
        let names = printable_names(&[(0, "a/b"), (1, "a_b"), (2, "a:b")]);
        assert_eq!(names.values().collect::<Vec<_>>(), ["a_b.1", "a_b", "a_b.2"]);
    }
}
