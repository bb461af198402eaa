//! Cholesky decompositions, triangular solves, and Fourier transforms.

use super::{Inference, with_type};
use crate::attributes::FftType;
use shape::{ArrayShape, PrimitiveType, Shape};
use support::Result;

impl Inference<'_> {
    fn check_square(&self, matrix: &ArrayShape) -> Result<()> {
        let element_type = matrix.element_type;
        self.check(
            element_type.is_floating_point() || element_type.is_complex(),
            "the elements must be floating-point or complex",
        )?;
        let square = match matrix.sizes()[..] {
            [.., rows, columns] => rows == columns,
            _ => false,
        };
        self.check(square, "the last two dimensions of the first operand must be square")
    }

    pub(super) fn cholesky(&self) -> Result<Shape> {
        let matrix = self.array(0)?;
        self.check_square(matrix)?;
        Ok(with_type(matrix, matrix.element_type))
    }

    pub(super) fn triangular_solve(&self, left_side: bool) -> Result<Shape> {
        let (a, b) = (self.array(0)?, self.array(1)?);
        self.check_square(a)?;
        self.check(a.element_type == b.element_type, "the operands must have the same element type")?;
        self.check(a.rank() == b.rank(), "the operands must have the same rank")?;
        let batch = a.rank() - 2;
        self.check(
            a.sizes()[..batch] == b.sizes()[..batch],
            "the operands must have the same batch dimensions",
        )?;
        let dimension = if left_side { batch } else { batch + 1 };
        self.check(
            b.size(dimension) == a.size(batch),
            format_args!("dimension {dimension} of the second operand must have the size of the matrix"),
        )?;
        Ok(with_type(b, b.element_type))
    }

    pub(super) fn fft(&self, fft_type: FftType, length: &[i64]) -> Result<Shape> {
        let operand = self.array(0)?;
        let rank = operand.rank();
        self.check(
            (1..=3).contains(&length.len()) && length.len() <= rank,
            format_args!("fft_length must name 1 to 3 of the operand's last dimensions, got {length:?}"),
        )?;
        self.check(length.iter().all(|&n| n >= 0), "fft_length must not be negative")?;
        let mut result = operand.clone();
        result.layout = None;
        let element_type = operand.element_type;
        let inner = &operand.sizes()[rank - length.len()..];
        // XLA accepts any length for an array without elements.
        let fits = inner == length || operand.element_count() == 0 && result.element_count() == 0;
        let (&last, outer) = length.split_last().expect("expected at least one length");
        match fft_type {
            FftType::Fft | FftType::Ifft => {
                self.check(element_type.is_complex(), "the elements must be complex")?;
                self.check(fits, "fft_length must equal the last dimensions")?;
            }
            FftType::Rfft => {
                result.element_type = match element_type {
                    PrimitiveType::F32 => PrimitiveType::C64,
                    PrimitiveType::F64 => PrimitiveType::C128,
                    _ => return Err(self.error("the elements must be f32 or f64")),
                };
                self.check(inner == length, "fft_length must equal the last dimensions")?;
                if last != 0 {
                    result.dimensions[rank - 1].size = last / 2 + 1;
                }
            }
            FftType::Irfft => {
                self.check(element_type.is_complex(), "the elements must be complex")?;
                result.element_type = element_type.real_part();
                let (&inner_last, inner_outer) = inner.split_last().expect("expected at least one dimension");
                self.check(
                    inner_outer == outer && (inner_last == last / 2 + 1 || (inner_last == 0 && last == 0)),
                    "fft_length must match the last dimensions, where the innermost has n / 2 + 1 elements",
                )?;
                result.dimensions[rank - 1].size = last;
            }
        }
        Ok(result.into())
    }
}
