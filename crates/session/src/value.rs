//! Values that flow along the edges of a graph.

mod handle;
mod list;
pub(crate) mod rows;

pub use handle::{Handle, Stack, TensorArray, Variable};
pub(crate) use handle::{Place, TensorArrayState};
pub use list::List;
pub(crate) use list::list_of;

use crate::buffer::Buffer;
use bytes::Bytes;
use shape::{ArrayShape, Literal, NativeType, Scalar};
use std::sync::Arc;
use support::{Error, Result};

/// An array. Its memory is shared: passing it on costs nothing.
#[derive(Clone, Debug)]
pub struct Tensor {
    shape: Arc<ArrayShape>,
    data: Arc<Buffer>,
}

impl Tensor {
    /// Of memory that has the shape's bytes.
    pub(crate) fn new(shape: Arc<ArrayShape>, data: Buffer) -> Self {
        debug_assert_eq!(shape.byte_size(), data.len() as u64, "bytes of {shape}");
        Self { shape, data: Arc::new(data) }
    }

    /// A copy of a literal's elements. Panics on a tuple.
    pub fn from_literal(literal: &Literal) -> Result<Self> {
        let shape = literal.array_shape();
        support::check_memory(shape.byte_size(), format_args!("a tensor {shape} wants memory"))?;
        Ok(Self::new(Arc::new(shape.clone()), Buffer::from_bytes(literal.bytes())?))
    }

    /// A scalar.
    pub(crate) fn scalar<T: NativeType>(value: T) -> Result<Self> {
        Self::from_literal(&Literal::scalar(value))
    }

    /// Native elements. Panics if their number is not that of the sizes.
    pub(crate) fn from_elements<T: NativeType>(sizes: &[i64], elements: &[T]) -> Result<Self> {
        Self::from_literal(&Literal::from_elements(sizes, elements))
    }

    /// Integers of the type of an attribute such as `out_type`: `int32` or `int64`.
    pub(crate) fn integers(wide: bool, sizes: &[i64], values: &[i64]) -> Result<Self> {
        if wide {
            return Self::from_elements(sizes, values);
        }
        let narrow: Option<Vec<i32>> = values.iter().map(|&value| i32::try_from(value).ok()).collect();
        let narrow = narrow.ok_or_else(|| Error::invalid("a size is beyond int32: ask for int64"))?;
        Self::from_elements(sizes, &narrow)
    }

    /// Its shape.
    pub fn shape(&self) -> &ArrayShape {
        &self.shape
    }

    /// Its shape, shared.
    pub(crate) fn shared_shape(&self) -> &Arc<ArrayShape> {
        &self.shape
    }

    /// Its elements, row-major.
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// Whether two tensors are the same memory of the same shape.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.data, &other.data) && self.shape == other.shape
    }

    /// The memory, to write into: a copy if somebody else has it, too.
    pub(crate) fn make_mut(&mut self) -> Result<&mut [u8]> {
        if Arc::get_mut(&mut self.data).is_none() {
            self.data = Arc::new(Buffer::from_bytes(&self.data)?);
        }
        let buffer = Arc::get_mut(&mut self.data);
        Ok(buffer.ok_or_else(|| Error::internal("a buffer that was just made has two owners"))?)
    }

    /// The same elements with other sizes; `None` if their number differs.
    pub(crate) fn reshaped(&self, sizes: &[i64]) -> Option<Self> {
        let count = shape::index::element_count(sizes)?;
        if count != self.shape.element_count() {
            return None;
        }
        let shape = if self.shape.sizes() == sizes {
            self.shape.clone()
        } else {
            Arc::new(ArrayShape::new(self.shape.element_type, sizes))
        };
        Some(Self { shape, data: self.data.clone() })
    }

    /// A copy as a literal.
    pub fn to_literal(&self) -> Literal {
        let bytes = Bytes::copy_from_slice(&self.data);
        Literal::from_bytes((*self.shape).clone(), bytes).expect("a tensor has its shape's bytes")
    }

    /// The element at a row-major position, which is within.
    pub(crate) fn scalar_at(&self, at: usize) -> Scalar {
        let element_type = self.shape.element_type;
        let size = element_type.byte_size();
        let bytes = Bytes::copy_from_slice(&self.data[at * size..(at + 1) * size]);
        let one = Literal::from_bytes(ArrayShape::new(element_type, &[]), bytes);
        one.expect("a scalar has the bytes of its type").scalar_at(0)
    }

    /// All elements, if they are integers.
    pub(crate) fn to_i64s(&self) -> Result<Vec<i64>> {
        let element_type = self.shape.element_type;
        let values = if element_type.is_integer() { self.to_literal().to_i64s() } else { None };
        values.ok_or_else(|| Error::invalid(format!("integers are wanted, not {}", self.shape)))
    }

    /// The one element, if it is an integer.
    pub(crate) fn to_i64(&self) -> Result<i64> {
        match self.to_i64s()?.as_slice() {
            [value] => Ok(*value),
            values => Err(Error::invalid(format!("a scalar is wanted, not {} elements", values.len()))),
        }
    }

    /// The truth of a scalar: a bool, or a number that is not zero.
    pub(crate) fn truth(&self) -> Result<bool> {
        match self.shape.element_count() {
            1 => Ok(self.bytes().iter().any(|&byte| byte != 0)),
            count => Err(Error::invalid(format!("a scalar is wanted, not {count} elements"))),
        }
    }
}

/// Strings of any bytes, in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strings {
    /// The sizes of the tensor.
    pub sizes: Vec<i64>,
    /// The elements.
    pub strings: Vec<Bytes>,
}

impl Strings {
    /// A scalar.
    pub fn scalar(text: impl Into<Bytes>) -> Self {
        Self { sizes: Vec::new(), strings: vec![text.into()] }
    }
}

/// The value of an output of a node.
#[derive(Clone, Debug)]
pub enum Value {
    /// Numbers or bools.
    Tensor(Tensor),
    /// Strings.
    Strings(Arc<Strings>),
    /// The handle of a variable, a tensor array or a stack.
    Resource(Handle),
    /// A reference to a variable of TensorFlow 1: whoever wants a value reads it.
    Reference(Arc<Variable>),
    /// A list of tensors.
    List(Arc<List>),
}

impl Value {
    /// The array: a reference to a variable is read now.
    pub(crate) fn tensor(&self) -> Result<Tensor> {
        match self {
            Self::Tensor(tensor) => Ok(tensor.clone()),
            Self::Reference(variable) => match variable.read()? {
                Self::Tensor(tensor) => Ok(tensor),
                other => Err(Error::invalid(format!("an array is wanted, not {}", other.kind()))),
            },
            other => Err(Error::invalid(format!("an array is wanted, not {}", other.kind()))),
        }
    }

    /// The strings.
    pub(crate) fn strings(&self) -> Result<Arc<Strings>> {
        match self {
            Self::Strings(strings) => Ok(strings.clone()),
            Self::Reference(variable) => match variable.read()? {
                Self::Strings(strings) => Ok(strings),
                other => Err(Error::invalid(format!("strings are wanted, not {}", other.kind()))),
            },
            other => Err(Error::invalid(format!("strings are wanted, not {}", other.kind()))),
        }
    }

    /// The one string.
    pub(crate) fn text(&self) -> Result<Bytes> {
        match self.strings()?.strings.as_slice() {
            [text] => Ok(text.clone()),
            strings => Err(Error::invalid(format!("one string is wanted, not {}", strings.len()))),
        }
    }

    /// The variable of a handle or a reference.
    pub(crate) fn variable(&self) -> Result<&Arc<Variable>> {
        match self {
            Self::Reference(variable) | Self::Resource(Handle::Variable(variable)) => Ok(variable),
            other => Err(Error::invalid(format!("a variable is wanted, not {}", other.kind()))),
        }
    }

    /// The value itself: a reference to a variable is read now.
    pub(crate) fn read(self) -> Result<Self> {
        match self {
            Self::Reference(variable) => variable.read(),
            other => Ok(other),
        }
    }

    /// What it is, in words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Tensor(_) => "an array",
            Self::Strings(_) => "strings",
            Self::Resource(Handle::Variable(_)) => "the handle of a variable",
            Self::Resource(Handle::TensorArray(_)) => "the handle of a tensor array",
            Self::Resource(Handle::Stack(_)) => "the handle of a stack",
            Self::Reference(_) => "a reference to a variable",
            Self::List(_) => "a tensor list",
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

impl From<Strings> for Value {
    fn from(strings: Strings) -> Self {
        Self::Strings(Arc::new(strings))
    }
}
