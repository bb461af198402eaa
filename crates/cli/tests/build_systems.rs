//! Guarantees for build systems: dependency files, and outputs that are not rewritten.

use crate::support::{refuse, root, succeed, tfcompile};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("readable") {
        let path = entry.expect("readable").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("copied");
        }
    }
}

#[test]
fn a_depfile_names_all_outputs_and_inputs() {
    let out = tempfile::tempdir().expect("a directory");
    copy(&root().join("tests/saved_models/keras3"), &out.path().join("model"));
    let mut command = tfcompile(out.path());
    command.args(["build", "model", "--batch=1", "--name=m", "-q", "-o", "out", "--depfile=out/m.d"]);
    succeed(&mut command);
    let rule = fs::read_to_string(out.path().join("out/m.d")).expect("written");
    let (written, read) = rule.split_once(": ").expect("a rule");
    assert_eq!(written, "out/m.o out/m.h");
    for file in ["model/saved_model.pb", "model/variables/variables.index"] {
        assert!(read.split_whitespace().any(|word| word == file), "{file}: {rule}");
    }

    let oracle = root().join("tests/oracle/tfcompile_tests/tfadd_with_ckpt");
    let mut command = tfcompile(out.path());
    command.arg("build").arg(oracle.join("graph.pb")).arg("--config").arg(oracle.join("config.pbtxt"));
    command.arg("--checkpoint").arg(oracle.join("graph.ckpt"));
    succeed(command.args(["--name=add", "-q", "--depfile=add.d"]));
    let rule = fs::read_to_string(out.path().join("add.d")).expect("written");
    for file in ["graph.pb", "config.pbtxt", "graph.ckpt"] {
        assert!(rule.contains(&oracle.join(file).display().to_string()), "{file}: {rule}");
    }
}

#[test]
fn no_depfile_is_written_beside_a_failed_build() {
    let out = tempfile::tempdir().expect("a directory");
    fs::write(out.path().join("graph.pbtxt"), "node { name: 'x' op: 'NoSuchOp' }").expect("written");
    let mut command = tfcompile(out.path());
    command.args(["build", "graph.pbtxt", "--fetch=x", "-q", "--depfile=graph.d"]);
    refuse(&mut command, out.path());
}

/// Object format and machine in the first bytes of the files: ELF's e_machine, Mach-O's cputype,
/// COFF's Machine.
#[test]
fn objects_have_the_format_that_each_system_links() {
    for (triple, file, at, bytes) in [
        ("aarch64-linux-android", "layer.o", 0, &b"\x7fELF\x02\x01"[..]),
        ("aarch64-linux-android", "layer.o", 18, &[183, 0]),
        ("armv7a-linux-androideabi", "layer.o", 18, &[40, 0]),
        ("x86_64-linux-android", "layer.o", 18, &[62, 0]),
        ("arm64-apple-ios", "layer.o", 0, &[0xcf, 0xfa, 0xed, 0xfe, 0x0c, 0, 0, 1]),
        ("arm64-apple-macosx", "layer.o", 0, &[0xcf, 0xfa, 0xed, 0xfe, 0x0c, 0, 0, 1]),
        ("x86_64-pc-windows-msvc", "layer.obj", 0, &[0x64, 0x86]),
        ("aarch64-pc-windows-msvc", "layer.obj", 0, &[0x64, 0xaa]),
    ] {
        let out = tempfile::tempdir().expect("a directory");
        let artifacts = root().join("tests/artifacts");
        let mut command = tfcompile(out.path());
        command.arg("build").arg(artifacts.join("layer.pbtxt"));
        command.arg("--config").arg(artifacts.join("layer.config.pbtxt"));
        succeed(command.args(["-q", "--target-triple", triple]));
        let object = fs::read(out.path().join(file)).expect("written");
        assert_eq!(object[at..at + bytes.len()], *bytes, "{triple}");
    }
}

#[test]
fn unchanged_headers_keep_their_time() {
    let out = tempfile::tempdir().expect("a directory");
    let artifacts = root().join("tests/artifacts");
    let text = fs::read_to_string(artifacts.join("layer.pbtxt")).expect("a graph");
    let build = |graph: &str, flags: &[&str]| {
        fs::write(out.path().join("layer.pbtxt"), graph).expect("written");
        let mut command = tfcompile(out.path());
        command.args(["build", "layer.pbtxt", "--config"]).arg(artifacts.join("layer.config.pbtxt"));
        succeed(command.args(["-q", "--emit=obj,header,test"]).args(flags));
    };
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let age = || {
        for file in ["layer.o", "layer.h", "layer_test.c"] {
            let file = fs::File::options().write(true).open(out.path().join(file)).expect("exists");
            file.set_modified(long_ago).expect("set");
        }
    };
    let is_old = |file: &str| {
        fs::metadata(out.path().join(file)).expect("exists").modified().expect("a time") == long_ago
    };
    build(&text, &[]);
    assert!(out.path().join("include").is_dir());
    fs::remove_dir_all(out.path().join("include")).expect("removed");
    age();
    build(&text.replace("float_val: -2 ", "float_val: -30 "), &["--keep-unchanged", "--no-runtime-headers"]);
    assert!(is_old("layer.h") && is_old("layer_test.c") && !is_old("layer.o"));
    assert!(!out.path().join("include").exists());
    age();
    build(&text, &[]);
    assert!(!is_old("layer.h"), "without the flag, all files are written");
}
