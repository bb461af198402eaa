//! The spelling of vectors in the two dialects: the vector types of GCC and Clang, and those of
//! OpenCL C.

use crate::opencl_names::{LANES, lane_name};
use crate::prelude::{Lane, Prelude, Vector};
use crate::text::{Level, Text};

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
