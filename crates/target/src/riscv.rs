//! Features of RISC-V processors.

use crate::{Architecture, ByteProducts, Target};

/// Features that Linux distributions require of a processor: rv64gc.
const LINUX: [&str; 5] = ["+m", "+a", "+f", "+d", "+c"];

/// Minimum size of a vector register in bytes, as stated by the processor or by a feature such as
/// `+zvl256b`; 16 for any processor with vectors. At most a cache line.
fn vector_bytes(target: &Target) -> u32 {
    let cpu_bytes = match target.cpu.as_str() {
        "spacemit-x60" | "tt-ascalon-d8" => 32,
        "sifive-x280" | "sifive-x390" => 64,
        _ => 16,
    };
    let wider = [(32, "zvl256b"), (64, "zvl512b"), (64, "zvl1024b")];
    wider
        .into_iter()
        .filter(|(_, name)| target.has(name, false))
        .map(|(bytes, _)| bytes)
        .fold(cpu_bytes, u32::max)
}

/// Vectors of the V extension have at least 16 bytes; without it, only scalars are used.
pub(crate) fn describe(target: &mut Target) {
    if target.triple.is_linux() && target.cpu.is_empty() {
        let missing =
            LINUX.iter().filter(|f| !target.features.split(',').any(|word| word.get(1..) == f.get(1..)));
        let mut words: Vec<String> = missing.map(|word| (*word).to_owned()).collect();
        words.extend((!target.features.is_empty()).then(|| target.features.clone()));
        target.features = words.join(",");
    }
    let server = target.cpu.starts_with("sifive-p") || target.cpu.starts_with("sifive-x");
    let vectors = target.has("v", server || target.cpu == "spacemit-x60" || target.cpu == "tt-ascalon-d8");
    target.vector_bytes = if vectors { vector_bytes(target) } else { 4 };
    target.vector_registers = 32;
    let is_wide = target.triple.architecture == Architecture::Riscv64;
    target.has_f64 = target.has("d", is_wide);
    target.has_f32 = target.has("f", is_wide || target.has_f64);
    target.has_fma = target.has_f32;
    // `fcvt` rounds in one instruction, but only values that fit an integer. LLVM guards it inline.
    target.has_rounding = target.has_f32;
    if target.is_microcontroller {
        target.byte_products = (!vectors).then_some(ByteProducts::Single);
        // Memory on the chip takes a cycle or two. Some have 16 KiB to cache code and constants in
        // flash.
        (target.l1_bytes, target.l2_bytes) = (16 << 10, 64 << 10);
    }
    target.has_popcnt = target.has("zbb", server);
}

#[cfg(test)]
mod tests {
    use crate::Target;

    #[test]
    fn linux_means_rv64gc() {
        let plain = Target::new("riscv64-unknown-linux-gnu", "", "").expect("a triple");
        assert_eq!(plain.features, "+m,+a,+f,+d,+c");
        assert_eq!((plain.lanes(4), plain.has_fma, plain.pointer_bytes), (1, true, 8));
        let vectors = Target::new("riscv64-unknown-linux-gnu", "", "+v,-c").expect("a triple");
        assert_eq!(vectors.features, "+m,+a,+f,+d,+v,-c");
        assert_eq!(vectors.lanes(4), 4);
        let wide = |cpu: &str, features: &str| {
            Target::new("riscv64-unknown-linux-gnu", cpu, features).expect("a triple").vector_bytes
        };
        assert_eq!(wide("", "+v,+zvl256b"), 32);
        assert_eq!(wide("", "+v,+zvl512b,+zvl256b"), 64);
        assert_eq!(wide("", "+zvl256b"), 4);
        assert_eq!(wide("spacemit-x60", ""), 32);
        let small = Target::new("riscv32-unknown-none-elf", "", "+m,+c").expect("a triple");
        assert_eq!(
            (small.features.as_str(), small.has_fma, small.is_microcontroller),
            ("+m,+c", false, true)
        );
        let floats = Target::new("riscv32-unknown-none-elf", "", "+m,+f,+c").expect("a triple");
        assert_eq!((floats.has_f32, floats.has_f64, floats.has_fma), (true, false, true));
        assert_eq!(Target::new("riscv64-none-elf", "", "").expect("a triple").features, "");
    }
}
