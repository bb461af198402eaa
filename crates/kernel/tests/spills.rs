//! Checks in the assembly that inner loops keep their values in registers, on every instruction
//! set.
//!
//! The cases cover each strategy, and all kernels of the file tests of plans.

use codegen::{CodegenOptions, Constants};
use plan::{Options, Winograd};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::collections::BTreeMap;
use target::Target;

/// Triple, processor, and features.
const TARGETS: [(&str, &str, &str); 12] = [
    ("x86_64-unknown-linux-gnu", "", ""),
    ("x86_64-unknown-linux-gnu", "x86-64-v2", ""),
    ("x86_64-unknown-linux-gnu", "haswell", ""),
    ("x86_64-unknown-linux-gnu", "x86-64-v4", ""),
    ("x86_64-unknown-linux-gnu", "sapphirerapids", ""),
    ("aarch64-unknown-linux-gnu", "", ""),
    ("armv7-unknown-linux-gnueabihf", "", "+neon"),
    ("riscv64-unknown-linux-gnu", "", ""),
    ("riscv64-unknown-linux-gnu", "", "+m,+a,+f,+d,+c,+v"),
    ("riscv64-unknown-linux-gnu", "", "+m,+a,+f,+d,+c,+v,+zvl256b"),
    ("aarch64-unknown-linux-gnu", "neoverse-v1", ""),
    ("aarch64-unknown-linux-gnu", "a64fx", ""),
];

fn assembly(text: &str, target: &Target) -> String {
    assembly_with(text, target, Winograd::default())
}

/// Returns the assembly of a module with some transforms.
fn assembly_with(text: &str, target: &Target, winograd: Winograd) -> String {
    let module = hlo::text::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let options = Options { winograd, ..Options::default() };
    let plan = plan::plan_with(&module, target, &options).expect("a plan");
    let schedule = buffers::schedule(&module, &plan);
    let mut pool = buffers::ConstantsPool::default();
    let assignment = buffers::assign(&module, &plan, &schedule, &mut pool).expect("buffers");
    let program = kernel::lower(&module, &plan, &schedule, &assignment, target, "entry").expect("a program");
    let block = pool.finish();
    let chunks = block.chunks.iter().map(|(offset, bytes)| (*offset, bytes.as_ref())).collect();
    let constants = Constants { size: block.size, chunks };
    let options = CodegenOptions { object: false, assembly: true, ..CodegenOptions::new("entry") };
    codegen::compile(&program, target, &options, &constants)
        .expect("code")
        .assembly
        .expect("expected assembly in the output")
}

/// The text of a constant array of ones.
fn ones(element_type: PrimitiveType, sizes: &[i64]) -> String {
    let shape = ArrayShape::new(element_type, sizes);
    let one = if element_type.is_integer() { Scalar::Signed(1) } else { Scalar::Float(1.0) };
    let one = vec![one; shape.element_count() as usize];
    let text = hlo::text::literal_to_text(&Literal::from_scalars(shape.clone(), one));
    let (_, values) = text.split_once(' ').expect("a type and values");
    format!("{shape} constant({values})")
}

/// A loop without loops inside.
#[derive(Debug)]
struct InnerLoop<'a> {
    function: &'a str,
    lines: Vec<&'a str>,
}

impl InnerLoop<'_> {
    fn count(&self, matches: impl Fn(&str) -> bool) -> usize {
        self.lines.iter().filter(|line| matches(line)).count()
    }

    /// Returns the number of multiply-adds, or of multiplications on targets without them.
    fn products(&self) -> usize {
        const WORDS: [&str; 10] = [
            "vfmadd",
            "mulps",
            "vmulps",
            "fmla",
            "vmla.f32",
            "vmul.f32",
            "vfma.f32",
            "vfmacc",
            "fmadd.s",
            "vfmadd.vf",
        ];
        self.count(|line| {
            WORDS.iter().any(|word| line.split_whitespace().next().is_some_and(|m| m.starts_with(word)))
        })
    }

    /// Returns the stack accesses. RISC-V's whole-register vector loads and stores only access the
    /// stack.
    fn stack(&self) -> Vec<&str> {
        const STACK: [&str; 9] =
            ["(%rsp", "[sp", ", sp", "(sp)", "vs1r.v", "vs2r.v", "vs4r.v", "vl1re32.v", "vl2re32.v"];
        self.lines.iter().copied().filter(|line| STACK.iter().any(|word| line.contains(word))).collect()
    }

    /// Returns the stack accesses that move numbers rather than addresses and counters, if one of
    /// them is a store or they are many. Loads alone may read values that the loop does not change.
    fn numbers(&self) -> Vec<&str> {
        let all: Vec<&str> = self.stack().into_iter().filter(|line| moves_numbers(line)).collect();
        let is_few = all.len() * 8 <= self.products();
        if is_few && !all.iter().any(|line| stores(line)) { Vec::new() } else { all }
    }
}

/// True if an instruction with a stack operand stores to it.
fn stores(line: &str) -> bool {
    let name = line.split_whitespace().next().unwrap_or_default();
    let by_name = ["st", "vst", "fs", "vs"].iter().any(|start| name.starts_with(start));
    if line.contains("(%rsp") { line.ends_with("(%rsp)") } else { by_name }
}

/// True if an instruction uses vector or floating-point registers.
fn moves_numbers(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (name, operands) = (words.next().unwrap_or_default(), words.collect::<String>());
    let x86 = ["%xmm", "%ymm", "%zmm"].iter().any(|register| operands.contains(register));
    // In 32-bit Arm and RISC-V code, the instruction's name shows this. In 64-bit Arm code, the
    // register's name does.
    let by_name = name.starts_with('v') || name.starts_with('f');
    let numbered = |prefix: char| {
        operands.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let arm = (name.starts_with("ld") || name.starts_with("st")) && ['q', 'd', 'z'].into_iter().any(numbered);
    x86 || by_name || arm
}

/// Returns the innermost loops: from a label to a jump back to it, without another such jump in
/// between.
fn inner_loops(assembly: &str) -> Vec<InnerLoop<'_>> {
    let lines: Vec<&str> = assembly.lines().map(str::trim).collect();
    let labels: BTreeMap<&str, usize> = lines
        .iter()
        .enumerate()
        .filter_map(|(k, line)| line.split_once(':').map(|(label, _)| (label, k)))
        .filter(|(label, _)| label.starts_with(".L"))
        .collect();
    let (mut last_start, mut function) = (0, "");
    let mut loops = Vec::new();
    for (end, line) in lines.iter().enumerate() {
        if let Some((name, _)) = line.strip_prefix(".type").and_then(|rest| rest.split_once(",")) {
            function = name.trim();
        }
        let start = line.split([' ', '\t', ',']).rev().find_map(|word| labels.get(word).copied());
        if let Some(start) = start.filter(|start| *start <= end) {
            if start >= last_start {
                loops.push(InnerLoop { function, lines: lines[start..=end].to_vec() });
            }
            last_start = last_start.max(end);
        }
    }
    loops
}

fn dot(m: i64, n: i64, k: i64, numbers: &str, constant: bool) -> String {
    let swapped = |a: i64, b: i64, first: &str| {
        if numbers.contains(first) { format!("f32[{b},{a}]") } else { format!("f32[{a},{b}]") }
    };
    let lhs = swapped(m, k, "lhs_contracting_dims={0}");
    let rhs = swapped(k, n, "rhs_contracting_dims={1}");
    let operand = if constant {
        format!("  one = f32[] constant(1)\n  w = {rhs} broadcast(one), dimensions={{}}\n")
    } else {
        format!("  w = {rhs} parameter(1)\n")
    };
    format!(
        "HloModule dots\n\nENTRY main {{\n  x = {lhs} parameter(0)\n{operand}  \
         ROOT d = f32[{m},{n}] dot(x, w), {numbers}\n}}\n"
    )
}

fn convolution(image: [i64; 3], window: [i64; 2], stride: i64, outputs: i64) -> String {
    let [height, width, inputs] = image;
    let out = |size: i64| (size + stride - 1) / stride;
    let pad = |size: i64, window: i64| {
        let all = ((out(size) - 1) * stride + window - size).max(0);
        format!("{}_{}", all / 2, all - all / 2)
    };
    format!(
        "HloModule convolutions\n\nENTRY main {{\n  x = f32[1,{height},{width},{inputs}] parameter(0)\n  \
         w = f32[{},{},{inputs},{outputs}] parameter(1)\n  ROOT c = f32[1,{},{},{outputs}] convolution(x, w), \
         window={{size={}x{} stride={stride}x{stride} pad={}x{}}}, dim_labels=b01f_01io->b01f\n}}\n",
        window[0],
        window[1],
        out(height),
        out(width),
        window[0],
        window[1],
        pad(height, window[0]),
        pad(width, window[1]),
    )
}

/// Lists the defects in the inner loops of a module that is a single product or convolution, on all
/// targets. Not even addresses may be on the stack.
fn findings(name: &str, text: &str) -> Vec<String> {
    findings_of(name, text, true)
}

/// Lists the defects in the inner loops of any module. Addresses may be on the stack, except in the
/// products of a dot or convolution (`must_multiply`).
fn findings_of(name: &str, text: &str, must_multiply: bool) -> Vec<String> {
    let mut found = Vec::new();
    for (triple, cpu, features) in TARGETS {
        let target = Target::new(triple, cpu, features).expect("a triple");
        let assembly = assembly(text, &target);
        let loops = inner_loops(&assembly);
        let hot: Vec<&InnerLoop<'_>> = loops.iter().filter(|l| l.products() >= 4).collect();
        if must_multiply && hot.is_empty() {
            found.push(format!("{name} on {triple} {cpu} {features}: expected an inner loop with products"));
        }
        for inner in hot {
            let spills = if must_multiply { inner.stack() } else { inner.numbers() };
            if let Some(first) = spills.first() {
                found.push(format!(
                    "{name} on {triple} {cpu} {features}, {}: {} stack accesses next to {} products: {first}",
                    inner.function,
                    spills.len(),
                    inner.products(),
                ));
            }
        }
    }
    found
}

fn check(findings: impl IntoIterator<Item = Vec<String>>) {
    let findings: Vec<String> = findings.into_iter().flatten().collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

const PLAIN: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
const RHS_TRANSPOSED: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={1}";
const LHS_TRANSPOSED: &str = "lhs_contracting_dims={0}, rhs_contracting_dims={0}";

#[test]
fn tiles_of_dots_stay_in_registers() {
    let shapes = [
        (128, 768, 768),
        (49, 512, 512),
        (64, 64, 64),
        (8, 1024, 1024),
        (1, 1000, 256),
        (3, 40, 96),
        (100, 10, 64),
        (64, 256, 2916),
    ];
    check(shapes.map(|(m, n, k)| findings(&format!("dot {m}x{n}x{k}"), &dot(m, n, k, PLAIN, false))));
}

#[test]
fn tiles_of_constants_stay_in_registers() {
    let shapes = [(128, 768, 768), (9, 48, 64), (1, 1000, 256), (16, 24, 32), (8, 1024, 1024)];
    check(shapes.map(|(m, n, k)| findings(&format!("dot {m}x{n}x{k}, packed"), &dot(m, n, k, PLAIN, true))));
}

#[test]
fn tiles_of_transposed_operands_stay_in_registers() {
    let right = [(128, 128, 64), (64, 512, 512), (2, 100, 512), (4, 4, 256)];
    let left = [(128, 512, 32), (64, 64, 64)];
    check(right.map(|(m, n, k)| {
        findings(&format!("dot {m}x{n}x{k}, right transposed"), &dot(m, n, k, RHS_TRANSPOSED, false))
    }));
    check(left.map(|(m, n, k)| {
        findings(&format!("dot {m}x{n}x{k}, left transposed"), &dot(m, n, k, LHS_TRANSPOSED, false))
    }));
}

/// Triple, processor, features, and the instruction that sums products of groups.
type Instruction = (&'static str, &'static str, &'static str, &'static str);

const FLOAT_TARGETS: [Instruction; 7] = [
    ("x86_64-unknown-linux-gnu", "sapphirerapids", "-amx-tile", "vdpbf16ps"),
    ("x86_64-unknown-linux-gnu", "znver4", "", "vdpbf16ps"),
    ("x86_64-unknown-linux-gnu", "x86-64-v4", "", "vfmadd"),
    ("x86_64-unknown-linux-gnu", "haswell", "", "vfmadd"),
    ("x86_64-unknown-linux-gnu", "", "", "mulps"),
    ("aarch64-unknown-linux-gnu", "neoverse-n1", "", "fmla"),
    ("aarch64-unknown-linux-gnu", "neoverse-n2", "", "bfmmla"),
];

const BYTE_TARGETS: [Instruction; 12] = [
    ("x86_64-unknown-linux-gnu", "sapphirerapids", "-amx-tile", "vpdpbusd"),
    ("x86_64-unknown-linux-gnu", "znver4", "", "vpdpbusd"),
    ("x86_64-unknown-linux-gnu", "alderlake", "", "vpdpbusd"),
    ("x86_64-unknown-linux-gnu", "haswell", "", "vpmaddubsw"),
    ("x86_64-unknown-linux-gnu", "x86-64-v2", "", "pmaddubsw"),
    ("x86_64-unknown-linux-gnu", "x86-64-v4", "", "vpmaddwd"),
    ("x86_64-unknown-linux-gnu", "", "", "pmaddwd"),
    ("aarch64-unknown-linux-gnu", "neoverse-n1", "", "sdot"),
    ("aarch64-unknown-linux-gnu", "neoverse-n2", "", "smmla"),
    ("aarch64-unknown-linux-gnu", "neoverse-v1", "", "smmla"),
    ("aarch64-unknown-linux-gnu", "cortex-a53", "", "smull"),
    ("armv7-unknown-linux-gnueabihf", "", "+neon", "vmull.s8"),
];

/// The instruction for a single row, where others multiply two rows at once.
fn of_one_row(instruction: &str) -> &str {
    match instruction {
        "smmla" => "sdot",
        "bfmmla" => "bfdot",
        other => other,
    }
}

/// Lists the defects in the inner loops of a direct product of groups with this many rows.
fn group_findings(name: &str, text: &str, rows: i64, targets: &[Instruction]) -> Vec<String> {
    group_findings_with(name, text, rows, targets, Winograd::Never)
}

/// Lists the defects in the inner loops of a product of groups with some transforms.
fn group_findings_with(
    name: &str,
    text: &str,
    rows: i64,
    targets: &[Instruction],
    winograd: Winograd,
) -> Vec<String> {
    let mut found = Vec::new();
    for &(triple, cpu, features, instruction) in targets {
        let instruction = if rows == 1 { of_one_row(instruction) } else { instruction };
        let target = Target::new(triple, cpu, features).expect("a triple");
        let assembly = assembly_with(text, &target, winograd);
        let is_product = |line: &str| {
            let name = line.trim_start_matches("{vex}").split_whitespace().next();
            name.is_some_and(|name| name.starts_with(instruction))
        };
        let products = |inner: &InnerLoop<'_>| inner.count(is_product);
        let loops = inner_loops(&assembly);
        let hot: Vec<_> = loops.iter().filter(|inner| products(inner) >= 4).collect();
        if hot.is_empty() {
            found.push(format!("{name} on {triple} {cpu}: expected an inner loop with {instruction}"));
        }
        for inner in hot {
            // A factor is a lane of a vector, which no instruction has to broadcast.
            let broadcasts = inner.count(|line| is_product(line) && !line.contains('['));
            if ["smlal", "vmlal.s16"].contains(&instruction) && broadcasts > 0 {
                found.push(format!("{name} on {cpu}: {broadcasts} products without a lane"));
            }
            // 32-bit Arm has few registers for addresses.
            let is_relevant = |line: &&str| !triple.starts_with("arm") || moves_numbers(line);
            let stack: Vec<&str> = inner.stack().into_iter().filter(is_relevant).collect();
            if let Some(first) = stack.first() {
                let (count, all) = (stack.len(), products(inner));
                found
                    .push(format!("{name} on {cpu}: {count} stack accesses next to {all} products: {first}"));
            }
        }
    }
    found
}

/// The types of the factors and of the sums, and where the products are one instruction.
const GROUPS: [(PrimitiveType, PrimitiveType, &[Instruction]); 2] = [
    (PrimitiveType::S8, PrimitiveType::S32, &BYTE_TARGETS),
    (PrimitiveType::Bf16, PrimitiveType::F32, &FLOAT_TARGETS),
];

#[test]
fn tiles_of_groups_stay_in_registers() {
    let shapes = [(128, 768, 768), (9, 48, 64), (1, 1000, 256), (100, 16, 64), (64, 8, 40)];
    check(GROUPS.into_iter().flat_map(|(factors, sums, targets)| {
        shapes.map(|(m, n, k)| {
            let text = format!(
                "HloModule dots\n\nENTRY main {{\n  x = {factors}[{m},{k}] parameter(0)\n  \
                 w = {}\n  ROOT d = {sums}[{m},{n}] dot(x, w), {PLAIN}\n}}\n",
                ones(factors, &[k, n])
            );
            group_findings(&format!("dot {m}x{n}x{k} of {factors}"), &text, m, targets)
        })
    }));
}

#[test]
fn tiles_of_convolutions_of_groups_stay_in_registers() {
    let cases = [
        (56, 64, 3, 64),
        (14, 96, 1, 576),
        (28, 40, 3, 48),
        (14, 128, 1, 32),
        (7, 256, 1, 16),
        (12, 23, 3, 64),
    ];
    check(GROUPS.into_iter().flat_map(|(factors, sums, targets)| {
        cases.map(|case| {
            let (name, text) = narrow_convolution([factors, factors, sums], case);
            group_findings(&name, &text, case.0 * case.0, targets)
        })
    }));
}

#[test]
fn tile_registers_load_factors_where_they_are() {
    let kinds = [
        (PrimitiveType::S8, PrimitiveType::S32, "tdpbssd"),
        (PrimitiveType::U8, PrimitiveType::S32, "tdpbusd"),
        (PrimitiveType::Bf16, PrimitiveType::F32, "tdpbf16ps"),
    ];
    check(kinds.into_iter().map(|(factors, sums, instruction)| {
        let target = [("x86_64-unknown-linux-gnu", "sapphirerapids", "", instruction)];
        let weights = if factors.is_integer() { PrimitiveType::S8 } else { factors };
        let dot = format!(
            "HloModule dots\n\nENTRY main {{\n  x = {factors}[128,768] parameter(0)\n  \
             w = {}\n  ROOT d = {sums}[128,768] dot(x, w), {PLAIN}\n}}\n",
            ones(weights, &[768, 768])
        );
        let mut found = group_findings(&format!("dot of {factors}"), &dot, 128, &target);
        for case in [(56, 64, 3, 64), (28, 96, 1, 576)] {
            let (name, text) = narrow_convolution([factors, weights, sums], case);
            found.extend(group_findings(&name, &text, case.0 * case.0, &target));
        }
        found
    }));
}

#[test]
fn tiles_of_patches_of_bytes_stay_in_registers() {
    const PAIRS: [Instruction; 8] = [
        ("x86_64-unknown-linux-gnu", "haswell", "", "vpmaddwd"),
        ("x86_64-unknown-linux-gnu", "x86-64-v2", "", "pmaddwd"),
        ("x86_64-unknown-linux-gnu", "x86-64-v4", "", "vpmaddwd"),
        ("x86_64-unknown-linux-gnu", "", "", "pmaddwd"),
        ("aarch64-unknown-linux-gnu", "", "", "smlal"),
        ("aarch64-unknown-linux-gnu", "cortex-a53", "", "smlal"),
        ("aarch64-unknown-linux-gnu", "cortex-a72", "", "smlal"),
        ("armv7-unknown-linux-gnueabihf", "", "+neon", "vmlal.s16"),
    ];
    let cases = [(56, 64, 3, 64), (28, 40, 3, 48), (7, 256, 3, 264), (14, 96, 1, 576), (14, 128, 1, 40)];
    check(cases.map(|case| {
        let (name, text) =
            narrow_convolution([PrimitiveType::S8, PrimitiveType::S8, PrimitiveType::S32], case);
        let outputs = if case.2 == 3 { 2 } else { 1 };
        group_findings_with(&name, &text, case.0 * case.0, &PAIRS, Winograd::Forced(outputs))
    }));
}

/// Returns the name and the text of a convolution of narrow numbers that keeps the image's size,
/// given the pixels of a line, the inputs, the taps, and the outputs.
fn narrow_convolution(
    [factors, weights, sums]: [PrimitiveType; 3],
    (pixels, inputs, taps, outputs): (i64, i64, i64, i64),
) -> (String, String) {
    let pad = taps / 2;
    let text = format!(
        "HloModule convolutions\n\nENTRY main {{\n  x = {factors}[1,{pixels},{pixels},{inputs}] parameter(0)\n  \
         w = {}\n  ROOT c = {sums}[1,{pixels},{pixels},{outputs}] convolution(x, w), \
         window={{size={taps}x{taps} pad={pad}_{pad}x{pad}_{pad}}}, dim_labels=b01f_01io->b01f\n}}\n",
        ones(weights, &[taps, taps, inputs, outputs])
    );
    (format!("convolution {pixels} {inputs} {taps}x{taps} to {outputs} of {factors}"), text)
}

#[test]
fn tiles_of_convolutions_stay_in_registers() {
    let cases = [
        ([28, 28, 64], [3, 3], 2, 64),
        ([56, 56, 3], [7, 7], 2, 64),
        ([14, 14, 96], [1, 1], 1, 128),
        ([14, 14, 32], [1, 1], 2, 24),
        ([7, 7, 128], [3, 3], 1, 128),
        ([17, 17, 32], [1, 7], 1, 48),
    ];
    check(cases.map(|(image, window, stride, outputs)| {
        findings(
            &format!("convolution {image:?} {window:?} stride {stride} to {outputs}"),
            &convolution(image, window, stride, outputs),
        )
    }));
}

/// Returns a 3x3 convolution that keeps the image's size, with or without a constant kernel.
fn same_convolution(
    batch: i64,
    pixels: i64,
    inputs: i64,
    outputs: i64,
    groups: i64,
    constant: bool,
) -> String {
    let each = inputs / groups;
    let kernel = format!("f32[3,3,{each},{outputs}]");
    let kernel = if constant {
        format!("  one = f32[] constant(1)\n  w = {kernel} broadcast(one), dimensions={{}}\n")
    } else {
        format!("  w = {kernel} parameter(1)\n")
    };
    format!(
        "HloModule convolutions\n\nENTRY main {{\n  x = f32[{batch},{pixels},{pixels},{inputs}] parameter(0)\n{kernel}  \
         ROOT c = f32[{batch},{pixels},{pixels},{outputs}] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, \
         dim_labels=b01f_01io->b01f, feature_group_count={groups}\n}}\n"
    )
}

#[test]
fn transforms_of_patches_stay_in_registers() {
    let cases =
        [(1, 28, 64, 64, true), (1, 56, 32, 40, true), (8, 32, 16, 16, false), (1, 14, 256, 256, true)];
    check(cases.map(|(batch, pixels, inputs, outputs, constant)| {
        let text = same_convolution(batch, pixels, inputs, outputs, 1, constant);
        findings_of(&format!("patches {batch}x{pixels}x{inputs} to {outputs}"), &text, false)
    }));
}

#[test]
fn depthwise_windows_stay_in_registers() {
    check([(56, 96), (14, 40), (7, 960)].map(|(pixels, features)| {
        let text = same_convolution(1, pixels, features, features, features, false);
        findings_of(&format!("depthwise {pixels}x{features}"), &text, false)
    }));
}

#[test]
fn gradients_of_kernels_stay_in_registers() {
    let cases = [(8, 16, 32, 32), (32, 8, 64, 64), (4, 32, 3, 16)];
    check(cases.map(|(batch, pixels, inputs, outputs)| {
        let text = format!(
            "HloModule gradients\n\nENTRY main {{\n  x = f32[{batch},{pixels},{pixels},{inputs}] parameter(0)\n  \
             g = f32[{batch},{pixels},{pixels},{outputs}] parameter(1)\n  \
             ROOT c = f32[3,3,{inputs},{outputs}] convolution(x, g), \
             window={{size={pixels}x{pixels} pad=1_1x1_1}}, dim_labels=f01b_i01o->01bf\n}}\n"
        );
        findings_of(&format!("gradient {batch}x{pixels}x{inputs} to {outputs}"), &text, false)
    }));
}

#[test]
fn kernels_of_all_plans_stay_in_registers() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hlo/plan");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .expect("the file tests")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "hlo"))
        // This file has no kernels.
        .filter(|path| !path.ends_with("what_has_no_code_is_listed.hlo"))
        .collect();
    files.sort();
    assert!(files.len() > 8, "{files:?}");
    check(files.iter().map(|path| {
        let text = std::fs::read_to_string(path).expect("a file");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        findings_of(&name, text.split("// ==>").next().unwrap_or_default(), false)
    }));
}

#[test]
fn butterflies_are_mostly_in_registers() {
    let mut found = Vec::new();
    for sizes in ["64,1000", "512,64"] {
        let text = format!(
            "HloModule transforms\n\nENTRY main {{\n  x = c64[{sizes}] parameter(0)\n  \
             ROOT y = c64[{sizes}] fft(x), fft_type=FFT, fft_length={{{sizes}}}\n}}\n"
        )
        .replace("{64,1000}", "{1000}");
        for (triple, cpu, features) in TARGETS {
            let target = Target::new(triple, cpu, features).expect("a triple");
            let assembly = assembly(&text, &target);
            for inner in inner_loops(&assembly).iter().filter(|inner| inner.products() >= 4) {
                // Eight points occupy all registers of most machines, and all of them interact.
                let (on_stack, all) = (inner.numbers().len(), inner.lines.len());
                let most = if target.vector_registers >= 32 { all / 8 } else { all / 5 * 2 };
                if on_stack > most {
                    found.push(format!("{sizes} on {triple} {cpu} {features}: {on_stack} of {all} lines"));
                }
            }
        }
    }
    check([found]);
}
