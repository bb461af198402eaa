//! Features of WebAssembly.

use crate::{Architecture, Target};

/// Features of every engine since 2023, among them instructions for `memcpy` and `memset`.
macro_rules! simd {
    () => {
        "+simd128,+bulk-memory,+bulk-memory-opt,+sign-ext,+mutable-globals,+nontrapping-fptoint"
    };
}

/// Features of `wasm32`.
pub(crate) const SIMD: &str = simd!();

/// Features of `wasm32-relaxed`.
pub(crate) const RELAXED: &str = concat!(simd!(), ",+relaxed-simd");

/// Features of `wasm32-threads`.
pub(crate) const THREADS: &str = concat!(simd!(), ",+atomics");

/// Vectors have 16 bytes. Engines map them to the registers of the machine, of which x86-64 has 16
/// without AVX-512. LLVM selects the multiply-add of relaxed SIMD by itself. It is no `has_fma`, on
/// which exact arithmetic relies: it may or may not round the product.
pub(crate) fn describe(target: &mut Target) {
    let has_vectors = target.has("simd128", false);
    target.vector_bytes = if has_vectors { 16 } else { 4 };
    target.vector_registers = 16;
    target.has_rounding = true;
    target.has_popcnt = true;
    target.byte_products = has_vectors.then_some(crate::ByteProducts::Widened);
    target.short_products = has_vectors.then_some(crate::ShortProducts::Neighbors);
}

impl Target {
    /// True if the instructions of relaxed SIMD may be used, whose results differ from machine to
    /// machine.
    pub fn has_relaxed_simd(&self) -> bool {
        self.has("relaxed-simd", false)
    }

    /// Number of vector registers for the sums of a tile and their operands, if instructions run in
    /// the order of the program: engines of WebAssembly do not load operands early. They keep one
    /// register for themselves, and vectors of the epilogue may have one or two. Each product takes
    /// another, except with multiply-add.
    pub fn registers_in_order(&self) -> Option<u32> {
        let is_wasm = self.triple.architecture == Architecture::Wasm32 && self.vector_bytes > 4;
        is_wasm.then(|| self.vector_registers - if self.has_relaxed_simd() { 3 } else { 4 })
    }
}

#[cfg(test)]
mod tests {
    use crate::{ByteProducts, Target};

    #[test]
    fn vectors_need_their_feature() {
        let new = |features| Target::new("wasm32-unknown-unknown", "", features).expect("a triple");
        assert_eq!((new("").lanes(4), new("").byte_products), (1, None));
        assert_eq!((new("+simd128").lanes(4), new("+simd128").has_fma), (4, false));
        assert_eq!(new("+simd128").byte_products, Some(ByteProducts::Widened));
        assert!(!new(super::RELAXED).has_fma);
        assert!(new(super::RELAXED).has_relaxed_simd() && !new(super::SIMD).has_relaxed_simd());
        let registers = |features| new(features).registers_in_order();
        assert_eq!(["", super::SIMD, super::RELAXED].map(registers), [None, Some(12), Some(13)]);
        assert!(new("").has_rounding && new("").has_popcnt && !new("").has_float_parts);
    }
}
