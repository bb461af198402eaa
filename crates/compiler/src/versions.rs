//! Processors that get their own version of the code.

use crate::options::BackOptions;
use hlo::{Computation, Instruction, InstructionId, Module, NarrowWeights, Op};
use nest::Program;
use shape::PrimitiveType;
use target::{Level, Target};

/// Returns the targets of the other versions of an optimized module: those whose instructions the
/// code has a use for.
pub(crate) fn variants(module: &Module, options: &BackOptions) -> Vec<Target> {
    let multiplies = |types: &[PrimitiveType]| {
        any(module, |computation, id| is_product(computation, &computation[id], types))
    };
    let has_bytes =
        || multiplies(&[PrimitiveType::S8, PrimitiveType::U8]) || any(module, has_weights_of_four_bits);
    let is_useful = |target: &&Target| match Level::of(target) {
        Some(Level::AvxVnni | Level::Avx512Vnni) => has_bytes(),
        Some(Level::Avx512Bf16) => multiplies(&[PrimitiveType::Bf16]),
        Some(Level::Amx) => {
            let types = [PrimitiveType::S8, PrimitiveType::U8, PrimitiveType::Bf16];
            target.has_tile_products && multiplies(&types)
        }
        _ => true,
    };
    options.variants.iter().filter(is_useful).cloned().collect()
}

/// True if the code for a target is worth a version of its own. Code for a processor with tile
/// registers is, if it uses them.
pub(crate) fn is_worth(target: &Target, program: &Program) -> bool {
    Level::of(target) != Some(Level::Amx) || program.uses_tiles()
}

/// True if an instruction of the module has a property.
fn any(module: &Module, property: impl Fn(&Computation, InstructionId) -> bool) -> bool {
    module
        .computations()
        .any(|(_, computation)| computation.instructions().any(|(id, _)| property(computation, id)))
}

/// True for dots with weights of four bits, whose single rows are multiplied as bytes.
fn has_weights_of_four_bits(computation: &Computation, dot: InstructionId) -> bool {
    NarrowWeights::of(computation, dot).is_some_and(|weights| {
        let stored = computation[weights.stored].shape().as_array();
        stored.is_some_and(|shape| matches!(shape.element_type, PrimitiveType::S4 | PrimitiveType::U4))
    })
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
        levels_of(&format!("x = {element}[8,8] parameter(0)\n  y = {element}[8,8] parameter(1)"), result)
    }

    fn levels_of(operands: &str, result: &str) -> Vec<Level> {
        let text = format!(
            "HloModule m\nENTRY main {{\n  {operands}\n  \
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
        use Level::{Amx, Avx512Bf16, Avx512Vnni, AvxVnni, V3, V4};
        assert_eq!(levels("f32", "f32"), [V3, V4]);
        assert_eq!(levels("s8", "s32"), [V3, AvxVnni, V4, Avx512Vnni, Amx]);
        assert_eq!(levels("bf16", "f32"), [V3, V4, Avx512Bf16, Amx]);
        let weights = |stored: &str| {
            format!("x = f32[8,8] parameter(0)\n  w = {stored}[8,8] parameter(1)\n  y = f32[8,8] convert(w)")
        };
        assert_eq!(levels_of(&weights("s4"), "f32"), [V3, AvxVnni, V4, Avx512Vnni]);
        assert_eq!(levels_of(&weights("s8"), "f32"), [V3, V4]);
    }
}
