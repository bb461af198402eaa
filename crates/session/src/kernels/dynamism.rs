//! Sizes that change from run to run: which dimensions of a cluster's inputs get a range, so that
//! other sizes need no compilation.
//!
//! This is TensorFlow's `increase-dynamism` rule. The first kernel is for the sizes of the first
//! run. A dimension whose size then differs gets a name with a range, up to the next power of 2.
//! Dimensions that had equal sizes in all runs share a name, which each run checks: if their sizes
//! differ, they get different names. A larger size grows the range. The number of compilations is
//! therefore logarithmic in the sizes.
//!
//! Names have different bounds. Where an op needs equal sizes, an import with two names then fails
//! or adds a check, and the cluster is compiled for each shape instead ([`Dynamism::refuse`]).
//! Sizes of 0 and 1 are fixed, because arrays of size 1 are broadcast.

use super::Operand;
use shape::ArrayShape;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of names. Each doubles the work at worst.
const MAX_NAMES: usize = 4;

/// Largest size that is a constant.
pub(super) const MAX_FIXED: i64 = 1;

/// History of the sizes of a cluster's inputs.
#[derive(Debug, Default)]
pub(super) struct Dynamism {
    /// By everything else that a kernel is compiled for.
    classes: BTreeMap<Vec<u8>, Class>,
}

/// Inputs that differ in their sizes only.
#[derive(Debug, Default)]
struct Class {
    /// All dimensions of all arrays, in the order of the inputs.
    dimensions: Vec<Dimension>,
    is_refused: bool,
}

#[derive(Clone, Copy, Debug)]
struct Dimension {
    first: i64,
    largest: i64,
    has_changed: bool,
    /// Dimensions of equal sizes so far have one group.
    group: usize,
}

/// Returns the operands with a representative for all sizes that a range may contain, as the
/// identity of a class.
pub(super) fn class(operands: &[Operand]) -> Vec<Operand> {
    let of_operand = |operand: &Operand| match operand {
        Operand::Array(shape) => {
            let sizes: Vec<i64> = shape.sizes().iter().map(|&size| size.min(MAX_FIXED + 1)).collect();
            Operand::Array(Arc::new(ArrayShape::new(shape.element_type, &sizes)))
        }
        other => other.clone(),
    };
    operands.iter().map(of_operand).collect()
}

impl Dynamism {
    /// Records a run with these operands. Returns the operands with ranges, or `None` if the kernel
    /// is for these sizes: they are the first ones, none has changed, or ranges were refused.
    pub(super) fn observe(&mut self, class: &[u8], operands: &[Operand]) -> Option<Vec<Operand>> {
        let arrays = operands.iter().filter_map(|operand| match operand {
            Operand::Array(shape) => Some(shape.sizes()),
            _ => None,
        });
        let sizes: Vec<i64> = arrays.flatten().collect();
        if !self.classes.contains_key(class) {
            self.classes.insert(class.to_vec(), Class::default());
        }
        let class = self.classes.get_mut(class)?;
        class.record(&sizes);
        let bounds = class.bounds()?;
        let mut place = 0;
        let of_operand = |operand: &Operand| {
            let Operand::Array(shape) = operand else { return operand.clone() };
            let (mut sizes, mut named) = (shape.sizes(), BTreeMap::new());
            for (dimension, size) in sizes.iter_mut().enumerate() {
                if let Some(&(name, bound)) = bounds.get(&class.dimensions[place].group) {
                    named.insert(dimension, name);
                    *size = bound;
                }
                place += 1;
            }
            if named.is_empty() {
                return operand.clone();
            }
            Operand::Sized { shape: Arc::new(ArrayShape::new(shape.element_type, &sizes)), named }
        };
        Some(operands.iter().map(of_operand).collect())
    }

    /// Compiles a class for each shape from now on.
    pub(super) fn refuse(&mut self, class: &[u8]) {
        if let Some(class) = self.classes.get_mut(class) {
            class.is_refused = true;
        }
    }
}

impl Class {
    fn record(&mut self, sizes: &[i64]) {
        if self.dimensions.len() != sizes.len() {
            let new = |&size: &i64| Dimension { first: size, largest: size, has_changed: false, group: 0 };
            self.dimensions = sizes.iter().map(new).collect();
        }
        let mut groups = BTreeMap::new();
        for (dimension, &size) in self.dimensions.iter_mut().zip(sizes) {
            let next = groups.len();
            dimension.group = *groups.entry((dimension.group, size)).or_insert(next);
            dimension.largest = dimension.largest.max(size);
            dimension.has_changed |= size != dimension.first;
        }
    }

    /// For each group that has changed, its name and its bound. `None` if there are none or too
    /// many.
    fn bounds(&self) -> Option<BTreeMap<usize, (usize, i64)>> {
        let mut bounds: BTreeMap<usize, (usize, i64)> = BTreeMap::new();
        for dimension in self.dimensions.iter().filter(|dimension| dimension.has_changed) {
            if bounds.contains_key(&dimension.group) {
                continue;
            }
            let power = dimension.largest.unsigned_abs().checked_next_power_of_two()?;
            let mut bound = i64::try_from(power).ok()?;
            let step = (bound / 8).max(1);
            while bounds.values().any(|&(_, other)| other == bound) {
                bound = bound.checked_add(step)?;
            }
            bounds.insert(dimension.group, (bounds.len(), bound));
        }
        (!self.is_refused && (1..=MAX_NAMES).contains(&bounds.len())).then_some(bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::{Dynamism, Operand};
    use shape::{ArrayShape, PrimitiveType};
    use std::sync::Arc;

    /// A size, and the number of its name.
    type Size = (i64, Option<usize>);

    /// The sizes of arrays after a run.
    fn run(dynamism: &mut Dynamism, arrays: &[&[i64]]) -> Option<Vec<Vec<Size>>> {
        let array = |sizes: &&[i64]| Operand::Array(Arc::new(ArrayShape::new(PrimitiveType::F32, sizes)));
        let operands: Vec<Operand> = arrays.iter().map(array).collect();
        let sizes = |operand: &Operand| match operand {
            Operand::Array(shape) => shape.sizes().iter().map(|&size| (size, None)).collect(),
            Operand::Sized { shape, named } => {
                let named = |(d, &size): (usize, &i64)| (size, named.get(&d).copied());
                shape.sizes().iter().enumerate().map(named).collect()
            }
            other => panic!("{other:?}"),
        };
        Some(dynamism.observe(b"class", &operands)?.iter().map(sizes).collect())
    }

    #[test]
    fn sizes_that_change_get_ranges_that_grow() {
        let mut dynamism = Dynamism::default();
        assert_eq!(run(&mut dynamism, &[&[5, 3]]), None);
        assert_eq!(run(&mut dynamism, &[&[5, 3]]), None);
        let of_bound = |bound| Some(vec![vec![(bound, Some(0)), (3, None)]]);
        assert_eq!(run(&mut dynamism, &[&[7, 3]]), of_bound(8));
        assert_eq!(run(&mut dynamism, &[&[2, 3]]), of_bound(8));
        assert_eq!(run(&mut dynamism, &[&[9, 3]]), of_bound(16));
        assert_eq!(run(&mut dynamism, &[&[5, 3]]), of_bound(16));
        dynamism.refuse(b"class");
        assert_eq!(run(&mut dynamism, &[&[6, 3]]), None);
    }

    #[test]
    fn dimensions_share_a_name_while_their_sizes_are_equal() {
        let mut dynamism = Dynamism::default();
        assert_eq!(run(&mut dynamism, &[&[4, 4], &[4]]), None);
        // The second dimension stays 4.
        let first = Some(vec![vec![(8, Some(0)), (4, None)], vec![(8, Some(0))]]);
        assert_eq!(run(&mut dynamism, &[&[6, 4], &[6]]), first);
        // Different names have different bounds.
        let second = Some(vec![vec![(8, Some(0)), (4, None)], vec![(9, Some(1))]]);
        assert_eq!(run(&mut dynamism, &[&[6, 4], &[7]]), second);
        assert_eq!(run(&mut dynamism, &[&[6, 4], &[6]]), second);
    }
}
