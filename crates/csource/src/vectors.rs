//! Functions for vectors of GCC and Clang: one lane after another, or an instruction where C has no
//! operator for it.

use crate::opencl_names::opencl_name;
use crate::prelude::{Access, Lane, Prelude, Register, Vector};
use nest::{ScalarType, Type, UnaryOp};

/// Macros of the compilers for x86 with which a register has instructions.
fn for_floats(register: Register) -> &'static str {
    match register.bits {
        128 => "__SSE2__",
        256 => "__AVX__",
        _ => "__AVX512F__",
    }
}

pub(crate) fn for_integers(register: Register) -> &'static str {
    match register.bits {
        128 => "__SSE4_1__",
        256 => "__AVX2__",
        _ => "__AVX512BW__",
    }
}

/// The body of a function: a line for x86 under a macro, and lines for all others.
pub(crate) fn guarded(condition: &str, x86: &str, others: &str) -> String {
    if condition.is_empty() {
        return others.to_owned();
    }
    format!("#if defined({condition})\n  {x86}\n#else\n{others}#endif\n")
}

fn lanes(vector: Vector, statement: &str) -> String {
    format!("  for (int lane = 0; lane < {}; lane++) {{\n    {statement}\n  }}\n", vector.lanes)
}

impl Prelude {
    /// `splat_f32x8(x)`
    pub(crate) fn splat(&mut self, vector: Vector) -> String {
        let ty = self.vector(vector);
        let name = format!("splat_{ty}");
        self.function(&name, |_| {
            let all = vec!["x"; vector.lanes as usize].join(", ");
            format!("static inline {ty} {name}({} x)\n{{\n  return ({ty}){{{all}}};\n}}\n", vector.scalar())
        });
        name
    }

    /// `load_f32x8(address)`. Loads the lanes of the type, which may be fewer than the vector's.
    pub(crate) fn load_vector(&mut self, access: Access) -> String {
        if self.is_opencl {
            return self.opencl_load_vector(access);
        }
        let ty = access.ty;
        let vector = Vector::of(ty);
        let c = self.vector(vector);
        let name = format!("load_{}{}", c, part(ty));
        let bytes = ty.scalar.byte_size() * ty.lanes as usize;
        self.function(&name, |_| {
            let zero = if bytes == vector.total() { "" } else { " = {0}" };
            format!(
                "static inline {c} {name}(const unsigned char *from)\n{{\n  {c} value{zero};\n  (void)memcpy(&value, from, {bytes}u);\n  return value;\n}}\n"
            )
        });
        name
    }

    /// `store_f32x8(address, value)`
    pub(crate) fn store_vector(&mut self, access: Access) -> String {
        if self.is_opencl {
            return self.opencl_store_vector(access);
        }
        let ty = access.ty;
        let c = self.vector(Vector::of(ty));
        let name = format!("store_{}{}", c, part(ty));
        let bytes = ty.scalar.byte_size() * ty.lanes as usize;
        self.function(&name, |_| {
            format!(
                "static inline void {name}(unsigned char *to, {c} value)\n{{\n  (void)memcpy(to, &value, {bytes}u);\n}}\n"
            )
        });
        name
    }

    /// `muladd_f32x8(a, b, c)`
    pub(crate) fn multiply_add_vector(&mut self, ty: Type) -> String {
        let vector = Vector::of(ty);
        if self.is_opencl {
            return self.opencl_multiply_add(vector);
        }
        let c = self.vector(vector);
        let name = format!("muladd_{c}");
        self.uses_x86 = true;
        let (builtin, arm) = match (vector.bytes, vector.lanes) {
            (4, 4) => {
                ("__builtin_fmaf", "float32x4_t)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b")
            }
            (4, _) => ("__builtin_fmaf", ""),
            (_, 2) => {
                ("__builtin_fma", "float64x2_t)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b")
            }
            _ => ("__builtin_fma", ""),
        };
        let fast = if vector.bytes == 4 { "__FP_FAST_FMAF" } else { "__FP_FAST_FMA" };
        self.function(&name, |_| {
            let mut body = String::new();
            let mut word = "#if";
            if let Some(register) = vector.register() {
                let condition = if register.bits == 512 { "__AVX512F__" } else { "__FMA__" };
                let (prefix, end, m) = (register.prefix(), register.float_suffix(), register.ty(Lane::Float));
                body += &format!(
                    "{word} defined({condition})\n  return ({c}){prefix}_fmadd_{end}(({m})a, ({m})b, ({m})c);\n"
                );
                word = "#elif";
            }
            if !arm.is_empty() {
                body += &format!("{word} defined(__aarch64__)\n  return ({c})({arm});\n");
                word = "#elif";
            }
            body += &format!(
                "{word} defined({fast}) || defined(__FMA__)\n  {c} sum = {{0}};\n{}  return sum;\n#else\n  const {c} product = a * b;\n  return product + c;\n#endif\n",
                lanes(vector, &format!("sum[lane] = {builtin}(a[lane], b[lane], c[lane]);"))
            );
            format!(
                "/* a * b + c: rounded once where the processor has the instruction, otherwise twice. */\n\
                 static inline {c} {name}({c} a, {c} b, {c} c)\n{{\n{body}}}\n"
            )
        });
        name
    }

    /// `select_f32x8(mask, a, b)`: `a` where the mask is set.
    pub(crate) fn select(&mut self, vector: Vector) -> String {
        let signed = self.vector(vector.with(Lane::Signed));
        let c = self.vector(vector);
        let name = format!("select_{c}");
        self.uses_x86 = true;
        self.function(&name, |_| {
            let others = if vector.lane == Lane::Signed {
                "  return (a & mask) | (b & ~mask);\n".to_owned()
            } else {
                format!("  return ({c})((({signed})a & mask) | (({signed})b & ~mask));\n")
            };
            let body = match vector.register() {
                Some(register) if register.bits < 512 => {
                    let (prefix, is_float) = (register.prefix(), vector.lane == Lane::Float);
                    let m = register.ty(vector.lane);
                    let (condition, end) = match (is_float, register.bits) {
                        (true, 128) => ("__SSE4_1__", register.float_suffix()),
                        (true, _) => ("__AVX__", register.float_suffix()),
                        (false, _) => (for_integers(register), "epi8"),
                    };
                    // GCC 12 inverts masks of some comparisons here with AVX-512, which has an
                    // instruction for the general form.
                    guarded(
                        &format!("{condition}) && !defined(__AVX512VL__"),
                        &format!("return ({c}){prefix}_blendv_{end}(({m})b, ({m})a, ({m})mask);"),
                        &others,
                    )
                }
                Some(register) if vector.bytes >= 4 => {
                    let m = register.ty(vector.lane);
                    let end = match (vector.bytes, vector.lane == Lane::Float) {
                        (_, true) => register.float_suffix(),
                        (4, false) => "epi32",
                        (_, false) => "epi64",
                    };
                    let bits = vector.bytes * 8;
                    guarded(
                        "__AVX512DQ__",
                        &format!(
                            "return ({c})_mm512_mask_blend_{end}(_mm512_movepi{bits}_mask((__m512i)mask), ({m})b, ({m})a);"
                        ),
                        &others,
                    )
                }
                _ => others,
            };
            format!("static inline {c} {name}({signed} mask, {c} a, {c} b)\n{{\n{body}}}\n")
        });
        name
    }

    /// `max_f32x8(a, b)`: `a > b ? a : b`, or the minimum.
    pub(crate) fn extremum(&mut self, is_max: bool, ty: Type) -> String {
        let vector = Vector::of(ty);
        if self.is_opencl {
            return self.opencl_extremum(is_max, vector);
        }
        if vector.lane != Lane::Float {
            return self.integer_extremum(is_max, vector);
        }
        let select = self.select(vector);
        let (c, signed) = (self.vector(vector), self.vector(vector.with(Lane::Signed)));
        let (word, sign) = if is_max { ("max", '>') } else { ("min", '<') };
        let name = format!("{word}_{c}");
        self.function(&name, |_| {
            let others = format!("  return {select}(({signed})(a {sign} b), a, b);\n");
            let body = match vector.register() {
                Some(register) => {
                    let (prefix, end, m) = (register.prefix(), register.float_suffix(), register.ty(Lane::Float));
                    guarded(
                        for_floats(register),
                        &format!("return ({c}){prefix}_{word}_{end}(({m})a, ({m})b);"),
                        &others,
                    )
                }
                None => others,
            };
            format!("/* a {sign} b ? a : b in each lane. */\nstatic inline {c} {name}({c} a, {c} b)\n{{\n{body}}}\n")
        });
        name
    }

    /// An operation on each lane that is not an operator of C.
    pub(crate) fn unary_vector(&mut self, op: UnaryOp, ty: Type) -> String {
        if self.is_opencl {
            return Self::opencl_unary(op).to_owned();
        }
        let vector = Vector::of(ty);
        let c = self.vector(vector);
        let scalar = self.unary(op, ty.scalar);
        let name = format!("{}_{c}", scalar.rsplit_once('_').map_or("lanes", |(word, _)| word));
        let is_signed = ty.scalar == ScalarType::I64;
        self.function(&name, |prelude| {
            if op == UnaryOp::Abs {
                let u = prelude.vector(vector.with(Lane::Unsigned));
                let mask = if vector.bytes == 4 { "0x7fffffffu" } else { "UINT64_C(0x7fffffffffffffff)" };
                return format!(
                    "static inline {c} {name}({c} x)\n{{\n  return ({c})(({u})x & {mask});\n}}\n"
                );
            }
            let call = if is_signed {
                format!("(uint64_t){scalar}((int64_t)x[lane])")
            } else {
                format!("{scalar}(x[lane])")
            };
            let others = format!(
                "  {c} result = {{0}};\n{}  return result;\n",
                lanes(vector, &format!("result[lane] = {call};"))
            );
            let mode = match op {
                UnaryOp::RoundEven => 8,
                UnaryOp::Floor => 9,
                UnaryOp::Ceil => 10,
                _ => 11,
            };
            let body = match (vector.register(), op) {
                (Some(register), UnaryOp::Sqrt) => {
                    let (prefix, end, m) =
                        (register.prefix(), register.float_suffix(), register.ty(Lane::Float));
                    guarded(
                        for_floats(register),
                        &format!("return ({c}){prefix}_sqrt_{end}(({m})x);"),
                        &others,
                    )
                }
                (Some(register), UnaryOp::RoundEven | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Truncate) => {
                    let (prefix, end, m) =
                        (register.prefix(), register.float_suffix(), register.ty(Lane::Float));
                    let condition = if register.bits == 128 { "__SSE4_1__" } else { for_floats(register) };
                    let word = if register.bits == 512 { "roundscale" } else { "round" };
                    guarded(
                        condition,
                        &format!("return ({c}){prefix}_{word}_{end}(({m})x, {mode});"),
                        &others,
                    )
                }
                _ => others,
            };
            format!("static inline {c} {name}({c} x)\n{{\n{body}}}\n")
        });
        name
    }

    /// A conversion of floats to integers that saturates; NaN becomes 0.
    pub(crate) fn saturated_vector(&mut self, is_signed: bool, from: Type, to: Type) -> String {
        let (a, b) = (Vector::of(from), Vector::of(to));
        let (c, d) = (self.vector(a), self.vector(b));
        let scalar = self.saturated(is_signed, from.scalar, to.scalar);
        if self.is_opencl {
            return self.opencl_each_lane(&scalar, &scalar, &[a], b);
        }
        let name = format!("{scalar}x{}", b.lanes);
        self.function(&name, |prelude| {
            let bits = 8 * to.scalar.byte_size() as i32 - i32::from(is_signed);
            if bits > 31 {
                let cast = if to.scalar == ScalarType::I64 { "(uint64_t)" } else { "" };
                return format!(
                    "static inline {d} {name}({c} x)\n{{\n  {d} result = {{0}};\n{}  return result;\n}}\n",
                    lanes(b, &format!("result[lane] = {cast}{scalar}(x[lane]);"))
                );
            }
            let mantissa = if from.scalar == ScalarType::F32 { 24 } else { 53 };
            let is_rounded = bits > mantissa;
            let end = if from.scalar == ScalarType::F32 { "f" } else { "" };
            let step = if is_rounded { bits - mantissa } else { 0 };
            let high = format!("(0x1p+{bits}{end} - 0x1p+{step}{end})");
            let low = if is_signed { format!("-0x1p+{bits}{end}") } else { format!("0.0{end}") };
            let (max, min, splat) =
                (prelude.extremum(true, from), prelude.extremum(false, from), prelude.splat(a));
            let i32s = Vector::mask(4, b.lanes);
            let ints = prelude.vector(i32s);
            let select = prelude.select(i32s);
            let masks = prelude.vector(a.with(Lane::Signed));
            let mask = |condition: String| {
                let mask = format!("({masks})({condition})");
                if a.bytes == 4 { mask } else { format!("__builtin_convertvector({mask}, {ints})") }
            };
            let top = if is_rounded {
                let is_beyond = mask(format!("x >= {splat}(0x1p+{bits}{end})"));
                let most = prelude.splat(i32s);
                format!("  result = {select}({is_beyond}, {most}(INT32_MAX), result);\n")
            } else {
                String::new()
            };
            let is_number = mask("x == x".to_owned());
            let unsigned = prelude.vector(i32s.with(Lane::Unsigned));
            let last = if b.bytes == 4 {
                format!("({d})result")
            } else {
                format!("__builtin_convertvector(({unsigned})result, {d})")
            };
            format!(
                "/* Truncates and saturates; NaN becomes 0. */\n\
                 static inline {d} {name}({c} x)\n{{\n  \
                 const {c} inside = {min}({max}(x, {splat}({low})), {splat}({high}));\n  \
                 {ints} result = __builtin_convertvector(inside, {ints});\n{top}  \
                 result &= {is_number};\n  return {last};\n}}\n"
            )
        });
        name
    }

    /// A vector with one lane replaced.
    pub(crate) fn insert(&mut self, vector: Vector, lane: u32) -> String {
        if self.is_opencl {
            return self.opencl_insert(vector, lane);
        }
        let c = self.vector(vector);
        let name = format!("insert_{c}");
        self.function(&name, |_| {
            format!(
                "static inline {c} {name}({c} vector, int lane, {} x)\n{{\n  {c} result = vector;\n  result[lane] = x;\n  return result;\n}}\n",
                vector.scalar()
            )
        });
        name
    }

    /// A function that applies a function of scalars to the lanes of vectors with the given types.
    pub(crate) fn each_lane(
        &mut self,
        name: &str,
        scalar: &str,
        arguments: &[Vector],
        result: Vector,
    ) -> String {
        if self.is_opencl {
            return self.opencl_each_lane(name, scalar, arguments, result);
        }
        let types: Vec<String> = arguments.iter().map(|&vector| self.vector(vector)).collect();
        let c = self.vector(result);
        let name = format!("{name}x{}", result.lanes);
        self.function(&name, |_| {
            let letters = ["a", "b", "c"];
            let list: Vec<String> =
                types.iter().zip(letters).map(|(ty, letter)| format!("{ty} {letter}")).collect();
            let values: Vec<String> =
                types.iter().zip(letters).map(|(_, letter)| format!("{letter}[lane]")).collect();
            format!(
                "static inline {c} {name}({})\n{{\n  {c} result = {{0}};\n{}  return result;\n}}\n",
                list.join(", "),
                lanes(result, &format!("result[lane] = {scalar}({});", values.join(", ")))
            )
        });
        name
    }

    /// A quotient or remainder of integers in each of the type's lanes.
    pub(crate) fn divide(&mut self, is_signed: bool, is_quotient: bool, ty: Type) -> String {
        if self.is_opencl {
            return self.opencl_divide(is_signed, is_quotient, ty);
        }
        let vector = Vector::of(ty);
        let c = self.vector(vector);
        let (word, sign) = if is_quotient { ("quotient", '/') } else { ("remainder", '%') };
        let letter = if is_signed { "signed" } else { "unsigned" };
        let name = format!("{letter}_{word}_{c}{}", part(ty));
        self.function(&name, |_| {
            let scalar = vector.scalar();
            let kind = if is_signed { vector.with(Lane::Signed).scalar() } else { scalar };
            format!(
                "static inline {c} {name}({c} a, {c} b)\n{{\n  {c} result = a;\n  for (int lane = 0; lane < {}; lane++) {{\n    result[lane] = ({scalar})(({kind})a[lane] {sign} ({kind})b[lane]);\n  }}\n  return result;\n}}\n",
                ty.lanes
            )
        });
        name
    }

    /// The entries of a table of bytes.
    pub(crate) fn lookup(&mut self, ty: Type) -> String {
        if self.is_opencl {
            return self.opencl_lookup(ty);
        }
        let vector = Vector::of(ty);
        let c = self.vector(vector);
        let name = format!("lookup_{c}{}", part(ty));
        self.function(&name, |_| {
            format!(
                "static inline {c} {name}(const unsigned char *table, {c} index)\n{{\n  {c} result = index;\n  for (int lane = 0; lane < {}; lane++) {{\n    result[lane] = table[index[lane]];\n  }}\n  return result;\n}}\n",
                ty.lanes
            )
        });
        name
    }

    /// `c` plus products of groups of bytes in each lane.
    pub(crate) fn byte_products_vector(&mut self, is_signed: bool, count: u32) -> String {
        let vector = Vector { lane: Lane::Unsigned, bytes: 4, lanes: count.next_power_of_two() };
        let c = self.vector(vector);
        let scalar = self.byte_products(is_signed);
        if self.is_opencl {
            return self.opencl_each_lane(scalar, scalar, &[vector; 3], vector);
        }
        let name = format!("{scalar}x{}", vector.lanes);
        self.uses_x86 = true;
        self.function(&name, |prelude| {
            let halves = Vector { lane: Lane::Unsigned, bytes: 2, lanes: vector.lanes * 2 };
            let (words, signed) = (prelude.vector(halves), prelude.vector(halves.with(Lane::Signed)));
            let mut body = String::new();
            let mut word = "#if";
            if let Some(register) = vector.register() {
                let (prefix, m) = (register.prefix(), register.ty(Lane::Unsigned));
                if !is_signed {
                    let condition = if register.bits == 512 {
                        "defined(__AVX512VNNI__)"
                    } else {
                        "defined(__AVX512VNNI__) && defined(__AVX512VL__)"
                    };
                    body += &format!(
                        "{word} {condition}\n  return ({c}){prefix}_dpbusd_epi32(({m})c, ({m})a, ({m})b);\n"
                    );
                    word = "#elif";
                    if register.bits < 512 {
                        body += &format!(
                            "{word} defined(__AVXVNNI__)\n  return ({c}){prefix}_dpbusd_avx_epi32(({m})c, ({m})a, ({m})b);\n"
                        );
                    }
                }
                let condition = if register.bits == 128 { "__SSE2__" } else { for_integers(register) };
                let (even, odd) = if is_signed {
                    (format!("(({signed})(({words})a << 8) >> 8)"), format!("(({signed})a >> 8)"))
                } else {
                    (format!("((({words})a << 8) >> 8)"), format!("(({words})a >> 8)"))
                };
                body += &format!(
                    "{word} defined({condition})\n  \
                     const {m} even = {prefix}_madd_epi16(({m}){even}, ({m})(({signed})(({words})b << 8) >> 8));\n  \
                     const {m} odd = {prefix}_madd_epi16(({m}){odd}, ({m})(({signed})b >> 8));\n  \
                     return c + ({c})even + ({c})odd;\n#else\n"
                );
            }
            body += &format!(
                "  {c} result = {{0}};\n{}  return result;\n",
                lanes(vector, &format!("result[lane] = {scalar}(a[lane], b[lane], c[lane]);"))
            );
            if vector.register().is_some() {
                body += "#endif\n";
            }
            format!("static inline {c} {name}({c} a, {c} b, {c} c)\n{{\n{body}}}\n")
        });
        name
    }

    /// Conversion between `f16` and `f32` in each lane.
    pub(crate) fn f16_vector(&mut self, extends: bool, count: u32) -> String {
        let lanes_in_c = count.next_power_of_two();
        let halves = Vector { lane: Lane::Unsigned, bytes: 2, lanes: lanes_in_c };
        let floats = Vector { lane: Lane::Float, bytes: 4, lanes: lanes_in_c };
        let (from, to) = if extends { (halves, floats) } else { (floats, halves) };
        let scalar = if extends { self.extend_f16() } else { self.truncate_to_f16() };
        if self.is_opencl {
            return self.opencl_each_lane(scalar, scalar, &[from], to);
        }
        let (a, b) = (self.vector(from), self.vector(to));
        let name = format!("{scalar}x{lanes_in_c}");
        self.uses_x86 = true;
        self.function(&name, |_| {
            let others =
                format!("  {b} result = {{0}};\n{}  return result;\n", lanes(to, &format!("result[lane] = {scalar}(x[lane]);")));
            let (condition, prefix, half, float) = match lanes_in_c {
                8 => ("__F16C__", "_mm256", "__m128i", "__m256"),
                16 => ("__AVX512F__", "_mm512", "__m256i", "__m512"),
                _ => ("", "", "", ""),
            };
            let x86 = if extends {
                format!("return ({b}){prefix}_cvtph_ps(({half})x);")
            } else {
                let _ = float;
                format!("return ({b}){prefix}_cvtps_ph(({float})x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);")
            };
            format!("static inline {b} {name}({a} x)\n{{\n{}}}\n", guarded(condition, &x86, &others))
        });
        name
    }

    /// A reinterpretation of bytes between two types of C of the same size.
    pub(crate) fn same_bytes(&mut self, from: &str, to: &str) -> String {
        if self.is_opencl {
            return format!("as_{}", opencl_name(to));
        }
        let word = |ty: &str| ty.trim_end_matches("_t").replace(' ', "_");
        let name = format!("{}_of_{}", word(to), word(from));
        self.function(&name, |_| {
            format!(
                "static inline {to} {name}({from} x)\n{{\n  {to} result;\n  (void)memcpy(&result, &x, sizeof result);\n  return result;\n}}\n"
            )
        });
        name
    }

    /// Products of fixed-point numbers in each lane.
    pub(crate) fn multiply_fixed_vector(&mut self, count: u32) -> String {
        let vector = Vector { lane: Lane::Unsigned, bytes: 4, lanes: count.next_power_of_two() };
        let scalar = self.multiply_fixed();
        if self.is_opencl {
            return self.opencl_each_lane(scalar, scalar, &[vector; 2], vector);
        }
        let c = self.vector(vector);
        let name = format!("{scalar}_x{}", vector.lanes);
        self.uses_x86 = true;
        self.function(&name, |prelude| {
            let wide = prelude.vector(Vector { lane: Lane::Unsigned, bytes: 8, lanes: (vector.lanes / 2).max(1) });
            let others = format!(
                "  {c} result = {{0}};\n{}  return result;\n",
                lanes(vector, &format!("result[lane] = {scalar}(a[lane], b[lane]);"))
            );
            let body = match vector.register() {
                Some(register) => {
                    let (prefix, m) = (register.prefix(), register.ty(Lane::Unsigned));
                    let order: Vec<String> =
                        (0..vector.lanes).map(|lane| (lane + lane % 2 * vector.lanes).to_string()).collect();
                    let condition = if register.bits == 512 { "__AVX512F__" } else { for_integers(register) };
                    guarded(
                        condition,
                        &format!(
                            "const {wide} half = ({wide}){{0}} + 0x40000000u;\n  \
                             const {wide} even = ({wide}){prefix}_mul_epi32(({m})a, ({m})b) + half;\n  \
                             const {wide} odd = ({wide}){prefix}_mul_epi32(({m})(({wide})a >> 32), ({m})(({wide})b >> 32)) + half;\n  \
                             return __builtin_shufflevector(({c})(even >> 31), ({c})(odd << 1), {});",
                            order.join(", ")
                        ),
                        &others,
                    )
                }
                None => others,
            };
            format!("static inline {c} {name}({c} a, {c} b)\n{{\n{body}}}\n")
        });
        name
    }
}

/// The end of the name of a function for a type with fewer lanes than its vector.
pub(crate) fn part(ty: Type) -> String {
    if ty.lanes.is_power_of_two() { String::new() } else { format!("_first_{}", ty.lanes) }
}
