//! Names of OpenCL C: its types and limits, and the lanes of its vectors.

/// Names of the lanes of OpenCL's vectors.
pub(crate) const LANES: [char; 16] =
    ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];

/// Returns the name of a lane in OpenCL C: `s0` to `sf`.
pub(crate) fn lane_name(lane: u32) -> String {
    format!("s{}", LANES[lane as usize % LANES.len()])
}

/// Returns the text with OpenCL's names of types and limits in place of those of C's headers.
pub(crate) fn with_opencl_names(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        let suffix = match word {
            "UINT64_C" => "UL",
            "INT64_C" => "L",
            _ => {
                out.push_str(opencl_name(word));
                continue;
            }
        };
        // `UINT64_C(7)` is `7UL`.
        let number = rest.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        let Some((number, after)) = number else { continue };
        out.push_str(number);
        out.push_str(suffix);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns OpenCL's name for a word of C's headers, or the word.
pub(crate) fn opencl_name(word: &str) -> &str {
    match word {
        "uint8_t" => "uchar",
        "uint16_t" => "ushort",
        "uint32_t" => "uint",
        "uint64_t" => "ulong",
        "int8_t" => "char",
        "int16_t" => "short",
        "int32_t" => "int",
        "int64_t" => "long",
        "INT8_MIN" => "CHAR_MIN",
        "INT8_MAX" => "CHAR_MAX",
        "UINT8_MAX" => "UCHAR_MAX",
        "INT16_MIN" => "SHRT_MIN",
        "INT16_MAX" => "SHRT_MAX",
        "UINT16_MAX" => "USHRT_MAX",
        "INT32_MIN" => "INT_MIN",
        "INT32_MAX" => "INT_MAX",
        "UINT32_MAX" => "UINT_MAX",
        "INT64_MIN" => "LONG_MIN",
        "INT64_MAX" => "LONG_MAX",
        "UINT64_MAX" => "ULONG_MAX",
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_c_become_those_of_opencl() {
        let c =
            "const uint64_t bits = UINT64_C(0x7f) & (uint64_t)n; int32_t x = INT32_MIN; my_int8_t int8_t[2]";
        let opencl = "const ulong bits = 0x7fUL & (ulong)n; int x = INT_MIN; my_int8_t char[2]";
        assert_eq!(with_opencl_names(c), opencl);
        assert_eq!(with_opencl_names("-INT64_C(9) + f(UINT8_MAX)"), "-9L + f(UCHAR_MAX)");
    }
}
