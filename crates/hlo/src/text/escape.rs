//! Quoted strings with C escapes, as written and read by XLA (`absl::CEscape`, `absl::CUnescape`).

use std::fmt::Write;

/// Appends a quoted string: everything but printable ASCII is escaped, other bytes in octal.
pub(super) fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\'' | b'\\' => {
                out.push('\\');
                out.push(byte.into());
            }
            0x20..=0x7e => out.push(byte.into()),
            _ => write!(out, "\\{byte:03o}").expect("writing to a string cannot fail"),
        }
    }
    out.push('"');
}

/// Resolves the escapes in a quoted string; `None` if one is unknown or the bytes are not UTF-8.
pub(crate) fn unescape(inside: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = rest.as_bytes().get(at + 1)?;
        rest = rest.get(at + 2..)?;
        let simple = match escape {
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'\\' | b'?' | b'\'' | b'"' => *escape,
            b'0'..=b'7' => {
                let more = rest.bytes().take(2).take_while(|b| matches!(b, b'0'..=b'7')).count();
                let digits = format!("{}{}", char::from(*escape), &rest[..more]);
                rest = &rest[more..];
                u8::from_str_radix(&digits, 8).ok()?
            }
            b'x' | b'X' => {
                let count = rest.bytes().take(2).take_while(u8::is_ascii_hexdigit).count();
                let value = u8::from_str_radix(&rest[..count], 16).ok()?;
                rest = &rest[count..];
                value
            }
            b'u' | b'U' => {
                let count = if *escape == b'u' { 4 } else { 8 };
                let value = u32::from_str_radix(rest.get(..count)?, 16).ok()?;
                rest = &rest[count..];
                let mut buffer = [0; 4];
                bytes.extend_from_slice(char::from_u32(value)?.encode_utf8(&mut buffer).as_bytes());
                continue;
            }
            _ => return None,
        };
        bytes.push(simple);
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_c() {
        let mut out = String::new();
        write_quoted("a\"b\\c\n\té\u{1}", &mut out);
        assert_eq!(out, r#""a\"b\\c\n\t\303\251\001""#);
        assert_eq!(unescape(r#"a\"b\\c\n\t\303\251\001"#).as_deref(), Some("a\"b\\c\n\té\u{1}"));
        assert_eq!(unescape(r"\x41\101\u00e9").as_deref(), Some("AAé"));
    }

    #[test]
    fn broken_escapes_are_rejected() {
        for broken in [r"\q", r"\", r"\377", r"\ud800", r"\x", r"\é"] {
            assert_eq!(unescape(broken), None, "{broken}");
        }
    }
}
