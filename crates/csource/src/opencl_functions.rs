//! Functions of the prelude in OpenCL C. Many are the language's own.

use crate::opencl_names::{lane_name, opencl_name};
use crate::prelude::{Access, Lane, Prelude, Vector, scalar_type};
use crate::scalars::suffix;
use crate::vectors::part;
use nest::{ScalarType, Type, UnaryOp};

/// The type as which memory is accessed. Kernels use memory with several types in turn.
fn in_memory(scalar: ScalarType) -> String {
    format!("memory_{}", suffix(scalar))
}

/// The text of the lanes of a vector, each computed by `lane` from `.s0` and so on.
fn each(vector: Vector, lane: impl Fn(&str) -> String) -> String {
    let lanes: Vec<String> = (0..vector.lanes).map(|number| lane(&lane_name(number))).collect();
    lanes.join(", ")
}

impl Prelude {
    /// Declares the type as which memory is accessed, and returns its name.
    fn memory_type(&mut self, scalar: ScalarType) -> String {
        let name = in_memory(scalar);
        self.function(&name, |_| format!("typedef {} {name} TFC_MAY_ALIAS;\n", scalar_type(scalar)));
        name
    }

    /// `load_f32(address)`, `load_local_f32(address)`
    pub(crate) fn opencl_load(&mut self, access: Access) -> String {
        let Access { ty: Type { scalar, .. }, space, is_aligned } = access;
        let name = format!("load_{}{}{}", space.word(), suffix(scalar), access.ending());
        let (ty, from) = (scalar_type(scalar), format!("{} const uchar *from", space.qualifier()));
        let memory = self.memory_type(scalar);
        self.function(&name, |_| {
            if is_aligned {
                let at = format!("({} const {memory} *)from", space.qualifier());
                return format!("static inline {ty} {name}({from})\n{{\n  return *{at};\n}}\n");
            }
            let (word, back) = bytes_of(scalar);
            let parts: Vec<String> =
                (0..scalar.byte_size()).map(|k| format!("(({word})from[{k}] << {})", 8 * k)).collect();
            format!("static inline {ty} {name}({from})\n{{\n  return {back}({});\n}}\n", parts.join(" | "))
        });
        name
    }

    /// `store_f32(address, value)`, `store_local_f32(address, value)`
    pub(crate) fn opencl_store(&mut self, access: Access) -> String {
        let Access { ty: Type { scalar, .. }, space, is_aligned } = access;
        let name = format!("store_{}{}{}", space.word(), suffix(scalar), access.ending());
        let (ty, to) = (scalar_type(scalar), format!("{} uchar *to", space.qualifier()));
        let memory = self.memory_type(scalar);
        self.function(&name, |_| {
            let body = if is_aligned {
                format!("  *({} {memory} *)to = value;\n", space.qualifier())
            } else {
                let (word, _) = bytes_of(scalar);
                let store = |k: usize| format!("  to[{k}] = (uchar)(bits >> {});\n", 8 * k);
                let stores: String = (0..scalar.byte_size()).map(store).collect();
                format!("  const {word} bits = as_{}(value);\n{stores}", opencl_name(word))
            };
            format!("static inline void {name}({to}, {ty} value)\n{{\n{body}}}\n")
        });
        name
    }

    /// `load_float4(address)`, `load_local_float4(address)`
    pub(crate) fn opencl_load_vector(&mut self, access: Access) -> String {
        let (vector, count) = (Vector::of(access.ty), access.ty.lanes);
        let c = self.vector(vector);
        let name = format!("load_{}{c}{}{}", access.space.word(), part(access.ty), access.ending());
        let scalar = self.opencl_load(access);
        let bytes = vector.bytes as u32;
        self.function(&name, |_| {
            let lane = |number: u32| {
                if number < count { format!("{scalar}(from + {})", number * bytes) } else { "0".to_owned() }
            };
            let lanes: Vec<String> = (0..vector.lanes).map(lane).collect();
            let from = access.space.qualifier();
            format!(
                "static inline {c} {name}({from} const uchar *from)\n{{\n  return ({c})({});\n}}\n",
                lanes.join(", ")
            )
        });
        name
    }

    /// `store_float4(address, value)`, `store_local_float4(address, value)`
    pub(crate) fn opencl_store_vector(&mut self, access: Access) -> String {
        let vector = Vector::of(access.ty);
        let c = self.vector(vector);
        let name = format!("store_{}{c}{}{}", access.space.word(), part(access.ty), access.ending());
        let scalar = self.opencl_store(access);
        self.function(&name, |_| {
            let store = |number: u32| {
                format!("  {scalar}(to + {}, value.{});\n", number * vector.bytes as u32, lane_name(number))
            };
            let stores: String = (0..access.ty.lanes).map(store).collect();
            let to = access.space.qualifier();
            format!("static inline void {name}({to} uchar *to, {c} value)\n{{\n{stores}}}\n")
        });
        name
    }

    /// `load_masked_float4(address, mask)`: zeros in the other lanes, whose memory is not read.
    pub(crate) fn opencl_load_masked(&mut self, access: Access) -> String {
        let vector = Vector::of(access.ty);
        let (c, mask) = (self.vector(vector), self.vector(Vector::mask(vector.bytes, vector.lanes)));
        let name = format!("load_masked_{}{c}{}{}", access.space.word(), part(access.ty), access.ending());
        let scalar = self.opencl_load(access);
        self.function(&name, |_| {
            let load = |number: u32| {
                let (lane, at) = (lane_name(number), number * vector.bytes as u32);
                format!("  if (mask.{lane} != 0) {{\n    value.{lane} = {scalar}(from + {at});\n  }}\n")
            };
            let loads: String = (0..access.ty.lanes).map(load).collect();
            let from = access.space.qualifier();
            format!(
                "static inline {c} {name}({from} const uchar *from, {mask} mask)\n{{\n  {c} value = ({c})(0);\n{loads}  return value;\n}}\n"
            )
        });
        name
    }

    /// `store_masked_float4(address, value, mask)`
    pub(crate) fn opencl_store_masked(&mut self, access: Access) -> String {
        let vector = Vector::of(access.ty);
        let (c, mask) = (self.vector(vector), self.vector(Vector::mask(vector.bytes, vector.lanes)));
        let name = format!("store_masked_{}{c}{}{}", access.space.word(), part(access.ty), access.ending());
        let scalar = self.opencl_store(access);
        self.function(&name, |_| {
            let store = |number: u32| {
                let (lane, at) = (lane_name(number), number * vector.bytes as u32);
                format!("  if (mask.{lane} != 0) {{\n    {scalar}(to + {at}, value.{lane});\n  }}\n")
            };
            let stores: String = (0..access.ty.lanes).map(store).collect();
            let to = access.space.qualifier();
            format!("static inline void {name}({to} uchar *to, {c} value, {mask} mask)\n{{\n{stores}}}\n")
        });
        name
    }

    /// A loop that copies bytes from one kind of memory to another.
    pub(crate) fn opencl_copy(&mut self, to: Access, from: Access) -> String {
        let name = format!("copy_bytes_{}from_{}memory", to.space.word(), from.space.word());
        self.function(&name, |_| {
            format!(
                "static inline void {name}({} uchar *to, {} const uchar *from, ulong bytes)\n{{\n  for (ulong k = 0; k < bytes; k++) {{\n    to[k] = from[k];\n  }}\n}}\n",
                to.space.qualifier(),
                from.space.qualifier()
            )
        });
        name
    }

    /// A loop that sets bytes to a value.
    pub(crate) fn opencl_fill(&mut self, to: Access) -> String {
        let name = format!("fill_{}bytes", to.space.word());
        self.function(&name, |_| {
            format!(
                "static inline void {name}({} uchar *to, uchar byte, ulong bytes)\n{{\n  for (ulong k = 0; k < bytes; k++) {{\n    to[k] = byte;\n  }}\n}}\n",
                to.space.qualifier()
            )
        });
        name
    }

    /// `muladd_float(a, b, c)`: `a * b + c`.
    pub(crate) fn opencl_multiply_add(&mut self, vector: Vector) -> String {
        let c = if vector.lanes == 1 { vector.scalar().to_owned() } else { self.vector(vector) };
        let name = format!("muladd_{c}");
        let fast = if vector.bytes == 4 { "FP_FAST_FMAF" } else { "FP_FAST_FMA" };
        self.function(&name, |_| {
            format!(
                "/* a * b + c: rounded once where that is fast, otherwise twice. */\n\
                 static inline {c} {name}({c} a, {c} b, {c} c)\n{{\n\
                 #if defined({fast})\n  return fma(a, b, c);\n#else\n  const {c} product = a * b;\n  return product + c;\n#endif\n}}\n"
            )
        });
        name
    }

    /// The language's function for an operation on numbers or vectors.
    pub(crate) fn opencl_unary(op: UnaryOp) -> &'static str {
        match op {
            UnaryOp::Abs => "fabs",
            UnaryOp::Sqrt => "sqrt",
            UnaryOp::Floor => "floor",
            UnaryOp::Ceil => "ceil",
            UnaryOp::Truncate => "trunc",
            UnaryOp::RoundEven => "rint",
            UnaryOp::CountLeadingZeros => "clz",
            _ => "popcount",
        }
    }

    /// The `f32` with the bits of an `f16`. No extension is needed to load one from memory.
    pub(crate) fn opencl_extend_f16(&mut self) -> &'static str {
        let name = "f32_of_f16";
        self.function(name, |_| {
            format!(
                "static inline float {name}(ushort bits)\n{{\n  return vload_half(0, (const half *)&bits);\n}}\n"
            )
        });
        name
    }

    /// The bits of the nearest `f16` of an `f32`.
    pub(crate) fn opencl_truncate_to_f16(&mut self) -> &'static str {
        let name = "f16_of_f32";
        self.function(name, |_| {
            format!(
                "static inline ushort {name}(float x)\n{{\n  ushort bits;\n  vstore_half_rte(x, 0, (half *)&bits);\n  return bits;\n}}\n"
            )
        });
        name
    }

    /// `max_float4(a, b)`: `a > b ? a : b`, or the minimum.
    pub(crate) fn opencl_extremum(&mut self, is_max: bool, vector: Vector) -> String {
        let c = self.vector(vector);
        let (word, sign) = if is_max { ("max", '>') } else { ("min", '<') };
        if vector.lane != Lane::Float {
            let signed = self.vector(vector.with(Lane::Signed));
            let name = format!("{word}_{signed}");
            self.function(&name, |_| {
                format!(
                    "/* The lanes are signed. */\nstatic inline {c} {name}({c} a, {c} b)\n{{\n  return as_{c}({word}(as_{signed}(a), as_{signed}(b)));\n}}\n"
                )
            });
            return name;
        }
        let name = format!("{word}_{c}");
        self.function(&name, |_| {
            format!(
                "/* a {sign} b ? a : b in each lane. */\nstatic inline {c} {name}({c} a, {c} b)\n{{\n  return select(b, a, a {sign} b);\n}}\n"
            )
        });
        name
    }

    /// A vector with one lane replaced.
    pub(crate) fn opencl_insert(&mut self, vector: Vector, lane: u32) -> String {
        let (c, lane) = (self.vector(vector), lane_name(lane));
        let name = format!("with_{lane}_{c}");
        self.function(&name, |_| {
            format!(
                "static inline {c} {name}({c} vector, {} x)\n{{\n  vector.{lane} = x;\n  return vector;\n}}\n",
                vector.scalar()
            )
        });
        name
    }

    /// A function that applies a function of scalars to the lanes of vectors.
    pub(crate) fn opencl_each_lane(
        &mut self,
        name: &str,
        scalar: &str,
        arguments: &[Vector],
        result: Vector,
    ) -> String {
        let types: Vec<String> = arguments.iter().map(|&vector| self.vector(vector)).collect();
        let c = self.vector(result);
        let name = format!("{name}_{c}");
        self.function(&name, |_| {
            let letters = &["a", "b", "c"][..types.len()];
            let list: Vec<String> =
                types.iter().zip(letters).map(|(ty, letter)| format!("{ty} {letter}")).collect();
            let lanes = each(result, |lane| {
                let values: Vec<String> = letters.iter().map(|letter| format!("{letter}.{lane}")).collect();
                format!("({}){scalar}({})", result.scalar(), values.join(", "))
            });
            format!("static inline {c} {name}({})\n{{\n  return ({c})({lanes});\n}}\n", list.join(", "))
        });
        name
    }

    /// A quotient or remainder of integers in each of the type's lanes.
    pub(crate) fn opencl_divide(&mut self, is_signed: bool, is_quotient: bool, ty: Type) -> String {
        let vector = Vector::of(ty);
        let c = self.vector(vector);
        let (word, sign) = if is_quotient { ("quotient", '/') } else { ("remainder", '%') };
        let kind = if is_signed { "signed" } else { "unsigned" };
        let name = format!("{kind}_{word}_{c}{}", part(ty));
        let number = vector.with(if is_signed { Lane::Signed } else { Lane::Unsigned }).scalar();
        self.function(&name, |_| {
            let divide = |lane: u32| {
                let lane = lane_name(lane);
                format!("  a.{lane} = ({})(({number})a.{lane} {sign} ({number})b.{lane});\n", vector.scalar())
            };
            let lines: String = (0..ty.lanes).map(divide).collect();
            format!("static inline {c} {name}({c} a, {c} b)\n{{\n{lines}  return a;\n}}\n")
        });
        name
    }

    /// The entries of a table of bytes.
    pub(crate) fn opencl_lookup(&mut self, ty: Type) -> String {
        let vector = Vector::of(ty);
        let c = self.vector(vector);
        let name = format!("lookup_{c}");
        self.function(&name, |_| {
            let lanes = each(vector, |lane| format!("table[index.{lane}]"));
            format!("static inline {c} {name}(constant const uchar *table, {c} index)\n{{\n  return ({c})({lanes});\n}}\n")
        });
        name
    }

    /// The bits of a mask as an unsigned integer, the first lane in the lowest one.
    pub(crate) fn opencl_bits_of_mask(&mut self, mask: Vector, count: u32) -> String {
        let c = self.vector(mask);
        let name = format!("bits_of_{c}_{count}");
        self.function(&name, |_| {
            let bit = |lane: u32| format!("(mask.{} != 0 ? 1UL << {lane} : 0UL)", lane_name(lane));
            let bits: Vec<String> = (0..count).map(bit).collect();
            format!("static inline ulong {name}({c} mask)\n{{\n  return {};\n}}\n", bits.join(" | "))
        });
        name
    }

    /// The reverse of [`Self::opencl_bits_of_mask`].
    pub(crate) fn opencl_mask_of_bits(&mut self, mask: Vector, count: u32) -> String {
        let c = self.vector(mask);
        let name = format!("{c}_of_bits_{count}");
        self.function(&name, |_| {
            let lane = |lane: u32| {
                if lane < count {
                    format!("((bits >> {lane}) & 1UL) != 0UL ? -1 : 0")
                } else {
                    "0".to_owned()
                }
            };
            let lanes: Vec<String> = (0..mask.lanes).map(lane).collect();
            format!("static inline {c} {name}(ulong bits)\n{{\n  return ({c})({});\n}}\n", lanes.join(", "))
        });
        name
    }
}

/// The integer that holds the bits of a scalar, and the function that turns it into one.
fn bytes_of(scalar: ScalarType) -> (&'static str, String) {
    let word = match scalar.byte_size() {
        1 => "uint8_t",
        2 => "uint16_t",
        4 => "uint32_t",
        _ => "uint64_t",
    };
    match scalar {
        ScalarType::I8 | ScalarType::I16 => (word, format!("({word})")),
        _ => (word, format!("as_{}", opencl_name(scalar_type(scalar)))),
    }
}
