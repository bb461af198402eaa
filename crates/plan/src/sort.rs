//! Plans sorts: selects numeric keys where possible, and the placement of items during the sort.
//!
//! A comparison of one operand orders by a number. Such keys are sorted in vectors. A key is sorted
//! alone if it determines its element and no other operand has to follow it; otherwise its original
//! position is sorted with it. For other comparisons, positions are sorted by calling the
//! comparison.

use crate::kernel_plan::KernelPlan;
use crate::tasks::Work;
use hlo::{ComparisonDirection, ComparisonType, Computation, InstructionId, Module, Op};
use shape::PrimitiveType;
use std::fmt;
use target::Target;

/// Number of rows that are sorted together at first: the smallest sorting network.
pub const NETWORK_ROWS: i64 = 8;

/// A sort by numeric keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortPlan {
    /// The key.
    pub key: SortKey,
    /// The items that are moved.
    pub items: SortItems,
    /// Items per vector.
    pub lanes: u32,
    /// Placement of the items.
    pub layout: SortLayout,
    /// Products of the sizes before the sorted dimension, of the dimension itself, and of the sizes
    /// after it.
    pub sizes: [i64; 3],
}

/// The numeric key of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// Index of the operand whose elements are compared.
    pub operand: usize,
    /// Type of the operand's elements.
    pub element_type: PrimitiveType,
    /// True if different elements have different keys: integers, and floats by total order.
    /// Otherwise zeros are equal, and rows with NaN have no numeric order.
    pub is_total: bool,
    /// True if the largest element comes first.
    pub is_falling: bool,
    /// True if equal elements are reversed, as with a comparison that holds for equal elements.
    pub last_first: bool,
}

/// The items that a sort moves. Words are signed integers in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortItems {
    /// Keys, in words of this many bits.
    Keys(u32),
    /// Words of this many bits, with the key in the high bits and the position in the low ones.
    Packed(u32),
    /// Two 64-bit words, one with the key and one with the position.
    Pairs,
}

/// Placement of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortLayout {
    /// One lane per sequence. A network sorts several sequences at once.
    Across,
    /// One sequence after another. A network sorts each lane of a chunk, then the lanes are merged.
    Along {
        /// Vectors per chunk.
        vectors: i64,
        /// Number of chunks.
        chunks: i64,
    },
}

impl SortKey {
    /// Number of bits of the key.
    pub fn bits(&self) -> u32 {
        let t = self.element_type;
        let is_widened = t.is_floating_point() && !(t.byte_size() == 2 && self.is_total);
        let bits = 8 * t.byte_size() as u32;
        if is_widened { bits.max(32) } else { bits }
    }

    /// True if an element can be reconstructed from its key.
    pub fn is_element(&self) -> bool {
        self.is_total && !self.element_type.is_minifloat()
    }
}

impl SortItems {
    /// Returns the smallest items for a key in sequences of a length.
    pub(crate) fn of(key: SortKey, needs_places: bool, length: i64) -> Self {
        let place_bits = (64 - (length - 1).leading_zeros()).max(1);
        match (needs_places, key.bits()) {
            (false, bits) => Self::Keys(bits.max(32)),
            (true, bits) if bits + place_bits <= 32 => Self::Packed(32),
            (true, bits) if bits <= 32 && place_bits <= 32 => Self::Packed(64),
            _ => Self::Pairs,
        }
    }

    /// Bits per word.
    pub fn bits(self) -> u32 {
        match self {
            Self::Keys(bits) | Self::Packed(bits) => bits,
            Self::Pairs => 64,
        }
    }

    /// Words per item.
    pub fn words(self) -> u32 {
        if self == Self::Pairs { 2 } else { 1 }
    }
}

impl SortPlan {
    /// Bytes of a vector of items.
    pub fn row_bytes(&self) -> i64 {
        i64::from(self.lanes) * i64::from(self.items.words() * self.items.bits() / 8)
    }

    /// Number of vectors for the sequences of one sort, padding included.
    pub fn rows(&self) -> i64 {
        match self.layout {
            SortLayout::Across => round_up(self.sizes[1], NETWORK_ROWS),
            SortLayout::Along { vectors, chunks } => vectors.saturating_mul(chunks),
        }
    }

    /// Bytes of the items' buffer: a vector that stands for absent items, the items, and one more
    /// vector after them.
    pub fn buffer_bytes(&self) -> i64 {
        self.rows().saturating_add(2).saturating_mul(self.row_bytes())
    }

    /// Offset of the positions that a sort by calls needs for sequences without a numeric order.
    pub fn places_offset(&self) -> i64 {
        let buffers = if matches!(self.layout, SortLayout::Across) { 1 } else { 2 };
        round_up(self.buffer_bytes().saturating_mul(buffers), 64)
    }

    fn scratch_bytes(&self) -> u64 {
        let places = if self.key.is_total { 0 } else { self.sizes[1].saturating_mul(16) };
        self.places_offset().saturating_add(places) as u64
    }

    /// Number of steps of the outermost loop, which tasks share.
    pub fn steps(&self) -> i64 {
        let [outer, _, inner] = self.sizes;
        match self.layout {
            SortLayout::Along { .. } => outer.saturating_mul(inner),
            SortLayout::Across if inner == 1 => outer / i64::from(self.lanes),
            SortLayout::Across if outer == 1 => inner / i64::from(self.lanes),
            SortLayout::Across => outer,
        }
    }
}

impl fmt::Display for SortPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bits, lanes) = (self.items.bits(), self.lanes);
        match self.items {
            SortItems::Keys(_) => write!(f, "sort of {bits}-bit keys")?,
            SortItems::Packed(_) => write!(f, "sort of keys and places in {bits} bits")?,
            SortItems::Pairs => f.write_str("sort of pairs of 64 bits")?,
        }
        match self.layout {
            SortLayout::Across => write!(f, ", {lanes} sequences at once"),
            SortLayout::Along { vectors, chunks } => {
                write!(f, ", {chunks} chunks of {vectors} vectors of {lanes} lanes")
            }
        }
    }
}

/// Operands of a sort or top-k: their key and sizes.
pub(crate) struct Sorted {
    /// The numeric key, if there is one.
    pub(crate) key: Option<SortKey>,
    /// True if the elements' places are needed.
    pub(crate) needs_places: bool,
    /// Products of the sizes before the sorted dimension, of the dimension itself, and of the sizes
    /// after it.
    pub(crate) sizes: [i64; 3],
}

impl Sorted {
    pub(crate) fn of(module: &Module, computation: &Computation, id: InstructionId) -> Option<Self> {
        let instruction = &computation[id];
        let shape = computation[*instruction.operands().first()?].shape().as_array()?;
        let (dimension, key, needs_places) = match instruction.op() {
            Op::Sort { dimension, to_apply, .. } => {
                let key = compared(module, computation, id, *to_apply);
                let follows = instruction.operands().len() > 1 || key.is_some_and(|key| !key.is_element());
                (*dimension, key, follows)
            }
            Op::TopK { largest, .. } => {
                let key = of_type(shape.element_type).map(|key| SortKey { is_falling: *largest, ..key });
                let takes_values = |user: &InstructionId| {
                    matches!(computation[*user].op(), Op::GetTupleElement { index: 0 })
                };
                let only_values = id != computation.root() && instruction.users().iter().all(takes_values);
                let needs_places = !only_values || key.is_some_and(|key| !key.is_element());
                (shape.rank().saturating_sub(1), key, needs_places)
            }
            _ => (0, None, true),
        };
        let sizes = shape.sizes();
        let length = sizes.get(dimension).copied().unwrap_or(1);
        let product = |sizes: &[i64]| sizes.iter().fold(1i64, |all, &size| all.saturating_mul(size));
        let outer = product(sizes.get(..dimension).unwrap_or(&[]));
        let inner = product(sizes.get(dimension + 1..).unwrap_or(&[]));
        Some(Self { key, needs_places, sizes: [outer, length, inner] })
    }
}

/// Plans a sort.
pub(crate) fn plan(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    work: Work,
    target: &Target,
) -> KernelPlan<Option<SortPlan>> {
    let instruction = &computation[id];
    let Some(Sorted { key, needs_places, sizes: [outer, length, inner] }) =
        Sorted::of(module, computation, id)
    else {
        return KernelPlan::new(None);
    };
    let is_few = matches!(instruction.op(), Op::TopK { k, .. } if *k <= FEW && *k <= length / 4);
    let fast = key
        .filter(|_| length > 1 && outer > 0 && inner > 0 && !is_few)
        .map(|key| choose(key, needs_places, [outer, length, inner], target));
    match fast {
        Some(sort) => {
            let (tasks, bytes) = (work.tasks(target).min(sort.steps()).max(1), sort.scratch_bytes());
            let (scratch_bytes, worker_scratch_bytes) = if tasks > 1 { (0, bytes) } else { (bytes, 0) };
            let plan = KernelPlan::new(Some(sort));
            KernelPlan { tasks, scratch_bytes, worker_scratch_bytes, ..plan }
        }
        // Two permutations of a sequence, of type `i64`.
        None => {
            KernelPlan { scratch_bytes: (length.max(0) as u64).saturating_mul(16), ..KernelPlan::new(None) }
        }
    }
}

/// A top-k of at most this many elements keeps them in order while it scans the row.
pub const FEW: i64 = 64;

/// The key of a comparison of one operand's elements.
fn compared(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    to_apply: hlo::ComputationId,
) -> Option<SortKey> {
    let comparison = &module[to_apply];
    let root = &comparison[comparison.root()];
    let Op::Compare { direction, comparison_type } = root.op() else { return None };
    let parameter = |k: usize| match comparison[*root.operands().get(k)?].op() {
        Op::Parameter { number } => Some(*number),
        _ => None,
    };
    let (left, right) = (parameter(0)?, parameter(1)?);
    if left / 2 != right / 2 || left == right {
        return None;
    }
    let operand = left / 2;
    let shape = computation[*computation[id].operands().get(operand)?].shape().as_array()?;
    let key = of_type(shape.element_type)?;
    let is_lower = match direction {
        ComparisonDirection::Lt | ComparisonDirection::Le => true,
        ComparisonDirection::Gt | ComparisonDirection::Ge => false,
        ComparisonDirection::Eq | ComparisonDirection::Ne => return None,
    };
    Some(SortKey {
        operand,
        is_total: !shape.element_type.is_floating_point() || *comparison_type == ComparisonType::TotalOrder,
        is_falling: is_lower != (left < right),
        last_first: matches!(direction, ComparisonDirection::Le | ComparisonDirection::Ge),
        ..key
    })
}

/// An ascending key by total order.
fn of_type(element_type: PrimitiveType) -> Option<SortKey> {
    let has_order = !element_type.is_complex() && element_type.byte_size() <= 8;
    let is_number =
        element_type.is_floating_point() || element_type.is_integer() || element_type == PrimitiveType::Pred;
    (has_order && is_number).then_some(SortKey {
        operand: 0,
        element_type,
        is_total: true,
        is_falling: false,
        last_first: false,
    })
}

/// Chooses the cheapest layout.
fn choose(key: SortKey, needs_places: bool, sizes: [i64; 3], target: &Target) -> SortPlan {
    let [outer, length, inner] = sizes;
    let items = SortItems::of(key, needs_places, length);
    let max_lanes = target.lanes(items.bits() as usize / 8).clamp(1, 16);
    let (l2, mut best) = (target.l2_bytes as i64, None);
    let mut offer = |cost: i64, plan: SortPlan| {
        if best.as_ref().is_none_or(|&(least, _)| cost < least) {
            best = Some((cost, plan));
        }
    };
    let plan = |lanes: u32, layout: SortLayout| SortPlan { key, items, lanes, layout, sizes };
    for lanes in (0..=max_lanes.ilog2()).map(|log| 1u32 << log) {
        let width = i64::from(lanes);
        let across = plan(lanes, SortLayout::Across);
        let sequences = if inner > 1 { inner } else { outer };
        if lanes > 1 && width <= sequences && across.buffer_bytes() <= l2 / 2 {
            let groups = if inner > 1 { outer } else { 1 }.saturating_mul((sequences + width - 1) / width);
            let moved = if inner > 1 { MOVE } else { MOVE * (1 + i64::from(lanes.ilog2())) };
            let each = network_cost(items, across.rows()).saturating_add(across.rows().saturating_mul(moved));
            offer(groups.saturating_mul(each), across.clone());
        }
        let most_vectors = (l2 / 4 / across.row_bytes()).max(NETWORK_ROWS);
        let all = (length + width - 1) / width;
        let chunks = (all + most_vectors - 1) / most_vectors;
        let vectors = round_up((all + chunks - 1) / chunks, NETWORK_ROWS.max(width));
        let along = plan(lanes, SortLayout::Along { vectors, chunks });
        let passes = log_up(chunks.saturating_mul(width));
        let merge = if items == SortItems::Pairs { 2 * MERGE } else { MERGE };
        let each = MOVE * (1 + i64::from(lanes.ilog2())) + passes * merge;
        let each = chunks
            .saturating_mul(network_cost(items, vectors))
            .saturating_add(along.rows().saturating_mul(each));
        offer(outer.saturating_mul(inner).saturating_mul(each), along);
    }
    best.map_or_else(|| plan(1, SortLayout::Along { vectors: NETWORK_ROWS, chunks: 1 }), |(_, plan)| plan)
}

/// Tenths of a cycle per network stage and vector of words.
const STAGE: i64 = 8;

/// Tenths of a cycle to read, write, and transpose a vector once.
const MOVE: i64 = 20;

/// Tenths of a cycle to merge a vector into others.
const MERGE: i64 = 150;

fn network_cost(items: SortItems, rows: i64) -> i64 {
    let levels = log_up(rows);
    let stage = if items == SortItems::Pairs { 3 * STAGE } else { STAGE };
    rows.saturating_mul(levels * (levels + 1) / 2 * stage)
}

/// The smallest `log` with `2^log >= n`.
fn log_up(n: i64) -> i64 {
    i64::from(64 - (n.max(1) - 1).leading_zeros())
}

fn round_up(n: i64, step: i64) -> i64 {
    n.saturating_add(step - 1) / step * step
}
