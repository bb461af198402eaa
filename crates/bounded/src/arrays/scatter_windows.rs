//! Scatters whose windows have data-dependent sizes.

use super::{Bounded, Sizes};
use crate::builder::Builder;
use hlo::{ComparisonDirection, InstructionId, Op, ScatterDimensionNumbers};
use shape::PrimitiveType;
use support::{Error, Result};

/// A window dimension with a data-dependent size.
struct Cut {
    /// Its index among the dimensions of the updates.
    of_update: usize,
    /// Its index among the dimensions of the operand.
    of_operand: usize,
    /// Its true size.
    size: InstructionId,
}

/// The type of indices. No position within an array overflows it.
const INDEX_TYPE: PrimitiveType = PrimitiveType::S64;

/// Indices of parts of windows, under construction.
struct Places<'a> {
    /// Sizes of the indices' own dimensions, followed by those of the parts.
    sizes: &'a [i64],
    /// Number of the indices' own dimensions.
    batch: usize,
    /// The components of the indices.
    columns: &'a mut Vec<InstructionId>,
    /// The operand's dimension of each component.
    targets: &'a mut Vec<usize>,
}

impl Builder {
    /// Splits the windows of a `scatter` into parts: along each bounded dimension, every element of
    /// a window becomes an update with its own index. Elements beyond the true size, and windows
    /// that do not fit as a whole, get an index out of range.
    pub(super) fn windows_apart(&mut self, op: Op, mut parts: Vec<Bounded>) -> Result<(Op, Vec<Bounded>)> {
        let Op::Scatter { scatter_dimension_numbers: numbers, .. } = &op else { return Ok((op, parts)) };
        if parts.len() != 3 {
            return Ok((op, parts));
        }
        let numbers = numbers.clone();
        let cuts = cuts(&numbers, &parts);
        if cuts.is_empty() {
            return Ok((op, parts));
        }
        if !numbers.input_batching_dims.is_empty() {
            return Err(Error::unsupported(
                "scatter with batching dimensions and windows of data-dependent size is not supported; make the batch dimensions part of the indices",
            ));
        }
        let mut indices = self.vectors_last(&parts[1], numbers.index_vector_dim)?;
        indices.data = self.convert(indices.data, INDEX_TYPE)?;
        let batch = indices.sizes.len() - 1;
        let mut sizes = self.sizes(indices.data);
        let components = sizes[batch] as usize;
        // The positions of the parts within their windows follow the indices' own dimensions.
        let whole: Vec<i64> = self.sizes(parts[2].data);
        sizes.splice(batch..batch, cuts.iter().map(|cut| whole[cut.of_update]));
        let shared: Vec<usize> = (0..batch).collect();
        let one = &sizes[..sizes.len() - 1];
        let mut columns = Vec::with_capacity(components);
        for component in 0..components {
            let column = self.column(indices.data, component)?;
            columns.push(self.broadcast(column, one, &shared)?);
        }
        let mut targets = numbers.scatter_dims_to_operand_dims.clone();
        let mut places = Places { sizes: one, batch, columns: &mut columns, targets: &mut targets };
        let fits = self.add_places(&mut places, &cuts, &parts[0])?;
        let nowhere = self.nowhere(INDEX_TYPE);
        let nowhere = self.broadcast(nowhere, one, &[])?;
        let mut column_sizes = one.to_vec();
        column_sizes.push(1);
        for column in &mut columns {
            let valid = self.select(fits, *column, nowhere)?;
            *column = self.reshape(valid, &column_sizes)?;
        }
        indices.sizes.splice(batch..batch, cuts.iter().map(|_| None));
        indices.data = self.op(Op::Concatenate { dimension: column_sizes.len() - 1 }, &columns)?;

        let (updates, window) = self.windows_last(&parts[2], &numbers, &cuts)?;
        let mut inserted = numbers.inserted_window_dims.clone();
        inserted.extend(cuts.iter().map(|cut| cut.of_operand));
        inserted.sort_unstable();
        let numbers = ScatterDimensionNumbers {
            update_window_dims: window,
            inserted_window_dims: inserted,
            scatter_dims_to_operand_dims: targets,
            index_vector_dim: column_sizes.len() - 1,
            ..numbers
        };
        parts[1] = indices;
        parts[2] = updates;
        let Op::Scatter { unique_indices, to_apply, .. } = op else {
            return Err(Error::internal("expected a scatter"));
        };
        let op = Op::Scatter {
            scatter_dimension_numbers: numbers,
            indices_are_sorted: false,
            unique_indices,
            to_apply,
        };
        Ok((op, parts))
    }

    /// Adds the positions of the parts within their windows to the indices. Returns a mask of the
    /// parts that exist, in windows that fit as a whole.
    fn add_places(
        &mut self,
        places: &mut Places<'_>,
        cuts: &[Cut],
        operand: &Bounded,
    ) -> Result<InstructionId> {
        let mut fits: Option<InstructionId> = None;
        for (k, cut) in cuts.iter().enumerate() {
            let component = match places.targets.iter().position(|&dimension| dimension == cut.of_operand) {
                Some(component) => component,
                None => {
                    places.targets.push(cut.of_operand);
                    let zero = self.scalar(INDEX_TYPE, 0.0);
                    places.columns.push(self.broadcast(zero, places.sizes, &[])?);
                    places.columns.len() - 1
                }
            };
            let exists = self.before(places.sizes, places.batch + k, cut.size)?;
            let is_within = self.window_fits(places.columns[component], cut, operand, places.sizes)?;
            for holds in [exists, is_within] {
                fits = Some(match fits {
                    Some(fits) => self.op(Op::And {}, &[fits, holds])?,
                    None => holds,
                });
            }
            let numbers = self.iota(INDEX_TYPE, places.sizes, places.batch + k)?;
            places.columns[component] = self.add(places.columns[component], numbers)?;
        }
        fits.ok_or_else(|| Error::internal("no window dimension is bounded"))
    }

    /// Returns an index that is out of range for any array.
    pub(super) fn nowhere(&mut self, element_type: PrimitiveType) -> InstructionId {
        let nowhere = if element_type.is_signed_integer() { -1.0 } else { f64::from(u32::MAX) };
        self.scalar(element_type, nowhere)
    }

    /// Returns the indices with their vectors along the last dimension.
    fn vectors_last(&mut self, indices: &Bounded, vector: usize) -> Result<Bounded> {
        let rank = indices.sizes.len();
        if vector == rank {
            let mut sizes = self.sizes(indices.data);
            sizes.push(1);
            let mut of_parts = indices.sizes.clone();
            of_parts.push(None);
            return Ok(Bounded { data: self.reshape(indices.data, &sizes)?, sizes: of_parts });
        }
        let order: Vec<usize> = (0..rank).filter(|&d| d != vector).chain([vector]).collect();
        self.reordered(indices, &order)
    }

    fn reordered(&mut self, array: &Bounded, order: &[usize]) -> Result<Bounded> {
        let sizes: Sizes = order.iter().map(|&d| array.sizes[d]).collect();
        Ok(Bounded { data: self.transpose(array.data, order)?, sizes })
    }

    /// Returns one component of all index vectors, which are along the last dimension.
    fn column(&mut self, indices: InstructionId, component: usize) -> Result<InstructionId> {
        let sizes = self.sizes(indices);
        let last = sizes.len() - 1;
        let column = self.slice_in(indices, last, component as i64, component as i64 + 1)?;
        self.reshape(column, &sizes[..last])
    }

    /// Returns a mask of the windows that begin at `starts` and are within the operand's true size.
    fn window_fits(
        &mut self,
        starts: InstructionId,
        cut: &Cut,
        operand: &Bounded,
        sizes: &[i64],
    ) -> Result<InstructionId> {
        let operand_size = match operand.sizes[cut.of_operand] {
            Some(size) => size,
            None => {
                let size = self.sizes(operand.data)[cut.of_operand];
                self.s32(size)?
            }
        };
        let element_type = self.element_type(starts);
        let most = self.sub(operand_size, cut.size)?;
        let zero = self.s32(0)?;
        let is_narrower = self.compare(ComparisonDirection::Ge, most, zero)?;
        let is_narrower = self.broadcast(is_narrower, sizes, &[])?;
        let most = self.op(Op::Maximum {}, &[most, zero])?;
        let most = self.convert(most, element_type)?;
        let most = self.broadcast(most, sizes, &[])?;
        let begins = self.compare_scalar(ComparisonDirection::Ge, starts, 0.0)?;
        let ends = self.compare(ComparisonDirection::Le, starts, most)?;
        let within = self.op(Op::And {}, &[begins, ends])?;
        self.op(Op::And {}, &[within, is_narrower])
    }

    /// Transposes the updates: first the dimensions of the indices, then those of the parts, then
    /// the rest of the windows. Also returns the positions of the rest.
    fn windows_last(
        &mut self,
        updates: &Bounded,
        numbers: &ScatterDimensionNumbers,
        cuts: &[Cut],
    ) -> Result<(Bounded, Vec<usize>)> {
        let rank = updates.sizes.len();
        let is_cut = |d: &usize| cuts.iter().any(|cut| cut.of_update == *d);
        let mut order: Vec<usize> = (0..rank).filter(|d| !numbers.update_window_dims.contains(d)).collect();
        order.extend(cuts.iter().map(|cut| cut.of_update));
        let first = order.len();
        order.extend(numbers.update_window_dims.iter().filter(|d| !is_cut(d)));
        let mut updates = self.reordered(updates, &order)?;
        // Elements beyond the true size have an index out of range.
        updates.sizes[first - cuts.len()..first].fill(None);
        Ok((updates, (first..rank).collect()))
    }
}

/// Returns the bounded dimensions of the windows.
fn cuts(numbers: &ScatterDimensionNumbers, parts: &[Bounded]) -> Vec<Cut> {
    let of_windows = (0..parts[0].sizes.len())
        .filter(|d| !numbers.inserted_window_dims.contains(d) && !numbers.input_batching_dims.contains(d));
    let pairs = numbers.update_window_dims.iter().zip(of_windows);
    let cut = |(&of_update, of_operand): (&usize, usize)| {
        parts[2].sizes[of_update].map(|size| Cut { of_update, of_operand, size })
    };
    pairs.filter_map(cut).collect()
}
