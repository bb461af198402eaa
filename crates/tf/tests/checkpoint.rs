//! Checkpoints of every kind, against what TensorFlow reads from them (`data/make_checkpoints.py`).

use shape::Literal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tf::DataType;
use tf::checkpoint::{Bundle, Checkpoint, OBJECT_GRAPH_KEY, Value, write_v2};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/checkpoints")
}

/// What a tensor must be: type, sizes, bytes.
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
            ("3 4 1,2:-", "another shape than the tensor's [3, 5]"),
            ("3 5 1,2", "is not understood"),
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

/// Every byte of a checkpoint that TensorFlow writes is under a checksum or compared otherwise: whichever is changed,
/// reading all tensors is an error that names the file and the place.
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
            for length in 0..bytes.len() {
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
