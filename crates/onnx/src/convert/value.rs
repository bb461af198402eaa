//! The values that names of a graph stand for.

use crate::tensor::Constant;
use std::rc::Rc;
use tf::DataType;
use tf::foreign::Ref;

/// A value of a graph.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// An array.
    Array(Array),
    /// A sequence, with the type of its elements, which are known when compiling.
    Sequence(DataType, Vec<Array>),
    /// An optional value without contents.
    Absent,
}

/// An array.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) value: Ref,
    pub(crate) data_type: DataType,
    pub(crate) constant: Option<Rc<Constant>>,
    /// The sizes, if the file states all of them.
    pub(crate) sizes: Option<Vec<i64>>,
}

impl Array {
    /// An array of which only the type is known.
    pub(crate) fn new(value: Ref, data_type: DataType) -> Self {
        Self { value, data_type, constant: None, sizes: None }
    }
}

impl Value {
    /// Applies a function to all arrays of the value.
    pub(crate) fn each_mut(&mut self, apply: &mut dyn FnMut(&mut Array)) {
        match self {
            Self::Array(array) => apply(array),
            Self::Sequence(_, arrays) => arrays.iter_mut().for_each(apply),
            Self::Absent => {}
        }
    }

    /// The arrays of the value.
    pub(crate) fn arrays(&self) -> &[Array] {
        match self {
            Self::Array(array) => std::slice::from_ref(array),
            Self::Sequence(_, arrays) => arrays,
            Self::Absent => &[],
        }
    }
}
