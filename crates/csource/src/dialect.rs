//! The spelling of vectors in the two dialects: the vector types of GCC and Clang, and those of
//! OpenCL C.

use crate::function::Printer;
use crate::prelude::{Access, Lane, Prelude, Vector};
use crate::spaces::Space;
use crate::text::{Level, Text};
use nest::{ThreadIndex, Type, ValueId};
use support::{Error, Id as _, Result};

/// Names of the lanes of OpenCL's vectors.
const LANES: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];

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

impl Prelude {
    /// A vector with the same number in all lanes.
    pub(crate) fn splat_of(&mut self, vector: Vector, lane: &str, reads: bool) -> Text {
        if self.is_opencl {
            let ty = self.vector(vector);
            return Text { text: format!("({ty})({lane})"), level: Level::Unary, reads };
        }
        let text = format!("{}({lane})", self.splat(vector));
        Text { text, level: Level::Primary, reads }
    }

    /// A vector of several numbers.
    pub(crate) fn lanes_of(&mut self, vector: Vector, lanes: &[String], reads: bool) -> Text {
        let ty = self.vector(vector);
        let list = lanes.join(", ");
        if self.is_opencl {
            return Text { text: format!("({ty})({list})"), level: Level::Unary, reads };
        }
        Text { text: format!("({ty}){{{list}}}"), level: Level::Primary, reads }
    }

    /// One lane of a vector.
    pub(crate) fn lane_of(&self, vector: &Text, lane: u32) -> Text {
        let text = if self.is_opencl {
            format!("{}.{}", vector.at(Level::Primary), lane_name(lane))
        } else {
            format!("{}[{lane}]", vector.at(Level::Primary))
        };
        Text { text, level: Level::Primary, reads: vector.reads }
    }

    /// The bits of a vector as a vector of another type of the same size.
    pub(crate) fn same_bits(&mut self, vector: &Text, to: Vector) -> Text {
        let ty = self.vector(to);
        if self.is_opencl {
            let text = format!("as_{ty}({})", vector.text);
            return Text { text, level: Level::Primary, reads: vector.reads };
        }
        vector.cast(&ty)
    }

    /// The numbers of a vector as a vector of another type.
    pub(crate) fn converted(&mut self, vector: &Text, to: Vector) -> Text {
        let ty = self.vector(to);
        let text = if self.is_opencl {
            format!("convert_{ty}({})", vector.text)
        } else {
            format!("__builtin_convertvector({}, {ty})", vector.text)
        };
        Text { text, level: Level::Primary, reads: vector.reads }
    }

    /// The result of a comparison as a mask, whose lanes are 0 or -1.
    pub(crate) fn mask_of(&mut self, comparison: String, mask: Vector, reads: bool) -> Text {
        let text = Text { text: comparison, level: Level::Loose, reads };
        // In OpenCL C, comparisons have the type of masks.
        if self.is_opencl { text } else { self.same_bits(&text, mask) }
    }

    /// Lanes of two vectors: lane `m[i]` of the first, or of the second after those of the first.
    pub(crate) fn shuffled(
        &mut self,
        (x, y): (&Text, &Text),
        (from, to): (Vector, Vector),
        lanes: &[u32],
    ) -> Text {
        let reads = x.reads || y.reads;
        let list: Vec<String> = lanes.iter().map(u32::to_string).collect();
        let text = if !self.is_opencl {
            format!("__builtin_shufflevector({}, {}, {})", x.text, y.text, list.join(", "))
        } else if lanes.iter().all(|&lane| lane < from.lanes) {
            let names: String = lanes.iter().map(|&lane| LANES[lane as usize % LANES.len()]).collect();
            format!("{}.s{names}", x.at(Level::Primary))
        } else {
            let words = Vector { lane: Lane::Unsigned, bytes: from.bytes, lanes: to.lanes };
            let order: Vec<String> = list.iter().map(|lane| format!("{lane}u")).collect();
            let order = self.lanes_of(words, &order, false);
            format!("shuffle2({}, {}, {})", x.text, y.text, order.text)
        };
        Text { text, level: Level::Primary, reads }
    }

    /// A selection by a mask, lane by lane.
    pub(crate) fn selected(&mut self, vector: Vector, (c, a, b): (&str, &str, &str)) -> String {
        if self.is_opencl {
            return format!("select({b}, {a}, {c})");
        }
        format!("{}({c}, {a}, {b})", self.select(vector))
    }
}

impl Printer<'_, '_> {
    /// True if the text is OpenCL C.
    pub(crate) fn is_opencl(&self) -> bool {
        self.prelude.is_opencl
    }

    /// C's type of an address.
    pub(crate) fn pointer_type(&self, id: ValueId) -> String {
        let constness = if self.mutable[id.index()] { "" } else { "const " };
        if self.is_opencl() {
            return format!("{} {constness}uchar *", self.spaces[id.index()].qualifier());
        }
        format!("{constness}unsigned char *")
    }

    /// An access at an address that is a multiple of `alignment`.
    pub(crate) fn access(&self, pointer: ValueId, ty: Type, alignment: u32) -> Access {
        let space = self.spaces.get(pointer.index()).copied().unwrap_or(Space::Global);
        Access { ty, space, is_aligned: alignment as usize >= ty.scalar.byte_size() }
    }

    /// The number of the running thread or of its workgroup.
    pub(crate) fn thread(&self, index: ThreadIndex) -> Result<Text> {
        if !self.is_opencl() {
            return Err(Error::internal("unexpected thread number outside a kernel of a device"));
        }
        let function = match index {
            ThreadIndex::Local => "get_local_id(0)",
            ThreadIndex::Workgroup => "get_group_id(0)",
        };
        Ok(Text::primary(function).cast("int64_t"))
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
