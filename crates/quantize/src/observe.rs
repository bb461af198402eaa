//! Modules that show more than their results, and modules whose layers the caller quantizes one by
//! one.

use crate::Points;
use crate::form::meaning;
use crate::layer::Layer;
use crate::rewrite::{LayerForm, Weights, values};
use hlo::{InstructionId, Module, Op, OpMetadata, SliceDimension};
use passes::Edit;
use shape::{ArrayShape, PrimitiveType, Quantization, Shape};
use support::{Error, Result};

/// Returns the module with further results: these values of the entry.
pub fn with_results(module: &Module, shown: &[InstructionId]) -> Module {
    let mut module = module.clone();
    let id = module.entry();
    let computation = module.computation_mut(id);
    let root = computation.root();
    let mut elements = computation[root].operands().to_vec();
    elements.extend(shown);
    let shapes = elements.iter().map(|&element| computation[element].shape().clone()).collect();
    let new = computation.add("", Op::Tuple {}, Shape::Tuple(shapes), &elements, OpMetadata::default());
    computation.set_root(new);
    module
}

/// Returns the module with one more argument, `pred[N]` for N layers. A layer is in its new form if
/// its element is true. Layers outside of the entry keep their old form.
pub fn with_switches(
    module: &Module,
    layers: &[Layer],
    forms: &[LayerForm],
    points: &Points,
    quantizations: &[Quantization],
) -> Result<Module> {
    let mut switched = module.clone();
    let entry = switched.entry();
    let computation = switched.computation_mut(entry);
    let count = layers.len() as i64;
    let number = computation.parameters().len();
    let shape = Shape::array(PrimitiveType::Pred, &[count]);
    let switches = computation.add("switches", Op::Parameter { number }, shape, &[], OpMetadata::default());
    for (k, (layer, form)) in layers.iter().zip(forms).enumerate() {
        if layer.computation != entry || form.weights == Weights::Float {
            continue;
        }
        let mut edit = Edit::at(computation, layer.instruction);
        let slice = SliceDimension { start: k as i64, limit: k as i64 + 1, stride: 1 };
        let one = ArrayShape::new(PrimitiveType::Pred, &[1]);
        let switch = edit.add(Op::Slice { slice: vec![slice] }, &one, &[switches]);
        let switch = edit.add(Op::Reshape {}, &ArrayShape::new(PrimitiveType::Pred, &[]), &[switch]);
        let select = |edit: &mut Edit<'_>, position: usize, new: InstructionId| {
            let old = edit.computation[layer.instruction].operands()[position];
            let shape = edit.computation[old].shape().expect_array().clone();
            let sizes = shape.with_element_type(PrimitiveType::Pred);
            let spread = edit.add(Op::Broadcast { dimensions: Vec::new() }, &sizes, &[switch]);
            let selected = edit.add(Op::Select {}, &shape, &[spread, new, old]);
            edit.computation.replace_operand(layer.instruction, position, selected);
        };
        if form.has_integer_input {
            let input = layer.input(module);
            let quantization = points.group(input).and_then(|group| quantizations.get(group));
            let quantization =
                *quantization.ok_or_else(|| Error::internal("a layer's input has no scale"))?;
            let q = edit.quantize(&meaning(quantization), input);
            let new = edit.dequantize(&meaning(quantization), q);
            select(&mut edit, 1 - layer.weights, new);
        }
        let mut new = values(&mut edit, &form.weights)?;
        let old = edit.computation[layer.instruction].operands()[layer.weights];
        let shape = edit.computation[old].shape().expect_array().clone();
        if *edit.computation[new].shape().expect_array() != shape {
            // Blocks of a dot whose weights are [N, K].
            new = edit.add(Op::Transpose { dimensions: vec![1, 0] }, &shape, &[new]);
        }
        select(&mut edit, layer.weights, new);
    }
    hlo::verify(&switched)?;
    Ok(switched)
}
