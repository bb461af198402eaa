//! Writing of numbers, names, and sections.

/// Appends an unsigned number in as few bytes as possible.
pub(crate) fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number in as few bytes as possible.
pub(crate) fn signed(out: &mut Vec<u8>, mut value: i64) {
    while !(-64..64).contains(&value) {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Appends a name with its length.
pub(crate) fn name(out: &mut Vec<u8>, name: &str) {
    unsigned(out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
}

/// Appends a section with its header.
pub fn section(out: &mut Vec<u8>, id: u8, bytes: &[u8]) {
    out.push(id);
    unsigned(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a custom section to an object or module. Engines ignore it.
pub fn append_custom_section(file: &mut Vec<u8>, section_name: &str, contents: &[u8]) {
    let mut bytes = Vec::with_capacity(contents.len() + section_name.len() + 5);
    name(&mut bytes, section_name);
    bytes.extend_from_slice(contents);
    section(file, 0, &bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cursor;

    #[test]
    fn numbers_are_read_back() {
        for value in [0, 1, 63, 64, 127, 128, 300, 1 << 20, u32::MAX] {
            let mut bytes = Vec::new();
            unsigned(&mut bytes, u64::from(value));
            assert_eq!(Cursor::new(&bytes).u32().unwrap(), value);
        }
        for value in [0, -1, 63, 64, -64, -65, i64::from(i32::MAX), i64::from(i32::MIN), i64::MAX] {
            let mut bytes = Vec::new();
            signed(&mut bytes, value);
            assert_eq!(Cursor::new(&bytes).i64().unwrap(), value);
        }
    }

    /// The specification's shortest encodings.
    #[test]
    fn numbers_are_short() {
        let mut bytes = Vec::new();
        signed(&mut bytes, -64);
        signed(&mut bytes, 64);
        unsigned(&mut bytes, 127);
        assert_eq!(bytes, [0x40, 0xc0, 0x00, 0x7f]);
    }
}
