//! Interfaces of batches of independent rows.

use super::{Interface, NamedDimension, Output};

impl Interface {
    /// Returns the interface of one row of a batch, whose only named dimension is the leading one
    /// of arrays: the dimension has size 1, and the size is no argument.
    #[must_use]
    pub fn of_row(&self) -> Self {
        let mut arguments = self.arguments().to_vec();
        for argument in &mut arguments {
            for NamedDimension { dimension, .. } in std::mem::take(&mut argument.named_dimensions) {
                argument.shape.dimensions[dimension].size = 1;
            }
        }
        arguments.retain(|argument| argument.range.is_none());
        let row = |result: &Output| {
            let mut shape = result.whole();
            result.sizes().iter().for_each(|size| shape.dimensions[size.dimension].size = 1);
            Output { shape, ..result.clone() }
        };
        Self::new(arguments, self.results().iter().map(row).collect())
    }

    /// Gives the arrays of a batch the element types and the quantization of those of a row.
    #[must_use]
    pub fn with_elements_of(&self, row: &Self) -> Self {
        let mut arguments = self.arguments().to_vec();
        let arrays = arguments.iter_mut().filter(|argument| argument.range.is_none());
        for (argument, of_row) in arrays.zip(row.arguments()) {
            argument.shape = argument.shape.with_element_type(of_row.shape.element_type);
            argument.quantization = of_row.quantization;
        }
        let result = |(result, of_row): (&Output, &Output)| Output {
            shape: result.shape.with_element_type(of_row.shape.element_type),
            quantization: of_row.quantization,
            ..result.clone()
        };
        Self::new(arguments, self.results().iter().zip(row.results()).map(result).collect())
    }
}
