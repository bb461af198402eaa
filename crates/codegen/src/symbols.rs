//! Symbols of an object's functions.

use std::collections::BTreeSet;

/// Returns the symbol of the function that selects one of the object's versions.
pub(crate) fn choice_symbol(entry_point: &str) -> String {
    format!("{entry_point}.choose")
}

/// Returns the symbols reserved for the entry and its constants.
pub(crate) fn entry_symbols(entry_point: &str) -> [String; 3] {
    ["", "_constants", "_constants_pointer"].map(|end| format!("{entry_point}{end}"))
}

/// Returns a unique symbol `<entry>.<name><suffix>`. Node names keep their slashes for profiles.
/// Characters with a special meaning for assemblers, linkers, or symbol versioning become `_`.
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

/// Returns a symbol that is not in `taken`, and adds it.
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
