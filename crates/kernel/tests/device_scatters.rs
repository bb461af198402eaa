//! Scatters of a device, run by the simulator and compared with the evaluator.

use crate::device_reductions::check_arguments;
use crate::harness::{Numbers, Tolerance, Values, random};
use shape::{ArrayShape, Literal, PrimitiveType};

/// Returns `count` indices from -2 on, below `end`.
fn indices(sizes: &[i64], end: u64, numbers: &mut Numbers) -> Literal {
    let shape = ArrayShape::new(PrimitiveType::S32, sizes);
    let bytes = (0..shape.element_count()).flat_map(|_| (numbers.below(end + 2) as i32 - 2).to_le_bytes());
    let bytes: Vec<u8> = bytes.collect();
    Literal::from_bytes(shape, bytes.into()).expect("as many bytes as the shape has")
}

/// A scatter of one array. Its computation depends on the order.
struct Case {
    operand: &'static [i64],
    indices: &'static [i64],
    updates: &'static [i64],
    attributes: &'static str,
    /// Indices are below this.
    end: u64,
    words: &'static str,
}

fn check(case: &Case) {
    let list = |sizes: &[i64]| sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let (operand, updates) = (list(case.operand), list(case.updates));
    let text = format!(
        "HloModule m\nf {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  h = f32[] constant(0.5)\n  \
         c = f32[] multiply(a, h)\n  ROOT d = f32[] add(c, b)\n}}\nENTRY main {{\n  \
         x = f32[{operand}] parameter(0)\n  i = s32[{}] parameter(1)\n  u = f32[{updates}] parameter(2)\n  \
         ROOT r = f32[{operand}] scatter(x, i, u), {}, to_apply=f\n}}\n",
        list(case.indices),
        case.attributes
    );
    let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut numbers = Numbers::new(11);
    let mut array =
        |sizes: &[i64]| random(&ArrayShape::new(PrimitiveType::F32, sizes), Values::Tame, &mut numbers);
    let (operand, updates) = (array(case.operand), array(case.updates));
    let indices = indices(case.indices, case.end, &mut numbers);
    check_arguments(&module, &module, &[operand, indices, updates], Tolerance::Exact, case.words);
}

const ELEMENTS: &str = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, \
                        index_vector_dim=1";
const ROWS: &str = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, \
                    index_vector_dim=1";

#[test]
fn elements_are_combined_in_order() {
    let case = |operand, indices, updates, attributes, end, words| {
        check(&Case { operand, indices, updates, attributes, end, words });
    };
    case(&[20], &[900, 1], &[900], ELEMENTS, 25, "20 ranges of 1,");
    case(&[220], &[700, 1], &[700], ELEMENTS, 221, "110 ranges of 2,");
    case(&[70], &[3, 1], &[3], ELEMENTS, 4, "by 1 threads");
    // Two indices select an element.
    let pairs = "update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, \
                 index_vector_dim=1";
    case(&[5, 7], &[300, 2], &[300], pairs, 6, "35 ranges of 1,");
}

#[test]
fn windows_are_combined_in_order() {
    let case = |operand, indices, updates, attributes, end, words| {
        check(&Case { operand, indices, updates, attributes, end, words });
    };
    case(&[9, 20], &[50, 1], &[50, 20], ROWS, 10, "9 ranges of 1, 32 threads");
    case(&[4, 300], &[10, 1], &[10, 300], ROWS, 4, "256 threads along the window");
    // Windows that overlap.
    let overlap = "update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, \
                   index_vector_dim=1";
    case(&[30], &[40, 1], &[40, 3], overlap, 30, "by 1 threads");
    case(&[30], &[1, 1], &[1, 3], overlap, 3, "by 3 threads");
    // Each row has its own indices.
    let batches = "update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, \
                   input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2";
    case(&[3, 8], &[3, 20, 1], &[3, 20], batches, 9, "by 24 groups");
}

#[test]
fn several_arrays_are_combined_together() {
    let text = "HloModule m\nf {\n  a = s32[] parameter(0)\n  p = f32[] parameter(1)\n  b = s32[] parameter(2)\n  \
                q = f32[] parameter(3)\n  is = pred[] compare(p, q), direction=LT\n  \
                v = s32[] select(is, b, a)\n  w = f32[] select(is, q, p)\n  \
                ROOT r = (s32[], f32[]) tuple(v, w)\n}\nENTRY main {\n  x = s32[9] parameter(0)\n  \
                y = f32[9] parameter(1)\n  i = s32[400,1] parameter(2)\n  u = s32[400] parameter(3)\n  \
                v = f32[400] parameter(4)\n  ROOT r = (s32[9], f32[9]) scatter(x, y, i, u, v), \
                update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, \
                index_vector_dim=1, to_apply=f\n}\n";
    let module = hlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut numbers = Numbers::new(5);
    let mut array = |t, sizes: &[i64]| random(&ArrayShape::new(t, sizes), Values::Tame, &mut numbers);
    let (x, y) = (array(PrimitiveType::S32, &[9]), array(PrimitiveType::F32, &[9]));
    let (u, v) = (array(PrimitiveType::S32, &[400]), array(PrimitiveType::F32, &[400]));
    let i = indices(&[400, 1], 10, &mut numbers);
    check_arguments(&module, &module, &[x, y, i, u, v], Tolerance::Exact, "9 ranges of 1,");
}
