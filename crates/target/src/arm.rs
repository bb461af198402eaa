//! Features of ARM processors, 32 and 64 bits wide.

use crate::{ByteLookups, ByteProducts, ShortProducts, Target};

/// 64 bits: NEON is part of the baseline. If a processor's SVE has longer vectors, they are used at
/// their full length.
pub(crate) fn describe_aarch64(target: &mut Target) {
    if target.has("sve", true) {
        target.vector_bytes = match target.cpu.as_str() {
            "neoverse-v1" | "neoverse-512tvb" => 32,
            "a64fx" => 64,
            _ => 16,
        };
    }
    target.vector_registers = 32;
    target.has_fma = true;
    target.has_rounding = true;
    target.has_f16_conversion = true;
    target.byte_products = if target.has("i8mm", has_i8mm(&target.cpu)) {
        Some(ByteProducts::Either)
    } else if target.has("dotprod", has_dot_products(&target.cpu)) {
        Some(ByteProducts::Signed)
    } else {
        // Longer vectors of SVE are faster.
        (target.vector_bytes == 16).then_some(ByteProducts::Halves)
    };
    target.short_products = (target.vector_bytes == 16).then_some(ShortProducts::ByLane);
    target.has_bf16_products = target.has("bf16", has_bf16(&target.cpu));
    target.byte_lookups = (target.vector_bytes == 16).then_some(ByteLookups::Registers);
    (target.l1_bytes, target.l2_bytes) = caches(&target.cpu);
}

/// True for processors with products of `bf16`.
fn has_bf16(cpu: &str) -> bool {
    has_i8mm(cpu) && cpu != "ampere1"
}

/// True for processors that multiply signed by unsigned bytes.
fn has_i8mm(cpu: &str) -> bool {
    matches!(
        cpu,
        "neoverse-n2"
            | "neoverse-n3"
            | "neoverse-v1"
            | "neoverse-512tvb"
            | "neoverse-v2"
            | "neoverse-v3"
            | "cortex-x2"
            | "ampere1"
            | "ampere1a"
            | "apple-m2"
            | "apple-m3"
            | "apple-m4"
    )
}

/// True for processors with dot products of bytes.
fn has_dot_products(cpu: &str) -> bool {
    has_i8mm(cpu)
        || matches!(
            cpu,
            "neoverse-n1"
                | "cortex-a55"
                | "cortex-a76"
                | "cortex-a77"
                | "cortex-a78"
                | "cortex-x1"
                | "apple-a13"
                | "apple-a14"
                | "apple-m1"
        )
}

/// Sizes in bytes of a core's first-level data cache, and of its second-level cache or its share of
/// a shared one.
fn caches(cpu: &str) -> (u64, u64) {
    const K: u64 = 1 << 10;
    if cpu.starts_with("apple-") {
        return (64 * K, 2048 * K);
    }
    match cpu {
        "neoverse-n1" | "neoverse-n2" | "neoverse-v1" | "neoverse-512tvb" | "ampere1" | "ampere1a" => {
            (64 * K, 1024 * K)
        }
        "neoverse-v2" | "neoverse-n3" | "neoverse-v3" => (64 * K, 2048 * K),
        "cortex-a76" | "cortex-a77" | "cortex-a78" | "cortex-x1" | "cortex-x2" => (64 * K, 512 * K),
        // 8 MB shared by twelve cores.
        "a64fx" => (64 * K, 640 * K),
        "cortex-a53" | "cortex-a55" | "cortex-a35" => (32 * K, 256 * K),
        _ => (32 * K, 512 * K),
    }
}

/// ARMv8 processors that run 32-bit code.
fn is_armv8(target: &Target) -> bool {
    let name = target.triple.as_str().split('-').next().unwrap_or_default();
    let by_name = ["armv8", "armv9", "thumbv8", "thumbv9"].iter().any(|n| name.starts_with(n));
    by_name
        || ["cortex-a3", "cortex-a5", "cortex-a7"]
            .iter()
            .any(|n| target.cpu.starts_with(n) && target.cpu.len() > 9)
}

/// True for microcontrollers: the M profile.
fn is_profile_m(target: &Target) -> bool {
    let name = target.triple.as_str().split('-').next().unwrap_or_default();
    let is_name = |name: &str| name.starts_with("thumbv") || name.starts_with("armv");
    is_name(name) && (name.ends_with('m') || name.ends_with("m.main") || name.ends_with("m.base"))
}

/// Microcontrollers: scalars, or MVE's eight vectors of 16 bytes.
fn describe_cortex_m(target: &mut Target) {
    const K: u64 = 1 << 10;
    let cpu = target.cpu.clone();
    let is = |names: &[&str]| names.contains(&cpu.as_str());
    let hard = target.triple.as_str().ends_with("hf");
    let doubles = is(&["cortex-m7", "cortex-m55", "cortex-m85", "cortex-m52"]);
    let floats = doubles || is(&["cortex-m4", "cortex-m33", "cortex-m35p", "star-mc1"]);
    // The ABI of hard floats promises the registers that LLVM assumes by the processor.
    target.has_f32 = (floats || hard) && !["-vfp2sp", "-fpregs"].iter().any(|f| target.features.contains(f));
    target.has_f64 = target.has_f32 && target.has("fp64", doubles);
    // `vfma` takes as long as `vmul` and `vadd`.
    target.has_fma = target.has_f32;
    target.has_rounding = target.has_f32 && !is(&["", "cortex-m4"]);
    let vectors = target.has("mve", is(&["cortex-m55", "cortex-m85", "cortex-m52"]));
    target.has_mve = vectors;
    let multiplies_pairs = is(&["cortex-m4", "cortex-m7", "cortex-m33", "cortex-m35p", "star-mc1"]);
    if vectors {
        target.byte_products = Some(ByteProducts::Across);
    } else if target.has("dsp", multiplies_pairs) {
        target.byte_products = Some(ByteProducts::Dual);
    } else {
        target.byte_products = Some(ByteProducts::Single);
    }
    (target.vector_bytes, target.vector_registers) = if vectors { (16, 8) } else { (4, 12) };
    // Those with tightly coupled memory or caches have some tens of KiB. The others read their
    // memory in a cycle, and flash with some wait states that a prefetcher hides.
    target.l1_bytes = if doubles { 32 * K } else { 16 * K };
    target.l2_bytes = 64 * K;
}

/// 32 bits: NEON, which ARMv7-A has unless the features disable it; otherwise scalars. NEON's
/// arithmetic flushes denormal numbers to zero. Programs that need them can use `-neon`.
pub(crate) fn describe_arm(target: &mut Target) {
    if is_profile_m(target) {
        return describe_cortex_m(target);
    }
    let name = target.triple.as_str().split('-').next().unwrap_or_default();
    let is_profile_a =
        ["armv7", "armv8", "armv9", "thumbv7"].iter().any(|n| name.starts_with(n)) && !name.ends_with('r');
    let armv8 = is_armv8(target);
    let neon = target.has("neon", is_profile_a || armv8 || target.cpu.starts_with("cortex-a"));
    target.vector_registers = 16;
    if neon {
        target.byte_products = Some(ByteProducts::Halves);
        target.short_products = Some(ShortProducts::ByLane);
        if !target.has("neon", false) {
            // Debian's LLVM uses NEON of ARMv7 only if the features name it.
            let separator = if target.features.is_empty() { "" } else { "," };
            target.features = format!("{}{separator}+neon", target.features);
        }
    } else {
        target.vector_bytes = 4;
    }
    let fused = ["cortex-a7", "cortex-a15", "cortex-a17"].contains(&target.cpu.as_str()) || armv8;
    target.has_fma = target.has("vfp4", fused);
    target.has_rounding = target.has("fp-armv8", armv8);
}

#[cfg(test)]
mod tests {
    use crate::{ByteProducts, ShortProducts, Target};

    #[test]
    fn long_vectors_are_those_of_the_processor() {
        let bytes = |cpu: &str, features: &str| {
            Target::new("aarch64-unknown-linux-gnu", cpu, features).expect("a triple").vector_bytes
        };
        let table = [
            ("", "", 16),
            ("", "+sve", 16),
            ("neoverse-n1", "", 16),
            ("neoverse-n2", "", 16),
            ("neoverse-v1", "", 32),
            ("neoverse-v1", "-sve", 16),
            ("neoverse-v2", "", 16),
            ("a64fx", "", 64),
        ];
        for (cpu, features, expected) in table {
            assert_eq!(bytes(cpu, features), expected, "{cpu} {features}");
        }
    }

    #[test]
    fn products_of_bytes_are_those_of_the_processor() {
        let products = |cpu: &str, features: &str| {
            Target::new("aarch64-unknown-linux-gnu", cpu, features).expect("a triple").byte_products
        };
        let table = [
            ("", "", Some(ByteProducts::Halves)),
            ("", "+dotprod", Some(ByteProducts::Signed)),
            ("", "+dotprod,+i8mm", Some(ByteProducts::Either)),
            ("neoverse-n1", "", Some(ByteProducts::Signed)),
            ("neoverse-n2", "", Some(ByteProducts::Either)),
            ("neoverse-v1", "", Some(ByteProducts::Either)),
            ("a64fx", "", None),
            ("cortex-a53", "", Some(ByteProducts::Halves)),
        ];
        for (cpu, features, expected) in table {
            assert_eq!(products(cpu, features), expected, "{cpu} {features}");
        }
    }

    #[test]
    fn neon_is_as_the_features_say() {
        let arm = |triple: &str, cpu: &str, features: &str| Target::new(triple, cpu, features).expect(triple);
        let linux = "armv7-unknown-linux-gnueabihf";
        assert_eq!(arm(linux, "", "").vector_bytes, 16);
        assert_eq!(arm(linux, "", "-neon").lanes(4), 1);
        // The code generator gets the features that the plan relies on.
        let features = [("", "+neon"), ("+vfp4", "+vfp4,+neon"), ("+neon", "+neon"), ("-neon", "-neon")];
        assert!(features.iter().all(|(of, expected)| arm(linux, "cortex-a7", of).features == *expected));
        let shorts = |cpu: &str, features: &str| arm(linux, cpu, features).short_products;
        assert_eq!([shorts("", ""), shorts("", "-neon")], [Some(ShortProducts::ByLane), None]);
        assert_eq!(arm("thumbv7em-none-eabi", "cortex-m4", "").lanes(4), 1);
        let products = |triple, cpu| arm(triple, cpu, "").byte_products;
        assert_eq!(products("thumbv7em-none-eabihf", "cortex-m4"), Some(ByteProducts::Dual));
        assert_eq!(products("thumbv8.1m.main-none-eabihf", "cortex-m55"), Some(ByteProducts::Across));
        assert_eq!(arm("armv6-unknown-linux-gnueabihf", "", "").lanes(4), 1);
        assert!(!arm(linux, "", "").has_fma);
        assert!(arm(linux, "cortex-a7", "").has_fma);
        assert!(!arm(linux, "cortex-a7", "").has_rounding);
        assert!(arm(linux, "cortex-a53", "").has_rounding);
        assert_eq!(arm(linux, "", "").pointer_bytes, 4);
    }
}
