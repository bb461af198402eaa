//! Tensor lists: their arrays, their types, and the join of two types.
//!
//! The elements live in buffers with a leading dimension of `capacity`, one buffer for each array
//! of an element. Lists whose elements are all known to be equal need no buffer. Sizes and
//! counters, which gradients of loops store in lists, thus remain compile-time constants.

use hlo::InstructionId;
use shape::{ArrayShape, Literal, PrimitiveType};
use support::{Error, Result};

/// The type of the elements of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ElementType {
    /// Not known yet. Holds the sizes that the graph declares, with -1 for unknown ones, or `None`
    /// if the rank is unknown.
    Unknown(Option<Vec<i64>>),
    /// Arrays of one shape.
    Array(ArrayShape),
    /// Arrays of one shape whose bounded dimensions are named: the position of the name of each
    /// dimension. The buffers have the bounds.
    Named(ArrayShape, Vec<Option<usize>>),
    /// Lists of one type.
    List(Box<ListType>),
    /// The possible contents of an optional, each of them a list of one element. The gradients of
    /// conditionals use one optional for the values of all branches; the branch that ran determines
    /// which content it is.
    OneOf(Vec<ListType>),
}

/// The contents of a list's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content<B> {
    /// The list never had an element.
    Empty,
    /// Zeros: no element was ever written.
    Zeros,
    /// Every element equals this small array.
    Uniform(Literal),
    /// Any values, in buffers.
    Buffers(B),
}

/// The origin of a list that may come from several places.
const SEVERAL_PLACES: usize = usize::MAX;

/// Bounds on the number of elements of a list, beyond those that its length implies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    /// Maximum number of elements. In a list that a loop carries while its type is being inferred
    /// (`capacity` is `None`), relative to the number at the beginning of the iteration.
    pub(crate) most: i64,
    /// The largest `most` since then.
    pub(crate) peak: i64,
    /// Index of the loop value that the list came from, while the loop's types are being inferred.
    /// [`SEVERAL_PLACES`] if it may come from several.
    pub(crate) origin: Option<usize>,
    /// The branch of a conditional that created the content of an optional.
    pub(crate) branch: Option<usize>,
    /// Maximum number of elements that the user allows.
    pub(crate) limit: Option<i64>,
    /// True if the capacity always suffices: the loop that carries the list ensured it.
    pub(crate) fixed: bool,
}

/// The type of a list. Two types are equal if their lists consist of the same arrays.
#[derive(Clone, Debug)]
pub(crate) struct ListType {
    pub(crate) element: ElementType,
    /// Leading dimension of the buffers. `None` while the types that a loop carries are being
    /// inferred.
    pub(crate) capacity: Option<i64>,
    pub(crate) content: Content<()>,
    /// Number of elements, if it is known at compile time.
    pub(crate) length: Option<i64>,
    /// The position of the named size that is the number of elements, if it is one. It is the same
    /// everywhere, so it is not among the arrays.
    pub(crate) named: Option<u32>,
    pub(crate) bounds: Bounds,
}

impl PartialEq for ListType {
    fn eq(&self, other: &Self) -> bool {
        self.element == other.element
            && self.capacity == other.capacity
            && self.content == other.content
            && self.length == other.length
            && self.named == other.named
    }
}

impl Eq for ListType {}

/// Number of elements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Known(i64),
    /// An `s32` scalar.
    Dynamic(InstructionId),
}

/// A tensor list. It is a value: an op that changes a list returns a new one.
#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) element: ElementType,
    pub(crate) capacity: Option<i64>,
    /// The buffers, one for each array of an element. Empty while the capacity is unknown.
    pub(crate) content: Content<Vec<InstructionId>>,
    pub(crate) length: Length,
    pub(crate) bounds: Bounds,
    /// If all elements but one are zeros: the position of that element, and its arrays.
    pub(crate) only: Option<(Length, Vec<InstructionId>)>,
}

impl List {
    /// Returns the type of the list, without the name of its length.
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
        ListType { element, capacity: self.capacity, content, length, named: None, bounds }
    }

    /// True if the type is still being inferred, so that there are no buffers.
    pub(crate) fn is_open(&self) -> bool {
        self.capacity.is_none() || self.element.is_open()
    }

    /// Returns the arrays of the list.
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

    /// Records that this many elements may have been added.
    pub(crate) fn count_more(&mut self, elements: i64) {
        self.bounds.most = self.bounds.most.saturating_add(elements);
        self.bounds.peak = self.bounds.peak.max(self.bounds.most);
    }
}

impl ElementType {
    /// True if the type is still being inferred.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::List(list) => list.is_open(),
            Self::OneOf(choices) => choices.iter().any(ListType::is_open),
            Self::Unknown(_) | Self::Array(_) | Self::Named(..) => false,
        }
    }

    /// Returns the arrays of an element.
    pub(crate) fn leaves(&self) -> Vec<ArrayShape> {
        match self {
            Self::Unknown(_) => Vec::new(),
            Self::Array(shape) => vec![shape.clone()],
            Self::Named(shape, _) => vec![ArrayShape::new(shape.element_type, &shape.sizes())],
            Self::List(list) => list.leaves(),
            Self::OneOf(choices) => choices.iter().flat_map(ListType::leaves).collect(),
        }
    }

    /// Returns the least type that includes elements of both types.
    pub(crate) fn join(&self, other: &Self) -> Result<Self> {
        Ok(match (self, other) {
            (Self::Unknown(a), Self::Unknown(b)) => Self::Unknown(if a == b { a.clone() } else { None }),
            (Self::Unknown(_), known) | (known, Self::Unknown(_)) => known.clone(),
            (Self::Array(a), Self::Array(b)) if a == b => self.clone(),
            (Self::Named(..), Self::Named(..)) if self == other => self.clone(),
            (Self::Array(a) | Self::Named(a, _), Self::Array(b) | Self::Named(b, _)) => {
                return Err(Error::unsupported(format!(
                    "a list holds arrays of shape {a} and of shape {b}; all elements of a list must have one shape"
                )));
            }
            (Self::List(a), Self::List(b)) => Self::List(Box::new(a.join(b)?)),
            (Self::OneOf(a), Self::OneOf(b)) => {
                let mut joined = a.clone();
                for choice in b {
                    match joined.iter_mut().find_map(|present| Some((present.join_choice(choice)?, present)))
                    {
                        Some((both, present)) => *present = both,
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
    /// True if the type is still being inferred, so that there are no buffers.
    pub(crate) fn is_open(&self) -> bool {
        self.capacity.is_none() || self.element.is_open()
    }

    /// Returns the arrays of a list of this type: the buffers, then the length.
    pub(crate) fn leaves(&self) -> Vec<ArrayShape> {
        let mut leaves = Vec::new();
        if let (Content::Buffers(()), Some(capacity), false) = (&self.content, self.capacity, self.is_open())
        {
            for leaf in self.element.leaves() {
                leaves.push(ArrayShape::new(leaf.element_type, &[&[capacity], &leaf.sizes()[..]].concat()));
            }
        }
        if self.has_length() {
            leaves.push(ArrayShape::new(PrimitiveType::S32, &[]));
        }
        leaves
    }

    /// True if the length is one of the arrays.
    pub(crate) fn has_length(&self) -> bool {
        self.length.is_none() && self.named.is_none()
    }

    /// Returns the least type that includes two contents of an optional. Contents from different
    /// branches remain separate, so that their compile-time constants remain known.
    pub(crate) fn join_choice(&self, other: &Self) -> Option<Self> {
        let is_same = self.bounds.branch == other.bounds.branch;
        if is_same { self.join(other).ok() } else { None }
    }

    /// Returns the least type that includes lists of both types.
    pub(crate) fn join(&self, other: &Self) -> Result<Self> {
        let (a, b) = (&self.bounds, &other.bounds);
        Ok(Self {
            element: self.element.join(&other.element)?,
            capacity: self.capacity.zip(other.capacity).map(|(a, b)| a.max(b)),
            content: join_contents(&self.content, &other.content),
            length: self.length.filter(|_| self.length == other.length),
            named: self.named.filter(|_| self.named == other.named),
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

/// Returns the least content that includes both.
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

/// True if all elements of an array are 0.
pub(crate) fn is_zero(literal: &Literal) -> bool {
    literal.bytes().iter().all(|&byte| byte == 0)
}
