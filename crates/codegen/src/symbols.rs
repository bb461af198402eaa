//! The symbols of an object's functions.

use std::collections::BTreeSet;

/// The symbol of the function that chooses among an object's versions.
pub(crate) fn choice_symbol(entry_point: &str) -> String {
    format!("{entry_point}.choose")
}

/// The symbols that only the entry and its constants may have.
pub(crate) fn entry_symbols(entry_point: &str) -> [String; 3] {
    ["", "_constants", "_constants_pointer"].map(|end| format!("{entry_point}{end}"))
}

/// `<entry>.<name><suffix>`, unique. Node names keep their slashes, so that a profile shows them; what assemblers,
/// linkers or symbol versioning read otherwise becomes `_`.
pub(crate) fn local_symbol(
    entry_point: &str,
    name: &str,
    suffix: &str,
    taken: &mut BTreeSet<String>,
) -> String {
    let clean: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '$') { c } else { '_' })
        .collect();
    unique(format!("{entry_point}.{clean}{suffix}"), taken)
}

/// A symbol that is not taken yet, and is now.
pub(crate) fn unique(base: String, taken: &mut BTreeSet<String>) -> String {
    let mut symbol = base.clone();
    let mut number = 1;
    while !taken.insert(symbol.clone()) {
        symbol = format!("{base}.{number}");
        number += 1;
    }
    symbol
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_symbols_are_clean_and_unique() {
        let mut taken = BTreeSet::from(["e".to_owned()]);
        assert_eq!(local_symbol("e", "model/dense:0", "", &mut taken), "e.model/dense_0");
        assert_eq!(local_symbol("e", "model/dense@0", "", &mut taken), "e.model/dense_0.1");
        assert_eq!(local_symbol("e", "model/dense@0", ".v3", &mut taken), "e.model/dense_0.v3");
        assert_eq!(local_symbol("e", "a b\"\0ä", "", &mut taken), "e.a_b___");
    }
}
