//! Instructions on bounded operands: the same instruction on the whole arrays, and the true sizes
//! of its result.

use super::{Bounded, Size, Sizes};
use crate::builder::Builder;
use crate::builder::{highest, lowest};
use hlo::ComparisonDirection::{Ge, Gt, Le, Lt};
use hlo::{
    ComputationId, ConvolutionDimensionNumbers, FftType, InstructionId, Op, PaddingConfig, PaddingDimension,
    SliceDimension, Traits, Window, WindowDimension,
};
use shape::PrimitiveType::{self, Bf16, F16, F32, F64};
use shape::{Literal, Shape};
use support::{Code, Error, Result};

impl Builder {
    /// True if an instruction on these operands must take true sizes into account.
    pub fn has_bounded(&self, op: &Op, operands: &[InstructionId]) -> bool {
        match op {
            Op::GetTupleElement { .. } => self.scope_ref().tuple_sizes(operands[0]).is_some(),
            _ => operands.iter().any(|&id| self.is_bounded(id)),
        }
    }

    /// Adds an instruction on bounded operands. Returns an error for opcodes that would treat
    /// padding beyond the true sizes as elements.
    pub fn bounded_op(
        &mut self,
        op: Op,
        operands: &[InstructionId],
        requested: Option<&Shape>,
    ) -> Result<InstructionId> {
        if let Op::GetTupleElement { .. } = op {
            let sizes = self.scope_ref().tuple_sizes(operands[0]).unwrap_or_default().to_vec();
            let element = self.static_op(op, operands, requested)?;
            return self.bounded(element, &sizes);
        }
        if let Some(result) = self.op_before_joining(&op, operands, requested)? {
            return Ok(result);
        }
        let mut parts = Vec::with_capacity(operands.len());
        for &operand in operands {
            parts.push(self.split(operand)?);
        }
        let requested = requested.map(|shape| match shape.as_array() {
            Some(array) => Shape::array(array.element_type, &array.sizes()),
            None => shape.clone(),
        });
        let requested = requested.as_ref();
        match &op {
            Op::Reduce { dimensions, to_apply } => {
                let (dimensions, to_apply) = (dimensions.clone(), *to_apply);
                return self.bounded_reduce(op, &parts, &dimensions, to_apply);
            }
            Op::Reshape {} => {
                let source = self.sizes(parts[0].data);
                let to = requested.and_then(Shape::as_array).map(|array| array.sizes()).unwrap_or_default();
                let sizes = self.reshaped_sizes(&source, &parts[0].sizes, &to)?;
                return self.reshape_to(operands[0], &sizes);
            }
            Op::Concatenate { dimension } => return self.bounded_concatenate(&parts, *dimension),
            Op::Reverse { dimensions } => return self.bounded_reverse(&parts[0], dimensions),
            Op::Pad { padding } => return self.bounded_pad(&parts, padding),
            Op::Gather { .. } => return self.bounded_gather(op, parts, requested),
            Op::Fft { fft_type, fft_length } => {
                let open = parts[0].sizes.iter().rev().take(fft_length.len());
                // The length of a real signal does not follow from that of half its spectrum.
                let is_known = *fft_type != FftType::Irfft || parts[0].sizes.last() == Some(&None);
                if open.into_iter().any(Option::is_some) && is_known {
                    let (fft_type, mut lengths) = (*fft_type, self.all_sizes(operands[0])?);
                    lengths.drain(..lengths.len() - fft_length.len());
                    if let (FftType::Irfft, Some(last)) = (fft_type, lengths.last_mut()) {
                        *last = Size::known(fft_length[fft_length.len() - 1]);
                    }
                    return self.fourier_transform(operands[0], fft_type, &lengths);
                }
            }
            _ => {}
        }
        let (op, parts) = self.windows_apart(op, parts)?;
        let (parts, sizes) = self.prepared(&op, parts)?;
        let op = self.with_room_for_results(op, &parts)?;
        let result = match op {
            Op::Sort { dimension, is_stable, to_apply } if sizes[dimension].is_some() => {
                let size = sizes[dimension].expect("the guard checked for a size");
                self.bounded_sort(&parts, dimension, is_stable, to_apply, size)?
            }
            op => {
                let data: Vec<InstructionId> = parts.iter().map(|part| part.data).collect();
                // Of a product, only the type of the elements does not follow from the operands.
                let product = match (&op, requested.and_then(Shape::as_array)) {
                    (Op::Dot { .. } | Op::Convolution { .. }, Some(requested)) => {
                        let shapes: Vec<&Shape> = data.iter().map(|&id| self.scope_ref().shape(id)).collect();
                        let inferred = hlo::infer_shape(self.module(), &op, &shapes, None)?;
                        inferred
                            .as_array()
                            .map(|array| array.with_element_type(requested.element_type).into())
                    }
                    _ => None,
                };
                self.static_op(op, &data, product.as_ref().or(requested))?
            }
        };
        if self.scope_ref().shape(result).as_array().is_some() {
            return self.bounded(result, &sizes);
        }
        if sizes.iter().any(Option::is_some) {
            self.scope().set_tuple_sizes(result, sizes);
        }
        Ok(result)
    }

    /// Masks the padding of operands that would affect the result, and returns the sizes of the
    /// result.
    fn prepared(&mut self, op: &Op, mut parts: Vec<Bounded>) -> Result<(Vec<Bounded>, Sizes)> {
        let sizes = match op {
            op if op.opcode().traits().contains(Traits::ELEMENTWISE) => self.common_sizes(&parts)?,
            Op::Clamp {} | Op::OptimizationBarrier {} => self.common_sizes(&parts)?,
            Op::BitcastConvert {} => parts[0].sizes.clone(),
            Op::Broadcast { dimensions } => {
                let rank = dimensions.iter().map(|&d| d + 1).max().unwrap_or(0);
                let mut sizes = vec![None; rank];
                dimensions.iter().zip(&parts[0].sizes).for_each(|(&d, &size)| sizes[d] = size);
                sizes
            }
            Op::Transpose { dimensions } => dimensions.iter().map(|&d| parts[0].sizes[d]).collect(),
            Op::Slice { slice } => self.sliced_sizes(&parts[0], slice)?,
            Op::DynamicSlice { dynamic_slice_sizes } => {
                let whole_sizes = self.sizes(parts[0].data);
                let whole = (0..whole_sizes.len()).map(|d| dynamic_slice_sizes[d] == whole_sizes[d]);
                let sizes = whole.zip(&parts[0].sizes).map(|(whole, &size)| size.filter(|_| whole));
                sizes.collect()
            }
            Op::DynamicUpdateSlice {} if parts[1..].iter().all(Bounded::is_static) => parts[0].sizes.clone(),
            Op::Dot { dot_dimension_numbers: numbers } => {
                let (lhs, rhs) = (parts[0].sizes.clone(), parts[1].sizes.clone());
                for (part, contracted) in
                    parts.iter_mut().zip([&numbers.lhs_contracting_dims, &numbers.rhs_contracting_dims])
                {
                    let element_type = self.element_type(part.data);
                    let zero = self.scalar(element_type, 0.0);
                    // Elements that one side does not have must not be multiplied with padding of
                    // the other.
                    part.data = self.masked(part, contracted, zero)?;
                }
                for (&l, &r) in numbers.lhs_contracting_dims.iter().zip(&numbers.rhs_contracting_dims) {
                    for (side, own, other) in [(0, l, rhs[r]), (1, r, lhs[l])] {
                        let mut masked = parts[side].clone();
                        masked.sizes[own] = other;
                        let element_type = self.element_type(masked.data);
                        let zero = self.scalar(element_type, 0.0);
                        parts[side].data = self.masked(&masked, &[own], zero)?;
                    }
                }
                let mut sizes = Vec::new();
                for (&l, &r) in numbers.lhs_batch_dims.iter().zip(&numbers.rhs_batch_dims) {
                    sizes.push(self.common_size(lhs[l], rhs[r])?);
                }
                let free = |sizes: &Sizes, batch: &[usize], contracted: &[usize]| -> Sizes {
                    let free = (0..sizes.len()).filter(|d| !batch.contains(d) && !contracted.contains(d));
                    free.map(|d| sizes[d]).collect()
                };
                sizes.extend(free(&lhs, &numbers.lhs_batch_dims, &numbers.lhs_contracting_dims));
                sizes.extend(free(&rhs, &numbers.rhs_batch_dims, &numbers.rhs_contracting_dims));
                sizes
            }
            Op::Scatter { scatter_dimension_numbers: numbers, .. } if parts.len() == 3 => {
                let window: Vec<usize> = numbers.update_window_dims.clone();
                // Updates and indices correspond. Indices beyond the true size are out of range.
                let scattered: Vec<usize> =
                    (0..parts[2].sizes.len()).filter(|d| !window.contains(d)).collect();
                let of_indices: Vec<usize> =
                    (0..parts[1].sizes.len()).filter(|&d| d != numbers.index_vector_dim).collect();
                let element_type = self.element_type(parts[1].data);
                let nowhere = self.nowhere(element_type);
                for (&of_update, &of_index) in scattered.iter().zip(&of_indices) {
                    let mut masked = parts[1].clone();
                    masked.sizes[of_index] =
                        self.common_size(parts[1].sizes[of_index], parts[2].sizes[of_update])?;
                    parts[1].data = self.masked(&masked, &[of_index], nowhere)?;
                }
                parts[0].sizes.clone()
            }
            Op::TopK { largest, .. } => {
                let last = parts[0].sizes.len() - 1;
                let element_type = self.element_type(parts[0].data);
                let never = self.literal(last_of_all(element_type, *largest));
                parts[0].data = self.masked(&parts[0], &[last], never)?;
                let mut sizes = parts[0].sizes.clone();
                sizes[last] = None;
                sizes
            }
            Op::Sort { .. } => self.common_sizes(&parts)?,
            Op::ReduceWindow { window, to_apply } => {
                self.windowed_sizes(op, &mut parts, window, *to_apply)?
            }
            Op::Convolution { window, dim_labels, feature_group_count, batch_group_count: 1 } => {
                let is_grouped = *feature_group_count != 1;
                self.convolved_sizes(op, &mut parts, window, dim_labels, is_grouped)?
            }
            Op::SelectAndScatter { window, select, .. } => {
                self.scattered_sizes(op, &mut parts, window, *select)?
            }
            Op::Cholesky { .. } => {
                let element_type = self.element_type(parts[0].data);
                let one = self.scalar(element_type, 1.0);
                parts[0].data = self.with_diagonal_beyond(&parts[0], one)?;
                parts[0].sizes.clone()
            }
            Op::TriangularSolve { left_side, .. } => {
                self.solved_sizes(&mut parts, *left_side)?;
                parts[1].sizes.clone()
            }
            Op::Fft { fft_length, .. }
                if parts[0].sizes.iter().rev().take(fft_length.len()).all(Option::is_none) =>
            {
                parts[0].sizes.clone()
            }
            Op::BatchNormInference { feature_index, .. }
                if parts[0].sizes[*feature_index].is_none() && parts[1..].iter().all(Bounded::is_static) =>
            {
                parts[0].sizes.clone()
            }
            _ => return Err(unsupported(op)),
        };
        Ok((parts, sizes))
    }

    /// Returns the sizes of dimensions that several arrays share. Scalars are ignored.
    fn common_sizes(&mut self, parts: &[Bounded]) -> Result<Sizes> {
        let rank = parts.iter().map(|part| part.sizes.len()).max().unwrap_or(0);
        let mut sizes = vec![None; rank];
        for part in parts.iter().filter(|part| part.sizes.len() == rank) {
            for (size, &of_part) in sizes.iter_mut().zip(&part.sizes) {
                *size = self.common_size(*size, of_part)?;
            }
        }
        Ok(sizes)
    }

    /// Returns one of two sizes that should be equal: the smaller one, so that no padding counts.
    pub(super) fn common_size(
        &mut self,
        a: Option<InstructionId>,
        b: Option<InstructionId>,
    ) -> Result<Option<InstructionId>> {
        match (a, b) {
            (Some(a), Some(b)) if a != b => Ok(Some(self.op(Op::Minimum {}, &[a, b])?)),
            (a, b) => Ok(a.or(b)),
        }
    }

    /// Reduces bounded arrays. The identity replaces padding: that of a known operation, and
    /// otherwise the initial value.
    fn bounded_reduce(
        &mut self,
        op: Op,
        parts: &[Bounded],
        dimensions: &[usize],
        to_apply: ComputationId,
    ) -> Result<InstructionId> {
        let (arrays, initial) = parts.split_at(parts.len() / 2);
        let sizes = self.common_sizes(arrays)?;
        let mut data = Vec::with_capacity(parts.len());
        for (array, initial) in arrays.iter().zip(initial) {
            let array = Bounded { data: array.data, sizes: sizes.clone() };
            let identity = self.identity_of(to_apply, initial.data);
            data.push(self.masked(&array, dimensions, identity)?);
        }
        data.extend(initial.iter().map(|part| part.data));
        let remaining: Sizes =
            (0..sizes.len()).filter(|d| !dimensions.contains(d)).map(|d| sizes[d]).collect();
        let result = self.static_op(op, &data, None)?;
        if arrays.len() == 1 {
            return self.bounded(result, &remaining);
        }
        if remaining.iter().any(Option::is_some) {
            self.scope().set_tuple_sizes(result, remaining);
        }
        Ok(result)
    }

    /// Replaces padding with the identity: elements in the instruction's own padding do not count.
    /// Returns the numbers of windows.
    fn windowed_sizes(
        &mut self,
        op: &Op,
        parts: &mut [Bounded],
        window: &Window,
        to_apply: ComputationId,
    ) -> Result<Sizes> {
        let (arrays, initial) = parts.split_at_mut(parts.len() / 2);
        let sizes = self.common_sizes(arrays)?;
        let bounded = || window.dimensions.iter().enumerate().filter(|&(d, _)| sizes[d].is_some());
        if bounded().any(|(_, dimension)| dimension.base_dilation != 1) {
            return Err(unsupported(op));
        }
        // A window of one element only reads the element at its own position.
        let seen: Vec<usize> = bounded()
            .filter(|&(_, dimension)| *dimension != WindowDimension::of_size(1))
            .map(|(d, _)| d)
            .collect();
        for (array, initial) in arrays.iter_mut().zip(initial) {
            array.sizes.clone_from(&sizes);
            let identity = self.identity_of(to_apply, initial.data);
            let read: Vec<usize> =
                seen.iter().copied().filter(|&d| may_read_beyond(&window.dimensions[d])).collect();
            array.data = self.masked(array, &read, identity)?;
        }
        let mut counts = sizes.clone();
        for &d in &seen {
            let Some(size) = sizes[d] else { continue };
            counts[d] = Some(self.window_count(size, None, window.dimensions[d])?);
        }
        Ok(counts)
    }

    /// Replaces padding of the sources with the initial value, which changes nothing, and that of
    /// the operand with a value that no window selects. Returns the sizes of the result of a
    /// `select-and-scatter`.
    fn scattered_sizes(
        &mut self,
        op: &Op,
        parts: &mut [Bounded],
        window: &Window,
        select: ComputationId,
    ) -> Result<Sizes> {
        let is_seen = |d: &usize| window.dimensions[*d] != WindowDimension::of_size(1);
        let seen: Vec<usize> = (0..parts[0].sizes.len()).filter(is_seen).collect();
        let initial = parts[2].data;
        parts[1].data = self.masked(&parts[1], &seen, initial)?;
        let open: Vec<usize> = seen.into_iter().filter(|&d| parts[0].sizes[d].is_some()).collect();
        if open.iter().any(|&d| window.dimensions[d].padding_high > 0) {
            let element_type = self.element_type(parts[0].data);
            let callee = self.module().get(select);
            let root = callee.and_then(|callee| Some(callee[callee.root_if_set()?].op().clone()));
            let never = match root {
                Some(Op::Compare { direction: Ge | Gt, .. }) => lowest(element_type),
                Some(Op::Compare { direction: Le | Lt, .. }) => highest(element_type),
                _ => return Err(unsupported(op)),
            };
            let never = self.literal(never);
            parts[0].data = self.masked(&parts[0], &open, never)?;
        }
        Ok(parts[0].sizes.clone())
    }

    /// Replaces padding of triangular matrices and of the sides of their systems, so that the
    /// solution beyond the true size is 0.
    pub fn solved_sizes(&mut self, parts: &mut [Bounded], left_side: bool) -> Result<()> {
        let element_type = self.element_type(parts[0].data);
        let (zero, one) = (self.scalar(element_type, 0.0), self.scalar(element_type, 1.0));
        parts[0].data = self.with_diagonal_beyond(&parts[0], one)?;
        let rank = parts[1].sizes.len();
        let solved = if left_side { rank - 2 } else { rank - 1 };
        parts[1].data = self.masked(&parts[1], &[solved], zero)?;
        for d in 0..rank - 2 {
            parts[1].sizes[d] = self.common_size(parts[1].sizes[d], parts[0].sizes[d])?;
        }
        Ok(())
    }

    /// Number of windows along a dimension. `span` is the true size of the window if it is not that
    /// of the dimension.
    fn window_count(
        &mut self,
        size: InstructionId,
        span: Option<InstructionId>,
        dimension: WindowDimension,
    ) -> Result<InstructionId> {
        let WindowDimension { stride, padding_low, padding_high, window_dilation, base_dilation, .. } =
            dimension;
        let mut size = size;
        if base_dilation != 1 {
            // Gaps are between elements.
            let (one, zero, step) = (self.s32(1)?, self.s32(0)?, self.s32(base_dilation)?);
            let gaps = self.sub(size, one)?;
            let gaps = self.op(Op::Maximum {}, &[gaps, zero])?;
            let gaps = self.times(gaps, step)?;
            let dilated = self.add(gaps, one)?;
            size = self.op(Op::Maximum {}, &[dilated, zero])?;
        }
        let span = match span {
            Some(span) => {
                let (one, step) = (self.s32(1)?, self.s32(window_dilation)?);
                let steps = self.sub(span, one)?;
                let steps = self.times(steps, step)?;
                self.add(steps, one)?
            }
            None => self.s32((dimension.size - 1) * window_dilation + 1)?,
        };
        let (more, stride, none) =
            (self.s32(padding_low + padding_high + stride)?, self.s32(stride)?, self.s32(0)?);
        let more = self.sub(more, span)?;
        let last = self.add(size, more)?;
        let last = self.op(Op::Maximum {}, &[last, none])?;
        self.div(last, stride)
    }

    /// Pads the input of a convolution whose window has a bounded size: a small window has more
    /// results than the largest one.
    fn with_room_for_results(&mut self, mut op: Op, parts: &[Bounded]) -> Result<Op> {
        let Op::Convolution { window, dim_labels: labels, .. } = &mut op else { return Ok(op) };
        let places = labels.input_spatial_dimensions.iter().zip(&labels.kernel_spatial_dimensions);
        for ((&d, &k), dimension) in places.zip(&mut window.dimensions) {
            let Some(span) = parts[1].sizes[k] else { continue };
            let (whole, most) = (self.sizes(parts[0].data)[d], self.sizes(parts[1].data)[k]);
            let size = self.size_value(Size { bound: whole, size: parts[0].sizes[d] })?;
            let difference = if (dimension.base_dilation, dimension.window_dilation) == (1, 1) {
                let difference = self.sub(size, span)?;
                self.size_range(Size { bound: 0, size: Some(difference) }).high
            } else {
                None
            };
            let missing = match difference {
                Some(difference) => difference - (whole - most),
                None => most * dimension.window_dilation,
            };
            dimension.padding_high += missing.max(0);
        }
        Ok(op)
    }

    /// Replaces padding along spatial dimensions and along features that are summed up with zeros,
    /// as the instruction's own padding does. Returns the sizes of the result of a convolution.
    fn convolved_sizes(
        &mut self,
        op: &Op,
        parts: &mut [Bounded],
        window: &Window,
        labels: &ConvolutionDimensionNumbers,
        is_grouped: bool,
    ) -> Result<Sizes> {
        let (input, kernel) = (parts[0].sizes.clone(), parts[1].sizes.clone());
        let summed = [labels.input_feature_dimension, labels.kernel_input_feature_dimension];
        let has_open_features = input[summed[0]].is_some() || kernel[summed[1]].is_some();
        if is_grouped && (has_open_features || kernel[labels.kernel_output_feature_dimension].is_some()) {
            return Err(unsupported(op));
        }
        let spatial = labels.input_spatial_dimensions.iter().zip(&labels.kernel_spatial_dimensions);
        let read = spatial.zip(&window.dimensions).filter(|((_, of_kernel), dimension)| {
            kernel[**of_kernel].is_some() || may_read_beyond(dimension)
        });
        let read: Vec<usize> = read.map(|((&of_input, _), _)| of_input).collect();
        let dimensions = [
            [&read[..], &summed[..1]].concat(),
            [&labels.kernel_spatial_dimensions[..], &summed[1..]].concat(),
        ];
        for (part, dimensions) in parts.iter_mut().zip(&dimensions) {
            let element_type = self.element_type(part.data);
            let zero = self.scalar(element_type, 0.0);
            part.data = self.masked(part, dimensions, zero)?;
        }
        let mut sizes = vec![None; input.len()];
        sizes[labels.output_batch_dimension] = input[labels.input_batch_dimension];
        sizes[labels.output_feature_dimension] = kernel[labels.kernel_output_feature_dimension];
        for (k, &d) in labels.input_spatial_dimensions.iter().enumerate() {
            let span = kernel[labels.kernel_spatial_dimensions[k]];
            if input[d].is_none() && span.is_none() {
                continue;
            }
            let whole = self.sizes(parts[0].data)[d];
            let size = self.size_value(Size { bound: whole, size: input[d] })?;
            let count = self.window_count(size, span, window.dimensions[k])?;
            sizes[labels.output_spatial_dimensions[k]] = Some(count);
        }
        Ok(sizes)
    }

    /// Concatenates arrays. Each begins after the true elements of the previous one.
    fn bounded_concatenate(&mut self, parts: &[Bounded], dimension: usize) -> Result<InstructionId> {
        let mut sizes = vec![None; parts[0].sizes.len()];
        for part in parts {
            for (d, size) in sizes.iter_mut().enumerate().filter(|(d, _)| *d != dimension) {
                *size = self.common_size(*size, part.sizes[d])?;
            }
        }
        let ends_bounded = parts[..parts.len() - 1].iter().all(|part| part.sizes[dimension].is_none());
        let mut end = self.s32(0)?;
        let mut is_known = true;
        let mut joined = None;
        if !ends_bounded {
            let mut whole = self.sizes(parts[0].data);
            whole[dimension] = 0;
            for part in parts {
                whole[dimension] += self.sizes(part.data)[dimension];
            }
            let element_type = self.element_type(parts[0].data);
            joined = Some(self.splat(element_type, &whole, 0.0)?);
        }
        for part in parts {
            if let Some(so_far) = joined {
                let origin = self.s32(0)?;
                let starts = (0..sizes.len()).map(|d| if d == dimension { end } else { origin });
                let operands: Vec<InstructionId> = [so_far, part.data].into_iter().chain(starts).collect();
                joined = Some(self.op(Op::DynamicUpdateSlice {}, &operands)?);
            }
            is_known &= part.sizes[dimension].is_none();
            let bound = self.sizes(part.data)[dimension];
            let size = self.size_value(Size { bound, size: part.sizes[dimension] })?;
            end = self.add(end, size)?;
        }
        let data: Vec<InstructionId> = parts.iter().map(|part| part.data).collect();
        let result = match joined {
            Some(joined) => joined,
            None => self.concatenate(&data, dimension)?,
        };
        sizes[dimension] = (!is_known).then_some(end);
        self.bounded(result, &sizes)
    }

    /// Reverses arrays. The padding comes first after the reversal, and is removed.
    fn bounded_reverse(&mut self, part: &Bounded, dimensions: &[usize]) -> Result<InstructionId> {
        let mut data = self.reverse(part.data, dimensions.to_vec())?;
        for &dimension in dimensions {
            let Some(size) = part.sizes[dimension] else { continue };
            let bound = self.sizes(data)[dimension];
            let whole = self.s32(bound)?;
            let begin = self.sub(whole, size)?;
            data = self.take(data, dimension, begin, 1, Size::known(bound))?;
        }
        self.bounded(data, &part.sizes)
    }

    /// Pads arrays. The existing padding of dimensions that become longer is overwritten with the
    /// padding value.
    fn bounded_pad(&mut self, parts: &[Bounded], padding: &PaddingConfig) -> Result<InstructionId> {
        let changes = |d: &usize| padding.dimensions[*d] != PaddingDimension::default();
        let changed: Vec<usize> = (0..parts[0].sizes.len()).filter(changes).collect();
        let data = self.masked(&parts[0], &changed, parts[1].data)?;
        let mut sizes = parts[0].sizes.clone();
        for (d, (size, padding)) in sizes.iter_mut().zip(&padding.dimensions).enumerate() {
            let Some(true_size) = size.filter(|_| changed.contains(&d)) else { continue };
            let (zero, interior) = (self.s32(0)?, self.s32(padding.interior_padding)?);
            let gaps = self.add_scalar(true_size, -1.0)?;
            let gaps = self.op(Op::Maximum {}, &[gaps, zero])?;
            let inside = self.times(gaps, interior)?;
            let inner = self.add(true_size, inside)?;
            let around = (padding.edge_padding_low + padding.edge_padding_high) as f64;
            let padded = self.add_scalar(inner, around)?;
            *size = Some(self.op(Op::Maximum {}, &[padded, zero])?);
        }
        let result = self.static_op(Op::Pad { padding: padding.clone() }, &[data, parts[1].data], None)?;
        self.bounded(result, &sizes)
    }

    /// Returns the sizes of a slice: the part of each range that is before the true size.
    fn sliced_sizes(&mut self, part: &Bounded, slice: &[SliceDimension]) -> Result<Sizes> {
        let whole_sizes = self.sizes(part.data);
        let mut sizes = part.sizes.clone();
        for (d, size) in sizes.iter_mut().enumerate() {
            let (Some(true_size), SliceDimension { start, limit, stride }) = (*size, slice[d]) else {
                continue;
            };
            if (start, limit, stride) == (0, whole_sizes[d], 1) {
                continue;
            }
            let (low, high) = (self.s32(start)?, self.s32(limit.max(start))?);
            let end = self.clamped(true_size, low, high)?;
            let reached = self.sub(end, low)?;
            let reached = self.add_scalar(reached, (stride - 1) as f64)?;
            let step = self.s32(stride)?;
            *size = Some(if stride == 1 { reached } else { self.div(reached, step)? });
        }
        Ok(sizes)
    }
}

/// Returns the element that follows all others in descending order, or in ascending order: NaN with
/// or without a sign for floats.
fn last_of_all(element_type: PrimitiveType, descending: bool) -> Literal {
    let last = if descending { lowest(element_type) } else { highest(element_type) };
    if !matches!(element_type, F16 | Bf16 | F32 | F64) {
        return last;
    }
    let mut bytes = vec![0xff; element_type.byte_size()];
    if let (false, Some(sign)) = (descending, bytes.last_mut()) {
        *sign = 0x7f;
    }
    Literal::from_bytes(last.array_shape().clone(), bytes.into()).unwrap_or(last)
}

fn unsupported(op: &Op) -> Error {
    let name = match op {
        Op::CustomCall { custom_call_target, .. } => format!("custom call \"{custom_call_target}\""),
        op => op.opcode().name().to_owned(),
    };
    Error::unsupported(format!(
        "an input has a dimension of data-dependent size, which {name} does not support; give the \
         input a fixed size first, for example with XlaRemoveDynamicDimensionSize or Pad"
    ))
    .coded(Code::BoundedSize)
}

/// True if windows along a dimension may read elements beyond its size for a result that is needed.
/// Without padding at the end they do not, but results of neighboring windows may be computed from
/// the elements of both, as Winograd's transforms do.
fn may_read_beyond(dimension: &WindowDimension) -> bool {
    dimension.padding_high > 0 || dimension.stride == 1 && dimension.size > 1
}
