//! Checkpoints of every kind, against what TensorFlow reads from them (`data/make_checkpoints.py`).

use shape::Literal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tf::DataType;
use tf::checkpoint::{
    Bundle, Checkpoint, OBJECT_GRAPH_KEY, Saved, Value, write_v1, write_v2, write_v2_parts,
};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/checkpoints")
}

/// Expected type, sizes, and bytes of a tensor.
type Expected = (DataType, Vec<i64>, Vec<u8>);

/// The tensors of each checkpoint.
fn expected() -> BTreeMap<PathBuf, BTreeMap<String, Expected>> {
    let text = std::fs::read_to_string(data().join("expected.txt")).expect("readable");
    let mut all: BTreeMap<PathBuf, BTreeMap<String, Expected>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [folder, prefix, name, data_type, sizes, bytes] = words[..] else { panic!("{line}") };
        let data_type = match data_type {
            "float32" => DataType::Float,
            "float64" => DataType::Double,
            "float16" => DataType::Half,
            other => DataType::from_name(other).expect("a type"),
        };
        let sizes = if sizes == "-" {
            vec![]
        } else {
            sizes.split(',').map(|s| s.parse().expect("a size")).collect()
        };
        let digits = if bytes == "-" { "" } else { bytes };
        let bytes =
            (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).expect("digits"));
        all.entry(data().join(folder).join(prefix))
            .or_default()
            .insert(name.to_owned(), (data_type, sizes, bytes.collect()));
    }
    all
}

fn meaning(value: &Value) -> Expected {
    let bytes = match value {
        Value::Array(_, literal) => literal.bytes().to_vec(),
        Value::Strings(_, strings) => strings.join(&b","[..]),
    };
    (value.data_type(), value.sizes(), bytes)
}

/// All tensors of a checkpoint.
fn read(path: &Path) -> support::Result<BTreeMap<String, Expected>> {
    let checkpoint = Checkpoint::open(path)?;
    let names: Vec<String> = checkpoint.names().map(str::to_owned).collect();
    let mut all = BTreeMap::new();
    for name in names {
        let value = checkpoint.value(&name)?.expect("it is listed");
        assert_eq!(checkpoint.tensor_type(&name)?, Some((value.data_type(), value.sizes())), "{name}");
        if name != OBJECT_GRAPH_KEY {
            all.insert(name, meaning(&value));
        }
    }
    Ok(all)
}

#[test]
fn tensors_are_those_that_tensorflow_reads() {
    let all = expected();
    assert_eq!(all.len(), 8);
    for (path, tensors) in all {
        let found = read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(found, tensors, "{}", path.display());
    }
}

#[test]
fn parts_of_tensors_are_restored() {
    for folder in ["v1_partitioned", "v2_partitioned"] {
        let checkpoint = Checkpoint::open(&data().join(folder).join("model")).expect("a checkpoint");
        let (_, whole) = checkpoint.tensor("axis1/weights").expect("undamaged").expect("a tensor");
        let whole = whole.to_vec::<f32>().expect("floats");
        // Across the border of the stored parts, which are 3 and 2 wide.
        let part = checkpoint.restore("axis1/weights", "3 5 1,2:2,2").expect("inside").expect("a tensor");
        let part = part.array().expect("numbers").to_vec::<f32>().expect("floats");
        assert_eq!(part, [whole[7], whole[8], whole[12], whole[13]], "{folder}");
        for (part, expected) in [
            ("3 5 1,3:-", "lies outside"),
            ("3 4 1,2:-", "does not match the tensor's shape [3, 5]"),
            ("3 5 1,2", "is malformed"),
        ] {
            let error = checkpoint.restore("axis1/weights", part).expect_err("wrong").to_string();
            assert!(error.contains(expected) && error.contains("axis1/weights"), "{error}");
        }
        assert_eq!(checkpoint.restore("other", "3 5 1,2:-").expect("no such tensor"), None);
    }
}

#[test]
fn objects_lead_from_names_of_variables_to_keys() {
    let checkpoint = Checkpoint::open(&data().join("objects/model")).expect("a checkpoint");
    let keys = checkpoint.variable_keys().expect("objects");
    for (name, key) in [
        ("counter", "net/counter/.ATTRIBUTES/VARIABLE_VALUE"),
        ("bias/inner", "net/layers/1/.ATTRIBUTES/VARIABLE_VALUE"),
        ("kernel/m", "net/layers/0/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE"),
    ] {
        assert_eq!(
            keys.get(&format!("Adam/{name}")).or(keys.get(name)).map(String::as_str),
            Some(key),
            "{keys:?}"
        );
    }
    let slots = checkpoint.object_graph().expect("objects").expect("objects").nodes;
    let slots: usize = slots.iter().map(|node| node.slot_variables.len()).sum();
    assert_eq!(slots, 4, "m and v of two variables");
    let plain = Checkpoint::open(&data().join("v2/model")).expect("a checkpoint");
    assert_eq!(plain.object_graph().expect("none"), None);
    assert_eq!(plain.variable_keys().expect("none"), BTreeMap::new());
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tf-checkpoint-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Every byte of a checkpoint that TensorFlow writes is under a checksum or compared otherwise:
/// whichever is changed, reading all tensors is an error that names the file and the place.
#[test]
fn a_change_of_any_byte_is_reported() {
    for (folder, prefix) in [
        ("v1", "model"),
        ("v2", "model"),
        ("v1_partitioned", "model"),
        ("v2_partitioned", "model"),
        ("objects", "model"),
    ] {
        let copy = Folder::new(folder);
        let original = data().join(folder);
        let files: Vec<_> = std::fs::read_dir(&original)
            .expect("readable")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        let contents: Vec<Vec<u8>> =
            files.iter().map(|name| std::fs::read(original.join(name)).expect("readable")).collect();
        for (name, bytes) in files.iter().zip(&contents) {
            std::fs::write(copy.0.join(name), bytes).expect("written");
        }
        let path = copy.0.join(prefix);
        let tensors = read(&path).expect("undamaged");
        assert!(!tensors.is_empty());
        for (name, bytes) in files.iter().zip(&contents) {
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x41;
                std::fs::write(copy.0.join(name), &damaged).expect("written");
                let error = read(&path).expect_err(&format!("byte {at} of {folder}/{name:?} is changed"));
                let error = error.to_string();
                let says = |part: &str| error.contains(part);
                assert!(says(&name.to_string_lossy()), "byte {at}: {error}");
                assert!(says("damaged at byte"), "byte {at}: {error}");
                assert!(
                    !says(".data-") && !name.to_string_lossy().contains(".data-") || says("tensor '"),
                    "{error}"
                );
            }
            for length in (0..bytes.len()).step_by(7) {
                std::fs::write(copy.0.join(name), &bytes[..length]).expect("written");
                read(&path).expect_err("cut off");
            }
            std::fs::write(copy.0.join(name), bytes).expect("written");
        }
    }
}

#[test]
fn a_missing_file_is_named() {
    let copy = Folder::new("missing");
    let name = |i| format!("model.data-0000{i}-of-00003");
    for file in ["model.index".to_owned(), name(0), name(2)] {
        std::fs::copy(data().join("v2_sharded").join(&file), copy.0.join(&file)).expect("copied");
    }
    let error = read(&copy.0.join("model")).expect_err("a shard is missing").to_string();
    assert!(error.contains("model.data-00001-of-00003"), "{error}");
    let error = read(&copy.0.join("other")).expect_err("nothing").to_string();
    assert!(error.contains("other' doesn't exist!"), "{error}");
    for file in ["model-00000-of-00003", "model-00002-of-00003"] {
        std::fs::copy(data().join("v1_sharded").join(file), copy.0.join(file)).expect("copied");
    }
    let found = read(&copy.0.join("model-?????-of-00003")).expect("two of the files");
    assert_eq!(found.len(), 4);
}

/// All types, strings, and tensors in parts.
#[test]
fn what_tensorflow_stores_is_written_as_tensorflow_does() {
    for folder in ["v2", "v2_partitioned"] {
        let prefix = data().join(folder).join("model");
        let stored = Checkpoint::open(&prefix).and_then(|file| file.stored()).expect("a checkpoint");
        for (suffix, bytes) in write_v2_parts(&stored).expect("tensors").files() {
            let recorded = std::fs::read(prefix.with_file_name(format!("model{suffix}"))).expect("readable");
            assert!(bytes == recorded, "{folder}{suffix}");
        }
    }
}

#[test]
fn the_first_version_is_written_and_read_again() {
    let copy = Folder::new("written_v1");
    let path = copy.0.join("model");
    for folder in ["v1", "v1_partitioned"] {
        let file = Checkpoint::open(&data().join(folder).join("model")).expect("a checkpoint");
        let names: Vec<String> = file.names().map(str::to_owned).collect();
        let whole = |name: &String| Saved::whole(name, file.value(name).expect("undamaged").expect("there"));
        let tensors: Vec<Saved> = names.iter().map(whole).collect();
        std::fs::write(&path, write_v1(&tensors).expect("tensors")).expect("written");
        let expected = &expected()[&data().join(folder).join("model")];
        assert_eq!(read(&path).expect("a checkpoint"), *expected, "{folder}");
    }
    // A type that version 1 does not support.
    let word = Literal::from_elements(&[1], &[7u32]);
    let error = write_v1(&[Saved::whole("v", Value::Array(DataType::Uint32, word))]).expect_err("no field");
    assert!(error.message().contains("'v'") && error.message().contains("SaveV2"), "{error}");
}

#[test]
fn parts_must_be_of_one_tensor() {
    let part = |place: &str, sizes: &[i64]| Saved {
        name: "m".to_owned(),
        shape_and_slice: place.to_owned(),
        value: Value::Array(
            DataType::Float,
            Literal::from_elements(sizes, &vec![0f32; sizes.iter().product::<i64>() as usize]),
        ),
    };
    let left = part("2 3 -:0,1", &[2, 1]);
    let refused = |other: Saved, why: &str| {
        let error = write_v2_parts(&[left.clone(), other]).expect_err(why);
        assert!(error.message().contains(why), "{error}");
    };
    refused(left.clone(), "saved twice");
    refused(part("2 3 -:-", &[2, 3]), "saved twice");
    refused(part("", &[2, 3]), "saved twice");
    refused(part("2 4 -:1,2", &[2, 2]), "and as float [2, 4]");
    refused(part("2 3 -:1,2", &[2, 1]), "differ from those of the saved tensor");
    refused(part("2 3 -:2,2", &[2, 2]), "outside the tensor");
    refused(part("2 3 -", &[2, 2]), "malformed part");
    assert!(write_v2_parts(&[left.clone(), part("2 3 -:1,2", &[2, 2])]).is_ok());
}

#[test]
fn what_is_written_is_read_again() {
    let copy = Folder::new("written");
    let mut tensors: BTreeMap<String, Literal> = (0..2000)
        .map(|i| {
            (
                format!("layer{i:04}/kernel with a longer name"),
                Literal::from_elements(&[2, 1], &[i as f32, 0.5]),
            )
        })
        .collect();
    tensors.insert("a/scalar".to_owned(), Literal::scalar(-3i64));
    tensors.insert("b/flags".to_owned(), Literal::from_elements(&[3], &[true, false, true]));
    tensors.insert("empty".to_owned(), Literal::from_elements::<f64>(&[0, 4], &[]));
    let bundle = write_v2(&tensors).expect("tensors");
    for (suffix, bytes) in bundle.files() {
        std::fs::write(copy.0.join(format!("model{suffix}")), bytes).expect("written");
    }
    let checkpoint = Checkpoint::open(&copy.0.join("model")).expect("a checkpoint");
    assert_eq!(checkpoint.names().collect::<Vec<_>>(), tensors.keys().collect::<Vec<_>>());
    for (name, literal) in &tensors {
        assert_eq!(checkpoint.tensor(name).expect("undamaged").expect("there").1, *literal, "{name}");
    }
    assert_eq!(write_v2(&tensors).expect("tensors"), bundle);
    assert_eq!(
        Bundle::state("model \"1\""),
        "model_checkpoint_path: \"model \\\"1\\\"\"\nall_model_checkpoint_paths: \"model \\\"1\\\"\"\n"
    );
    assert!(write_v2(&BTreeMap::from([(String::new(), Literal::scalar(0f32))])).is_err());
}

/// CRC-32C, bit by bit, as RFC 3720 defines it, in the masked form.
fn masked_crc(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    (!crc).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A block of entries: bytes of the key before that are shared, the rest of the key, the value.
fn block(entries: &[(usize, &[u8], &[u8])]) -> Vec<u8> {
    let mut block = Vec::new();
    for (shared, key, value) in entries {
        for size in [*shared, key.len(), value.len()] {
            block.extend(varint(size as u64));
        }
        block.extend_from_slice(key);
        block.extend_from_slice(value);
    }
    // One restart, at the beginning.
    block.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    block
}

/// A table of one block of entries, which is stored as `stored` with this kind of compression.
fn table(stored: &[u8], compression: u8) -> Vec<u8> {
    let mut file = Vec::new();
    let mut push = |block: &[u8], compression: u8| {
        let handle = [varint(file.len() as u64), varint(block.len() as u64)].concat();
        let start = file.len();
        file.extend_from_slice(block);
        file.push(compression);
        let crc = masked_crc(&file[start..]);
        file.extend(crc.to_le_bytes());
        handle
    };
    let data = push(stored, compression);
    let meta = push(&block(&[]), 0);
    let index = push(&block(&[(0, b"\xff", &data)]), 0);
    let mut footer = [meta, index].concat();
    footer.resize(40, 0);
    file.extend(footer);
    file.extend(0xdb47_7524_8b80_fb57u64.to_le_bytes());
    file
}

/// One shard, little-endian, version 1.
const HEADER: &[u8] = &[0x08, 1, 0x1a, 2, 0x08, 1];

/// The error for an index, with a data file of these bytes.
fn refusal(copy: &Folder, index: &[u8], bytes: &[u8]) -> String {
    std::fs::write(copy.0.join("model.index"), index).expect("written");
    std::fs::write(copy.0.join("model.data-00000-of-00001"), bytes).expect("written");
    read(&copy.0.join("model")).expect_err("wrong").to_string()
}

#[test]
fn compressed_blocks_are_read() {
    let copy = Folder::new("snappy");
    // A float of 2.5 at byte 0 of 4 with its checksum.
    let value = 2.5f32.to_le_bytes();
    let mut entry = vec![0x08, 1, 0x12, 0, 0x28, 4, 0x35];
    entry.extend(masked_crc(&value).to_le_bytes());
    let plain = block(&[(0, b"", HEADER), (0, b"layer/a", &entry), (6, b"b", &entry)]);
    let compressed = snap::raw::Encoder::new().compress_vec(&plain).expect("compressed");
    for (stored, compression) in [(&plain, 0), (&compressed, 1)] {
        std::fs::write(copy.0.join("model.index"), table(stored, compression)).expect("written");
        std::fs::write(copy.0.join("model.data-00000-of-00001"), value).expect("written");
        let found = read(&copy.0.join("model")).expect("a checkpoint");
        let expected = (DataType::Float, vec![], value.to_vec());
        assert_eq!(found.keys().collect::<Vec<_>>(), ["layer/a", "layer/b"]);
        assert!(found.values().all(|found| *found == expected));
    }
    assert!(refusal(&copy, &table(&compressed, 2), &value).contains("unknown compression type"));
    assert!(refusal(&copy, &table(&compressed[..9], 1), &value).contains("damaged at byte 0"));
    // Four bytes that claim to be 2 GiB.
    assert!(refusal(&copy, &table(b"\xff\xff\xff\xff\x07", 1), &value).contains("impossible size"));
}

#[test]
fn other_byte_orders_and_impossible_entries_are_refused() {
    let copy = Folder::new("impossible");
    let one = |header: &[u8], entry: &[u8]| table(&block(&[(0, b"", header), (0, b"w", entry)]), 0);
    let good = [0x08, 1, 0x12, 0, 0x28, 4];
    for (index, expected) in [
        (one(&[0x08, 1, 0x10, 1], &good), "big-endian"),
        (one(&[0x08, 1, 0x1a, 2, 0x10, 2], &good), "later than version 2"),
        (one(&[], &good), "number of data files"),
        (one(HEADER, &[0x08, 1, 0x18, 1, 0x28, 4]), "'w' refers to the nonexistent data file 1"),
        (one(HEADER, &[0x08, 0x7f, 0x28, 4]), "unknown data type"),
        (one(HEADER, &good), "wrong checksum of the tensor"),
        // 2^40 floats in four bytes.
        (
            one(HEADER, &[&[0x08, 1, 0x12, 9, 0x12, 7, 0x08][..], &varint(1 << 40), &[0x28, 4]].concat()),
            "tensor 'w'",
        ),
        // 4 bytes at 2^62.
        (
            one(HEADER, &[&[0x08, 1, 0x20][..], &varint(1 << 62), &[0x28, 4]].concat()),
            "extend past the end of the file",
        ),
        // 2^20 strings in four bytes.
        (
            one(HEADER, &[&[0x08, 7, 0x12, 6, 0x12, 4, 0x08][..], &varint(1 << 20), &[0x28, 4]].concat()),
            "is truncated",
        ),
        // A tensor whose listed parts do not exist.
        (
            one(HEADER, &[0x08, 1, 0x12, 4, 0x12, 2, 0x08, 4, 0x3a, 4, 0x0a, 2, 0x10, 4]),
            "part at [0] is missing",
        ),
        (
            one(HEADER, &[0x08, 1, 0x12, 4, 0x12, 2, 0x08, 4, 0x3a, 4, 0x0a, 2, 0x10, 3]),
            "do not cover the tensor",
        ),
    ] {
        let message = refusal(&copy, &index, &[0; 4]);
        assert!(message.contains(expected), "{message}");
    }
    // Keys out of order, and a key that shares more than there is.
    let unordered = table(&block(&[(0, b"", HEADER), (0, b"b", &good), (0, b"a", &good)]), 0);
    assert!(refusal(&copy, &unordered, &[0; 4]).contains("not sorted"));
    let shared = table(&block(&[(0, b"", HEADER), (3, b"b", &good)]), 0);
    assert!(refusal(&copy, &shared, &[0; 4]).contains("truncated"));
}

/// A key of a megabyte that a thousand others share takes no gigabyte.
#[test]
fn shared_keys_are_bounded() {
    let copy = Folder::new("keys");
    let long = vec![b'k'; 1 << 20];
    let numbers: Vec<[u8; 2]> = (1..1000u16).map(u16::to_be_bytes).collect();
    let mut entries: Vec<(usize, &[u8], &[u8])> = vec![(0, b"", HEADER), (0, &long, &[])];
    entries.extend(numbers.iter().map(|number| (1 << 20, &number[..], &[][..])));
    assert!(refusal(&copy, &table(&block(&entries), 0), &[]).contains("too many entries"));
}

/// Tensors share the mapped file: two of them lie as far apart in memory as in the file.
#[test]
fn tensors_are_not_copied() {
    let checkpoint = Checkpoint::open(&data().join("v2_sharded/model")).expect("a checkpoint");
    let address = |name: &str| {
        let (_, literal) = checkpoint.tensor(name).expect("undamaged").expect("there");
        literal.bytes().as_ptr() as usize
    };
    assert_eq!(address("layer1/steps") - address("layer1/kernel"), 24);
    assert_eq!(address("layer1/steps"), address("layer1/steps"));
}

/// A version 1 file of one tensor that claims more elements than it has, or more than memory holds.
#[test]
fn elements_that_are_not_there_are_refused() {
    let copy = Folder::new("claims");
    let field =
        |number: u8, bytes: &[u8]| [&[number << 3 | 2][..], &varint(bytes.len() as u64), bytes].concat();
    let head = |data_type: u8, size: u64| {
        let shape = field(2, &field(2, &[&[0x08][..], &varint(size)].concat()));
        let meta = [field(1, b"w"), shape, vec![0x18, data_type], field(4, &[])].concat();
        field(1, &field(1, &meta))
    };
    let tensor = |elements: &[u8]| field(2, &[field(1, b"w"), field(2, &[]), field(3, elements)].concat());
    let read_one = |head: &[u8], tensor: &[u8]| {
        let file = table(&block(&[(0, b"", head), (0, b"w", tensor)]), 0);
        std::fs::write(copy.0.join("model"), file).expect("written");
        read(&copy.0.join("model"))
    };
    let floats = field(5, &[0, 0, 0x20, 0x40, 0, 0, 0x80, 0xbf]);
    let found = read_one(&head(1, 2), &tensor(&floats)).expect("two floats");
    let expected = (DataType::Float, vec![2], [2.5f32, -1.0].iter().flat_map(|v| v.to_le_bytes()).collect());
    assert_eq!(found, BTreeMap::from([("w".to_owned(), expected)]));
    for (head, tensor, expected) in [
        (head(1, 3), tensor(&floats), "fewer elements"),
        (head(1, 1 << 40), tensor(&floats), "fewer elements"),
        (head(7, 3), tensor(&field(8, b"one")), "number of strings does not match"),
        (head(7, 1 << 40), tensor(&[]), "number of strings does not match"),
        (
            head(1, 2),
            field(2, &[field(1, b"w"), field(2, &vec![0; 9 << 10])].concat()),
            "too many dimensions",
        ),
        (field(1, &vec![0; 9 << 20]), tensor(&floats), "larger than the limit of 8 MiB"),
        // 12 million empty strings.
        (head(7, 1), tensor(&b"\x42\0".repeat(12 << 20)), "MiB"),
    ] {
        let error = read_one(&head, &tensor).expect_err("wrong").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
