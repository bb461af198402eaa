//! Forms of convolutions: the dimension numbers that have code.
//!
//! The pass that canonicalizes convolutions and the plan that chooses their loops both ask
//! [`ConvolutionForm::of`], so they cannot disagree. The module does not transform anything.

use crate::attributes::ConvolutionDimensionNumbers;
use crate::opcode::Op;

/// Form of a convolution that is compiled as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvolutionForm {
    /// Features innermost, `b01f_01io->b01f` for any number of spatial dimensions, one batch group,
    /// and windows that are not reversed.
    Canonical,
    /// Gradient of the kernel of a canonical convolution, `f01b_i01o->01bf`: it sums over images
    /// and has neither groups nor base dilation.
    KernelGradient,
}

impl ConvolutionForm {
    /// Returns the form of a convolution, or `None` for all other convolutions and opcodes.
    pub fn of(op: &Op) -> Option<Self> {
        let Op::Convolution { window, dim_labels, feature_group_count, batch_group_count: 1 } = op else {
            return None;
        };
        let (windows, spatial) = (&window.dimensions, window.dimensions.len());
        if windows.iter().any(|window| window.window_reversal) {
            return None;
        }
        if *dim_labels == ConvolutionDimensionNumbers::canonical(spatial) {
            return Some(Self::Canonical);
        }
        let is_gradient = *feature_group_count == 1
            && windows.iter().all(|window| window.base_dilation == 1)
            && *dim_labels == ConvolutionDimensionNumbers::kernel_gradient(spatial);
        is_gradient.then_some(Self::KernelGradient)
    }
}

impl ConvolutionDimensionNumbers {
    /// Returns the dimension numbers of [`ConvolutionForm::Canonical`].
    pub fn canonical(spatial: usize) -> Self {
        Self {
            input_batch_dimension: 0,
            input_feature_dimension: spatial + 1,
            input_spatial_dimensions: (1..=spatial).collect(),
            kernel_input_feature_dimension: spatial,
            kernel_output_feature_dimension: spatial + 1,
            kernel_spatial_dimensions: (0..spatial).collect(),
            output_batch_dimension: 0,
            output_feature_dimension: spatial + 1,
            output_spatial_dimensions: (1..=spatial).collect(),
        }
    }

    /// Returns the dimension numbers of [`ConvolutionForm::KernelGradient`].
    fn kernel_gradient(spatial: usize) -> Self {
        Self {
            input_batch_dimension: spatial + 1,
            input_feature_dimension: 0,
            input_spatial_dimensions: (1..=spatial).collect(),
            kernel_input_feature_dimension: 0,
            kernel_output_feature_dimension: spatial + 1,
            kernel_spatial_dimensions: (1..=spatial).collect(),
            output_batch_dimension: spatial,
            output_feature_dimension: spatial + 1,
            output_spatial_dimensions: (0..spatial).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn forms_follow_from_labels_groups_and_windows() {
        use ConvolutionForm::{Canonical, KernelGradient};
        let (b01f, gradient) = ("b01f_01io->b01f", "f01b_i01o->01bf");
        let groups = "feature_group_count=2";
        let table = [
            // Result, input, kernel, window, labels, groups.
            ("[2,6,6,6]", "[2,8,8,4]", "[3,3,4,6]", "size=3x3", b01f, "", Some(Canonical)),
            ("[2,13,6]", "[2,8,4]", "[3,4,6]", "size=3 lhs_dilate=2", "b0f_0io->b0f", "", Some(Canonical)),
            ("[2,6,6,6]", "[2,8,8,4]", "[3,3,2,6]", "size=3x3", b01f, groups, Some(Canonical)),
            ("[1,6,6,6]", "[2,8,8,4]", "[3,3,4,6]", "size=3x3", b01f, "batch_group_count=2", None),
            ("[2,6,6,6]", "[2,8,8,4]", "[3,3,4,6]", "size=3x3 rhs_reversal=0x1", b01f, "", None),
            ("[2,6,6,6]", "[2,4,8,8]", "[6,4,3,3]", "size=3x3", "bf01_oi01->bf01", "", None),
            ("[3,3,4,5]", "[2,8,8,4]", "[2,6,6,5]", "size=6x6", gradient, "", Some(KernelGradient)),
            ("[10,3,4,5]", "[2,8,8,4]", "[2,6,6,5]", "size=6x6 lhs_dilate=2x1", gradient, "", None),
        ];
        for (result, input, kernel, window, labels, groups, form) in table {
            let attributes = format!("window={{{window}}}, dim_labels={labels}");
            let attributes = [&attributes, groups].join(if groups.is_empty() { "" } else { ", " });
            let module = parse(&format!(
                "HloModule m\nENTRY main {{\n  x = f32{input} parameter(0)\n  k = f32{kernel} parameter(1)\n  \
                 ROOT y = f32{result} convolution(x, k), {attributes}\n}}\n"
            ));
            let module = module.expect("a module");
            let entry = module.entry_computation();
            assert_eq!(ConvolutionForm::of(entry[entry.root()].op()), form, "{attributes}");
        }
        assert_eq!(ConvolutionForm::of(&Op::Add {}), None);
    }
}
