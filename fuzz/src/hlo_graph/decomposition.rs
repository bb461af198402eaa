//! Instructions that expand to loops of simpler ones (decompositions, Fourier transforms,
//! normalization), and random bits.

use super::Writer;
use PrimitiveType::*;
use hlo::{DotDimensionNumbers, FftType, InstructionId, Op, RandomAlgorithm, TriangularTranspose};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};

impl Writer<'_> {
    pub(super) fn decomposition(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        match self.draw.below(9) {
            0..=3 => self.matrix(x, array),
            4 | 5 => self.fft(x, array),
            6 => self.random_bits(),
            _ => self.batch_norm(x, array),
        }
    }

    /// Adds a factorization of `R^T R + c I` for random rows, which is positive definite, or a
    /// system with a well-conditioned factor.
    fn matrix(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let element_type = array.element_type;
        if array.rank() < 2 || !matches!(element_type, F32 | F64) || !self.is_exact(x) {
            return None;
        }
        let (batch, rows) = (array.rank() - 2, array.size(array.rank() - 1));
        if rows > 17 {
            return None;
        }
        let batches: Vec<usize> = (0..batch).collect();
        let numbers = DotDimensionNumbers {
            lhs_batch_dims: batches.clone(),
            lhs_contracting_dims: vec![batch],
            rhs_batch_dims: batches,
            rhs_contracting_dims: vec![batch],
        };
        // Numbers in [-1, 1], so that the diagonal dominates.
        let bounded = self.add(Op::Tanh {}, &[x])?;
        let product = self.add(Op::Dot { dot_dimension_numbers: numbers }, &[bounded, bounded])?;
        let square = self.array(product);
        let count = (rows * rows) as usize;
        let weight = (array.size(batch) * rows + 1) as f64;
        let diagonal = (0..count).map(|i| {
            let on_diagonal = i as i64 / rows.max(1) == i as i64 % rows.max(1);
            Scalar::Float(if on_diagonal { weight } else { 0.0 })
        });
        let diagonal = Literal::from_scalars(ArrayShape::new(element_type, &[rows, rows]), diagonal);
        let diagonal = self.constant(diagonal);
        let diagonal = self.spread(diagonal, &square, vec![batch, batch + 1]);
        let matrix = self.add(Op::Add {}, &[product, diagonal])?;
        let lower = self.draw.once_in(2);
        if self.draw.once_in(2) {
            return self.add(Op::Cholesky { lower }, &[matrix]);
        }
        let left_side = self.draw.once_in(2);
        let mut sizes = square.sizes();
        sizes[if left_side { batch + 1 } else { batch }] = self.draw.choose(&[1, 2, 5]);
        let right = self.like(&ArrayShape::new(element_type, &sizes));
        let transpose_a =
            self.draw.choose(&[TriangularTranspose::NoTranspose, TriangularTranspose::Transpose]);
        let op = Op::TriangularSolve { left_side, lower, unit_diagonal: false, transpose_a };
        self.add(op, &[matrix, right])
    }

    fn fft(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let rank = array.rank();
        if rank == 0 {
            return None;
        }
        let count = self.draw.between(1, rank.min(3) as i64) as usize;
        let mut fft_length = array.sizes()[rank - count..].to_vec();
        let fft_type = match array.element_type {
            F32 | F64 => FftType::Rfft,
            t if t.is_complex() => self.draw.choose(&[FftType::Fft, FftType::Ifft, FftType::Irfft]),
            _ => return None,
        };
        if fft_type == FftType::Irfft {
            let last = array.size(rank - 1);
            fft_length[count - 1] = if last == 0 { 0 } else { 2 * (last - 1) + self.draw.between(0, 1) };
        }
        self.add(Op::Fft { fft_type, fft_length }, &[x])
    }

    fn random_bits(&mut self) -> Option<InstructionId> {
        let (algorithm, words) = self.draw.choose(&[
            (RandomAlgorithm::Philox, 3),
            (RandomAlgorithm::Philox, 2),
            (RandomAlgorithm::ThreeFry, 2),
            (RandomAlgorithm::Default, 2),
        ]);
        let state = self.exact_like(&ArrayShape::new(U64, &[words]));
        let element_type = self.draw.choose(&[U32, U64, U8, U16]);
        let rank = self.draw.below(3);
        let sizes = self.draw.sizes(rank, 300);
        let of_state = Shape::array(U64, &[words]);
        let shape = Shape::Tuple(vec![of_state, Shape::array(element_type, &sizes)]);
        let op = Op::RngBitGenerator { algorithm };
        let id = self.builder.op_with_shape(self.module, shape, op, &[state]).ok()?;
        self.keep(id, true)
    }

    fn batch_norm(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        if array.rank() == 0 || !matches!(array.element_type, F32 | F64 | Bf16 | F16) {
            return None;
        }
        let feature_index = self.draw.below(array.rank());
        let epsilon = self.draw.choose(&[1e-3, 0.5]);
        let vector = ArrayShape::new(array.element_type, &[array.size(feature_index)]);
        let (scale, offset) = (self.like(&vector), self.like(&vector));
        match self.draw.below(3) {
            0 => self.add(Op::BatchNormTraining { epsilon, feature_index }, &[x, scale, offset]),
            kind => {
                let mean = self.like(&vector);
                let variance = self.like(&vector);
                let variance = self.add(Op::Abs {}, &[variance])?;
                if kind == 1 {
                    let op = Op::BatchNormInference { epsilon, feature_index };
                    return self.add(op, &[x, scale, offset, mean, variance]);
                }
                let gradient = self.like(array);
                let op = Op::BatchNormGrad { epsilon, feature_index };
                self.add(op, &[x, scale, mean, variance, gradient])
            }
        }
    }
}
