//! Tuning files: the choices that a build uses, and the ones that `--autotune` writes.

use crate::support::{refuse, root, succeed, tfcompile};
use std::path::Path;
use std::process::Command;

const KERNEL: &str = "dot f32[2,3]c1 f32[3,2]c0 -> f32[2,2]";
const OTHER: &str =
    "[riscv64 of nobody 32x16 fma l1=1 l2=2]\ndot x => tile=1x1,right=in-place,outer=rows,k-block=1\n";

/// Builds the matrix product of the original's own tests.
fn build(directory: &Path, flags: &[&str]) -> Command {
    let case = root().join("tests/oracle/tfcompile_tests/tfmatmul");
    let mut command = tfcompile(directory);
    command.arg("build").arg(case.join("graph.pb")).arg("--config").arg(case.join("config.pbtxt"));
    command.args(["--name", "product", "-o", "out"]).args(flags);
    command
}

fn printed(command: &mut Command) -> String {
    let output = succeed(command);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    text(output.stdout) + &text(output.stderr)
}

fn write(directory: &Path, machine: &str, candidate: &str) {
    let text = format!("tfcompile-tuning 1\n\n{OTHER}\n[{machine}]\n{KERNEL} => {candidate}\n");
    std::fs::write(directory.join("t.tuning"), text).expect("writable");
}

#[test]
fn a_build_uses_the_choices_of_the_file() {
    let place = tempfile::tempdir().expect("a directory");
    let flags =
        ["--target-triple", "x86_64-pc-linux", "--target-cpu", "x86-64-v3", "--tuning", "t.tuning", "-v"];
    let machine = "x86_64 x86-64-v3 16x32 fma l1=32768 l2=524288";
    let packed = "tile=2x1,right=packed,outer=panels,k-block=3";
    write(place.path(), machine, packed);
    let text = printed(&mut build(place.path(), &flags));
    assert!(text.contains(&format!("right packed on each call, as tuned: {packed}")), "{text}");
    assert!(!text.contains("ignored"), "{text}");
    // Choices for other machines have no effect, and unknown candidates are reported once.
    write(place.path(), &machine.replace("v3", "v4"), packed);
    let text = printed(&mut build(place.path(), &flags));
    assert!(!text.contains("as tuned") && !text.contains("ignored"), "{text}");
    write(place.path(), machine, "tile=77x1,right=packed,outer=panels,k-block=3");
    let text = printed(&mut build(place.path(), &flags));
    assert!(!text.contains("as tuned"), "{text}");
    assert!(text.contains("1 choices of the tuning file are unknown to this version of tfcompile"), "{text}");
    assert!(text.contains(KERNEL), "{text}");
}

#[test]
fn measured_choices_are_merged_and_used_later() {
    let place = tempfile::tempdir().expect("a directory");
    let table = || std::fs::read_to_string(place.path().join("t.tuning")).expect("written");
    write(place.path(), "x86_64 of nobody 16x16 l1=1 l2=2", "later");
    let flags = ["--target-cpu", "native", "--autotune=t.tuning", "--autotune-seconds", "0.3"];
    let text = printed(&mut build(place.path(), &flags));
    assert!(text.contains("autotune: 1 kernels measured") && text.contains("t.tuning"), "{text}");
    let first = table();
    assert!(first.contains(OTHER) && first.contains(&format!("{KERNEL} => later\n")), "{first}");
    assert_eq!(first.matches(KERNEL).count(), 2, "{first}");
    // The file now contains the kernel's choice.
    let text = printed(&mut build(place.path(), &flags));
    assert!(text.contains("autotune: 0 kernels measured"), "{text}");
    assert_eq!(table(), first);
    // It is used without measuring, with the same result every time.
    let object = || std::fs::read(place.path().join("out/product.o")).expect("written");
    let measured = object();
    let text = printed(&mut build(place.path(), &["--target-cpu", "native", "--tuning", "t.tuning", "-v"]));
    assert!(text.contains("as tuned: tile="), "{text}");
    assert_eq!(object(), measured);
}

#[test]
fn measuring_requires_this_machine() {
    let place = tempfile::tempdir().expect("a directory");
    for flags in [&["--autotune"][..], &["--autotune", "--target", "aarch64-linux"]] {
        let message = refuse(&mut build(place.path(), flags), place.path());
        assert!(message.contains("autotuning measures on this machine"), "{message}");
        assert!(message.contains("--target-cpu=native"), "{message}");
    }
    for seconds in ["nan", "-1", "1e9"] {
        let flags = ["--autotune", "--target-cpu", "native", &format!("--autotune-seconds={seconds}")];
        let message = refuse(&mut build(place.path(), &flags), place.path());
        assert!(message.contains("--autotune-seconds"), "{message}");
    }
}

#[test]
fn malformed_files_are_errors() {
    let place = tempfile::tempdir().expect("a directory");
    let message = refuse(&mut build(place.path(), &["--tuning", "t.tuning"]), place.path());
    assert!(message.contains("cannot read the tuning file 't.tuning'"), "{message}");
    for (bytes, expected) in [
        (&b"\x7fELF"[..], "expected the first line 'tfcompile-tuning 1'"),
        (b"\xff\xfe\x00", "is not valid UTF-8"),
        (b"tfcompile-tuning 1\n[m]\nbroken\n", "t.tuning:3:"),
        (b"tfcompile-tuning 1\nbroken => x\n", "t.tuning:2:"),
    ] {
        std::fs::write(place.path().join("t.tuning"), bytes).expect("writable");
        for flag in ["--tuning=t.tuning", "--autotune=t.tuning"] {
            let message = refuse(&mut build(place.path(), &[flag, "--target-cpu=native"]), place.path());
            assert!(message.contains(expected), "{message}");
        }
    }
}

#[test]
fn huge_and_meaningless_files_lead_to_short_errors() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("t.tuning");
    let huge = || std::fs::File::create(&file).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
    let fill = |text: String| std::fs::write(&file, text).expect("writable");
    let long = "x".repeat(1 << 20);
    let cases: [(&str, &dyn Fn(), &str); 6] = [
        ("t.tuning", &huge, "is larger than"),
        ("/dev/zero", &|| (), "it is a pipe or device"),
        (".", &|| (), "cannot read the tuning file"),
        ("/dev/null", &|| (), "it is a pipe or device"),
        ("t.tuning", &|| fill(format!("tfcompile-tuning 1\n[m]\n{long}\n")), "t.tuning:3:"),
        (
            "t.tuning",
            &|| fill(format!("tfcompile-tuning 1\n[m]\n{}", "a => b\n".repeat(1 << 20))),
            "duplicate kernel",
        ),
    ];
    for (name, make, expected) in cases {
        make();
        for flag in ["--tuning", "--autotune"] {
            let flag = format!("{flag}={name}");
            let message = refuse(&mut build(place.path(), &[&flag, "--target-cpu=native"]), place.path());
            assert!(message.contains(expected) && message.len() < 5000, "{flag}: {:.500}", message);
        }
    }
}

/// Choices that no version of the tool writes do not change the code and are reported once.
#[test]
fn choices_out_of_range_are_ignored() {
    let place = tempfile::tempdir().expect("a directory");
    let flags =
        ["--target-triple", "x86_64-pc-linux", "--target-cpu", "x86-64-v3", "--tuning", "t.tuning", "-v"];
    let machine = "x86_64 x86-64-v3 16x32 fma l1=32768 l2=524288";
    let object = || std::fs::read(place.path().join("out/product.o")).expect("written");
    printed(&mut build(place.path(), &flags[..4]));
    let plain = object();
    let long = "9".repeat(1 << 20);
    for candidate in [
        "tile=0x0,right=in-place,outer=rows,k-block=0",
        "tile=4294967296x1,right=in-place,outer=rows,k-block=3",
        "tile=-1x1,right=in-place,outer=rows,k-block=3",
        "tile=1x1,right=in-place,outer=rows,k-block=9223372036854775808",
        "tile=1x1,right=in-place,outer=rows,k-block=3,tile=2x2",
        "pixels=6x4,outer=pixels",
        "winograd=4",
        &format!("tile={long}x1,right=packed,outer=panels,k-block=3"),
        "\u{202e}\u{0}=>",
    ] {
        write(place.path(), machine, candidate);
        let text = printed(&mut build(place.path(), &flags));
        assert!(text.contains("1 choices of the tuning file are unknown"), "{candidate:.80}: {text:.2000}");
        assert!(object() == plain, "{candidate:.80}");
    }
}

#[test]
fn the_drop_in_command_accepts_the_flags_too() {
    let place = tempfile::tempdir().expect("a directory");
    let case = root().join("tests/oracle/tfcompile_tests/tfmatmul");
    let compile = |flags: &[&str]| {
        let mut command = tfcompile(place.path());
        command.arg(format!("--graph={}", case.join("graph.pb").display()));
        command.arg(format!("--config={}", case.join("config.pbtxt").display()));
        command.args(["--cpp_class=Product", "--target_cpu=native"]).args(flags);
        printed(&mut command)
    };
    compile(&["--autotune=t.tuning", "--autotune_seconds=0.2"]);
    let table = std::fs::read_to_string(place.path().join("t.tuning")).expect("written");
    assert!(table.contains(KERNEL), "{table}");
    let text = compile(&["--tuning=t.tuning", "--verbose"]);
    assert!(text.contains("as tuned: tile="), "{text}");
}

/// A batch of up to 9 rows has code for 1, 2, 4, and 8, and none for 9.
#[test]
fn the_sizes_of_a_batch_are_measured() {
    let place = tempfile::tempdir().expect("a directory");
    let placeholder = |name: &str| {
        format!(
            "node {{ name: \"{name}\" op: \"Placeholder\" attr {{ key: \"dtype\" value {{ type: DT_FLOAT }} }} }}\n"
        )
    };
    let product = "node { name: \"z\" op: \"MatMul\" input: \"x\" input: \"y\" \
                   attr { key: \"T\" value { type: DT_FLOAT } } }\n";
    let graph = [&placeholder("x"), &placeholder("y"), product].concat();
    let config = "feed { id { node_name: \"x\" } shape { dim { size: -1 name: \"rows\" } dim { size: 3 } } }\n\
                  feed { id { node_name: \"y\" } shape { dim { size: 3 } dim { size: 2 } } }\n\
                  fetch { id { node_name: \"z\" } }\ndimension { name: \"rows\" min: 1 max: 9 }\n";
    std::fs::write(place.path().join("graph.pbtxt"), graph).expect("writable");
    std::fs::write(place.path().join("config.pbtxt"), config).expect("writable");
    let mut command = tfcompile(place.path());
    command.args(["autotune", "graph.pbtxt", "--config", "config.pbtxt", "-o", "t.tuning", "--seconds", "1"]);
    succeed(&mut command);
    let table = std::fs::read_to_string(place.path().join("t.tuning")).expect("written");
    assert!(table.contains("dot f32[8,3]c1 f32[3,2]c0 -> f32[8,2]"), "{table}");
    assert!(!table.contains("[9,"), "{table}");
}
