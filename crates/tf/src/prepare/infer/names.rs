//! Names of feeds, fetches, and variables: C++ identifiers that do not clash.

use super::FedOutput;
use std::collections::{BTreeMap, BTreeSet};

/// The names used so far in one group.
#[derive(Default)]
pub(super) struct UsedNames {
    names: BTreeSet<String>,
    /// Next number to append to each name that is already used.
    next: BTreeMap<String, usize>,
}

impl UsedNames {
    /// Returns an unused name for an output, and marks it as used. The name is the node's, with `_`
    /// for every character that is invalid in identifiers, and with the suffix `_k` for output
    /// `k` above 0. A number is appended if the name clashes with another, or if one of the two is
    /// the other followed by `_data`.
    pub(super) fn claim(&mut self, id: &FedOutput) -> String {
        let mut base = identifier(&id.0);
        if id.1 > 0 {
            base = format!("{base}_{}", id.1);
        }
        let mut name = base.clone();
        loop {
            let data = format!("{name}_data");
            let stem = name.strip_suffix("_data").unwrap_or("");
            if !self.names.contains(&name) && !self.names.contains(&data) && !self.names.contains(stem) {
                break;
            }
            let number = self.next.entry(base.clone()).or_insert(2);
            name = format!("{base}_{number}");
            *number += 1;
        }
        self.names.insert(name.clone());
        name
    }
}

/// Returns a name with `_` for every character that is invalid in identifiers.
pub(super) fn identifier(name: &str) -> String {
    let mut identifier: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if identifier.starts_with(|c: char| c.is_ascii_digit()) {
        identifier.insert(0, '_');
    }
    identifier
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_never_clash() {
        let mut names = UsedNames::default();
        let mut claim = |node: &str, k| names.claim(&(node.to_owned(), k));
        assert_eq!(claim("a/b", 0), "a_b");
        assert_eq!(claim("a.b", 0), "a_b_2");
        assert_eq!(claim("a_b", 1), "a_b_1");
        assert_eq!(claim("1x", 0), "_1x");
        assert_eq!(claim("x", 0), "x");
        assert_eq!(claim("x_data", 0), "x_data_2");
        assert_eq!(claim("y_data", 0), "y_data");
        assert_eq!(claim("y", 0), "y_2");
    }
}
