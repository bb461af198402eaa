//! Reads metadata objects back with independent readers.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use aot::{METADATA_MAGIC, MetadataOptions, header, metadata_object, program_shape_symbol, read_interface};
use object::{Object, ObjectSection, ObjectSymbol};
use serde_json::json;
use shape::{ArrayShape, PrimitiveType};
use std::io::Read as _;

/// Splits a section into its records, as a tool that inspects a linked program does.
fn records(mut section: &[u8]) -> Vec<serde_json::Value> {
    let mut records = Vec::new();
    while !section.is_empty() {
        assert_eq!(section[..8], METADATA_MAGIC);
        assert_eq!(u32::from_le_bytes(section[8..12].try_into().unwrap()), 2);
        let length = u32::from_le_bytes(section[12..16].try_into().unwrap()) as usize;
        let mut json = String::new();
        flate2::read::ZlibDecoder::new(&section[16..16 + length]).read_to_string(&mut json).unwrap();
        records.push(serde_json::from_str(&json).unwrap());
        section = &section[(16 + length).next_multiple_of(8)..];
    }
    records
}

const PLAIN: MetadataOptions = MetadataOptions { gen_program_shape: false };
const WITH_SHAPE: MetadataOptions = MetadataOptions { gen_program_shape: true };

#[test]
fn the_record_says_what_was_compiled() {
    let bytes = metadata_object(&crate::fixtures::train(), &PLAIN).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(file.symbols().filter(|s| s.is_global()).count(), 0);
    let section = file.section_by_name(".tfcompile").unwrap();
    let [record] = <[_; 1]>::try_from(records(section.data().unwrap())).unwrap();
    assert_eq!(record["cpp_class"], "ns::Train");
    assert_eq!(record["entry_point"], "entry_train");
    assert_eq!(
        record["target"],
        json!({"triple": "x86_64-pc-linux", "cpu": "x86-64-v3", "features": "+avx2,+fma", "versions": []})
    );
    assert_eq!(record["inputs"], json!({"config": "ab12", "graph": "00ff"}));
    assert_eq!(
        record["signature"],
        "(step/size: f32[], layer/kernel: f32[3], layer_kernel: f32[3], layer:kernel: f32[1]) -> (f32[], f32[3], f32[1])"
    );
    assert_eq!(
        record["arguments"][1],
        json!({"name": null, "node": "layer/kernel", "kind": "variable", "shape": "f32[3]", "bytes": 12,
               "accessor": "var_layer_kernel_2"})
    );
    assert_eq!(record["arguments"][2]["kind"], "readonly variable");
    assert_eq!(record["results"][0]["accessor"], "result_class");
    assert_eq!(record["results"][2]["accessor"], "var_layer_kernel_3");
    assert_eq!(record["memory"]["persistent_temps"], 8);
}

#[test]
fn the_interface_reads_back() {
    let mut bounded = crate::fixtures::train();
    crate::fixtures::rewrite(&mut bounded, |_, results| {
        results[0].shape = ArrayShape::new(PrimitiveType::F32, &[2, 3]);
        results[0].shape.dimensions[1].is_dynamic = true;
    });
    let quantized = crate::fixtures::quantized();
    let named = [crate::fixtures::batched(), crate::fixtures::sequences()];
    let others = [crate::fixtures::train(), crate::fixtures::types(), bounded, quantized];
    for artifact in others.into_iter().chain(named) {
        let bytes = metadata_object(&artifact, &PLAIN).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let section = file.section_by_name(".tfcompile").unwrap();
        let [record] = <[_; 1]>::try_from(records(section.data().unwrap())).unwrap();
        assert_eq!(read_interface(&record).unwrap(), artifact.interface);
    }
    assert!(read_interface(&json!({"arguments": [{"kind": "feed"}], "results": []})).is_err());
    let mut feed = json!({"kind": "feed", "node": "x:0", "shape": "s8[2]", "scale": 0.5, "zero_point": -3});
    let read = |feed: &serde_json::Value| read_interface(&json!({"arguments": [feed], "results": []}));
    let quantization = read(&feed).unwrap().arguments()[0].quantization.unwrap();
    assert_eq!((quantization.scale, quantization.zero_point), (0.5, -3));
    feed["scale"] = json!(-0.5);
    assert!(read(&feed).is_err());
}

#[test]
fn sizes_of_named_dimensions_are_recorded_and_checked() {
    let bytes = metadata_object(&crate::fixtures::sequences(), &PLAIN).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let section = file.section_by_name(".tfcompile").unwrap();
    let [record] = <[_; 1]>::try_from(records(section.data().unwrap())).unwrap();
    assert_eq!(
        record["arguments"][3],
        json!({"name": "past/tokens", "node": "past/tokens:0", "kind": "size", "shape": "s32[]", "bytes": 4,
               "accessor": "past_tokens", "range": [0, 4]})
    );
    assert_eq!(record["arguments"][1]["named_dimensions"], json!([{"dimension": 1, "argument": 3}]));
    assert_eq!(record["arguments"][1]["dim_size_accessor"], "arg_q_dim_size");
    assert_eq!(record["arguments"][2]["accessor"], "dim_class");
    let damaged = |pointer: &str, value: serde_json::Value| {
        let mut record = record.clone();
        *record.pointer_mut(pointer).unwrap() = value;
        read_interface(&record).is_err()
    };
    assert!(!damaged("/arguments/3/range/0", json!(1)));
    for range in
        [json!([5, 4]), json!([-1, 4]), json!([0, 5]), json!([4]), json!(null), json!([0, 1i64 << 40])]
    {
        assert!(damaged("/arguments/3/range", range));
    }
    assert!(damaged("/arguments/3/shape", json!("s64[]")));
    for argument in [0, 2, 9] {
        assert!(damaged("/arguments/1/named_dimensions/0/argument", json!(argument)), "{argument}");
    }
    assert!(damaged("/arguments/1/named_dimensions/0/dimension", json!(2)));
    assert!(damaged("/arguments/1/named_dimensions/0/dimension", json!(0)));
}

#[test]
fn the_program_shape_is_a_message_of_xla() {
    let artifact = crate::fixtures::matmul_and_add();
    let bytes = metadata_object(&artifact, &WITH_SHAPE).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = file.symbols().find(|s| s.is_global()).unwrap();
    assert_eq!(
        symbol.name().unwrap(),
        "__tfcompile_foo_bar_MatMulAndAddComp_ProgramShapeProto_protobuf_array_contents"
    );
    assert_eq!(symbol.name().unwrap(), program_shape_symbol(&artifact));
    let section = file.section_by_index(symbol.section_index().unwrap()).unwrap();
    let start = symbol.address() as usize;
    let message = &section.data().unwrap()[start..start + symbol.size() as usize];
    // Serialized by protobuf from TensorFlow's xla_data_pb2: two parameters f32[2,2] with layout
    // {1,0}, named x and y, and a tuple of two such arrays.
    let array = b"\x10\x0b\x1a\x02\x02\x02\x2a\x04\x0a\x02\x01\x00\x32\x02\x00\x00";
    let mut expected = Vec::new();
    for _ in 0..2 {
        expected.extend_from_slice(b"\x0a\x10");
        expected.extend_from_slice(array);
    }
    expected.extend_from_slice(b"\x12\x26\x10\x0d\x22\x10");
    expected.extend_from_slice(array);
    expected.extend_from_slice(b"\x22\x10");
    expected.extend_from_slice(array);
    expected.extend_from_slice(b"\x1a\x01x\x1a\x01y");
    assert_eq!(message, expected);
}

#[test]
fn the_triple_decides_the_format() {
    use object::{Architecture::*, BinaryFormat::*};
    let triples = [
        ("x86_64-pc-linux", Elf, X86_64),
        ("aarch64-none-linux-gnu", Elf, Aarch64),
        ("armv7-none-android", Elf, Arm),
        ("i686-none-android", Elf, I386),
        ("riscv64-unknown-linux-gnu", Elf, Riscv64),
        ("s390x-ibm-linux", Elf, S390x),
        ("powerpc64le-ibm-linux-gnu", Elf, PowerPc64),
        ("x86_64-none-windows", Coff, X86_64),
        ("arm64-apple-darwin", MachO, Aarch64),
        ("arm64-none-ios", MachO, Aarch64),
    ];
    for (triple, format, architecture) in triples {
        let mut artifact = crate::fixtures::matmul_and_add();
        artifact.provenance.target_triple = triple.into();
        let bytes = metadata_object(&artifact, &WITH_SHAPE).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        assert_eq!((file.format(), file.architecture()), (format, architecture), "{triple}");
        let section =
            file.sections().find(|s| s.name().is_ok_and(|name| name.ends_with("tfcompile"))).unwrap();
        assert_eq!(records(section.data().unwrap()).len(), 1, "{triple}");
        assert!(file.symbols().all(|s| !s.is_undefined()), "{triple}");
    }
    let mut artifact = crate::fixtures::add();
    artifact.provenance.target_triple = "z80-unknown-none".into();
    let error = metadata_object(&artifact, &PLAIN).unwrap_err();
    assert!(error.message().contains("'z80-unknown-none'"), "{error}");
}

#[test]
fn equal_artifacts_give_equal_bytes() {
    let options =
        aot::HeaderOptions { gen_name_to_index: true, gen_program_shape: true, ..Default::default() };
    for make in [
        crate::fixtures::add,
        crate::fixtures::matmul_and_add,
        crate::fixtures::train,
        crate::fixtures::types,
    ] {
        assert_eq!(
            metadata_object(&make(), &WITH_SHAPE).unwrap(),
            metadata_object(&make(), &WITH_SHAPE).unwrap()
        );
        assert_eq!(header(&make(), &options).unwrap(), header(&make(), &options).unwrap());
    }
}
