//! Damaged and hostile files: each is refused with an error, quickly and without a panic.

use bytes::Bytes;
use npz::Archive;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::ErrorKind::{self, Invalid, Unsupported};

/// Longest time that a file may take.
const LONGEST: Duration = Duration::from_secs(1);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tflite")
}

/// Reads a file, and checks that it takes no longer than it may.
fn read(bytes: &Bytes) -> Result<tf::model::Foreign, support::Error> {
    let start = Instant::now();
    let result = tflite::read(bytes, tflite::Selection::default());
    assert!(start.elapsed() < LONGEST, "{:?}", start.elapsed());
    result
}

#[track_caller]
fn refused(name: &str, bytes: &[u8], kind: ErrorKind, words: &str) {
    let error = read(&Bytes::copy_from_slice(bytes)).err().unwrap_or_else(|| panic!("{name} is accepted"));
    assert_eq!(error.kind(), kind, "{name}: {error}");
    assert!(error.message().contains(words), "{name}: {error}");
}

/// The files that the reader refuses, with words of the message.
const REFUSED: &[(&str, ErrorKind, &str)] = &[
    ("buffer_index_out_of_range.tflite", Invalid, "tensor 1 'c': buffer 77 does not exist"),
    ("cumsum_float_axis.tflite", Invalid, "an input of type float, where integers are expected"),
    ("cyclic_ops.tflite", Invalid, "operator ADD of tensor 'a': tensor 'b' has no value"),
    ("cyclic_subgraphs.tflite", Invalid, "operator WHILE of tensor 'again': subgraph 2 calls itself"),
    ("empty.tflite", Invalid, "TFL3"),
    ("huge_dimensions.tflite", Invalid, "tensor 0 'x': shape"),
    ("int4_odd_size.tflite", Invalid, "tensor 0 'w': its contents have 4 bytes, but its shape needs 5"),
    ("missing_operand.tflite", Invalid, "operator ADD of tensor 'y': input 1 is missing"),
    ("missing_options.tflite", Invalid, "operator CONV_2D of tensor 'y': stride_w is 0"),
    ("nan_scale.tflite", Invalid, "tensor 1 'w': scale NaN is not a positive number"),
    ("negative_dimension.tflite", Invalid, "tensor 0 'x': shape [2, -5] is not possible"),
    ("negative_scale.tflite", Invalid, "tensor 1 'w': scale -0.1 is not a positive number"),
    ("negative_tensor_index.tflite", Invalid, "operator 0: input -7 is not a tensor"),
    ("no_subgraphs.tflite", Invalid, "the file contains no subgraph"),
    ("opcode_index_out_of_range.tflite", Invalid, "operator 0: operator code 5 does not exist"),
    ("output_index_out_of_range.tflite", Invalid, "subgraph 0: output 1000000 is not a tensor"),
    ("root_offset_out_of_range.tflite", Invalid, "the file is damaged"),
    ("scale_axis_out_of_range.tflite", Invalid, "tensor 1 'w': 3 scales do not fit dimension 6"),
    ("short_buffer.tflite", Invalid, "tensor 1 'c': its contents have 8 bytes, but its shape needs 24"),
    ("signature_out_of_range.tflite", Invalid, "signature 'serving_default': subgraph 4 does not exist"),
    ("subgraph_index_out_of_range.tflite", Invalid, "operator IF of tensor 'y': subgraph 7 does not exist"),
    ("tensor_index_out_of_range.tflite", Invalid, "operator 0: input 99 is not a tensor"),
    ("truncated.tflite", Invalid, "the file is damaged"),
    ("truncated_tail.tflite", Invalid, "the file is damaged"),
    ("unknown_op.tflite", Unsupported, "operator 0: builtin operator 9999 is unknown"),
    ("unknown_type.tflite", Unsupported, "tensor 0 'x': type 99 of a tensor is unknown"),
    ("vector_length_out_of_range.tflite", Invalid, "the file is damaged"),
    ("vector_offset_out_of_range.tflite", Invalid, "the file is damaged"),
    ("version_99.tflite", Unsupported, "version 99 of operator"),
    ("vtable_out_of_range.tflite", Invalid, "the file is damaged"),
    ("wrong_identifier.tflite", Invalid, "TFL3"),
    ("wrong_options.tflite", Invalid, "operator CONV_2D of tensor 'y': stride_w is 0"),
    ("zero_strides.tflite", Invalid, "operator CONV_2D of tensor 'y': stride_h is 0"),
    ("wrong_number_of_scales.tflite", Invalid, "tensor 1 'w': 2 scales do not fit dimension 0"),
    ("zero_point_out_of_range.tflite", Invalid, "zero point 1000 is out of range"),
    ("zero_scale.tflite", Invalid, "tensor 1 'w': scale 0 is not a positive number"),
];

/// The files whose nodes are refused only when the graph is translated (`conformance`).
const REFUSED_LATER: &[&str] = &[
    "axis_out_of_range.tflite",
    "reduction_axis_out_of_range.tflite",
    "reshape_of_other_size.tflite",
    "shapes_do_not_broadcast.tflite",
];

#[test]
fn malformed_files_are_refused() {
    for &(name, kind, words) in REFUSED {
        let bytes = std::fs::read(folder().join("malformed").join(name)).expect("a file");
        refused(name, &bytes, kind, words);
    }
    let entries = std::fs::read_dir(folder().join("malformed")).expect("the folder");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !name.ends_with(".tflite") || REFUSED.iter().any(|(known, ..)| *known == name) {
            continue;
        }
        assert!(REFUSED_LATER.contains(&name.as_str()), "{name} is in no list");
        read(&std::fs::read(&path).expect("bytes").into()).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// Random numbers: Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn damaged_models_are_refused_or_read() {
    let archives = ["conv_2d", "densify", "if", "lstm", "signatures", "strided_slice", "variables", "while"];
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for name in archives {
        let bytes = std::fs::read(folder().join(format!("{name}.npz"))).expect("an archive");
        let mut archive = Archive::open(bytes.into(), 1 << 30).expect("an archive");
        let members: Vec<String> =
            archive.names().filter(|name| name.ends_with("/model.tflite")).map(str::to_owned).collect();
        for member in [&members[0], &members[members.len() - 1]] {
            let model = archive.require_bytes(member).expect("a model");
            read(&model).unwrap_or_else(|e| panic!("{name}/{member}: {e}"));
            for _ in 0..150 {
                let mut damaged = model.to_vec();
                for _ in 0..=random.below(6) {
                    let at = random.below(damaged.len());
                    // Offsets and counts are small numbers, and their damage is most harmful.
                    damaged[at] = [0x00, 0x01, 0x7f, 0xff, random.below(256) as u8][random.below(5)];
                }
                let _ = read(&damaged.into());
            }
            for _ in 0..50 {
                let _ = read(&model.slice(..random.below(model.len())));
            }
        }
    }
}

/// A value in a FlatBuffer.
#[derive(Clone)]
enum Value {
    Byte(u8),
    Int(i32),
    Ints(Vec<i32>),
    Text(&'static [u8]),
    Table(Vec<(usize, Value)>),
    Tables(Vec<Value>),
}

use Value::{Byte, Int, Ints, Table, Tables, Text};

/// Writes a table before what it refers to, and returns its position.
fn write_table(out: &mut Vec<u8>, fields: &[(usize, Value)]) -> usize {
    out.resize(out.len().next_multiple_of(4), 0);
    let start = out.len();
    let count = fields.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
    let mut entries = vec![0u16; count];
    for (k, (number, _)) in fields.iter().enumerate() {
        entries[*number] = 4 + 4 * k as u16;
    }
    let sizes = [4 + 2 * count as u16, 4 + 4 * fields.len() as u16];
    out.extend(sizes.iter().chain(&entries).flat_map(|number| number.to_le_bytes()));
    out.resize(out.len().next_multiple_of(4), 0);
    let position = out.len();
    out.extend(((position - start) as i32).to_le_bytes());
    out.resize(position + 4 + 4 * fields.len(), 0);
    for (k, (_, value)) in fields.iter().enumerate() {
        write_value(out, position + 4 + 4 * k, value);
    }
    position
}

/// Writes a value to a slot of 4 bytes, directly or as an offset.
fn write_value(out: &mut Vec<u8>, slot: usize, value: &Value) {
    let target = match value {
        Byte(byte) => {
            out[slot] = *byte;
            return;
        }
        Int(number) => {
            out[slot..slot + 4].copy_from_slice(&number.to_le_bytes());
            return;
        }
        Table(fields) => write_table(out, fields),
        Ints(numbers) => {
            let at = out.len().next_multiple_of(4);
            out.resize(at, 0);
            out.extend((numbers.len() as u32).to_le_bytes());
            out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            at
        }
        Text(text) => {
            let at = out.len().next_multiple_of(4);
            out.resize(at, 0);
            out.extend((text.len() as u32).to_le_bytes());
            out.extend_from_slice(text);
            out.push(0);
            at
        }
        Tables(tables) => {
            let at = out.len().next_multiple_of(4);
            out.resize(at, 0);
            out.extend((tables.len() as u32).to_le_bytes());
            out.resize(at + 4 + 4 * tables.len(), 0);
            for (k, table) in tables.iter().enumerate() {
                write_value(out, at + 4 + 4 * k, table);
            }
            at
        }
    };
    out[slot..slot + 4].copy_from_slice(&((target - slot) as u32).to_le_bytes());
}

/// A file with these operator codes and subgraphs, and one empty buffer.
fn file(codes: &[i32], subgraphs: Vec<Value>) -> Vec<u8> {
    file_with_buffer(codes, subgraphs, b"")
}

/// Like [`file`], with another buffer.
fn file_with_buffer(codes: &[i32], subgraphs: Vec<Value>, buffer: &'static [u8]) -> Vec<u8> {
    let codes =
        codes.iter().map(|&code| Table(vec![(0, Byte(code.min(127) as u8)), (3, Int(code))])).collect();
    let buffers = vec![Table(vec![]), Table(vec![(0, Text(buffer))])];
    let mut out = vec![0; 4];
    out.extend(tflite::MAGIC);
    let model = [(0, Int(3)), (1, Tables(codes)), (2, Tables(subgraphs)), (4, Tables(buffers))];
    let root = write_table(&mut out, &model);
    out[..4].copy_from_slice(&(root as u32).to_le_bytes());
    out
}

const FLOAT: u8 = 0;
const INT32: u8 = 2;
const BOOL: u8 = 6;

fn tensor(kind: u8, sizes: &[i32], name: &'static [u8]) -> Value {
    Table(vec![(0, Ints(sizes.to_vec())), (1, Byte(kind)), (2, Int(0)), (3, Text(name))])
}

fn subgraph(tensors: Vec<Value>, inputs: &[i32], outputs: &[i32], operators: Vec<Value>) -> Value {
    Table(vec![
        (0, Tables(tensors)),
        (1, Ints(inputs.to_vec())),
        (2, Ints(outputs.to_vec())),
        (3, Tables(operators)),
    ])
}

/// Options with their kind.
type Options = (u8, Vec<(usize, Value)>);

const NO_OPTIONS: Options = (0, Vec::new());

/// Options with two subgraphs.
fn subgraphs(kind: u8, first: i32, second: i32) -> Options {
    (kind, vec![(0, Int(first)), (1, Int(second))])
}

fn operator(code: i32, inputs: &[i32], outputs: &[i32], (kind, options): Options) -> Value {
    Table(vec![
        (0, Int(code)),
        (1, Ints(inputs.to_vec())),
        (2, Ints(outputs.to_vec())),
        (3, Byte(kind)),
        (4, Table(options)),
    ])
}

const ABS: i32 = 101;
const CUMSUM: i32 = 128;
const SUM: i32 = 74;
const BROADCAST_ARGS: i32 = 145;
const WHILE: i32 = 119;
const CALL_ONCE: i32 = 129;
const IF: i32 = 118;

const IF_OPTIONS: u8 = 92;
const WHILE_OPTIONS: u8 = 93;
const CALL_ONCE_OPTIONS: u8 = 103;

/// A subgraph from one float to another, by one operator.
fn unary(operator: Value) -> Value {
    subgraph(vec![tensor(FLOAT, &[2], b"x"), tensor(FLOAT, &[2], b"y")], &[0], &[1], vec![operator])
}

#[test]
fn written_files_are_read() {
    let bytes = file(&[ABS], vec![unary(operator(0, &[0], &[1], NO_OPTIONS))]);
    let model = read(&bytes.into()).expect("a model");
    assert_eq!((model.config.feed.len(), model.config.fetch.len()), (1, 1));
}

#[test]
fn sizes_of_fed_axes_whose_product_overflows_before_its_zero_are_read() {
    let largest = [i32::MAX, i32::MAX, i32::MAX, 0];
    let axes = tensor(INT32, &largest, b"axes");
    let tensors = vec![tensor(FLOAT, &[2], b"x"), axes, tensor(FLOAT, &[2], b"y")];
    let reduction = operator(0, &[0, 1], &[2], NO_OPTIONS);
    let bytes = file(&[SUM], vec![subgraph(tensors, &[0, 1], &[2], vec![reduction])]);
    assert!(read(&bytes.into()).is_ok());
    let tensors = vec![tensor(INT32, &largest, b"a"), tensor(INT32, &[2], b"b"), tensor(INT32, &[2], b"y")];
    let broadcast = operator(0, &[0, 1], &[2], NO_OPTIONS);
    let bytes = file(&[BROADCAST_ARGS], vec![subgraph(tensors, &[0, 1], &[2], vec![broadcast])]);
    assert!(read(&bytes.into()).is_ok());
}

#[test]
fn a_fed_axis_of_floats_is_refused() {
    let bytes = file(
        &[CUMSUM],
        vec![subgraph(
            vec![tensor(FLOAT, &[2], b"x"), tensor(FLOAT, &[], b"axis"), tensor(FLOAT, &[2], b"y")],
            &[0, 1],
            &[2],
            vec![operator(0, &[0, 1], &[2], NO_OPTIONS)],
        )],
    );
    refused("floats", &bytes, Invalid, "an input of type float, where integers are expected");
}

#[test]
fn subgraphs_that_call_themselves_are_refused() {
    let own = |number: i32| subgraphs(WHILE_OPTIONS, number, number);
    let bytes = file(&[WHILE], vec![unary(operator(0, &[0], &[1], own(0)))]);
    refused("itself", &bytes, Invalid, "subgraph 0 calls itself");
    // By way of another one.
    let three = vec![
        unary(operator(0, &[0], &[1], own(1))),
        unary(operator(0, &[0], &[1], own(2))),
        unary(operator(0, &[0], &[1], own(1))),
    ];
    refused("by way of another", &file(&[WHILE], three), Invalid, "calls itself");
    // A chain of calls that is too deep to follow.
    let chain = (1..500).map(|next| unary(operator(0, &[0], &[1], own(next)))).collect();
    refused("a chain", &file(&[WHILE], chain), Unsupported, "deep");
}

#[test]
fn loops_and_branches_must_fit_their_operator() {
    let options = || subgraphs(WHILE_OPTIONS, 1, 2);
    let two = subgraph(vec![tensor(FLOAT, &[2], b"x"), tensor(FLOAT, &[2], b"y")], &[0, 1], &[0, 1], vec![]);
    let one = subgraph(vec![tensor(FLOAT, &[2], b"x")], &[0], &[0], vec![]);
    let main = || unary(operator(0, &[0], &[1], options()));
    let bytes = file(&[WHILE], vec![main(), one.clone(), two.clone()]);
    refused(
        "a body",
        &bytes,
        Invalid,
        "subgraph 2 has 2 inputs and 2 outputs, but the operator needs 1 and 1",
    );
    let bytes = file(&[WHILE], vec![main(), two, one]);
    refused("a condition", &bytes, Invalid, "subgraph 1 has 2 inputs");
    refused("no condition", &file(&[WHILE], vec![main()]), Invalid, "subgraph 1 does not exist");
    let nothing = unary(operator(0, &[], &[], subgraphs(IF_OPTIONS, 1, 2)));
    refused("an empty IF", &file(&[IF], vec![nothing]), Invalid, "no condition");
}

#[test]
fn types_of_loops_and_branches_must_agree() {
    let options = subgraphs(WHILE_OPTIONS, 1, 2);
    let float = subgraph(vec![tensor(FLOAT, &[2], b"x")], &[0], &[0], vec![]);
    let bool = subgraph(vec![tensor(BOOL, &[2], b"x")], &[0], &[0], vec![]);
    let bytes = file(&[WHILE], vec![unary(operator(0, &[0], &[1], options)), bool, float]);
    refused("a condition of bools", &bytes, Invalid, "subgraph 1");
}

#[test]
fn names_may_have_any_characters() {
    let tensors = vec![tensor(FLOAT, &[2], b"a\0b"), tensor(FLOAT, &[2], "ü\n\"".as_bytes())];
    let bytes = file(&[ABS], vec![subgraph(tensors, &[0], &[1], vec![operator(0, &[0], &[1], NO_OPTIONS)])]);
    let model = read(&bytes.into()).expect("a model");
    for node in &model.graph.node {
        assert!(node.name.chars().all(|c| c.is_ascii_graphic()), "{:?}", node.name);
    }
    let names =
        model.config.feed.iter().map(|feed| &feed.name).chain(model.config.fetch.iter().map(|f| &f.name));
    for name in names {
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name:?}");
    }
    let tensors = vec![tensor(FLOAT, &[2], b"\xff\xfe")];
    refused("not UTF-8", &file(&[], vec![subgraph(tensors, &[0], &[0], vec![])]), Invalid, "UTF-8");
}

#[test]
fn huge_counts_are_refused() {
    let bytes = file(&[ABS], vec![unary(operator(0, &[0], &[1], NO_OPTIONS))]);
    // Every word in turn becomes a count, an offset, or a size that is too large.
    for at in (8..bytes.len() - 4).step_by(4) {
        for count in [u32::MAX, 1 << 31, 1 << 30, 0x7fff_ffff] {
            let mut damaged = bytes.clone();
            damaged[at..at + 4].copy_from_slice(&count.to_le_bytes());
            let _ = read(&damaged.into());
        }
    }
    let sizes = vec![i32::MAX; 3];
    let tensors = vec![tensor(FLOAT, &sizes, b"large")];
    refused("sizes", &file(&[], vec![subgraph(tensors, &[0], &[0], vec![])]), Invalid, "tensor 0 'large'");
    // Many operators with many inputs, although each vector is within the file.
    let inputs = vec![0; 3000];
    let operators = (0..3000).map(|_| operator(0, &inputs, &[1], NO_OPTIONS)).collect();
    let tensors = vec![tensor(FLOAT, &[2], b"x"), tensor(FLOAT, &[2], b"y")];
    refused(
        "inputs",
        &file(&[ABS], vec![subgraph(tensors, &[0], &[1], operators)]),
        Unsupported,
        "more than",
    );
}

#[test]
fn initialization_may_only_assign_constants() {
    let main = subgraph(
        vec![tensor(FLOAT, &[2], b"x")],
        &[0],
        &[0],
        vec![operator(0, &[], &[], (CALL_ONCE_OPTIONS, vec![(0, Int(1))]))],
    );
    let other = unary(operator(1, &[0], &[1], NO_OPTIONS));
    refused("ABS", &file(&[CALL_ONCE, ABS], vec![main, other]), Unsupported, "CALL_ONCE");
}

/// A dense dimension.
fn dense(size: i32) -> Value {
    Table(vec![(0, Byte(0)), (1, Int(size))])
}

/// A sparse dimension, with vectors of 32-bit numbers.
fn sparse(segments: &[i32], indices: &[i32]) -> Value {
    let vector = |numbers: &[i32]| Table(vec![(0, Ints(numbers.to_vec()))]);
    Table(vec![(0, Byte(1)), (2, Byte(1)), (3, vector(segments)), (4, Byte(1)), (5, vector(indices))])
}

/// A model that returns a sparse constant of 2 by 3 floats, of which two are stored.
fn with_sparsity(order: &[i32], blocks: &[i32], dimensions: Vec<Value>) -> Vec<u8> {
    let sparsity =
        Table(vec![(0, Ints(order.to_vec())), (1, Ints(blocks.to_vec())), (2, Tables(dimensions))]);
    let constant =
        Table(vec![(0, Ints(vec![2, 3])), (1, Byte(FLOAT)), (2, Int(1)), (3, Text(b"w")), (6, sparsity)]);
    let graph = subgraph(vec![constant], &[], &[0], vec![]);
    file_with_buffer(&[], vec![graph], b"\0\0\x80\x3f\0\0\0\x40")
}

#[test]
fn sparse_constants_are_read() {
    let bytes = with_sparsity(&[0, 1], &[], vec![dense(2), sparse(&[0, 1, 2], &[2, 0])]);
    let model = read(&bytes.into()).expect("a model");
    let constant = model.graph.node.iter().find(|node| node.op == "Const").expect("a constant");
    let value = constant.attr["value"].value.as_ref();
    let Some(tf::proto::attr_value::Value::Tensor(tensor)) = value else { panic!("not a tensor") };
    let floats: Vec<f32> = tensor
        .tensor_content
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes")))
        .collect();
    assert_eq!(floats, [0.0, 0.0, 1.0, 2.0, 0.0, 0.0]);
}

#[test]
fn damaged_sparsity_is_refused() {
    let refused = |order: &[i32], blocks: &[i32], dimensions: Vec<Value>, words: &str| {
        refused(words, &with_sparsity(order, blocks, dimensions), Invalid, words);
    };
    let rows = |segments: &[i32], indices: &[i32]| vec![dense(2), sparse(segments, indices)];
    refused(
        &[0, 1],
        &[],
        rows(&[0, 1, 2], &[3, 0]),
        "tensor 0 'w': its sparsity is damaged: an index is too large",
    );
    refused(&[0, 1], &[], rows(&[0, 1, 2], &[-1, 0]), "an index is negative");
    refused(&[0, 1], &[], rows(&[0, 1, 9], &[2, 0]), "a segment is out of range");
    refused(&[0, 1], &[], rows(&[1, 0, 2], &[2, 0]), "a segment is out of range");
    refused(&[0, 1], &[], rows(&[0, 1], &[2, 0]), "too few segments");
    refused(&[0, 1], &[], rows(&[0, 1, 3], &[2, 0, 1]), "fewer elements");
    refused(&[0, 1], &[], rows(&[0, 1, 1], &[2]), "more elements");
    refused(&[0, 1], &[], vec![dense(1 << 30), sparse(&[0, 1, 2], &[2, 0])], "wrong size");
    refused(&[0, 0], &[], rows(&[0, 1, 2], &[2, 0]), "order");
    refused(&[0, 1], &[], vec![dense(2)], "order");
    let blocked = |size| vec![dense(2), sparse(&[0, 1, 2], &[0, 0]), dense(size)];
    refused(&[0, 1, 2], &[1], blocked(2), "blocks do not divide");
    refused(&[0, 1, 2], &[1], blocked(0), "a block is not dense");
    refused(&[0, 1, 2], &[7], blocked(3), "blocks do not divide");
}
