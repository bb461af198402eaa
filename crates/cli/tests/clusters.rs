//! `run --jit`: clusters, dumps of their graphs, and faults of the cache of compiled clusters.

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

/// Runs with clusters and without `-q`.
fn verbose_run(directory: &Path, flags: &str) -> Command {
    let mut command = start(directory, flags);
    command.args(["--jit", "on"]);
    command
}

fn start(directory: &Path, flags: &str) -> Command {
    fs::write(directory.join("graph.pbtxt"), GRAPH).expect("writable");
    let mut command = tfcompile(directory);
    command.args(["run", "graph.pbtxt", "--fetch", "d", "--random", "7", "--target-cpu", "x86-64-v3"]);
    command.env("TF_XLA_FLAGS", flags).env("TF_DUMP_GRAPH_PREFIX", "graphs");
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
    assert!(!place.path().join("graphs").exists());
    printed(&mut run(place.path(), "on", "--tf_xla_clustering_debug"));
    let graph =
        fs::read_to_string(place.path().join("graphs/mark_for_compilation_annotated.pbtxt")).expect("dumped");
    assert!(graph.contains("\"cluster_0/b\"") && graph.contains("\"unclustered/x\""), "{graph}");
    // Larger than any cluster.
    printed(&mut run(place.path(), "on", "--tf_xla_clustering_debug --tf_xla_min_cluster_size=5"));
    let graph =
        fs::read_to_string(place.path().join("graphs/mark_for_compilation_annotated.pbtxt")).expect("dumped");
    assert!(!graph.contains("cluster_0/"), "{graph}");
    let text = refuse(&mut run(place.path(), "on", "--tf_xla_min_cluster_sice=5"), place.path());
    assert!(text.contains("Unknown flag in TF_XLA_FLAGS: --tf_xla_min_cluster_sice"), "{text}");
    let text = refuse(&mut run(place.path(), "on", "--tf_xla_ops_to_cluster=NoSuchOp"), place.path());
    assert!(
        text.contains("The operation 'NoSuchOp' passed to --tf_xla_ops_to_cluster is not supported by XLA."),
        "{text}"
    );
}

#[test]
fn faults_of_the_cache_change_no_result() {
    let place = tempfile::tempdir().expect("a directory");
    let flags = "--tf_xla_persistent_cache_directory=cache";
    let cache = place.path().join("cache");
    let expected = printed(&mut run(place.path(), "on", ""));
    let check = |flags: &str, what: &str| {
        assert_eq!(printed(&mut run(place.path(), "on", flags)), expected, "{what}")
    };
    let entries =
        || -> Vec<_> { fs::read_dir(&cache).expect("readable").flatten().map(|file| file.path()).collect() };
    check(flags, "the cache is empty");
    assert!(!entries().is_empty());
    check(flags, "the cache is used");
    // The cluster comes from the cache: the second process compiles nothing.
    let kernels = |flags: &str| {
        let mut command = verbose_run(place.path(), flags);
        let text = String::from_utf8(succeed(command.args(["--steps", "2"])).stderr).expect("UTF-8");
        let (_, rest) = text.split_once(" steps/s after the first, ").unwrap_or_else(|| panic!("{text}"));
        rest.split(' ').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    assert_eq!((kernels(""), kernels(flags)), (1, 0));
    for entry in entries() {
        let bytes = fs::read(&entry).expect("readable");
        fs::write(&entry, &bytes[..bytes.len() / 2]).expect("writable");
    }
    check(flags, "files are truncated");
    for entry in entries() {
        let mut bytes = fs::read(&entry).expect("readable");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x40;
        fs::write(&entry, bytes).expect("writable");
    }
    check(flags, "a bit is flipped");
    let before = entries().len();
    check(
        &format!("{flags} --tf_xla_persistent_cache_read_only --tf_xla_persistent_cache_prefix=other"),
        "the cache is read-only",
    );
    assert_eq!(entries().len(), before);
    // A directory that is not writable, unless the test runs with special privileges.
    let set_mode = |mode| fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).expect("the owner");
    set_mode(0o555);
    check(flags, "the directory is not writable");
    check(
        &format!("{flags} --tf_xla_persistent_cache_prefix=more"),
        "the directory is neither writable nor useful",
    );
    set_mode(0o755);
    fs::write(place.path().join("file"), "").expect("writable");
    check("--tf_xla_persistent_cache_directory=file/below", "the directory cannot exist");
    fs::remove_dir_all(&cache).expect("removable");
    let quiet =
        |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
    let mut both: Vec<_> = (0..2).map(|_| quiet(&mut run(place.path(), "on", flags))).collect();
    assert!(both.iter_mut().all(|process| process.wait().expect("ended").success()));
    check(flags, "two processes wrote concurrently");
    for delay in [5, 20, 50, 100, 200] {
        let mut process = quiet(&mut run(place.path(), "on", flags));
        std::thread::sleep(Duration::from_millis(delay));
        process.kill().expect("the test's own process");
        process.wait().expect("ended");
        check(flags, "a process was killed");
    }
}
