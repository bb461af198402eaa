//! A file as data, from the tables of TensorFlow's
//! [`schema.fbs`](https://github.com/tensorflow/tensorflow/blob/master/tensorflow/compiler/mlir/lite/schema/schema.fbs).
//!
//! Reading checks every index that leads from one part of a file to another, the sizes and types of
//! tensors, and the length of their contents. Later steps need not.

mod tensor;

use crate::{builtin, options};
use bytes::Bytes;
use flatbuffer::Table;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Body, Ref};

/// Most tensors and operators of a file, summed over its subgraphs, with the elements of their
/// lists. A file can be small and have more, because lists may share bytes.
const MOST_PARTS: usize = 1_000_000;

/// Newest version of any operator.
const NEWEST_VERSION: i32 = 32;

/// Most bytes that reading copies, besides a multiple of the file's size.
const MOST_COPIED_BYTES: usize = 1 << 28;

/// Rest of what reading may take.
struct Budget {
    parts: usize,
    bytes: usize,
}

impl Budget {
    fn new(file: &Bytes) -> Self {
        Self { parts: MOST_PARTS, bytes: MOST_COPIED_BYTES.saturating_add(file.len().saturating_mul(16)) }
    }

    fn take_parts(&mut self, count: usize) -> Result<()> {
        self.parts = self.parts.checked_sub(count).ok_or_else(|| {
            Error::unsupported(format!("more than {MOST_PARTS} tensors, operators, and operands"))
        })?;
        Ok(())
    }

    fn take_bytes(&mut self, count: usize) -> Result<()> {
        let left = self.bytes.checked_sub(count);
        self.bytes = left.ok_or_else(|| Error::unsupported("tensors that share bytes are too large"))?;
        Ok(())
    }

    fn text(&mut self, table: &Table<'_>, number: usize) -> Result<String> {
        let text = table.text(number)?;
        self.take_bytes(text.len())?;
        Ok(text.to_owned())
    }
}

/// A model. The contents of its tensors are slices of the file.
#[derive(Clone, Debug)]
pub(crate) struct Model<'a> {
    pub(crate) subgraphs: Vec<Subgraph<'a>>,
    pub(crate) signatures: Vec<Signature>,
}

/// An entry point: names for the inputs and outputs of a subgraph.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) key: String,
    pub(crate) subgraph: usize,
    /// Name and tensor.
    pub(crate) inputs: Vec<(String, usize)>,
    pub(crate) outputs: Vec<(String, usize)>,
}

/// Operators in order of execution, over tensors that they refer to by number.
#[derive(Clone, Debug)]
pub(crate) struct Subgraph<'a> {
    pub(crate) name: String,
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    pub(crate) operators: Vec<Operator<'a>>,
}

/// A tensor.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    /// The sizes for which the model was written.
    pub(crate) sizes: Vec<i64>,
    /// For each dimension, true if callers may choose its size; empty if all sizes are fixed.
    pub(crate) open: Vec<bool>,
    pub(crate) quantization: Option<Quantization>,
    /// Number of bits of an element, if several share a byte in the file.
    pub(crate) bits: Option<u32>,
    /// The value of a constant: dense, little-endian, and with a byte for each element of few bits.
    pub(crate) contents: Option<Bytes>,
    /// True if the value persists between runs. It is zero before the first one.
    pub(crate) is_variable: bool,
}

/// Real number = scale × (stored number - zero point).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantization {
    /// One scale for the tensor, or one for each index of the dimension. With blocks, one for each
    /// block of each row.
    pub(crate) scales: Vec<f32>,
    /// As many zero points.
    pub(crate) zero_points: Vec<i64>,
    pub(crate) dimension: usize,
}

impl Quantization {
    /// States the only scale on the node, from number `start` on, that computes a value. Returns
    /// false if there is none, or if it has another one. Several scales are not stated.
    pub(crate) fn state(&self, body: &mut Body, start: usize, value: &Ref) -> bool {
        match (&self.scales[..], &self.zero_points[..]) {
            ([scale], [zero_point]) => body.quantize(start, value, *scale, *zero_point),
            _ => true,
        }
    }
}

/// A step of a subgraph.
#[derive(Clone, Debug)]
pub(crate) struct Operator<'a> {
    /// Name of the builtin operator, or `CUSTOM`.
    pub(crate) op: &'static str,
    /// Name of a custom operator.
    pub(crate) custom: String,
    /// Version of the operator, from 1.
    pub(crate) version: i32,
    /// `None` for an optional input that is left out.
    pub(crate) inputs: Vec<Option<usize>>,
    pub(crate) outputs: Vec<usize>,
    pub(crate) intermediates: Vec<usize>,
    pub(crate) options: Options<'a>,
    /// The options of a custom operator, in its own format.
    pub(crate) custom_options: &'a [u8],
}

/// The options of an operator. A missing table has the defaults of all fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a>(Option<Table<'a>>);

impl Options<'_> {
    pub(crate) fn int(&self, number: usize, default: i32) -> Result<i64> {
        Ok(i64::from(self.0.map_or(Ok(default), |table| table.i32(number, default))?))
    }

    pub(crate) fn long(&self, number: usize) -> Result<i64> {
        self.0.map_or(Ok(0), |table| table.i64(number, 0))
    }

    pub(crate) fn byte(&self, number: usize) -> Result<i8> {
        self.0.map_or(Ok(0), |table| table.i8(number, 0))
    }

    pub(crate) fn bool(&self, number: usize, default: bool) -> Result<bool> {
        self.0.map_or(Ok(default), |table| table.bool(number, default))
    }

    pub(crate) fn float(&self, number: usize) -> Result<f32> {
        self.0.map_or(Ok(0.0), |table| table.f32(number, 0.0))
    }

    pub(crate) fn ints(&self, number: usize) -> Result<Vec<i64>> {
        let ints = self.0.map_or(Ok(Vec::new()), |table| table.i32s(number))?;
        Ok(ints.into_iter().map(i64::from).collect())
    }

    pub(crate) fn longs(&self, number: usize) -> Result<Vec<i64>> {
        self.0.map_or(Ok(Vec::new()), |table| table.i64s(number))
    }

    pub(crate) fn floats(&self, number: usize) -> Result<Vec<f32>> {
        self.0.map_or(Ok(Vec::new()), |table| table.f32s(number))
    }

    pub(crate) fn text(&self, number: usize) -> Result<String> {
        self.0.map_or(Ok(String::new()), |table| Ok(table.text(number)?.to_owned()))
    }
}

/// Reads a file.
pub(crate) fn read(file: &Bytes) -> Result<Model<'_>> {
    let root = Table::root(file)?;
    let version = root.u32(0, 0)?;
    if version != 3 {
        return Err(Error::unsupported(format!(
            "version {version} of the .tflite format is not supported (only 3 is): convert the model again"
        )));
    }
    let codes: Vec<OperatorCode> =
        root.tables(1)?.map(|code| operator_code(&code?)).collect::<Result<_>>()?;
    let buffers = Buffers { file, tables: root.tables(4)?.collect::<Result<_>>()? };
    let mut budget = Budget::new(file);
    let mut subgraphs = Vec::new();
    for (number, table) in root.tables(2)?.enumerate() {
        let subgraph = subgraph(&table?, &buffers, &codes, &mut budget);
        subgraphs.push(subgraph.map_err(|e| e.context(format!("subgraph {number}")))?);
    }
    if subgraphs.is_empty() {
        return Err(Error::invalid("the file contains no subgraph"));
    }
    let signatures =
        root.tables(7)?.map(|table| signature(&table?, &subgraphs, &mut budget)).collect::<Result<_>>()?;
    Ok(Model { subgraphs, signatures })
}

/// An operator that a file uses.
struct OperatorCode {
    number: i32,
    custom: String,
    version: i32,
}

/// Reads an operator code. Numbers that fit a byte may be in an older field.
fn operator_code(table: &Table<'_>) -> Result<OperatorCode> {
    let older = i32::from(table.i8(0, 0)?);
    let number = table.i32(3, 0)?.max(older);
    let version = table.i32(2, 1)?;
    if version > NEWEST_VERSION {
        let name = builtin::name(number).unwrap_or("of unknown name");
        return Err(Error::unsupported(format!(
            "version {version} of operator {name} is unknown: it is newer than this compiler"
        )));
    }
    Ok(OperatorCode { number, custom: table.text(1)?.to_owned(), version })
}

/// The buffers of a file.
struct Buffers<'a> {
    file: &'a Bytes,
    tables: Vec<Table<'a>>,
}

impl Buffers<'_> {
    /// Contents of a buffer, which may follow the tables in a large file.
    fn contents(&self, number: u32) -> Result<Option<Bytes>> {
        let table = self.tables.get(number as usize);
        let table = table.ok_or_else(|| Error::invalid(format!("buffer {number} does not exist")))?;
        let (offset, size) = (table.u64(1, 0)?, table.u64(2, 0)?);
        if offset > 1 && size > 0 {
            let outside = || Error::invalid(format!("buffer {number} is outside of the file"));
            let begin = usize::try_from(offset).map_err(|_| outside())?;
            let end = usize::try_from(size).ok().and_then(|size| begin.checked_add(size));
            let end = end.filter(|end| *end <= self.file.len()).ok_or_else(outside)?;
            return Ok(Some(self.file.slice(begin..end)));
        }
        let contents = table.bytes(0)?;
        Ok((!contents.is_empty()).then(|| self.file.slice_ref(contents)))
    }
}

fn subgraph<'a>(
    table: &Table<'a>,
    buffers: &Buffers<'_>,
    codes: &[OperatorCode],
    budget: &mut Budget,
) -> Result<Subgraph<'a>> {
    budget.take_parts(table.tables(0)?.len())?;
    let mut tensors = Vec::new();
    for (number, tensor_table) in table.tables(0)?.enumerate() {
        let tensor_table = tensor_table?;
        let at = |e: Error| match tensor_table.text(3) {
            Ok(name) if !name.is_empty() => e.context(format!("tensor {number} '{name}'")),
            _ => e.context(format!("tensor {number}")),
        };
        tensors.push(tensor::tensor(&tensor_table, buffers, budget).map_err(at)?);
    }
    for (number, tensor_table) in table.tables(0)?.enumerate() {
        if let Some(quantization) = tensor::blockwise(&tensor_table?, &tensors, number)? {
            budget.take_parts(quantization.scales.len())?;
            tensors[number].quantization = Some(quantization);
        }
    }
    let count = tensors.len();
    let mut indices = |what: &str, numbers: Vec<i32>| {
        budget.take_parts(numbers.len())?;
        numbers.into_iter().map(|number| index(number, count, what)).collect::<Result<Vec<usize>>>()
    };
    let inputs = indices("input", table.i32s(1)?)?;
    let outputs = indices("output", table.i32s(2)?)?;
    budget.take_parts(table.tables(3)?.len())?;
    let mut operators = Vec::new();
    for (number, operator) in table.tables(3)?.enumerate() {
        let operator = operator.and_then(|operator| self::operator(&operator, codes, tensors.len()));
        let operator = operator.map_err(|e| e.context(format!("operator {number}")))?;
        let Operator { inputs, outputs, intermediates, .. } = &operator;
        budget.take_parts(inputs.len() + outputs.len() + intermediates.len())?;
        operators.push(operator);
    }
    // The kernel makes its output single precision, whatever the file says.
    for operator in operators.iter().filter(|operator| operator.op == "DEQUANTIZE") {
        for &output in &operator.outputs {
            tensors[output].data_type = DataType::Float;
        }
    }
    Ok(Subgraph { name: budget.text(table, 4)?, tensors, inputs, outputs, operators })
}

/// Checks an index of a tensor.
fn index(number: i32, count: usize, what: &str) -> Result<usize> {
    usize::try_from(number).ok().filter(|&index| index < count).ok_or_else(|| {
        Error::invalid(format!("{what} {number} is not a tensor: the subgraph has {count} tensors"))
    })
}

fn operator<'a>(table: &Table<'a>, codes: &[OperatorCode], tensors: usize) -> Result<Operator<'a>> {
    let code = table.u32(0, 0)?;
    let OperatorCode { number, custom, version } = codes.get(code as usize).ok_or_else(|| {
        Error::invalid(format!("operator code {code} does not exist: the file has {}", codes.len()))
    })?;
    let op = builtin::name(*number).filter(|_| *number != builtin::FIRST_WIDE).ok_or_else(|| {
        Error::unsupported(format!("builtin operator {number} is unknown: it is newer than this compiler"))
    })?;
    let inputs = table.i32s(1)?.into_iter().map(|number| match number {
        -1 => Ok(None),
        _ => index(number, tensors, "input").map(Some),
    });
    let indices = |field: usize, what: &str| {
        let numbers = table.i32s(field)?.into_iter();
        numbers.map(|number| index(number, tensors, what)).collect::<Result<Vec<usize>>>()
    };
    // The later union of options is for operators that the earlier one has no room for.
    let options = match table.u8(11, 0)? {
        0 => table.table(4)?.filter(|_| table.u8(3, 0).is_ok_and(|kind| options::fits(op, kind, false))),
        later => table.table(12)?.filter(|_| options::fits(op, later, true)),
    };
    Ok(Operator {
        op,
        custom: if *number == builtin::CUSTOM { custom.clone() } else { String::new() },
        version: *version,
        inputs: inputs.collect::<Result<_>>()?,
        outputs: indices(2, "output")?,
        intermediates: indices(8, "intermediate tensor")?,
        options: Options(options),
        custom_options: table.bytes(5)?,
    })
}

fn signature(table: &Table<'_>, subgraphs: &[Subgraph<'_>], budget: &mut Budget) -> Result<Signature> {
    let key = budget.text(table, 2)?;
    budget.take_parts(1)?;
    let at = |e: Error| e.context(format!("signature '{key}'"));
    let number = table.u32(4, 0)? as usize;
    let subgraph = subgraphs.get(number).ok_or_else(|| {
        at(Error::invalid(format!("subgraph {number} does not exist: the file has {}", subgraphs.len())))
    })?;
    let mut names = |field: usize| {
        budget.take_parts(table.tables(field)?.len())?;
        let map = table.tables(field)?.map(|entry| {
            let entry = entry?;
            let tensor = i32::try_from(entry.u32(1, 0)?).unwrap_or(i32::MAX);
            Ok((budget.text(&entry, 0)?, index(tensor, subgraph.tensors.len(), "argument").map_err(at)?))
        });
        map.collect::<Result<Vec<_>>>()
    };
    Ok(Signature { subgraph: number, inputs: names(0)?, outputs: names(1)?, key: key.clone() })
}
