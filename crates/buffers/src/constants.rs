//! The block of constants.

use crate::pack::aligned;
use crate::values::Values;
use crate::{Allocation, BufferAssignment, Leaf, Slice};
use bytes::Bytes;
use hlo::{Module, Op};
use plan::{ModulePlan, Strategy};
use std::collections::{BTreeMap, BTreeSet};

/// A block of constants that grows with each assignment that shares it; there is one assignment for
/// each processor for which a module is compiled. Equal bytes are stored once.
#[derive(Debug, Default)]
pub struct ConstantsPool {
    places: BTreeMap<Bytes, u64>,
    block: ConstantsBlock,
}

/// A block of constants.
#[derive(Clone, Debug, Default)]
pub struct ConstantsBlock {
    /// Size in bytes.
    pub size: u64,
    /// The parts in ascending order of offset; gaps are zeros.
    pub chunks: Vec<(u64, Bytes)>,
}

impl ConstantsPool {
    fn place(&mut self, bytes: &Bytes) -> u64 {
        if let Some(&offset) = self.places.get(bytes) {
            return offset;
        }
        let offset = self.block.size;
        self.block.size += aligned(bytes.len() as u64);
        self.block.chunks.push((offset, bytes.clone()));
        self.places.insert(bytes.clone(), offset);
        offset
    }

    /// Current size of the block in bytes.
    pub fn size(&self) -> u64 {
        self.block.size
    }

    /// Returns the block that all assignments share.
    pub fn finish(self) -> ConstantsBlock {
        self.block
    }
}

/// Lays out the constants that kernels, copies, or results read. Equal constants are stored once.
pub(crate) fn place(
    module: &Module,
    plan: &ModulePlan,
    values: &Values<'_>,
    pool: &mut ConstantsPool,
    out: &mut BufferAssignment,
) {
    let mut place = |bytes: &Bytes| {
        let offset = pool.place(bytes);
        Slice { allocation: Allocation::Constants, offset, size: bytes.len() as u64 }
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
}

fn constant_leaf<'l>(literal: &'l shape::Literal, index: &[usize]) -> &'l Bytes {
    match (literal, index) {
        (shape::Literal::Tuple(elements), [first, rest @ ..]) => constant_leaf(&elements[*first], rest),
        (array, _) => array.bytes(),
    }
}
