//! C identifiers, which object symbols must be.

/// True if a text is valid as the name of a C function.
pub fn is_c_identifier(text: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_start) && text.chars().all(|c| is_start(c) || c.is_ascii_digit())
}
