//! The cache of generated code never changes objects, whatever the directory contains and whichever
//! processes write there. `support::tfcompile` turns it off, so that tests have no home directory.

use crate::support::{refuse, root, succeed, tfcompile};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Builds the matrix product of the original's own tests.
fn build(directory: &Path, output: &str, flags: &[&str]) -> Command {
    let case = root().join("tests/oracle/tfcompile_tests/tfmatmul");
    let mut command = tfcompile(directory);
    command.arg("build").arg(case.join("graph.pb")).arg("--config").arg(case.join("config.pbtxt"));
    command.args(["--target-triple", "x86_64-pc-linux", "--target-cpu", "x86-64-v3"]);
    command.args(["--name", "product", "-v", "-o", output]).args(flags);
    command
}

fn printed(command: &mut Command) -> String {
    let output = succeed(command);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    text(output.stdout) + &text(output.stderr)
}

#[test]
fn the_second_build_reads_the_code_from_the_directory() {
    let place = tempfile::tempdir().expect("a directory");
    let object = |output: &str| fs::read(place.path().join(output).join("product.o")).expect("written");
    let text = printed(&mut build(place.path(), "plain", &[]));
    assert!(!text.contains("from the cache"), "{text}");
    let flags = ["--kernel-cache", "cache/subdirectory"];
    let text = printed(&mut build(place.path(), "first", &flags));
    assert!(text.contains("0 of 1 units from the cache"), "{text}");
    let text = printed(&mut build(place.path(), "second", &flags));
    assert!(text.contains("1 of 1 units from the cache"), "{text}");
    assert!(object("first") == object("plain") && object("second") == object("plain"));

    let entries: Vec<_> =
        fs::read_dir(place.path().join("cache/subdirectory")).expect("readable").flatten().collect();
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    fs::write(entry.path(), b"tfcunit1 and nonsense").expect("writable");
    let text = printed(&mut build(place.path(), "third", &flags));
    assert!(text.contains("0 of 1 units from the cache"), "{text}");
    let text = printed(&mut build(place.path(), "fourth", &flags));
    assert!(text.contains("1 of 1 units from the cache"), "{text}");
    assert!(object("third") == object("plain") && object("fourth") == object("plain"));
}

#[test]
fn processes_share_a_directory() {
    let place = tempfile::tempdir().expect("a directory");
    let mut running = Vec::new();
    for number in 0..4 {
        let mut command = build(place.path(), &format!("out{number}"), &["--kernel-cache", "cache"]);
        running.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started"));
    }
    for mut process in running {
        assert!(process.wait().expect("ended").success());
    }
    let object =
        |number: i32| fs::read(place.path().join(format!("out{number}/product.o"))).expect("written");
    assert!((1..4).all(|number| object(number) == object(0)));
    let names = fs::read_dir(place.path().join("cache")).expect("readable").flatten();
    let names: Vec<_> = names.map(|file| file.file_name()).collect();
    assert!(matches!(&names[..], [name] if name.len() == 64), "{names:?}");
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error() {
    let place = tempfile::tempdir().expect("a directory");
    fs::write(place.path().join("file"), "").expect("writable");
    let text = refuse(&mut build(place.path(), "out", &["--kernel-cache", "file"]), place.path());
    assert!(
        text.contains("cannot write to the kernel cache 'file'") && text.contains("--kernel-cache"),
        "{text}"
    );
}

/// Content in place of an entry, by accident or not.
#[test]
fn malformed_entries_are_misses() {
    let place = tempfile::tempdir().expect("a directory");
    let cache = place.path().join("cache");
    let object = |output: &str| fs::read(place.path().join(output).join("product.o")).expect("written");
    let compile = |output: &str| printed(&mut build(place.path(), output, &["--kernel-cache", "cache"]));
    compile("first");
    let entries: Vec<_> = fs::read_dir(&cache).expect("readable").flatten().collect();
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    let path = entry.path();
    let whole = fs::read(&path).expect("readable");
    let huge = || {
        let file = fs::File::create(&path).expect("writable");
        file.set_len(1 << 40).expect("a sparse file");
    };
    let pipe = || assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    let endless = || std::os::unix::fs::symlink("/dev/zero", &path).expect("a link");
    let directory = || fs::create_dir(&path).expect("a directory");
    let cut = || fs::write(&path, &whole[..whole.len() / 2]).expect("writable");
    let empty = || fs::write(&path, b"").expect("writable");
    let cases: [(&str, &dyn Fn()); 6] = [
        ("huge", &huge),
        ("pipe", &pipe),
        ("endless", &endless),
        ("directory", &directory),
        ("cut", &cut),
        ("empty", &empty),
    ];
    for (name, make) in cases {
        if fs::symlink_metadata(&path).is_ok_and(|m| m.is_dir()) {
            fs::remove_dir(&path).expect("removable")
        } else {
            drop(fs::remove_file(&path))
        }
        make();
        let text = compile(name);
        assert!(text.contains("0 of 1 units from the cache"), "{name}: {text}");
        assert!(object(name) == object("first"), "{name}");
    }
}

/// Swapped entries are complete but contain the wrong code.
#[test]
fn swapped_entries_are_misses() {
    let place = tempfile::tempdir().expect("a directory");
    let cache = place.path().join("cache");
    let object = |output: &str| fs::read(place.path().join(output).join("product.o")).expect("written");
    let flags: [&[&str]; 2] =
        [&["--kernel-cache", "cache"], &["--kernel-cache", "cache", "--target-features=-fma"]];
    for (output, flags) in ["a", "b"].iter().zip(flags) {
        printed(&mut build(place.path(), output, flags));
    }
    let paths: Vec<_> = fs::read_dir(&cache).expect("readable").flatten().map(|entry| entry.path()).collect();
    let [one, other] = &paths[..] else { panic!("{paths:?}") };
    assert!(fs::read(one).expect("readable") != fs::read(other).expect("readable"));
    let aside = place.path().join("aside");
    fs::rename(one, &aside).and_then(|()| fs::rename(other, one)).expect("they exist");
    fs::rename(&aside, other).expect("it exists");
    for ((before, after), flags) in ["a", "b"].iter().zip(["c", "d"]).zip(flags) {
        let text = printed(&mut build(place.path(), after, flags));
        assert!(text.contains("0 of 1 units from the cache"), "{text}");
        assert!(object(after) == object(before), "{after}");
    }
}

/// A build with the user's cache in `directory/home`.
fn with_default(directory: &Path, output: &str, flags: &[&str]) -> Command {
    let mut command = build(directory, output, flags);
    command.env_remove("TFCOMPILE_KERNEL_CACHE").env("XDG_CACHE_HOME", directory.join("home"));
    command
}

#[test]
fn builds_use_the_cache_of_the_user() {
    let place = tempfile::tempdir().expect("a directory");
    let object = |output: &str| fs::read(place.path().join(output).join("product.o")).expect("written");
    let entries = || fs::read_dir(place.path().join("home/tfcompile/kernels")).expect("readable").count();
    let text = printed(&mut with_default(place.path(), "off", &["--no-kernel-cache"]));
    assert!(!text.contains("from the cache") && !place.path().join("home").exists(), "{text}");
    let text = printed(&mut with_default(place.path(), "first", &[]));
    assert!(text.contains("0 of 1 units from the cache"), "{text}");
    assert_eq!(entries(), 1);
    let text = printed(&mut with_default(place.path(), "second", &[]));
    assert!(text.contains("1 of 1 units from the cache"), "{text}");
    assert!(object("first") == object("off") && object("second") == object("off"));
    // Other instructions would be a second entry, but one is already too many.
    let flags = ["--target-features=-fma", "--kernel-cache-limit=0"];
    printed(&mut with_default(place.path(), "third", &flags));
    assert_eq!(entries(), 0);
    let mut command = with_default(place.path(), "fourth", &[]);
    command.env("TFCOMPILE_KERNEL_CACHE_LIMIT", "much");
    let text = refuse(&mut command, place.path());
    assert!(text.contains("TFCOMPILE_KERNEL_CACHE_LIMIT=much: expected the maximum size"), "{text}");
}

/// Builds use the cache without being asked, so its failure is no error.
#[test]
fn a_home_that_cannot_be_written_is_ignored() {
    let place = tempfile::tempdir().expect("a directory");
    let object = |output: &str| fs::read(place.path().join(output).join("product.o")).expect("written");
    printed(&mut with_default(place.path(), "plain", &["--no-kernel-cache"]));
    fs::write(place.path().join("file"), "").expect("writable");
    let homes = [("below-a-file", place.path().join("file/home")), ("nowhere", "/proc/none".into())];
    for (output, home) in homes {
        // The first build cannot store what the second one could read.
        for _ in 0..2 {
            let mut command = with_default(place.path(), output, &[]);
            let text = printed(command.env("XDG_CACHE_HOME", &home));
            assert!(text.contains("0 of 1 units from the cache"), "{text}");
            assert!(object(output) == object("plain"));
        }
    }
    let mut command = with_default(place.path(), "homeless", &[]);
    printed(command.env_remove("XDG_CACHE_HOME").env_remove("HOME"));
    assert!(object("homeless") == object("plain"));
}

/// The original's flags have none for the cache.
#[test]
fn the_original_command_line_writes_the_same_bytes() {
    let place = tempfile::tempdir().expect("a directory");
    let case = root().join("tests/oracle/tfcompile_tests/tfmatmul");
    let compile = |name: &str, cache: &str| {
        let mut command = tfcompile(place.path());
        command.arg(format!("--graph={}", case.join("graph.pb").display()));
        command.arg(format!("--config={}", case.join("config.pbtxt").display()));
        command.args(["--cpp_class=Product", "--entry_point=product", "--target_triple=x86_64-pc-linux"]);
        command.args([format!("--out_function_object={name}.o"), format!("--out_header={name}.h")]);
        command.arg(format!("--out_metadata_object={name}_metadata.o")).env("TFCOMPILE_KERNEL_CACHE", cache);
        succeed(&mut command);
        ["o", "h"].map(|kind| fs::read(place.path().join(format!("{name}.{kind}"))).expect("written"))
    };
    let plain = compile("plain", "");
    assert!(!place.path().join("cache").exists());
    assert!(compile("cold", "cache") == plain);
    assert!(fs::read_dir(place.path().join("cache")).expect("readable").count() > 0);
    assert!(compile("warm", "cache") == plain);
}
