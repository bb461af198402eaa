//! Features of x86-64 processors by LLVM's names.

use crate::{Architecture, ByteLookups, ByteProducts, ShortProducts, Target};

/// Levels of the x86-64 psABI, and of processors with products of narrow numbers. A later one has
/// all features of an earlier one, except that AVX-512 does not include AVX-VNNI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// SSE2.
    V1,
    /// SSE4.2 and popcnt.
    V2,
    /// AVX without AVX2 (no level of the psABI).
    Avx,
    /// AVX2, FMA, and F16C.
    V3,
    /// V3 and AVX-VNNI: products of bytes with vectors of 32 bytes.
    AvxVnni,
    /// AVX-512 F, BW, CD, DQ, and VL.
    V4,
    /// V4 and AVX-512 VNNI: products of bytes.
    Avx512Vnni,
    /// AVX-512 VNNI, VBMI, and BF16: products of bytes and of `bf16`.
    Avx512Bf16,
    /// AVX-512 BF16 and AMX: products of bytes and of `bf16` in tile registers.
    Amx,
}

impl Level {
    /// Levels that a version of a program may have, in ascending order.
    pub const ALL: [Self; 8] = [
        Self::V1,
        Self::V2,
        Self::V3,
        Self::AvxVnni,
        Self::V4,
        Self::Avx512Vnni,
        Self::Avx512Bf16,
        Self::Amx,
    ];

    /// Parses a level of `--multiversion`: the name of one of [`Level::ALL`].
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == word)
    }

    /// Returns the level whose processor and features a target has exactly.
    pub fn of(target: &Target) -> Option<Self> {
        let cpu = if target.cpu.is_empty() { Self::V1.cpu() } else { &target.cpu };
        let is_same = |level: &Self| level.cpu() == cpu && level.features() == target.features;
        Self::ALL.into_iter().find(is_same).filter(|_| target.triple.architecture == Architecture::X86_64)
    }

    /// Name of the level: `v1` to `v4`, `avx` for AVX without AVX2, or the last feature.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::Avx => "avx",
            Self::V3 => "v3",
            Self::AvxVnni => "avxvnni",
            Self::V4 => "v4",
            Self::Avx512Vnni => "avx512vnni",
            Self::Avx512Bf16 => "avx512bf16",
            Self::Amx => "amx",
        }
    }

    /// LLVM's name of the level's processor.
    pub const fn cpu(self) -> &'static str {
        match self {
            Self::V1 => "x86-64",
            Self::V2 => "x86-64-v2",
            Self::Avx => "sandybridge",
            Self::V3 | Self::AvxVnni => "x86-64-v3",
            Self::V4 | Self::Avx512Vnni | Self::Avx512Bf16 | Self::Amx => "x86-64-v4",
        }
    }

    /// LLVM's names of the features that the level's processor does not have.
    pub const fn features(self) -> &'static str {
        match self {
            Self::V1 | Self::V2 | Self::Avx | Self::V3 | Self::V4 => "",
            Self::AvxVnni => "+avxvnni",
            Self::Avx512Vnni => "+avx512vnni",
            Self::Avx512Bf16 => "+avx512vnni,+avx512vbmi,+avx512bf16",
            Self::Amx => "+avx512vnni,+avx512vbmi,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16",
        }
    }
}

/// Level of a processor.
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

/// Sets the fields that depend on the processor and the feature string.
pub(crate) fn describe(target: &mut Target) {
    let level = level_of_cpu(&target.cpu);
    let has = |name: &str, by_cpu: bool| target.has(name, by_cpu);
    let avx512 = has("avx512f", level >= Level::V4);
    let avx2 = has("avx2", level >= Level::V3) || avx512;
    let avx = has("avx", level >= Level::Avx) || avx2;
    let fma = has("fma", level >= Level::V3) || avx512;
    let f16_conversion = has("f16c", level >= Level::V3) || avx512;
    let rounding = has("sse4.1", level >= Level::V2) || has("sse4.2", false) || avx;
    let float_parts = avx512 && has("avx512vl", level >= Level::V4);
    let popcnt = has("popcnt", level >= Level::V2) || avx;
    (target.has_fma, target.has_f16_conversion) = (fma, f16_conversion);
    (target.has_rounding, target.has_popcnt) = (rounding, popcnt);
    target.has_float_parts = float_parts;
    target.vector_bytes = match (avx512, avx) {
        (true, _) => 64,
        (_, true) => 32,
        _ => 16,
    };
    target.vector_registers = if avx512 { 32 } else { 16 };
    let has = |name: &str, by_cpu: bool| target.has(name, by_cpu);
    let has_wide_bytes = has("avx512bw", level >= Level::V4) && has("avx512vl", level >= Level::V4);
    target.byte_products = match (avx512, avx2, avx) {
        (true, ..) if !has_wide_bytes => None,
        (true, ..) if has("avx512vnni", has_avx512_vnni(&target.cpu)) => Some(ByteProducts::Unsigned),
        (false, true, _) if has("avxvnni", has_avx_vnni(&target.cpu)) => Some(ByteProducts::Unsigned),
        // Without AVX2, long vectors have no integer instructions.
        (false, false, true) => None,
        (false, true, _) => Some(ByteProducts::Signs),
        (false, ..) if has("ssse3", level >= Level::V2) => Some(ByteProducts::Signs),
        _ => Some(ByteProducts::Widened),
    };
    target.short_products = target.byte_products.map(|_| ShortProducts::Neighbors);
    target.has_bf16_products =
        avx512 && has_wide_bytes && target.has("avx512bf16", has_avx512_bf16(&target.cpu));
    target.has_tile_products = avx2 && has_amx(target);
    let has_permutes = has_wide_bytes && target.has("avx512vbmi", has_avx512_vbmi(&target.cpu));
    target.byte_lookups = match (avx512, avx2, avx) {
        (true, ..) if has_permutes => Some(ByteLookups::Permute),
        (true, ..) if !has_wide_bytes => None,
        (false, false, true) => None,
        _ if rounding => Some(ByteLookups::Shuffle),
        _ => None,
    };
    (target.l1_bytes, target.l2_bytes) = caches(&target.cpu, level);
}

/// True for processors that permute bytes across a whole register.
fn has_avx512_vbmi(cpu: &str) -> bool {
    let is_older = matches!(cpu, "x86-64-v4" | "skylake-avx512" | "skx" | "cascadelake" | "cooperlake");
    level_of_cpu(cpu) >= Level::V4 && !is_older
}

/// True for processors with the 512-bit form of VNNI.
fn has_avx512_vnni(cpu: &str) -> bool {
    let is_older = matches!(cpu, "x86-64-v4" | "skylake-avx512" | "skx" | "cannonlake");
    level_of_cpu(cpu) >= Level::V4 && !is_older
}

/// True for processors with products of `bf16`.
fn has_avx512_bf16(cpu: &str) -> bool {
    matches!(
        cpu,
        "cooperlake"
            | "sapphirerapids"
            | "emeraldrapids"
            | "graniterapids"
            | "graniterapids-d"
            | "diamondrapids"
            | "znver4"
            | "znver5"
    )
}

/// True for processors with AMX's products of bytes and of `bf16`, if the system lets a process use
/// them: Linux does so on request.
fn has_amx(target: &Target) -> bool {
    let by_cpu = matches!(
        target.cpu.as_str(),
        "sapphirerapids" | "emeraldrapids" | "graniterapids" | "graniterapids-d" | "diamondrapids"
    );
    let all = ["amx-tile", "amx-int8", "amx-bf16"];
    target.triple.is_linux()
        && target.pointer_bytes == 8
        && all.iter().all(|feature| target.has(feature, by_cpu))
}

/// True for processors without AVX-512 that have the 256-bit form of VNNI.
fn has_avx_vnni(cpu: &str) -> bool {
    matches!(
        cpu,
        "alderlake"
            | "raptorlake"
            | "meteorlake"
            | "arrowlake"
            | "arrowlake-s"
            | "lunarlake"
            | "pantherlake"
            | "gracemont"
            | "sierraforest"
            | "grandridge"
            | "clearwaterforest"
    )
}

/// Sizes in bytes of a core's first-level data cache and of its second-level cache.
fn caches(cpu: &str, level: Level) -> (u64, u64) {
    const K: u64 = 1 << 10;
    match cpu {
        "sapphirerapids" | "emeraldrapids" | "graniterapids" | "graniterapids-d" | "diamondrapids"
        | "alderlake" | "raptorlake" | "meteorlake" | "arrowlake" | "arrowlake-s" | "lunarlake"
        | "pantherlake" => (48 * K, 2048 * K),
        "icelake-server" | "tigerlake" => (48 * K, 1280 * K),
        "icelake-client" | "rocketlake" => (48 * K, 512 * K),
        "znver5" => (48 * K, 1024 * K),
        "gracemont" | "sierraforest" | "grandridge" | "clearwaterforest" => (32 * K, 2048 * K),
        "haswell" | "core-avx2" | "broadwell" | "skylake" | "nehalem" | "corei7" | "westmere"
        | "sandybridge" | "corei7-avx" | "ivybridge" | "core-avx-i" | "cannonlake" => (32 * K, 256 * K),
        _ if level >= Level::V4 => (32 * K, 1024 * K),
        _ => (32 * K, 512 * K),
    }
}

#[cfg(test)]
mod tests {
    use crate::{ByteProducts, Level, Target};

    fn x86(cpu: &str, features: &str) -> Target {
        Target::new("x86_64-pc-linux", cpu, features).expect("a triple")
    }

    #[test]
    fn a_target_has_a_level_if_it_is_the_levels() {
        for level in Level::ALL {
            assert_eq!(Level::of(&x86(level.cpu(), level.features())), Some(level));
            assert_eq!(Level::parse(level.name()), Some(level));
        }
        assert_eq!(Level::of(&x86("", "")), Some(Level::V1));
        assert_eq!(Level::of(&x86("haswell", "")), None);
        assert_eq!(Level::of(&x86("x86-64-v3", "+avx512f")), None);
        assert_eq!(Level::of(&Target::new("aarch64-linux-gnu", "", "").expect("a triple")), None);
        assert_eq!(Level::parse("avx"), None);
    }

    #[test]
    fn narrow_products_need_their_levels() {
        let table = [
            (Level::V3, false, false),
            (Level::AvxVnni, true, false),
            (Level::V4, false, false),
            (Level::Avx512Vnni, true, false),
            (Level::Avx512Bf16, true, true),
            (Level::Amx, true, true),
        ];
        for (level, bytes, bf16) in table {
            let target = x86(level.cpu(), level.features());
            let has_bytes = target.byte_products == Some(ByteProducts::Unsigned);
            assert_eq!((has_bytes, target.has_bf16_products), (bytes, bf16), "{level:?}");
        }
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
    fn products_of_bytes_follow_the_vectors() {
        let table = [
            ("", "", Some(ByteProducts::Widened)),
            ("sandybridge", "", None),
            ("x86-64-v2", "", Some(ByteProducts::Signs)),
            ("", "+ssse3", Some(ByteProducts::Signs)),
            ("x86-64-v3", "", Some(ByteProducts::Signs)),
            ("x86-64-v3", "+avxvnni", Some(ByteProducts::Unsigned)),
            ("alderlake", "", Some(ByteProducts::Unsigned)),
            ("x86-64-v4", "", Some(ByteProducts::Widened)),
            ("x86-64-v4", "+avx512vnni", Some(ByteProducts::Unsigned)),
            ("x86-64-v4", "-avx512bw", None),
            ("cascadelake", "", Some(ByteProducts::Unsigned)),
            ("znver4", "", Some(ByteProducts::Unsigned)),
            ("znver4", "-avx512vnni", Some(ByteProducts::Widened)),
            ("znver4", "-avx512f", Some(ByteProducts::Signs)),
        ];
        for (cpu, features, expected) in table {
            assert_eq!(x86(cpu, features).byte_products, expected, "{cpu} {features}");
        }
    }

    #[test]
    fn products_of_bf16_need_long_vectors() {
        let table = [
            ("znver4", "", true),
            ("cooperlake", "", true),
            ("icelake-server", "", false),
            ("x86-64-v4", "+avx512bf16", true),
            ("znver4", "-avx512bf16", false),
            ("znver4", "-avx512f", false),
            ("x86-64-v3", "", false),
        ];
        for (cpu, features, expected) in table {
            assert_eq!(x86(cpu, features).has_bf16_products, expected, "{cpu} {features}");
        }
    }

    #[test]
    fn tile_registers_need_linux_and_all_their_products() {
        let amx = "+amx-tile,+amx-int8,+amx-bf16";
        let table = [
            ("sapphirerapids", "", true),
            ("x86-64-v3", amx, true),
            ("x86-64-v2", amx, false),
            ("x86-64-v4", "+amx-tile,+amx-int8", false),
            ("graniterapids", "-amx-int8", false),
            ("znver5", "", false),
        ];
        for (cpu, features, expected) in table {
            assert_eq!(x86(cpu, features).has_tile_products, expected, "{cpu} {features}");
        }
        for level in Level::ALL {
            assert_eq!(x86(level.cpu(), level.features()).has_tile_products, level == Level::Amx);
        }
        let windows = Target::new("x86_64-pc-windows-msvc", "sapphirerapids", "").expect("a triple");
        assert!(!windows.has_tile_products);
    }

    #[test]
    fn caches_are_the_processors() {
        let caches = |cpu| {
            let target = x86(cpu, "");
            (target.l1_bytes >> 10, target.l2_bytes >> 10)
        };
        assert_eq!(caches("sapphirerapids"), (48, 2048));
        assert_eq!(caches("skylake"), (32, 256));
        assert_eq!(caches("znver3"), (32, 512));
        assert_eq!(caches("znver4"), (32, 1024));
        assert_eq!(caches("x86-64-v4"), (32, 1024));
        assert_eq!(caches(""), (32, 512));
    }

    #[test]
    fn an_unknown_processor_is_the_baseline() {
        assert_eq!(x86("a-processor-of-tomorrow", "").vector_bytes, 16);
    }
}
