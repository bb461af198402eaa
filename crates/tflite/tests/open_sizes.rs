//! Sizes that a file leaves open.

use bytes::Bytes;
use npz::Archive;
use std::path::Path;
use tf::model::Foreign;
use tflite::Selection;

/// A model with a feed of the shape [1, 4], whose first size is open.
fn model() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tflite/outputs.npz");
    let mut archive =
        Archive::open(std::fs::read(path).expect("an archive").into(), 1 << 30).expect("an archive");
    archive.require_bytes("any_batch_1/model.tflite").expect("a model").to_vec()
}

/// The same model with both sizes open. The file has the number of sizes before them.
fn fully_open() -> Vec<u8> {
    let words = |words: [i32; 3]| words.map(i32::to_le_bytes).concat();
    let (from, to) = (words([2, -1, 4]), words([2, -1, -1]));
    let mut bytes = model();
    let places: Vec<usize> = (0..bytes.len() - 12).filter(|&at| bytes[at..at + 12] == from).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + 12].copy_from_slice(&to);
    }
    bytes
}

fn read(bytes: Vec<u8>, keeps_open: bool) -> Foreign {
    tflite::read(&Bytes::from(bytes), Selection { keeps_open, ..Selection::default() }).expect("a model")
}

fn sizes(model: &Foreign) -> Vec<i64> {
    let shape = model.config.feed[0].shape.as_ref().expect("a shape");
    shape.dim.iter().map(|dim| dim.size).collect()
}

#[test]
fn sizes_that_the_file_leaves_open_are_named_unless_the_caller_states_them() {
    let given = read(fully_open(), false);
    assert_eq!(sizes(&given), [1, 4]);
    let node = &given.config.feed[0].id.as_ref().expect("a tensor").node_name;
    assert_eq!(
        given.notes,
        [format!(
            "the file gives the feed '{node}' the sizes [1,4] and leaves [?,?] open; set them with --shape {node}=?,?, with \
             numbers for ?"
        )]
    );
    let open = read(fully_open(), true);
    assert_eq!(sizes(&open), [-1, -1]);
    assert!(open.notes.is_empty(), "{:?}", open.notes);
}

#[test]
fn an_open_batch_alone_has_the_size_of_the_file_without_a_note() {
    let given = read(model(), false);
    assert_eq!(sizes(&given), [1, 4]);
    assert!(given.notes.is_empty(), "{:?}", given.notes);
    assert_eq!(sizes(&read(model(), true)), [-1, 4]);
}
