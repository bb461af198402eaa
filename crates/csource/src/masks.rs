//! Functions for masks: accesses of some lanes, and masks as bits.

use crate::prelude::{Access, Lane, Prelude, Register, Vector};
use crate::vectors::{guarded, part};
use nest::Type;

impl Prelude {
    /// `load_masked_f32x8(address, mask)`: zeros in the other lanes, whose memory is not read.
    pub(crate) fn load_masked(&mut self, access: Access) -> String {
        if self.is_opencl {
            return self.opencl_load_masked(access);
        }
        let ty = access.ty;
        let vector = Vector::of(ty);
        let (c, mask) = (self.vector(vector), self.vector(Vector::mask(vector.bytes, ty.lanes)));
        let name = format!("load_masked_{}{}", c, part(ty));
        self.uses_x86 = true;
        self.function(&name, |_| {
            let scalar = vector.scalar();
            let others = format!(
                "  {c} value = {{0}};\n  for (int lane = 0; lane < {}; lane++) {{\n    if (mask[lane] != 0) {{\n      {scalar} x;\n      (void)memcpy(&x, from + lane * (int)sizeof x, sizeof x);\n      value[lane] = x;\n    }}\n  }}\n  return value;\n",
                ty.lanes
            );
            let body = match Masked::of(vector, ty) {
                Some(masked) => guarded(masked.condition, &masked.load(&c), &others),
                None => others,
            };
            format!("static inline {c} {name}(const unsigned char *from, {mask} mask)\n{{\n{body}}}\n")
        });
        name
    }

    /// `store_masked_f32x8(address, value, mask)`
    pub(crate) fn store_masked(&mut self, access: Access) -> String {
        if self.is_opencl {
            return self.opencl_store_masked(access);
        }
        let ty = access.ty;
        let vector = Vector::of(ty);
        let (c, mask) = (self.vector(vector), self.vector(Vector::mask(vector.bytes, ty.lanes)));
        let name = format!("store_masked_{}{}", c, part(ty));
        self.uses_x86 = true;
        self.function(&name, |_| {
            let scalar = vector.scalar();
            let others = format!(
                "  for (int lane = 0; lane < {}; lane++) {{\n    if (mask[lane] != 0) {{\n      const {scalar} x = value[lane];\n      (void)memcpy(to + lane * (int)sizeof x, &x, sizeof x);\n    }}\n  }}\n",
                ty.lanes
            );
            let body = match Masked::of(vector, ty) {
                Some(masked) => guarded(masked.condition, &masked.store(), &others),
                None => others,
            };
            format!("static inline void {name}(unsigned char *to, {c} value, {mask} mask)\n{{\n{body}}}\n")
        });
        name
    }

    /// The bits of a mask as an unsigned integer of as many bits, the first lane in the lowest one.
    pub(crate) fn bits_of_mask(&mut self, mask: Vector, count: u32) -> String {
        if self.is_opencl {
            return self.opencl_bits_of_mask(mask, count);
        }
        let c = self.vector(mask);
        let name = format!("bits_of_{c}_{count}");
        self.function(&name, |_| {
            format!(
                "static inline uint64_t {name}({c} mask)\n{{\n  uint64_t bits = 0u;\n  for (int lane = 0; lane < {count}; lane++) {{\n    if (mask[lane] != 0) {{\n      bits |= UINT64_C(1) << lane;\n    }}\n  }}\n  return bits;\n}}\n"
            )
        });
        name
    }

    /// The reverse of [`Self::bits_of_mask`].
    pub(crate) fn mask_of_bits(&mut self, mask: Vector, count: u32) -> String {
        if self.is_opencl {
            return self.opencl_mask_of_bits(mask, count);
        }
        let c = self.vector(mask);
        let name = format!("{c}_of_bits_{count}");
        self.function(&name, |_| {
            format!(
                "static inline {c} {name}(uint64_t bits)\n{{\n  {c} mask = {{0}};\n  for (int lane = 0; lane < {count}; lane++) {{\n    mask[lane] = ((bits >> lane) & 1u) != 0u ? -1 : 0;\n  }}\n  return mask;\n}}\n"
            )
        });
        name
    }
}

/// Instructions of x86 for masked accesses of a vector.
struct Masked {
    condition: &'static str,
    register: Register,
    /// End of the names of the intrinsics.
    end: String,
    /// Type of the register.
    ty: String,
    /// Type that addresses point to.
    pointee: &'static str,
    mask: String,
}

impl Masked {
    fn of(vector: Vector, ty: Type) -> Option<Self> {
        let register = vector.register().filter(|_| vector.bytes >= 4 && ty.lanes == vector.lanes)?;
        let is_float = vector.lane == Lane::Float;
        let bits = vector.bytes * 8;
        let end = if is_float { register.float_suffix().to_owned() } else { format!("epi{bits}") };
        let is_long = register.bits == 512;
        let condition = match (is_long, is_float) {
            (true, _) => "__AVX512DQ__",
            (_, true) => "__AVX__",
            (_, false) => "__AVX2__",
        };
        let pointee = match (is_float, vector.bytes, is_long) {
            (true, 4, _) => "float",
            (true, ..) => "double",
            (_, _, true) => "void",
            (_, 4, _) => "int",
            _ => "long long",
        };
        let mask = if is_long {
            format!("_mm512_movepi{bits}_mask((__m512i)mask)")
        } else {
            format!("(__m{}i)mask", register.bits)
        };
        Some(Self { condition, register, end, ty: register.ty(vector.lane), pointee, mask })
    }

    /// The statement that loads and returns a vector.
    fn load(&self, c: &str) -> String {
        let Self { register, end, pointee, mask, .. } = self;
        let (prefix, from) = (register.prefix(), format!("(const {pointee} *)(const void *)from"));
        match register.bits {
            512 => format!("return ({c}){prefix}_maskz_loadu_{end}({mask}, {from});"),
            _ => format!("return ({c}){prefix}_maskload_{end}({from}, {mask});"),
        }
    }

    /// The statement that stores a vector.
    fn store(&self) -> String {
        let Self { register, end, ty, pointee, mask, .. } = self;
        let word = if register.bits == 512 { "mask_storeu" } else { "maskstore" };
        format!("{}_{word}_{end}(({pointee} *)(void *)to, {mask}, ({ty})value);", register.prefix())
    }
}
