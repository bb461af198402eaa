//! Ops that save and restore: both checkpoint versions, slices of tensors, and strings.

use crate::graph::{F, Graph, I, failure, floats, shape, strings, ty, types};
use session::Value;
use shape::Literal;
use std::path::Path;
use tf::DataType;
use tf::checkpoint::{self, Checkpoint};
use tf::proto::attr_value::Value as Attr;

fn vector(values: &[f32]) -> Literal {
    Literal::from_elements(&[values.len() as i64], values)
}

#[test]
fn checkpoints_are_written_and_read_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let prefix = directory.path().join("model").display().to_string();
    let mut g = Graph::default();
    g.string("prefix", &prefix).constant("start", vector(&[1.5, 2.5])).constant("zero", vector(&[0.0, 0.0]));
    g.def.node.push(strings("names", &[2], &["w", "step"]));
    g.def.node.push(strings("slices", &[2], &["", ""]));
    g.add("w", "VariableV2", &[], &[("dtype", ty(F)), ("shape", shape(&[2]))]);
    g.constant("step", Literal::scalar(41i64));
    g.add("init", "Assign", &["w", "start"], &[("T", ty(F))]);
    g.add("clear", "Assign", &["w", "zero"], &[("T", ty(F))]);
    let both = [("dtypes", types(&[F, DataType::Int64]))];
    g.add("save", "SaveV2", &["prefix", "names", "slices", "w", "step"], &both);
    g.add("restore", "RestoreV2", &["prefix", "names", "slices"], &both);
    g.add("back", "Assign", &["w", "restore"], &[("T", ty(F))]);
    let session = g.session();
    let message = failure(&session, &[], &["restore:1"], &[]);
    assert!(message.contains("restore"), "{message}");
    session.run(&[], &[], &["init"]).expect("initialized");
    session.run(&[], &[], &["save"]).expect("saved");
    session.run(&[], &[], &["clear"]).expect("cleared");
    session.run(&[], &[], &["back"]).expect("restored");
    assert_eq!(session.variable_value("w").expect("known"), Some(vector(&[1.5, 2.5])));
    let results = session.run(&[], &["restore:1"], &[]).expect("read");
    assert_eq!(results[0], Literal::scalar(41i64));
}

/// A graph with arrays, strings, the path of a file, and the two halves of a matrix.
fn saving(path: &Path) -> Graph {
    let mut g = Graph::default();
    g.string("path", &path.display().to_string());
    g.constant("w", Literal::from_elements(&[2, 2], &[1f32, 2.0, 3.0, 4.0]));
    g.constant("left", Literal::from_elements(&[2, 1], &[1f32, 3.0]));
    g.constant("right", Literal::from_elements(&[2, 2], &[5f32, 6.0, 7.0, 8.0]));
    g.def.node.push(strings("words", &[3], &["", "one", "two words"]));
    g.def.node.push(strings("names", &[3], &["w", "words", "step"]));
    g.constant("step", Literal::scalar(-41i64));
    g.def.node.push(strings("parts", &[2], &["m", "m"]));
    g.def.node.push(strings("places", &[2], &["2 3 -:0,1", "2 3 -:1,2"]));
    g
}

/// Fetches strings.
fn words(g: &Graph, fetch: &str) -> Vec<String> {
    let results = g.session().run_values(&[], &[fetch], &[]).expect("run");
    let Value::Strings(results) = &results[0] else { panic!("{results:?}") };
    results.strings.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

#[test]
fn the_first_version_saves_and_restores_one_tensor_per_node() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("model.ckpt");
    let mut g = saving(&path);
    let three = types(&[F, DataType::String, DataType::Int64]);
    g.add("save", "Save", &["path", "names", "w", "words", "step"], &[("T", three)]);
    for (name, data_type) in [("w", F), ("words", DataType::String), ("step", DataType::Int64), ("none", F)] {
        g.string(&format!("{name}/name"), name);
        g.add(
            &format!("{name}/back"),
            "Restore",
            &["path", &format!("{name}/name")],
            &[("dt", ty(data_type))],
        );
    }
    g.string("bottom", "2 2 1,1:-");
    g.add("row", "RestoreSlice", &["path", "w/name", "bottom"], &[("dt", ty(F))]);
    g.add("wrong", "Restore", &["path", "step/name"], &[("dt", ty(I))]);
    let session = g.session();
    let message = failure(&session, &[], &["w/back"], &[]);
    assert!(message.contains("'w/back'") && message.contains("doesn't exist"), "{message}");
    session.run(&[], &[], &["save"]).expect("saved");
    assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 1, "one file");
    assert_eq!(floats(&session, &[], "w/back"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(floats(&session, &[], "row"), [3.0, 4.0]);
    assert_eq!(words(&g, "words/back"), ["", "one", "two words"]);
    assert_eq!(session.run(&[], &["step/back"], &[]).expect("read")[0], Literal::scalar(-41i64));
    let message = failure(&session, &[], &["none/back"], &[]);
    assert!(message.contains("'none/back'") && message.contains("Key none not found"), "{message}");
    let message = failure(&session, &[], &["wrong"], &[]);
    assert!(message.contains("expected int32, but the checkpoint has int64"), "{message}");
}

#[test]
fn parts_of_a_tensor_are_saved_and_restored_as_a_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    for (version, save) in [(1, "SaveSlices"), (2, "SaveV2")] {
        let path = directory.path().join(format!("model{version}"));
        let mut g = saving(&path);
        let attribute = if version == 1 { "T" } else { "dtypes" };
        let both = [(attribute, types(&[F, F]))];
        g.add("save", save, &["path", "parts", "places", "left", "right"], &both);
        g.add("twice", save, &["path", "parts", "same", "left", "left"], &both);
        g.add("large", save, &["path", "parts", "places", "left", "left"], &both);
        g.def.node.push(strings("same", &[2], &["2 3 -:0,1", "2 3 -:0,1"]));
        g.def.node.push(strings("all", &[1], &["m"]));
        g.def.node.push(strings("middle", &[1], &["2 3 1,1:0,2"]));
        g.def.node.push(strings("whole", &[1], &[""]));
        let one = [("dtypes", types(&[F]))];
        g.add("back", "RestoreV2", &["path", "all", "whole"], &one);
        g.add("part", "RestoreV2", &["path", "all", "middle"], &one);
        let session = g.session();
        let message = failure(&session, &[], &[], &["twice"]);
        assert!(message.contains("'twice'") && message.contains("'m' is saved twice"), "{message}");
        let message = failure(&session, &[], &[], &["large"]);
        assert!(message.contains("the sizes of the part '2 3 -:1,2' differ"), "{message}");
        assert!(!Checkpoint::exists(&path), "a rejected save must leave no files");
        session.run(&[], &[], &["save"]).expect("saved");
        assert_eq!(floats(&session, &[], "back"), [1.0, 5.0, 6.0, 3.0, 7.0, 8.0]);
        assert_eq!(floats(&session, &[], "part"), [3.0, 7.0]);
    }
}

/// Merges checkpoints like those of several savers: each has a part of one tensor.
#[test]
fn checkpoints_of_shards_are_merged_part_by_part() {
    let directory = tempfile::tempdir().expect("a directory");
    let shard = |k: usize| directory.path().join(format!("part{k}"));
    let mut g = saving(&shard(0));
    g.string("other", &shard(1).display().to_string());
    let merged = directory.path().join("merged");
    g.string("destination", &merged.display().to_string());
    let prefixes = [0, 1].map(|k| shard(k).display().to_string());
    g.def.node.push(strings("prefixes", &[2], &[&prefixes[0], &prefixes[1]]));
    let mut save =
        |name: &str, path: &str, names: [&str; 2], place: &str, inputs: [&str; 2], of: DataType| {
            g.def.node.push(strings(&format!("{name}/names"), &[2], &names));
            g.def.node.push(strings(&format!("{name}/places"), &[2], &[place, ""]));
            let (names, places) = (format!("{name}/names"), format!("{name}/places"));
            let types = [("dtypes", types(&[F, of]))];
            g.add(name, "SaveV2", &[path, &names, &places, inputs[0], inputs[1]], &types);
        };
    save("one", "path", ["m", "words"], "2 3 -:0,1", ["left", "words"], DataType::String);
    save("two", "other", ["m", "w"], "2 3 -:1,2", ["right", "w"], F);
    g.add("merge", "MergeV2Checkpoints", &["prefixes", "destination"], &[("delete_old_dirs", Attr::B(true))]);
    let session = g.session();
    session.run(&[], &[], &["one", "two"]).expect("saved");
    session.run(&[], &[], &["merge"]).expect("merged");
    let file = Checkpoint::open(&merged).expect("a checkpoint");
    assert_eq!(file.names().collect::<Vec<_>>(), ["m", "w", "words"]);
    let whole = file.value("m").expect("undamaged").expect("there");
    let expected = Literal::from_elements(&[2, 3], &[1f32, 5.0, 6.0, 3.0, 7.0, 8.0]);
    assert_eq!(whole, checkpoint::Value::Array(F, expected));
    assert!(matches!(file.value("words"), Ok(Some(checkpoint::Value::Strings(..)))));
    assert!(!Checkpoint::exists(&shard(0)) && !Checkpoint::exists(&shard(1)));
}
