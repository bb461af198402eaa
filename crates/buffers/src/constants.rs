//! The block of constants.

use crate::pack::aligned;
use crate::values::Values;
use crate::{Allocation, BufferAssignment, Leaf, Slice};
use bytes::Bytes;
use hlo::{Module, Op};
use plan::{ModulePlan, Strategy};
use std::collections::{BTreeMap, BTreeSet};

/// The block of constants that several assignments share: what a module needs on different machines. Equal bytes have
/// one place.
#[derive(Clone, Debug, Default)]
pub struct ConstantsPool {
    places: BTreeMap<Bytes, u64>,
    parts: Vec<(u64, Bytes)>,
    size: u64,
}

impl ConstantsPool {
    fn place(&mut self, bytes: &Bytes) -> u64 {
        if let Some(&offset) = self.places.get(bytes) {
            return offset;
        }
        let offset = self.size;
        self.size += aligned(bytes.len() as u64);
        self.parts.push((offset, bytes.clone()));
        self.places.insert(bytes.clone(), offset);
        offset
    }

    /// Lets an assignment hold the constants of all that share the block.
    pub fn give_to(&self, assignment: &mut BufferAssignment) {
        assignment.constants.clone_from(&self.parts);
        assignment.constants_size = self.size;
    }
}

/// Lays out the constants that kernels, copies or results read, equal ones once.
pub(crate) fn place(
    module: &Module,
    plan: &ModulePlan,
    values: &Values<'_>,
    pool: &mut ConstantsPool,
    out: &mut BufferAssignment,
) {
    let mut place = |bytes: &Bytes| {
        let at = pool.place(bytes);
        Slice { allocation: Allocation::Constants, offset: at, size: bytes.len() as u64 }
    };
    let mut read: BTreeSet<Leaf> = BTreeSet::new();
    for (&computation, plans) in &plan.computations {
        for (&instruction, plan) in &plans.instructions {
            if plan.strategy != Strategy::Alias {
                read.extend(values.reads(computation, instruction));
            }
            for (position, packed) in plan.packed.iter().enumerate() {
                out.packed.insert((computation, instruction, position), place(&packed.bytes));
            }
        }
        read.extend(values.root_leaves(computation).into_iter().map(|(_, leaf)| leaf));
    }
    for leaf in read {
        if let Op::Constant { literal } = module[leaf.0][leaf.1].op() {
            let slice = place(constant_leaf(literal, &leaf.2));
            out.slices.insert(leaf, slice);
        }
    }
    pool.give_to(out);
}

fn constant_leaf<'l>(literal: &'l shape::Literal, index: &[usize]) -> &'l Bytes {
    match (literal, index) {
        (shape::Literal::Tuple(elements), [first, rest @ ..]) => constant_leaf(&elements[*first], rest),
        (array, _) => array.bytes(),
    }
}
