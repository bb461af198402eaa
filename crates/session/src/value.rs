//! Values that flow along the edges of a graph.

mod handle;
mod list;
pub(crate) mod rows;
mod storage;

pub use handle::{Handle, Stack, TensorArray, Variable};
pub(crate) use handle::{Place, TensorArrayState};
pub use list::List;
pub(crate) use list::list_of;
pub(crate) use storage::Storage;

use crate::buffer::Buffer;
use crate::gpu::Gpu;
use bytes::Bytes;
use jit::DeviceMemory;
use shape::{ArrayShape, Literal, NativeType, Scalar};
use std::sync::Arc;
use support::{Error, Result};

/// An array. Clones share its memory.
#[derive(Clone, Debug)]
pub struct Tensor {
    shape: Arc<ArrayShape>,
    data: Arc<Storage>,
}

impl Tensor {
    /// Creates a tensor from memory whose size is that of the shape.
    pub(crate) fn new(shape: Arc<ArrayShape>, data: Buffer) -> Self {
        Self::of_storage(shape, Storage::of_host(data))
    }

    /// Creates a tensor from memory of any device whose size is that of the shape.
    pub(crate) fn of_storage(shape: Arc<ArrayShape>, data: Storage) -> Self {
        debug_assert_eq!(shape.byte_size(), data.len() as u64, "bytes of {shape}");
        Self { shape, data: Arc::new(data) }
    }

    /// Copies a literal's elements. Panics on a tuple.
    pub fn from_literal(literal: &Literal) -> Result<Self> {
        let shape = literal.array_shape();
        support::check_memory(shape.byte_size(), format_args!("a tensor {shape}"))?;
        Ok(Self::new(Arc::new(shape.clone()), Buffer::from_bytes(literal.bytes())?))
    }

    /// A scalar.
    pub(crate) fn scalar<T: NativeType>(value: T) -> Result<Self> {
        Self::from_literal(&Literal::scalar(value))
    }

    /// A tensor of native elements. Panics if their number does not match the sizes.
    pub(crate) fn from_elements<T: NativeType>(sizes: &[i64], elements: &[T]) -> Result<Self> {
        Self::from_literal(&Literal::from_elements(sizes, elements))
    }

    /// Integers of the type of an attribute such as `out_type`: `int32`, or `int64` if `wide`.
    pub(crate) fn integers(wide: bool, sizes: &[i64], values: &[i64]) -> Result<Self> {
        if wide {
            return Self::from_elements(sizes, values);
        }
        let narrow: Option<Vec<i32>> = values.iter().map(|&value| i32::try_from(value).ok()).collect();
        let narrow = narrow.ok_or_else(|| Error::invalid("a size does not fit in int32: request int64"))?;
        Self::from_elements(sizes, &narrow)
    }

    /// Shape of the tensor.
    pub fn shape(&self) -> &ArrayShape {
        &self.shape
    }

    /// Shape of the tensor, shared.
    pub(crate) fn shared_shape(&self) -> &Arc<ArrayShape> {
        &self.shape
    }

    /// Elements in row-major order. Panics if they are only on a GPU and cannot be copied to the
    /// host; `on_host` does this with an error.
    pub fn bytes(&self) -> &[u8] {
        self.data.bytes().unwrap_or_else(|error| panic!("cannot read a tensor: {error}"))
    }

    /// Elements in row-major order, copied to the host if they are only on a GPU.
    pub(crate) fn on_host(&self) -> Result<&[u8]> {
        self.data.bytes()
    }

    /// Memory, address, and GPU of the elements.
    pub(crate) fn storage(&self) -> &Storage {
        &self.data
    }

    /// True if two tensors share the same memory and have the same shape.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.data, &other.data) && self.shape == other.shape
    }

    /// The memory for writing. Copies it first if it has other owners.
    pub(crate) fn make_mut(&mut self) -> Result<&mut [u8]> {
        if Arc::get_mut(&mut self.data).is_none() {
            self.data = Arc::new(self.data.duplicate()?);
        }
        let storage = Arc::get_mut(&mut self.data);
        storage.ok_or_else(|| Error::internal("a newly created buffer has two owners"))?.host_mut()
    }

    /// The memory on a GPU for writing. Copies it first if it has other owners.
    pub(crate) fn make_mut_on(&mut self, gpu: &Arc<Gpu>) -> Result<&mut DeviceMemory> {
        if Arc::get_mut(&mut self.data).is_none() {
            self.data = Arc::new(self.data.duplicate_on(gpu)?);
        }
        let storage = Arc::get_mut(&mut self.data);
        storage.ok_or_else(|| Error::internal("a newly created buffer has two owners"))?.gpu_mut(gpu)
    }

    /// A tensor whose elements are on a GPU: this one, unless another GPU has its elements.
    pub(crate) fn moved_to(&self, gpu: &Arc<Gpu>) -> Result<Self> {
        match self.data.on(gpu)? {
            Some(_) => Ok(self.clone()),
            None => Ok(Self::of_storage(self.shape.clone(), self.data.duplicate_on(gpu)?)),
        }
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

    /// Copies the tensor to a literal.
    pub fn to_literal(&self) -> Literal {
        let bytes = Bytes::copy_from_slice(self.bytes());
        Literal::from_bytes((*self.shape).clone(), bytes).expect("a tensor's bytes do not match its shape")
    }

    /// The element at row-major position `at`, which must be in bounds.
    pub(crate) fn scalar_at(&self, at: usize) -> Scalar {
        let element_type = self.shape.element_type;
        let size = element_type.byte_size();
        let bytes = Bytes::copy_from_slice(&self.bytes()[at * size..(at + 1) * size]);
        let one = Literal::from_bytes(ArrayShape::new(element_type, &[]), bytes);
        one.expect("a scalar's bytes do not match its type").scalar_at(0)
    }

    /// All elements, if they are integers.
    pub(crate) fn to_i64s(&self) -> Result<Vec<i64>> {
        let element_type = self.shape.element_type;
        let values = if element_type.is_integer() { self.to_literal().to_i64s() } else { None };
        values.ok_or_else(|| Error::invalid(format!("expected integers, got {}", self.shape)))
    }

    /// The only element, if it is an integer.
    pub(crate) fn to_i64(&self) -> Result<i64> {
        match self.to_i64s()?.as_slice() {
            [value] => Ok(*value),
            values => Err(Error::invalid(format!("expected a scalar, got {} elements", values.len()))),
        }
    }

    /// Truth value of a scalar: a bool, or a number that is not zero.
    pub(crate) fn truth(&self) -> Result<bool> {
        match self.shape.element_count() {
            1 => Ok(self.bytes().iter().any(|&byte| byte != 0)),
            count => Err(Error::invalid(format!("expected a scalar, got {count} elements"))),
        }
    }
}

/// Byte strings in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strings {
    /// Sizes of the tensor.
    pub sizes: Vec<i64>,
    /// Elements of the tensor.
    pub strings: Vec<Bytes>,
}

impl Strings {
    /// A scalar.
    pub fn scalar(text: impl Into<Bytes>) -> Self {
        Self { sizes: Vec::new(), strings: vec![text.into()] }
    }
}

/// The value of a node's output.
#[derive(Clone, Debug)]
pub enum Value {
    /// Numbers or bools.
    Tensor(Tensor),
    /// Strings.
    Strings(Arc<Strings>),
    /// Handle of a variable, a tensor array, or a stack.
    Resource(Handle),
    /// Reference to a TensorFlow 1 variable. A consumer that needs its value reads it.
    Reference(Arc<Variable>),
    /// A list of tensors.
    List(Arc<List>),
}

impl Value {
    /// The array. A reference to a variable is read now.
    pub(crate) fn tensor(&self) -> Result<Tensor> {
        match self {
            Self::Tensor(tensor) => Ok(tensor.clone()),
            Self::Reference(variable) => match variable.read()? {
                Self::Tensor(tensor) => Ok(tensor),
                other => Err(Error::invalid(format!("expected an array, got {}", other.kind()))),
            },
            other => Err(Error::invalid(format!("expected an array, got {}", other.kind()))),
        }
    }

    /// The strings.
    pub(crate) fn strings(&self) -> Result<Arc<Strings>> {
        match self {
            Self::Strings(strings) => Ok(strings.clone()),
            Self::Reference(variable) => match variable.read()? {
                Self::Strings(strings) => Ok(strings),
                other => Err(Error::invalid(format!("expected strings, got {}", other.kind()))),
            },
            other => Err(Error::invalid(format!("expected strings, got {}", other.kind()))),
        }
    }

    /// The only string.
    pub(crate) fn text(&self) -> Result<Bytes> {
        match self.strings()?.strings.as_slice() {
            [text] => Ok(text.clone()),
            strings => Err(Error::invalid(format!("expected one string, got {}", strings.len()))),
        }
    }

    /// The variable of a handle or a reference.
    pub(crate) fn variable(&self) -> Result<&Arc<Variable>> {
        match self {
            Self::Reference(variable) | Self::Resource(Handle::Variable(variable)) => Ok(variable),
            other => Err(Error::invalid(format!("expected a variable, got {}", other.kind()))),
        }
    }

    /// The value itself. A reference to a variable is read now.
    pub(crate) fn read(self) -> Result<Self> {
        match self {
            Self::Reference(variable) => variable.read(),
            other => Ok(other),
        }
    }

    /// Describes the kind of value in words.
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
