//! Names of feeds, fetches and variables that are C++ identifiers, no two of which clash.

use super::FedOutput;
use std::collections::{BTreeMap, BTreeSet};

/// The names given out so far in one group.
#[derive(Default)]
pub(super) struct Taken {
    names: BTreeSet<String>,
    /// The number that a name gets which is not free, by the name.
    next: BTreeMap<String, usize>,
}

impl Taken {
    /// A name for an output: its node's, every character that no identifier has replaced by `_`,
    /// with `_k` for output
    /// `k` above 0, and a number if that name or its `_data` is taken.
    pub(super) fn claim(&mut self, id: &FedOutput) -> String {
        let mut base: String =
            id.0.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        if base.starts_with(|c: char| c.is_ascii_digit()) {
            base.insert(0, '_');
        }
        if id.1 > 0 {
            base = format!("{base}_{}", id.1);
        }
        let mut name = base.clone();
        loop {
            let data = format!("{name}_data");
            let of = name.strip_suffix("_data").unwrap_or("");
            if !self.names.contains(&name) && !self.names.contains(&data) && !self.names.contains(of) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_never_clash() {
        let mut taken = Taken::default();
        let mut claim = |node: &str, k| taken.claim(&(node.to_owned(), k));
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
