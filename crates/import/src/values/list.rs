//! Tensor lists: what one is made of, the types that say so, and the least type of two.
//!
//! The elements live in buffers with a leading dimension of `capacity`, one for each array that an element is made of.
//! Lists whose elements are all known to be equal need none: sizes and counters, which gradients of loops keep in
//! lists, stay known at compile time that way.

use hlo::InstructionId;
use shape::{ArrayShape, Literal, PrimitiveType};
use support::{Error, Result};

/// What the elements of a list are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ElementType {
    /// Nothing shows it yet. The sizes that the graph declares, -1 for those that it leaves open; `None` if it leaves
    /// the rank open.
    Unknown(Option<Vec<i64>>),
    /// Arrays of one shape.
    Array(ArrayShape),
    /// Lists of one type.
    List(Box<ListType>),
    /// What optionals hold: one of several things, each of them a list of one element. The gradients of conditionals use
    /// one optional for what any of the branches left, so that the branch that ran says which one it is.
    OneOf(Vec<ListType>),
}

/// What the elements of a list hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content<B> {
    /// There never was an element.
    Empty,
    /// Zeros: no element was ever written.
    Zeros,
    /// Every element is this one, a small array.
    Uniform(Literal),
    /// Anything.
    Buffers(B),
}

/// The place of a list that came from several.
const SEVERAL_PLACES: usize = usize::MAX;

/// How many elements a list may have, as far as that does not show in its length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    /// The most elements. In a list that a loop carries while its type is being found (`capacity` is `None`): more
    /// than at the beginning of the iteration.
    pub(crate) most: i64,
    /// The largest `most` since then.
    pub(crate) peak: i64,
    /// The place among the loop's values from which the list came, while the types of these are being found;
    /// [`SEVERAL_PLACES`] if it came from one or another.
    pub(crate) origin: Option<usize>,
    /// What an optional holds: the branch of a conditional that made it.
    pub(crate) branch: Option<usize>,
    /// The most elements that the user lets it have.
    pub(crate) limit: Option<i64>,
    /// Whether the capacity is enough whatever happens: the loop that carries the list saw to it.
    pub(crate) fixed: bool,
}

/// The type of a list. Two are equal if their lists are made of the same arrays.
#[derive(Clone, Debug)]
pub(crate) struct ListType {
    pub(crate) element: ElementType,
    /// The leading dimension of the buffers; `None` while the types that a loop carries are being found.
    pub(crate) capacity: Option<i64>,
    pub(crate) content: Content<()>,
    /// The number of elements, if it is known at compile time.
    pub(crate) length: Option<i64>,
    pub(crate) bounds: Bounds,
}

impl PartialEq for ListType {
    fn eq(&self, other: &Self) -> bool {
        self.element == other.element
            && self.capacity == other.capacity
            && self.content == other.content
            && self.length == other.length
    }
}

impl Eq for ListType {}

/// The number of elements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Known(i64),
    /// An `s32` scalar.
    Dynamic(InstructionId),
}

/// A tensor list: a value, so that what changes one makes another.
#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) element: ElementType,
    pub(crate) capacity: Option<i64>,
    /// The buffers: one for each array of an element, none while a capacity is not known.
    pub(crate) content: Content<Vec<InstructionId>>,
    pub(crate) length: Length,
    pub(crate) bounds: Bounds,
    /// If everything but one element is zeros: where that is, and its arrays.
    pub(crate) only: Option<(Length, Vec<InstructionId>)>,
}

impl List {
    /// Its type.
    pub(crate) fn list_type(&self) -> ListType {
        let content = match &self.content {
            Content::Empty => Content::Empty,
            Content::Zeros => Content::Zeros,
            Content::Uniform(literal) => Content::Uniform(literal.clone()),
            Content::Buffers(_) => Content::Buffers(()),
        };
        let length = match self.length {
            Length::Known(length) => Some(length),
            Length::Dynamic(_) => None,
        };
        let (element, bounds) = (self.element.clone(), self.bounds);
        ListType { element, capacity: self.capacity, content, length, bounds }
    }

    /// Whether its type is still being found, so that there are no buffers.
    pub(crate) fn is_open(&self) -> bool {
        self.capacity.is_none() || self.element.is_open()
    }

    /// The arrays that it is made of.
    pub(crate) fn leaves(&self) -> Vec<InstructionId> {
        let mut leaves = match &self.content {
            Content::Buffers(buffers) => buffers.clone(),
            _ => Vec::new(),
        };
        if let Length::Dynamic(length) = self.length {
            leaves.push(length);
        }
        leaves
    }

    /// Notes that an element may have come to it.
    pub(crate) fn count_more(&mut self, elements: i64) {
        self.bounds.most = self.bounds.most.saturating_add(elements);
        self.bounds.peak = self.bounds.peak.max(self.bounds.most);
    }
}

impl ElementType {
    /// Whether it is still being found.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::List(list) => list.is_open(),
            Self::OneOf(choices) => choices.iter().any(ListType::is_open),
            Self::Unknown(_) | Self::Array(_) => false,
        }
    }

    /// The arrays that an element is made of.
    pub(crate) fn leaves(&self) -> Vec<ArrayShape> {
        match self {
            Self::Unknown(_) => Vec::new(),
            Self::Array(shape) => vec![shape.clone()],
            Self::List(list) => list.leaves(),
            Self::OneOf(choices) => choices.iter().flat_map(ListType::leaves).collect(),
        }
    }

    /// The least type that elements of both types fit.
    pub(crate) fn join(&self, other: &Self) -> Result<Self> {
        Ok(match (self, other) {
            (Self::Unknown(a), Self::Unknown(b)) => Self::Unknown(if a == b { a.clone() } else { None }),
            (Self::Unknown(_), known) | (known, Self::Unknown(_)) => known.clone(),
            (Self::Array(a), Self::Array(b)) if a == b => self.clone(),
            (Self::Array(a), Self::Array(b)) => {
                return Err(Error::unsupported(format!(
                    "a list holds arrays of shape {a} and of shape {b}; all elements of a list must have one shape"
                )));
            }
            (Self::List(a), Self::List(b)) => Self::List(Box::new(a.join(b)?)),
            (Self::OneOf(a), Self::OneOf(b)) => {
                let mut joined = a.clone();
                for choice in b {
                    match joined.iter_mut().find_map(|have| Some((have.join_choice(choice)?, have))) {
                        Some((both, have)) => *have = both,
                        None => joined.push(choice.clone()),
                    }
                }
                Self::OneOf(joined)
            }
            _ => return Err(Error::invalid("a list holds arrays and lists")),
        })
    }
}

impl ListType {
    /// Whether it is still being found, so that there are no buffers.
    pub(crate) fn is_open(&self) -> bool {
        self.capacity.is_none() || self.element.is_open()
    }

    /// The arrays that such a list is made of: the buffers, then the length.
    pub(crate) fn leaves(&self) -> Vec<ArrayShape> {
        let mut leaves = Vec::new();
        if let (Content::Buffers(()), Some(capacity), false) = (&self.content, self.capacity, self.is_open())
        {
            for leaf in self.element.leaves() {
                leaves.push(ArrayShape::new(leaf.element_type, &[&[capacity], &leaf.sizes()[..]].concat()));
            }
        }
        if self.length.is_none() {
            leaves.push(ArrayShape::new(PrimitiveType::S32, &[]));
        }
        leaves
    }

    /// The least type that both of two things fit that an optional may hold. What different branches left stays apart,
    /// so that what is known of each at compile time stays known.
    pub(crate) fn join_choice(&self, other: &Self) -> Option<Self> {
        let is_same = self.bounds.branch == other.bounds.branch;
        if is_same { self.join(other).ok() } else { None }
    }

    /// The least type that lists of both types fit.
    pub(crate) fn join(&self, other: &Self) -> Result<Self> {
        let (a, b) = (&self.bounds, &other.bounds);
        Ok(Self {
            element: self.element.join(&other.element)?,
            capacity: self.capacity.zip(other.capacity).map(|(a, b)| a.max(b)),
            content: join_contents(&self.content, &other.content),
            length: self.length.filter(|_| self.length == other.length),
            bounds: Bounds {
                most: a.most.max(b.most),
                peak: a.peak.max(b.peak),
                origin: match (a.origin, b.origin) {
                    (Some(a), Some(b)) if a != b => Some(SEVERAL_PLACES),
                    (a, b) => a.or(b),
                },
                branch: a.branch.filter(|_| a.branch == b.branch),
                limit: a.limit.zip(b.limit).map(|(a, b)| a.max(b)),
                fixed: a.fixed || b.fixed,
            },
        })
    }
}

/// What holds either of two contents.
pub(crate) fn join_contents(a: &Content<()>, b: &Content<()>) -> Content<()> {
    match (a, b) {
        (a, b) if a == b => a.clone(),
        (Content::Empty, other) | (other, Content::Empty) => other.clone(),
        (Content::Zeros, Content::Uniform(value)) | (Content::Uniform(value), Content::Zeros)
            if is_zero(value) =>
        {
            Content::Zeros
        }
        _ => Content::Buffers(()),
    }
}

/// Whether all elements of an array are 0.
pub(crate) fn is_zero(literal: &Literal) -> bool {
    literal.bytes().iter().all(|&byte| byte == 0)
}
