//! `run --jit`: clusters, the graphs that are shown on the way, and the cache of compiled clusters under faults.

use crate::support::{refuse, succeed, tfcompile};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const GRAPH: &str = r#"
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: 3 } dim { size: 3 } } } } }
    node { name: "a" op: "Tanh" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "b" op: "MatMul" input: "a" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "c" op: "Exp" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "d" op: "AddV2" input: "c" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
"#;

fn run(directory: &Path, level: &str, flags: &str) -> Command {
    let mut command = start(directory, flags);
    command.args(["--jit", level, "-q"]);
    command
}

/// The same with clusters, and it tells what it did.
fn loud(directory: &Path, flags: &str) -> Command {
    let mut command = start(directory, flags);
    command.args(["--jit", "on"]);
    command
}

fn start(directory: &Path, flags: &str) -> Command {
    fs::write(directory.join("graph.pbtxt"), GRAPH).expect("writable");
    let mut command = tfcompile(directory);
    command.args(["run", "graph.pbtxt", "--fetch", "d", "--random", "7", "--target-cpu", "x86-64-v3"]);
    command.env("TF_XLA_FLAGS", flags).env("TF_DUMP_GRAPH_PREFIX", "shown");
    command
}

fn printed(command: &mut Command) -> String {
    String::from_utf8(succeed(command).stdout).expect("UTF-8")
}

#[test]
fn clusters_compute_what_nodes_do() {
    let place = tempfile::tempdir().expect("a directory");
    let alone = printed(&mut run(place.path(), "off", ""));
    assert!(alone.contains("d:0"), "{alone}");
    for level in ["on", "1", "2"] {
        assert_eq!(printed(&mut run(place.path(), level, "")), alone, "--jit {level}");
    }
    assert!(!place.path().join("shown").exists());
    printed(&mut run(place.path(), "on", "--tf_xla_clustering_debug"));
    let shown =
        fs::read_to_string(place.path().join("shown/mark_for_compilation_annotated.pbtxt")).expect("shown");
    assert!(shown.contains("\"cluster_0/b\"") && shown.contains("\"unclustered/x\""), "{shown}");
    // Larger than all there is.
    printed(&mut run(place.path(), "on", "--tf_xla_clustering_debug --tf_xla_min_cluster_size=5"));
    let shown =
        fs::read_to_string(place.path().join("shown/mark_for_compilation_annotated.pbtxt")).expect("shown");
    assert!(!shown.contains("cluster_0/"), "{shown}");
    let text = refuse(&mut run(place.path(), "on", "--tf_xla_min_cluster_sice=5"), place.path());
    assert!(text.contains("Unknown flag in TF_XLA_FLAGS: --tf_xla_min_cluster_sice"), "{text}");
    let text = refuse(&mut run(place.path(), "on", "--tf_xla_ops_to_cluster=NoSuchOp"), place.path());
    assert!(
        text.contains("The operation 'NoSuchOp' passed to --tf_xla_ops_to_cluster is not supported by XLA."),
        "{text}"
    );
}

#[test]
fn a_cache_under_faults_changes_no_result() {
    let place = tempfile::tempdir().expect("a directory");
    let flags = "--tf_xla_persistent_cache_directory=kept";
    let kept = place.path().join("kept");
    let wanted = printed(&mut run(place.path(), "on", ""));
    let right =
        |flags: &str, what: &str| assert_eq!(printed(&mut run(place.path(), "on", flags)), wanted, "{what}");
    let entries =
        || -> Vec<_> { fs::read_dir(&kept).expect("readable").flatten().map(|file| file.path()).collect() };
    right(flags, "nothing is kept yet");
    assert!(!entries().is_empty());
    right(flags, "what is kept is taken");
    // The cluster is taken whole: nothing is compiled in the second process.
    let kernels = |flags: &str| {
        let mut command = loud(place.path(), flags);
        let text = String::from_utf8(succeed(command.args(["--steps", "2"])).stderr).expect("UTF-8");
        let (_, rest) = text.split_once(" steps/s behind the first, ").unwrap_or_else(|| panic!("{text}"));
        rest.split(' ').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    assert_eq!((kernels(""), kernels(flags)), (1, 0));
    for entry in entries() {
        let bytes = fs::read(&entry).expect("readable");
        fs::write(&entry, &bytes[..bytes.len() / 2]).expect("writable");
    }
    right(flags, "files are cut");
    for entry in entries() {
        let mut bytes = fs::read(&entry).expect("readable");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x40;
        fs::write(&entry, bytes).expect("writable");
    }
    right(flags, "a bit is another");
    let before = entries().len();
    right(
        &format!("{flags} --tf_xla_persistent_cache_read_only --tf_xla_persistent_cache_prefix=other"),
        "only read",
    );
    assert_eq!(entries().len(), before);
    // A directory that only can be read, as far as whoever runs this is bound by its rights.
    let rights = |mode| fs::set_permissions(&kept, fs::Permissions::from_mode(mode)).expect("it is ours");
    rights(0o555);
    right(flags, "it can be read");
    right(&format!("{flags} --tf_xla_persistent_cache_prefix=more"), "it can be read, and holds nothing");
    rights(0o755);
    fs::write(place.path().join("file"), "").expect("writable");
    right("--tf_xla_persistent_cache_directory=file/below", "no such place");
    fs::remove_dir_all(&kept).expect("removable");
    let quiet = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
    };
    let mut both: Vec<_> = (0..2).map(|_| quiet(&mut run(place.path(), "on", flags))).collect();
    assert!(both.iter_mut().all(|process| process.wait().expect("it ends").success()));
    right(flags, "two wrote at once");
    for delay in [5, 20, 50, 100, 200] {
        let mut process = quiet(&mut run(place.path(), "on", flags));
        std::thread::sleep(Duration::from_millis(delay));
        process.kill().expect("it is ours");
        process.wait().expect("it ends");
        right(flags, "one was killed");
    }
}
