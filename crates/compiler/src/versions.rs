//! Processors that get their own version of the code.

use crate::options::BackOptions;
use hlo::{Computation, Instruction, Module, Op};
use shape::PrimitiveType;
use target::{Level, Target};

/// Returns the targets of the other versions of an optimized module: those whose instructions the
/// code has a use for.
pub(crate) fn variants(module: &Module, options: &BackOptions) -> Vec<Target> {
    let multiplies = |types: &[PrimitiveType]| {
        module.computations().any(|(_, computation)| {
            computation.instructions().any(|(_, instruction)| is_product(computation, instruction, types))
        })
    };
    let is_useful = |target: &&Target| match Level::of(target) {
        Some(Level::AvxVnni | Level::Avx512Vnni) => multiplies(&[PrimitiveType::S8, PrimitiveType::U8]),
        Some(Level::Avx512Bf16) => multiplies(&[PrimitiveType::Bf16]),
        _ => true,
    };
    options.variants.iter().filter(is_useful).cloned().collect()
}

/// True for products of two arrays of the given types.
fn is_product(computation: &Computation, instruction: &Instruction, types: &[PrimitiveType]) -> bool {
    matches!(instruction.op(), Op::Dot { .. } | Op::Convolution { .. })
        && instruction.operands().iter().all(|&operand| {
            let shape = computation[operand].shape().as_array();
            shape.is_some_and(|shape| types.contains(&shape.element_type))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Levels of the versions of a product of two arrays of one type.
    fn levels(element: &str, result: &str) -> Vec<Level> {
        let text = format!(
            "HloModule m\nENTRY main {{\n  x = {element}[8,8] parameter(0)\n  y = {element}[8,8] parameter(1)\n  \
             ROOT dot = {result}[8,8] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}\n"
        );
        let module = hlo::text::parse(&text).expect("a module");
        let target =
            |level: Level| Target::new("x86_64-linux-gnu", level.cpu(), level.features()).expect("a triple");
        let options = BackOptions {
            variants: Level::ALL[2..].iter().map(|&level| target(level)).collect(),
            ..BackOptions::new(target(Level::V2), "entry")
        };
        variants(&module, &options).iter().filter_map(Level::of).collect()
    }

    #[test]
    fn products_of_narrow_numbers_get_the_versions_that_have_instructions_for_them() {
        use Level::{Avx512Bf16, Avx512Vnni, AvxVnni, V3, V4};
        assert_eq!(levels("f32", "f32"), [V3, V4]);
        assert_eq!(levels("s8", "s32"), [V3, AvxVnni, V4, Avx512Vnni]);
        assert_eq!(levels("bf16", "f32"), [V3, V4, Avx512Bf16]);
    }
}
