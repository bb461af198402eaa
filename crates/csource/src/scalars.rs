//! Functions for scalars, in C11 for any compiler. Where a processor has an instruction, the
//! compiler's builtin for it is used.

use crate::prelude::{Access, Prelude, Vector, scalar_type};
use nest::{ScalarType, Type, UnaryOp};

/// Names of a scalar type's functions end so.
pub(crate) fn suffix(scalar: ScalarType) -> &'static str {
    match scalar {
        ScalarType::Bool => "bool",
        ScalarType::I8 => "u8",
        ScalarType::I16 => "u16",
        ScalarType::I32 => "u32",
        ScalarType::I64 => "i64",
        ScalarType::F32 => "f32",
        ScalarType::F64 => "f64",
        ScalarType::Ptr => "address",
    }
}

impl Prelude {
    /// `load_f32(address)`
    pub(crate) fn load(&mut self, access: Access) -> String {
        if self.is_opencl {
            return self.opencl_load(access);
        }
        let scalar = access.ty.scalar;
        let name = format!("load_{}", suffix(scalar));
        let ty = scalar_type(scalar);
        self.function(&name, |_| {
            format!(
                "static inline {ty} {name}(const unsigned char *from)\n{{\n  {ty} value;\n  (void)memcpy(&value, from, sizeof value);\n  return value;\n}}\n"
            )
        });
        name
    }

    /// `store_f32(address, value)`
    pub(crate) fn store(&mut self, access: Access) -> String {
        if self.is_opencl {
            return self.opencl_store(access);
        }
        let scalar = access.ty.scalar;
        let name = format!("store_{}", suffix(scalar));
        let ty = scalar_type(scalar);
        self.function(&name, |_| {
            format!(
                "static inline void {name}(unsigned char *to, {ty} value)\n{{\n  (void)memcpy(to, &value, sizeof value);\n}}\n"
            )
        });
        name
    }

    /// The bits of a float as an unsigned integer.
    pub(crate) fn bits_of(&mut self, scalar: ScalarType) -> &'static str {
        if self.is_opencl {
            return if scalar == ScalarType::F32 { "as_uint" } else { "as_ulong" };
        }
        let (name, from, to) = match scalar {
            ScalarType::F32 => ("bits_of_f32", "float", "uint32_t"),
            _ => ("bits_of_f64", "double", "uint64_t"),
        };
        self.function(name, |_| reinterpret(name, from, to));
        name
    }

    /// The float with the bits of an unsigned integer.
    pub(crate) fn of_bits(&mut self, scalar: ScalarType) -> &'static str {
        if self.is_opencl {
            return if scalar == ScalarType::F32 { "as_float" } else { "as_double" };
        }
        let (name, from, to) = match scalar {
            ScalarType::F32 => ("f32_of_bits", "uint32_t", "float"),
            _ => ("f64_of_bits", "uint64_t", "double"),
        };
        self.function(name, |_| reinterpret(name, from, to));
        name
    }

    /// `a * b + c`, rounded once where the processor can.
    pub(crate) fn multiply_add(&mut self, scalar: ScalarType) -> &'static str {
        if self.is_opencl {
            let _ = self.opencl_multiply_add(Vector::of(Type::scalar(scalar)));
            return if scalar == ScalarType::F32 { "muladd_float" } else { "muladd_double" };
        }
        let (name, ty, builtin, fast) = match scalar {
            ScalarType::F32 => ("muladd_f32", "float", "__builtin_fmaf", "__FP_FAST_FMAF"),
            _ => ("muladd_f64", "double", "__builtin_fma", "__FP_FAST_FMA"),
        };
        self.function(name, |_| {
            let arm = if scalar == ScalarType::F32 { "(__ARM_FP & 4)" } else { "(__ARM_FP & 8)" };
            format!(
                "/* a * b + c: rounded once where the processor has the instruction, otherwise twice. */\n\
                 static inline {ty} {name}({ty} a, {ty} b, {ty} c)\n{{\n\
                 #if defined(__GNUC__) && (defined({fast}) || defined(__FMA__) || defined(__aarch64__) || defined(__riscv_{}) || \\\n    (defined(__ARM_FEATURE_FMA) && defined(__ARM_FP) && {arm}))\n  \
                 return {builtin}(a, b, c);\n#else\n  const {ty} product = a * b;\n  return product + c;\n#endif\n}}\n",
                if scalar == ScalarType::F32 { "f" } else { "d" }
            )
        });
        name
    }

    /// An operation on one float or integer that is not an operator of C.
    pub(crate) fn unary(&mut self, op: UnaryOp, scalar: ScalarType) -> String {
        if self.is_opencl {
            return Self::opencl_unary(op).to_owned();
        }
        let word = match op {
            UnaryOp::Abs => "abs",
            UnaryOp::Sqrt => "sqrt",
            UnaryOp::Floor => "floor",
            UnaryOp::Ceil => "ceil",
            UnaryOp::Truncate => "trunc",
            UnaryOp::RoundEven => "round_even",
            UnaryOp::CountLeadingZeros => "leading_zeros",
            UnaryOp::PopulationCount => "set_bits",
            _ => "unsupported",
        };
        let name = format!("{word}_{}", suffix(scalar));
        let op_name = name.clone();
        self.function(&name, |prelude| match op {
            UnaryOp::CountLeadingZeros => leading_zeros(&op_name, scalar),
            UnaryOp::PopulationCount => set_bits(&op_name, scalar),
            UnaryOp::Abs => abs(prelude, &op_name, scalar),
            UnaryOp::Sqrt => sqrt(prelude, &op_name, scalar),
            _ => round(prelude, op, &op_name, scalar),
        });
        name
    }

    /// A conversion of a float to an integer that saturates; NaN becomes 0.
    pub(crate) fn saturated(&mut self, is_signed: bool, from: ScalarType, to: ScalarType) -> String {
        let bits = 8 * to.byte_size() as i32;
        let letter = if is_signed { 'i' } else { 'u' };
        let name = format!("{letter}{bits}_of_{}", suffix(from));
        let (float, end) = if from == ScalarType::F32 { ("float", "f") } else { ("double", "") };
        self.function(&name.clone(), |_| {
            let ty = scalar_type(to);
            let digits = bits - i32::from(is_signed);
            let (signed, least, most, low) = if is_signed {
                (format!("int{bits}_t"), format!("INT{bits}_MIN"), format!("INT{bits}_MAX"), format!("-0x1p+{digits}{end}"))
            } else {
                (format!("uint{bits}_t"), "0".to_owned(), format!("UINT{bits}_MAX"), format!("0.0{end}"))
            };
            format!(
                "/* Truncates and saturates; NaN becomes 0. */\n\
                 static inline {ty} {name}({float} x)\n{{\n  {signed} result = 0;\n  if (x >= 0x1p+{digits}{end}) {{\n    result = {most};\n  }} else if (x <= {low}) {{\n    result = {least};\n  }} else if (x == x) {{\n    result = ({signed})x;\n  }}\n  return ({ty})result;\n}}\n"
            )
        });
        name
    }

    /// The `f32` with the bits of an `f16`.
    pub(crate) fn extend_f16(&mut self) -> &'static str {
        if self.is_opencl {
            return self.opencl_extend_f16();
        }
        let name = "f32_of_f16";
        self.function(name, |prelude| {
            let of_bits = prelude.of_bits(ScalarType::F32);
            format!(
                "/* The value of the bits of an f16. */\n\
                 static inline float {name}(uint16_t half)\n{{\n  \
                 const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;\n  \
                 const uint32_t magnitude = (uint32_t)half & 0x7fffu;\n  \
                 uint32_t bits;\n  \
                 if (magnitude >= 0x7c00u) {{\n    bits = (magnitude << 13) + 0x70000000u;\n    if (magnitude > 0x7c00u) {{\n      bits |= 0x400000u;\n    }}\n  }} \
                 else if (magnitude >= 0x0400u) {{\n    bits = (magnitude << 13) + 0x38000000u;\n  }} \
                 else {{\n    const float small = (float)magnitude * 0x1p-24f;\n    (void)memcpy(&bits, &small, sizeof bits);\n  }}\n  \
                 return {of_bits}(sign | bits);\n}}\n"
            )
        });
        name
    }

    /// The bits of the nearest `f16` of an `f32`.
    pub(crate) fn truncate_to_f16(&mut self) -> &'static str {
        if self.is_opencl {
            return self.opencl_truncate_to_f16();
        }
        let name = "f16_of_f32";
        self.function(name, |prelude| {
            let bits_of = prelude.bits_of(ScalarType::F32);
            let of_bits = prelude.of_bits(ScalarType::F32);
            format!(
                "/* The bits of the nearest f16, ties to even. */\n\
                 static inline uint16_t {name}(float x)\n{{\n  \
                 const uint32_t bits = {bits_of}(x);\n  \
                 const uint32_t sign = (bits >> 16) & 0x8000u;\n  \
                 const uint32_t magnitude = bits & 0x7fffffffu;\n  \
                 uint32_t half;\n  \
                 if (magnitude > 0x7f800000u) {{\n    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);\n  }} \
                 else if (magnitude >= 0x477ff000u) {{\n    half = 0x7c00u;\n  }} \
                 else if (magnitude >= 0x38800000u) {{\n    half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;\n  }} \
                 else {{\n    half = {bits_of}({of_bits}(magnitude) + 0.5f) - 0x3f000000u;\n  }}\n  \
                 return (uint16_t)(sign | half);\n}}\n"
            )
        });
        name
    }

    /// `a * b / 2^31` of fixed-point numbers, rounded.
    pub(crate) fn multiply_fixed(&mut self) -> &'static str {
        let name = "multiply_fixed";
        self.function(name, |_| {
            format!(
                "/* a * b / 2^31 of signed numbers, rounded to the nearest, halves up. */\n\
                 static inline uint32_t {name}(uint32_t a, uint32_t b)\n{{\n  \
                 const int64_t product = (int64_t)(int32_t)a * (int64_t)(int32_t)b;\n  \
                 return (uint32_t)((uint64_t)(product + 0x40000000) >> 31);\n}}\n"
            )
        });
        name
    }

    /// `c` plus the products of the four bytes of `a` and `b`.
    pub(crate) fn byte_products(&mut self, is_signed: bool) -> &'static str {
        let (name, cast) = if is_signed {
            ("add_products_of_i8", "(int8_t)")
        } else {
            ("add_products_of_u8_i8", "(uint8_t)")
        };
        self.function(name, |_| {
            format!(
                "/* c plus the products of the four {} bytes of a and the four signed ones of b. */\n\
                 static inline uint32_t {name}(uint32_t a, uint32_t b, uint32_t c)\n{{\n  uint32_t sum = c;\n  \
                 for (uint32_t shift = 0u; shift < 32u; shift += 8u) {{\n    \
                 const int32_t x = (int32_t){cast}(uint8_t)(a >> shift);\n    const int32_t y = (int32_t)(int8_t)(uint8_t)(b >> shift);\n    \
                 sum += (uint32_t)(x * y);\n  }}\n  return sum;\n}}\n",
                if is_signed { "signed" } else { "unsigned" }
            )
        });
        name
    }

    /// `c` plus the products of the two `bf16` or `f16` of `a` and `b`, the upper ones first.
    pub(crate) fn bf16_products(&mut self) -> &'static str {
        let name = "add_products_of_bf16";
        self.function(name, |prelude| {
            let muladd = prelude.multiply_add(ScalarType::F32);
            let of_bits = prelude.of_bits(ScalarType::F32);
            let upper = |word: &str| format!("{of_bits}({word} & 0xffff0000u)");
            let lower = |word: &str| format!("{of_bits}({word} << 16)");
            let [a, b, c, d] = [upper("a"), upper("b"), lower("a"), lower("b")];
            format!(
                "/* c plus the products of the two bf16 of a and b, the upper ones first. */\n\
                 static inline float {name}(uint32_t a, uint32_t b, float c)\n{{\n  \
                 const float sum = {muladd}({a}, {b}, c);\n  return {muladd}({c}, {d}, sum);\n}}\n"
            )
        });
        name
    }
}

fn reinterpret(name: &str, from: &str, to: &str) -> String {
    format!(
        "static inline {to} {name}({from} x)\n{{\n  {to} result;\n  (void)memcpy(&result, &x, sizeof result);\n  return result;\n}}\n"
    )
}

fn leading_zeros(name: &str, scalar: ScalarType) -> String {
    let ty = scalar_type(scalar);
    let bits = 8 * scalar.byte_size();
    let word = if bits == 64 { "uint64_t" } else { "uint32_t" };
    format!(
        "static inline {ty} {name}({ty} x)\n{{\n  {word} rest = ({word})x;\n  {ty} zeros = {bits};\n  while (rest != 0u) {{\n    rest >>= 1;\n    zeros--;\n  }}\n  return zeros;\n}}\n"
    )
}

fn set_bits(name: &str, scalar: ScalarType) -> String {
    let ty = scalar_type(scalar);
    let word = if scalar == ScalarType::I64 { "uint64_t" } else { "uint32_t" };
    format!(
        "static inline {ty} {name}({ty} x)\n{{\n  {word} rest = ({word})x;\n  {ty} count = 0;\n  while (rest != 0u) {{\n    rest &= rest - 1u;\n    count++;\n  }}\n  return count;\n}}\n"
    )
}

fn abs(prelude: &mut Prelude, name: &str, scalar: ScalarType) -> String {
    let (bits_of, of_bits) = (prelude.bits_of(scalar), prelude.of_bits(scalar));
    let (ty, mask) = match scalar {
        ScalarType::F32 => ("float", "0x7fffffffu"),
        _ => ("double", "UINT64_C(0x7fffffffffffffff)"),
    };
    format!("static inline {ty} {name}({ty} x)\n{{\n  return {of_bits}({bits_of}(x) & {mask});\n}}\n")
}

/// A square root by digits where the compiler has no instruction for it. `sqrtf` would need a
/// library.
fn sqrt(prelude: &mut Prelude, name: &str, scalar: ScalarType) -> String {
    let (bits_of, of_bits) = (prelude.bits_of(scalar), prelude.of_bits(scalar));
    let is_single = scalar == ScalarType::F32;
    prelude.uses_x86 = true;
    let (ty, x86, arm, arm64, asm) = if is_single {
        (
            "float",
            "_mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)))",
            "(__ARM_FP & 4)",
            "fsqrt %s0, %s1",
            "vsqrt.f32 %0, %1\" : \"=t\"(root) : \"t\"(x)",
        )
    } else {
        (
            "double",
            "_mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(x)))",
            "(__ARM_FP & 8)",
            "fsqrt %d0, %d1",
            "vsqrt.f64 %P0, %P1\" : \"=w\"(root) : \"w\"(x)",
        )
    };
    let word = if is_single { "uint32_t" } else { "uint64_t" };
    // Bits of the mantissa, of all, and the exponent's bias.
    let (mantissa, bias) = if is_single { (23, 127) } else { (52, 1023) };
    let infinity = if is_single { "0x7f800000u" } else { "UINT64_C(0x7ff0000000000000)" };
    let sign = if is_single { "0x80000000u" } else { "UINT64_C(0x8000000000000000)" };
    let nan = if is_single { "0x7fc00000u" } else { "UINT64_C(0x7ff8000000000000)" };
    let one = if is_single { "1u" } else { "UINT64_C(1)" };
    format!(
        "/* The square root, rounded to nearest. */\n\
         static inline {ty} {name}({ty} x)\n{{\n\
         #if defined(__SSE2__)\n  return {x86};\n\
         #elif defined(__GNUC__) && defined(__aarch64__)\n  {ty} root;\n  __asm__(\"{arm64}\" : \"=w\"(root) : \"w\"(x));\n  return root;\n\
         #elif defined(__GNUC__) && defined(__ARM_FP) && {arm}\n  {ty} root;\n  __asm__(\"{asm});\n  return root;\n\
         #else\n  \
         const {word} bits = {bits_of}(x);\n  \
         {word} rest = bits & (({one} << {mantissa}) - {one});\n  \
         int32_t exponent = (int32_t)((bits >> {mantissa}) & {}u);\n  \
         {word} root = 0u;\n  \
         if ((bits & ~{sign}) == 0u || bits == {infinity}) {{\n    return x;\n  }}\n  \
         if ((bits & ~{sign}) > {infinity} || (bits & {sign}) != 0u) {{\n    return {of_bits}({nan});\n  }}\n  \
         if (exponent == 0) {{\n    exponent = 1;\n    while ((rest >> {mantissa}) == 0u) {{\n      rest <<= 1;\n      exponent--;\n    }}\n  }} else {{\n    rest |= {one} << {mantissa};\n  }}\n  \
         exponent -= {bias};\n  \
         if (exponent % 2 != 0) {{\n    rest <<= 1;\n    exponent--;\n  }}\n  \
         rest <<= 1;\n  \
         {{\n    {word} sum = 0u;\n    for ({word} digit = {one} << {}; digit != 0u; digit >>= 1) {{\n      if (sum + digit <= rest) {{\n        sum += digit + digit;\n        rest -= sum - digit;\n        root += digit;\n      }}\n      rest <<= 1;\n    }}\n  }}\n  \
         if (rest != 0u) {{\n    root += root & 1u;\n  }}\n  \
         return {of_bits}((root >> 1) + (({word})(exponent / 2 + {}) << {mantissa}));\n\
         #endif\n}}\n",
        if is_single { 255 } else { 2047 },
        mantissa + 1,
        bias - 1,
    )
}

/// Rounds to an integral value by the bits of the float.
fn round(prelude: &mut Prelude, op: UnaryOp, name: &str, scalar: ScalarType) -> String {
    let is_single = scalar == ScalarType::F32;
    let (ty, end, limit) = if is_single { ("float", "f", "0x1p+23f") } else { ("double", "", "0x1p+52") };
    let abs = prelude.unary(UnaryOp::Abs, scalar);
    let (bits_of, of_bits) = (prelude.bits_of(scalar), prelude.of_bits(scalar));
    let sign = if is_single { "0x80000000u" } else { "UINT64_C(0x8000000000000000)" };
    prelude.uses_x86 = true;
    let (mode, adjust) = match op {
        UnaryOp::Floor => (1, format!("if (whole > x) {{\n    whole -= 1.0{end};\n  }}\n  ")),
        UnaryOp::Ceil => (2, format!("if (whole < x) {{\n    whole += 1.0{end};\n  }}\n  ")),
        UnaryOp::Truncate => (3, String::new()),
        _ => (
            0,
            format!(
                "{{\n    const {ty} part = {abs}(x - whole);\n    const int64_t integer = (int64_t)whole;\n    if (part > 0.5{end} || (part == 0.5{end} && integer % 2 != 0)) {{\n      whole += (x < 0.0{end}) ? -1.0{end} : 1.0{end};\n    }}\n  }}\n  "
            ),
        ),
    };
    let x86 = if is_single {
        format!("_mm_cvtss_f32(_mm_round_ss(_mm_setzero_ps(), _mm_set_ss(x), {}))", mode | 8)
    } else {
        format!("_mm_cvtsd_f64(_mm_round_sd(_mm_setzero_pd(), _mm_set_sd(x), {}))", mode | 8)
    };
    format!(
        "static inline {ty} {name}({ty} x)\n{{\n\
         #if defined(__SSE4_1__)\n  return {x86};\n\
         #else\n  {ty} whole;\n  if (!({abs}(x) < {limit})) {{\n    return x;\n  }}\n  \
         whole = ({ty})(int64_t)x;\n  {adjust}return {of_bits}({bits_of}({abs}(whole)) | ({bits_of}(x) & {sign}));\n\
         #endif\n}}\n"
    )
}
