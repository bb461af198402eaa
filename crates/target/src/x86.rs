//! What x86-64 processors offer, by LLVM's names.

use crate::Target;

/// The levels of the x86-64 psABI.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// SSE2.
    V1,
    /// SSE4.2 and popcnt.
    V2,
    /// AVX without AVX2 (no level of the psABI).
    Avx,
    /// AVX2, FMA and F16C.
    V3,
    /// AVX-512 F, BW, CD, DQ and VL.
    V4,
}

/// The level of a processor.
fn level_of_cpu(cpu: &str) -> Level {
    match cpu {
        "x86-64-v4" | "skylake-avx512" | "skx" | "cascadelake" | "cooperlake" | "cannonlake"
        | "icelake-client" | "icelake-server" | "tigerlake" | "rocketlake" | "sapphirerapids"
        | "emeraldrapids" | "graniterapids" | "graniterapids-d" | "diamondrapids" | "znver4" | "znver5" => {
            Level::V4
        }
        "x86-64-v3" | "haswell" | "core-avx2" | "broadwell" | "skylake" | "bdver4" | "znver1" | "znver2"
        | "znver3" | "alderlake" | "raptorlake" | "meteorlake" | "arrowlake" | "arrowlake-s"
        | "lunarlake" | "pantherlake" | "gracemont" | "sierraforest" | "grandridge" | "clearwaterforest" => {
            Level::V3
        }
        "sandybridge" | "corei7-avx" | "ivybridge" | "core-avx-i" | "btver2" | "bdver1" | "bdver2"
        | "bdver3" => Level::Avx,
        "x86-64-v2" | "nehalem" | "corei7" | "westmere" | "silvermont" | "slm" | "goldmont"
        | "goldmont-plus" | "tremont" => Level::V2,
        _ => Level::V1,
    }
}

/// Fills in what the processor and the feature string say.
pub(crate) fn describe(target: &mut Target) {
    let level = level_of_cpu(&target.cpu);
    let has = |name: &str, by_cpu: bool| {
        let switches = target.features.split(',').filter_map(|f| {
            let f = f.trim();
            (f.get(1..)? == name).then(|| f.starts_with('+'))
        });
        switches.fold(by_cpu, |_, on| on)
    };
    let avx512 = has("avx512f", level >= Level::V4);
    let avx2 = has("avx2", level >= Level::V3) || avx512;
    let avx = has("avx", level >= Level::Avx) || avx2;
    target.has_fma = has("fma", level >= Level::V3) || avx512;
    target.has_f16_conversion = has("f16c", level >= Level::V3) || avx512;
    target.has_rounding = has("sse4.1", level >= Level::V2) || has("sse4.2", false) || avx;
    target.has_popcnt = has("popcnt", level >= Level::V2) || avx;
    target.vector_bytes = match (avx512, avx) {
        (true, _) => 64,
        (_, true) => 32,
        _ => 16,
    };
    target.vector_registers = if avx512 { 32 } else { 16 };
    if level >= Level::V4 {
        target.l2_bytes = 1 << 20;
    }
}

#[cfg(test)]
mod tests {
    use crate::Target;

    fn x86(cpu: &str, features: &str) -> Target {
        Target::new("x86_64-pc-linux", cpu, features).expect("a triple")
    }

    #[test]
    fn features_override_the_processor() {
        assert_eq!(x86("", "").vector_bytes, 16);
        assert!(!x86("", "").has_rounding);
        assert_eq!(x86("", "+avx2,+fma").vector_bytes, 32);
        assert!(x86("", "+avx2,+fma").has_fma);
        assert_eq!(x86("znver4", "").vector_bytes, 64);
        assert_eq!(x86("znver4", "-avx512f").vector_bytes, 32);
        assert_eq!(x86("haswell", "").vector_registers, 16);
    }

    #[test]
    fn an_unknown_processor_is_the_baseline() {
        assert_eq!(x86("a-processor-of-tomorrow", "").vector_bytes, 16);
    }
}
