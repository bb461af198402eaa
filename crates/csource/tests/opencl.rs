//! The text of kernels in OpenCL C: what each construct of a kernel is printed as, and what has no
//! form in OpenCL C 1.2.

use csource::{Blocks, write_kernels, write_launches};
use nest::launch::{DeviceProgram, KernelFacts, Slot, SlotId, Space, Step};
use support::{Id as _, Result};

/// A kernel with the parameters `v0` (the guard), `v1` (read), and `v2` (written).
fn kernel(body: &str) -> String {
    format!(
        "kernel 64 fn \"k/dot*/\" (v0 \"guard\": ptr readonly, v1 \"x\": ptr noalias readonly align 16, \
         v2 \"result\": ptr noalias align 64) {{\n{body}}}\n"
    )
}

fn program(text: &str) -> DeviceProgram {
    DeviceProgram {
        kernels: nest::parse(text).expect("a program"),
        facts: vec![KernelFacts { label: "dot \"x\"".to_owned(), ..KernelFacts::default() }],
        ..DeviceProgram::default()
    }
}

fn write(body: &str) -> Result<String> {
    write_kernels(&program(&kernel(body)), &["k0_dot".to_owned()], "net")
}

fn text(body: &str) -> String {
    write(body).expect("OpenCL C")
}

#[track_caller]
fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
}

#[test]
fn kernels_take_buffers_and_distances_and_obey_the_guard() {
    let text = text("  v3: f32 = load v1 align 4\n  store v3 to v2 align 4\n");
    has(
        &text,
        &[
            // The name of a node cannot end the comment.
            "/* k/dot* /\n",
            "kernel __attribute__((reqd_work_group_size(64, 1, 1)))\nvoid k0_dot(\n    global const uchar *guard,\n    \
             global const uchar *restrict x,\n    global uchar *restrict result,\n    const ulong guard_offset,\n    \
             const ulong x_offset,\n    const ulong result_offset)\n{",
            "  if (guard != NULL && *(global const int *)(guard + guard_offset) == 0) {\n    return;\n  }\n",
            "  x += x_offset;\n  result += result_offset;\n  store_f32(result, load_f32(x));\n}",
            "  return *(global const memory_f32 *)from;",
        ],
    );
    assert!(!text.contains("uint32_t") && !text.contains("memcpy") && !text.contains("double"), "{text}");
    assert!(!text.contains("guard +="), "the guard is not used after its test\n{text}");
    assert!(!text.contains("barrier"), "{text}");
}

#[test]
fn threads_share_memory_between_barriers() {
    let text = text(
        "  v3: i64 = thread\n  v4: i64 = workgroup\n  v5: ptr = workgroup_memory 256 align 16\n  v6: ptr = offset v5 + v3 * 4\n  \
         v7: ptr = offset v1 + v4 * 256\n  v8: ptr = offset v7 + v3 * 4\n  v9: f32 = load v8 align 4\n  store v9 to v6 align 4\n  \
         barrier\n  v10: f32 = load v6 align 4\n  v11: ptr = offset v2 + v3 * 4\n  store v10 to v11 align 4\n",
    );
    has(
        &text,
        &[
            "  enum { shared_bytes = 256 };\n  local uchar shared[shared_bytes] __attribute__((aligned(16)));\n",
            "  const long thread = (long)get_local_id(0);\n",
            "(long)get_group_id(0)",
            "  store_local_f32(shared_at, load_f32(x + 256 * ",
            "  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n",
            "load_local_f32(shared_at)",
            "static inline float load_local_f32(local const uchar *from)",
            "  local uchar *const shared_at = shared + 4 * thread;\n",
        ],
    );
    let (first, rest) = text.split_once("  barrier(").expect("a barrier");
    assert!(
        first.contains("store_local_f32(shared_at") && rest.contains("load_local_f32(shared_at"),
        "{text}"
    );
    // PoCL 3.1 needs a barrier at the end of kernels that return early.
    assert!(text.trim_end().ends_with("*/\n}") && text.matches("  barrier(").count() == 2, "{text}");
}

#[test]
fn vectors_are_those_of_the_language() {
    let text = text(
        "  v3: f32x4 = load v1 align 16\n  v4: f32 = constant 2.0\n  v5: f32x4 = splat v4\n  v6: boolx4 = compare less v3, v5\n  \
         v7: f32x4 = multiply_add v3, v5, v3\n  v8: f32x4 = select v6, v7, v3\n  v9: f32x2 = shuffle v8, v8, [1, 3]\n  \
         v10: f32x2 = shuffle v8, v7, [0, 6]\n  v11: f32x2 = add v9, v10\n  v12: i32x2 = convert bitcast v11\n  \
         v13: i16x2 = convert truncate v12\n  v14: i32x2 = convert zero_extend v13\n  v15: i32x2 = insert v14, 1, v16\n  \
         store v15 to v2 align 8\n"
            .replace("  v15: i32x2", "  v16: i32 = constant 7\n  v15: i32x2")
            .as_str(),
    );
    has(
        &text,
        &[
            "(float4)(2.0f)",
            "select(",
            "static inline float4 muladd_float4(float4 a, float4 b, float4 c)",
            ".s13",
            "shuffle2(",
            "(uint2)(0u, 6u)",
            "as_uint2(",
            "convert_ushort2(",
            "convert_uint2(",
            "with_s1_uint2(",
            "static inline void store_uint2(global uchar *to, uint2 value)",
        ],
    );
    assert!(!text.contains("__builtin") && !text.contains("vector_size"), "{text}");
}

#[test]
fn halves_are_converted_without_an_extension() {
    let text = text(
        "  v3: i16 = load v1 align 2\n  v4: f32 = convert float_extend v3\n  v5: i16 = convert float_truncate v4\n  \
         store v5 to v2 align 2\n",
    );
    has(&text, &["vload_half(0, (const half *)&bits)", "vstore_half_rte(x, 0, (half *)&bits)"]);
    assert!(!text.contains("cl_khr_fp16"), "{text}");
}

#[test]
fn double_needs_its_extension() {
    let text = text("  v3: f64 = load v1 align 8\n  v4: f64 = sqrt v3\n  store v4 to v2 align 8\n");
    has(&text, &["#pragma OPENCL EXTENSION cl_khr_fp64 : enable", "#error", "sqrt(load_f64(x))"]);
}

#[test]
fn memory_without_alignment_is_read_by_bytes() {
    let text = text("  v3: i32 = load v1 align 1\n  store v3 to v2 align 4\n");
    has(
        &text,
        &[
            "static inline uint load_u32_from_bytes(global const uchar *from)",
            "((uint)from[3] << 24)",
            "store_u32(result, load_u32_from_bytes(x));",
        ],
    );
}

#[test]
fn an_address_has_one_kind_of_memory() {
    let error = write(
        "  v3: ptr = workgroup_memory 64 align 16\n  v4: i32 = load v1 align 4\n  v5: i32 = constant 0\n  v6: bool = compare equal v4, v5\n  \
         v7: ptr = select v6, v3, v2\n  store v4 to v7 align 4\n",
    )
    .expect_err("two kinds")
    .to_string();
    assert!(
        error.contains("k/dot") && error.contains("points to memory of the device or of a workgroup"),
        "{error}"
    );
}

#[test]
fn steps_become_tables() {
    let slots = vec![
        Slot { space: Space::Null, offset: 0 },
        Slot { space: Space::Argument(3), offset: 16 },
        Slot { space: Space::Temps, offset: 64 },
        Slot { space: Space::Control, offset: 8 },
    ];
    let place = SlotId::from_index;
    let launch = |groups| Step::Launch {
        kernel: nest::FunctionId::from_index(0),
        groups,
        arguments: vec![place(0), place(1), place(2)],
    };
    let loops = Step::While {
        guard: place(3),
        count: place(3),
        before: vec![launch(5)],
        body: vec![
            Step::Repeat { trips: 9, body: vec![launch(6), launch(7)] },
            Step::Rotate(vec![place(1), place(2)]),
        ],
    };
    let program = DeviceProgram {
        slots,
        steps: vec![launch(4), loops, Step::Copy { to: place(2), from: place(1), bytes: 12 }],
        control_size: 64,
        ..program(&kernel(""))
    };
    let blocks = Blocks { arguments: vec![8, 40], temps: 4096, ..Blocks::default() };
    let text = write_launches(&program, &["k0_dot".to_owned()], "net", &blocks);
    has(
        &text,
        &[
            "#define net_temps_bytes UINT64_C(4096)\n",
            "#define net_control_bytes UINT64_C(64)\n",
            "net_argument_bytes[] = {\n  8, 40\n};",
            "#define net_result_bytes_count 0\n",
            "  {TFCOMPILE_ARGUMENT, 3, 16},\n  {TFCOMPILE_TEMPS, 0, 64},\n  {TFCOMPILE_CONTROL, 0, 8}\n",
            "{\"k0_dot\", \"dot 'x'\", 64, 3}",
            // The loop has one step before its body, and four in it.
            "  {TFCOMPILE_LAUNCH, 0, 4, 0, 3, 0, 0, 0, 0},\n  {TFCOMPILE_WHILE, 0, 0, 3, 2, 1, 4, 0, 0},\n  \
             {TFCOMPILE_LAUNCH, 0, 5, 5, 3, 0, 0, 0, 0},\n  {TFCOMPILE_REPEAT, 0, 9, 8, 0, 0, 2, 0, 0},\n",
            "  {TFCOMPILE_COPY, 0, 12, ",
        ],
    );
}
