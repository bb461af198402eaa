//! The tensors of a program as the server sees them: names, types, and which sizes may vary.

use crate::api::*;
use hlo::{Interface, SizeRange};
use shape::{ArrayShape, PrimitiveType};
use support::{Error, Result};

/// Size of a dimension of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Always this size.
    Fixed(i64),
    /// The caller chooses. The argument of this number receives the size.
    Named {
        /// Number of the argument.
        argument: usize,
        /// The sizes that the program takes.
        range: SizeRange,
    },
    /// The run computes the size, at most this one.
    Computed(i64),
}

/// A feed or a fetch.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its number among the program's arguments or results.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// Its element type.
    pub element: PrimitiveType,
    /// Its sizes.
    pub sizes: Vec<Size>,
}

/// The leading dimension of all tensors, along which requests can be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The argument that receives the number of rows, `None` if it is fixed.
    pub argument: Option<usize>,
    /// The smallest number of rows of a run.
    pub low: i64,
    /// The largest one.
    pub high: i64,
}

/// Inputs and outputs of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// The feeds, without sizes of dimensions.
    pub inputs: Vec<Tensor>,
    /// The fetches.
    pub outputs: Vec<Tensor>,
    /// The dimension that all of them share, if there is one.
    pub rows: Option<Rows>,
    /// True if the compiler proved that requests can be joined without a change of their results.
    pub is_proven: bool,
}

impl Size {
    /// Returns the size for the server's configuration, where -1 is a size that varies.
    pub fn for_config(self) -> i64 {
        match self {
            Self::Fixed(size) => size,
            Self::Named { .. } | Self::Computed(_) => -1,
        }
    }

    /// True if a request may have this size.
    pub fn permits(self, size: i64) -> bool {
        match self {
            Self::Fixed(own) => size == own,
            Self::Named { range, .. } => range.contains(size),
            Self::Computed(bound) => (0..=bound).contains(&size),
        }
    }

    /// Returns the size in memory: the largest one.
    pub fn whole(self) -> i64 {
        match self {
            Self::Fixed(size) | Self::Computed(size) => size,
            Self::Named { range, .. } => range.high,
        }
    }
}

impl Tensor {
    fn new(number: usize, name: Option<&String>, short: String, shape: &ArrayShape) -> Result<Self> {
        let name = name.cloned().unwrap_or(short);
        let element = shape.element_type;
        if data_type(element).is_none() {
            return Err(Error::unsupported(format!(
                "'{name}' has the type {element}, which the server does not have; convert it in the model to bool, \
                 an integer of 8 bits or more, f16, bf16, f32, or f64"
            )));
        }
        let size = |dimension: &shape::Dimension| {
            if dimension.is_dynamic { Size::Computed(dimension.size) } else { Size::Fixed(dimension.size) }
        };
        Ok(Self { number, name, element, sizes: shape.dimensions.iter().map(size).collect() })
    }

    /// Number of its elements' type for the server.
    pub fn data_type(&self) -> DataType {
        data_type(self.element).map_or(0, |(number, _)| number)
    }

    /// Name of its elements' type in the server's configuration.
    pub fn type_name(&self) -> &'static str {
        data_type(self.element).map_or("TYPE_INVALID", |(_, name)| name)
    }

    /// Bytes of an element.
    pub fn element_bytes(&self) -> usize {
        self.element.byte_size()
    }

    /// The sizes in memory.
    pub fn whole(&self) -> Vec<i64> {
        self.sizes.iter().map(|size| size.whole()).collect()
    }
}

impl Signature {
    /// Returns the signature of a program.
    pub fn new(interface: &Interface, has_independent_rows: bool) -> Result<Self> {
        let mut inputs = Vec::new();
        for (number, argument) in interface.arguments().iter().enumerate() {
            if argument.range.is_some() {
                continue;
            }
            let mut tensor =
                Tensor::new(number, argument.name.as_ref(), argument.id.short(), &argument.shape)?;
            for named in &argument.named_dimensions {
                let size = &interface.arguments()[named.size];
                let range = size.range.ok_or_else(|| Error::internal("a size has no range"))?;
                tensor.sizes[named.dimension] = Size::Named { argument: named.size, range };
            }
            inputs.push(tensor);
        }
        let fetches = interface.fetches().iter().enumerate();
        let output = |(number, output): (usize, &hlo::Output)| {
            Tensor::new(number, output.name.as_ref(), output.id.short(), &output.shape)
        };
        let outputs = fetches.map(output).collect::<Result<Vec<_>>>()?;
        let rows = rows(&inputs, &outputs);
        let is_proven = has_independent_rows && rows.is_some_and(|rows| rows.argument.is_some());
        Ok(Self { inputs, outputs, rows, is_proven })
    }
}

/// Returns the leading dimension that all tensors share.
fn rows(inputs: &[Tensor], outputs: &[Tensor]) -> Option<Rows> {
    let rows = match *inputs.first()?.sizes.first()? {
        Size::Fixed(size) => Rows { argument: None, low: size, high: size },
        Size::Named { argument, range } => {
            Rows { argument: Some(argument), low: range.low, high: range.high }
        }
        Size::Computed(_) => return None,
    };
    let leading = |tensor: &Tensor| tensor.sizes.first().copied();
    // The number of rows of a run is that of all its requests, so no other dimension may have it.
    let is_elsewhere = |input: &Tensor| {
        input.sizes[1..].iter().any(|size| match size {
            Size::Named { argument, .. } => Some(*argument) == rows.argument,
            Size::Fixed(_) | Size::Computed(_) => false,
        })
    };
    let is_shared = inputs.iter().all(|input| leading(input) == leading(&inputs[0]) && !is_elsewhere(input))
        && outputs.iter().all(|output| match (leading(output), rows.argument) {
            (Some(Size::Computed(bound)), Some(_)) => bound == rows.high,
            (Some(Size::Fixed(size)), None) => size == rows.high,
            _ => false,
        });
    (is_shared && rows.high > 0).then_some(rows)
}

/// Returns the server's number and name of a type, `None` for types that it does not have.
fn data_type(element: PrimitiveType) -> Option<(DataType, &'static str)> {
    use PrimitiveType as P;
    Some(match element {
        P::Pred => (TRITONSERVER_TYPE_BOOL, "TYPE_BOOL"),
        P::U8 => (TRITONSERVER_TYPE_UINT8, "TYPE_UINT8"),
        P::U16 => (TRITONSERVER_TYPE_UINT16, "TYPE_UINT16"),
        P::U32 => (TRITONSERVER_TYPE_UINT32, "TYPE_UINT32"),
        P::U64 => (TRITONSERVER_TYPE_UINT64, "TYPE_UINT64"),
        P::S8 => (TRITONSERVER_TYPE_INT8, "TYPE_INT8"),
        P::S16 => (TRITONSERVER_TYPE_INT16, "TYPE_INT16"),
        P::S32 => (TRITONSERVER_TYPE_INT32, "TYPE_INT32"),
        P::S64 => (TRITONSERVER_TYPE_INT64, "TYPE_INT64"),
        P::F16 => (TRITONSERVER_TYPE_FP16, "TYPE_FP16"),
        P::F32 => (TRITONSERVER_TYPE_FP32, "TYPE_FP32"),
        P::F64 => (TRITONSERVER_TYPE_FP64, "TYPE_FP64"),
        P::Bf16 => (TRITONSERVER_TYPE_BF16, "TYPE_BF16"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::{Argument, Identifier, NamedDimension, Origin, Output, Role};

    fn feed(name: &str, shape: ArrayShape, size: Option<usize>) -> Argument {
        let mut argument = Argument::new(Some(name.into()), Identifier::first_of(name), shape, Role::Feed);
        argument.named_dimensions =
            size.map(|size| NamedDimension { dimension: 0, size }).into_iter().collect();
        argument
    }

    fn fetch(sizes: &[i64], is_dynamic: bool) -> Output {
        let mut shape = ArrayShape::new(PrimitiveType::F32, sizes);
        shape.dimensions[0].is_dynamic = is_dynamic;
        Output::new(None, Identifier::first_of("y"), shape, Origin::Fetch)
    }

    fn sized(low: i64, high: i64, fetches: Vec<Output>) -> Signature {
        let x = feed("x", ArrayShape::new(PrimitiveType::F32, &[high, 4]), Some(1));
        let mut batch = feed("batch", ArrayShape::new(PrimitiveType::S32, &[]), None);
        batch.range = Some(SizeRange { low, high });
        Signature::new(&Interface::new(vec![x, batch], fetches), true).expect("known types")
    }

    #[test]
    fn requests_can_be_joined_only_along_a_dimension_of_all_tensors() {
        let rows = |low, high, fetches| sized(low, high, fetches).rows;
        assert_eq!(
            rows(1, 64, vec![fetch(&[64, 2], true)]),
            Some(Rows { argument: Some(1), low: 1, high: 64 })
        );
        assert_eq!(rows(1, 64, vec![fetch(&[64, 2], true), fetch(&[64], false)]), None);
        assert_eq!(rows(1, 64, vec![fetch(&[32, 2], true)]), None);
        let fixed = |inputs: &[[i64; 2]], output: &[i64]| {
            let inputs =
                inputs.iter().map(|sizes| feed("x", ArrayShape::new(PrimitiveType::U8, sizes), None));
            Signature::new(&Interface::new(inputs.collect(), vec![fetch(output, false)]), false)
                .expect("types")
                .rows
        };
        assert_eq!(fixed(&[[8, 3], [8, 1]], &[8]), Some(Rows { argument: None, low: 8, high: 8 }));
        assert_eq!(fixed(&[[8, 3], [4, 1]], &[8]), None);
        assert_eq!(fixed(&[[8, 3]], &[1]), None);
    }

    #[test]
    fn requests_with_their_number_of_rows_in_another_dimension_are_not_joined() {
        let mut x = feed("x", ArrayShape::new(PrimitiveType::F32, &[8, 8]), Some(1));
        let mut batch = feed("batch", ArrayShape::new(PrimitiveType::S32, &[]), None);
        batch.range = Some(SizeRange { low: 1, high: 8 });
        let rows = |x: &Argument| {
            let interface = Interface::new(vec![x.clone(), batch.clone()], vec![fetch(&[8], true)]);
            Signature::new(&interface, false).expect("types").rows
        };
        assert!(rows(&x).is_some());
        x.named_dimensions.push(NamedDimension { dimension: 1, size: 1 });
        assert_eq!(rows(&x), None);
    }

    #[test]
    fn types_that_the_server_does_not_have_are_refused_by_name() {
        let interface =
            Interface::new(vec![feed("z", ArrayShape::new(PrimitiveType::C64, &[2]), None)], vec![]);
        let error = Signature::new(&interface, false).expect_err("complex numbers");
        assert!(error.message().contains("'z' has the type c64"), "{error}");
    }
}
