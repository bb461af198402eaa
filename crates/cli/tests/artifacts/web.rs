//! Modules for the web: their files, and their use in Node.

use crate::support::{refuse, root, succeed, tfcompile};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A graph whose first dimension has any size: `y = 2 x + w`, with a `w` of four numbers.
const GRAPH: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 4 } } } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value {
  tensor { dtype: DT_FLOAT tensor_shape { } float_val: 2 } } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value {
  tensor { dtype: DT_FLOAT tensor_shape { dim { size: 4 } } float_val: 1 float_val: 2 float_val: 3 float_val: 5 } } } }
node { name: "z" op: "Mul" input: "x" input: "two" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "AddV2" input: "z" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
"#;

/// Builds the graph.
fn build(directory: &Path, flags: &[&str]) {
    fs::write(directory.join("scale.pbtxt"), GRAPH).expect("written");
    succeed(tfcompile(directory).args(["build", "scale.pbtxt", "--dim", "batch=1..8"]).args(flags));
}

/// Runs a script in Node. Returns what it prints.
fn node(directory: &Path, script: &str) -> String {
    fs::write(directory.join("main.mjs"), script).expect("written");
    let mut command = Command::new("node");
    let output =
        succeed(command.args(["--experimental-wasm-relaxed-simd", "main.mjs"]).current_dir(directory));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_module_takes_batches_and_refuses_others() {
    let out = tempfile::tempdir().expect("a directory");
    build(out.path(), &["--target=wasm32"]);
    let declarations = fs::read_to_string(out.path().join("scale.d.ts")).expect("written");
    assert!(declarations.contains("/** f32[batch,4] */\n  readonly x: Float32Array;"), "{declarations}");
    let text = node(
        out.path(),
        r#"
        import { load } from "./scale.js";
        const model = await load();
        model.sizes.batch = 2;
        model.args.x.set([1, 2, 3, 4, 5, 6, 7, 8]);
        console.log(model.run().y.join(), model.shape("x").join(), model.shape("y").join());
        try { model.sizes.batch = 9; } catch (error) { console.log(error.name, error.message); }
        "#,
    );
    assert_eq!(text, "3,6,9,13,11,14,17,21 2,4 2,4\nRangeError batch is out of range: 1..8\n");
}

#[test]
fn a_module_describes_itself_if_asked_to() {
    let out = tempfile::tempdir().expect("a directory");
    build(out.path(), &["--target=wasm32"]);
    let message = refuse(tfcompile(out.path()).args(["inspect", "scale.wasm"]), out.path());
    assert!(message.contains("build it with --emit=wasm,metadata"), "{message}");
    build(out.path(), &["--target=wasm32", "--emit=wasm,metadata"]);
    let output = succeed(tfcompile(out.path()).args(["inspect", "scale.wasm"]));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("wasm32-unknown-unknown") && text.contains("f32[batch,4]"), "{text}");
    let script = r#"
        import { load } from "./scale.js";
        const model = await load();
        model.sizes.batch = 1;
        model.args.x.set([1, 2, 3, 4]);
        console.log(model.run().y.join());
        "#;
    assert_eq!(node(out.path(), script), "3,6,9,13\n");
}

#[test]
fn weights_in_a_file_arrive_as_a_stream_and_must_belong_to_the_program() {
    let out = tempfile::tempdir().expect("a directory");
    build(out.path(), &["--target=wasm32", "--constants=file"]);
    let text = node(
        out.path(),
        r#"
        import { readFileSync } from "node:fs";
        import { load } from "./scale.js";
        const arrived = [];
        const model = await load({ onProgress: (loaded, total) => arrived.push(`${loaded}/${total}`) });
        model.args.x.fill(1);
        console.log(model.run().y.subarray(0, 4).join(), arrived.join());
        const file = new Uint8Array(readFileSync("scale.constants"));
        const fails = async (bytes) => load({ constants: bytes }).catch((error) => console.log(error.message));
        await fails(file.subarray(0, file.length - 1));
        const other = file.slice();
        other[20] ^= 1;
        await fails(other);
        await fails(new Uint8Array(100));
        "#,
    );
    let size = fs::metadata(out.path().join("scale.constants")).expect("written").len();
    assert_eq!(
        text,
        format!(
            "3,4,5,7 {size}/{size}\nthe constants file is truncated: expected {size} bytes, got {}\n\
             the constants file belongs to another build of the program\n\
             the constants file is not one of tfcompile\n",
            size - 1
        )
    );
}

#[test]
fn a_failed_check_is_an_exception_with_its_message() {
    let out = tempfile::tempdir().expect("a directory");
    let graph = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value {
  tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 } } } }
node { name: "positive" op: "Greater" input: "x" input: "zero" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "check" op: "Assert" input: "positive" input: "x" attr { key: "T" value { list { type: DT_FLOAT } } } }
node { name: "y" op: "Sqrt" input: "x" input: "^check" attr { key: "T" value { type: DT_FLOAT } } }
"#;
    fs::write(out.path().join("root.pbtxt"), graph).expect("written");
    succeed(tfcompile(out.path()).args([
        "build",
        "root.pbtxt",
        "--target=wasm32",
        "--assert=report",
        "--shape=x=",
    ]));
    let text = node(
        out.path(),
        r#"
        import { load } from "./root.js";
        const model = await load();
        model.args.x[0] = 9;
        console.log(model.run().y[0]);
        model.args.x[0] = -9;
        try { model.run(); } catch (error) { console.log(error.message); }
        model.args.x[0] = 16;
        console.log(model.run().y[0]);
        "#,
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[2]), (3, "3", "4"), "{text}");
    assert!(lines[1].contains("check"), "{text}");
}

#[test]
fn a_module_needs_webassembly() {
    let out = tempfile::tempdir().expect("a directory");
    let cases = root().join("tests/oracle/tfcompile_tests/tfmatmul");
    let config = format!("--config={}", cases.join("config.pbtxt").display());
    let mut command = tfcompile(out.path());
    command.arg("build").arg(cases.join("graph.pb")).args([&config, "--name=product"]);
    let error = refuse(command.args(["--emit=wasm", "--target=x86-64"]), out.path());
    assert!(error.contains("modules for the web need WebAssembly") && error.contains("wasm32"), "{error}");
}

#[test]
fn relaxed_instructions_keep_nan_and_the_sign_of_zero() {
    let out = tempfile::tempdir().expect("a directory");
    let extremes = |ty: &str| {
        format!(
            r#"HloModule {ty}
ENTRY main {{
  x = {ty}[7] parameter(0)
  c = {ty}[7] constant({{1, 2, 3, 0, 0, 6, 7}})
  most = {ty}[7] maximum(x, c)
  least = {ty}[7] minimum(c, x)
  above = pred[7] compare(x, c), direction=GT
  or_x = {ty}[7] select(above, c, x)
  below = pred[7] compare(x, c), direction=LT
  or_c = {ty}[7] select(below, x, c)
  half = f32[7] convert(x)
  wide = f64[7] convert(half)
  limit = f64[7] constant({{1, 2, 3, 0, 0, 6, 7}})
  beyond = pred[7] compare(wide, limit), direction=GT
  or_wide = f64[7] select(beyond, limit, wide)
  ROOT all = ({ty}[7], {ty}[7], {ty}[7], {ty}[7], f64[7]) tuple(most, least, or_x, or_c, or_wide)
}}
"#
        )
    };
    for ty in ["f32", "f64"] {
        fs::write(out.path().join(format!("{ty}.hlo")), extremes(ty)).expect("written");
        succeed(tfcompile(out.path()).args(["build", &format!("{ty}.hlo"), "--target=wasm32-relaxed"]));
        let script = r#"
            import { load } from "./TYPE.js";
            const model = await load();
            Object.values(model.args)[0].set([NaN, 5, -1, -0, 0, NaN, 9]);
            const text = (value) => Object.is(value, -0) ? "-0" : `${value}`;
            const [most, least, ...selected] = Object.values(model.run());
            // Of zeros of both signs, either may be the maximum.
            for (const result of [most, least]) console.log(Array.from(result, String).join(" "));
            for (const result of selected) console.log(Array.from(result, text).join(" "));
            "#;
        assert_eq!(
            node(out.path(), &script.replace("TYPE", ty)),
            "NaN 5 3 0 0 NaN 9\n\
             NaN 2 -1 0 0 NaN 7\n\
             NaN 2 -1 -0 0 NaN 7\n\
             1 2 -1 0 0 6 7\n\
             NaN 2 -1 -0 0 NaN 7\n",
            "{ty}"
        );
    }
}

#[test]
fn threads_compute_the_same_bits() {
    let out = tempfile::tempdir().expect("a directory");
    let product = r#"HloModule product
ENTRY main {
  a = f32[256,300] parameter(0)
  b = f32[300,256] parameter(1)
  ROOT dot = f32[256,256] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"#;
    fs::write(out.path().join("product.hlo"), product).expect("written");
    succeed(tfcompile(out.path()).args(["build", "product.hlo", "--target=wasm32-threads"]));
    let text = node(
        out.path(),
        r#"
        import { load } from "./product.js";
        const results = [];
        for (const threads of [1, 3]) {
          const model = await load({ threads });
          const [a, b] = Object.values(model.args);
          a.forEach((_, index) => { a[index] = Math.sin(index); });
          b.forEach((_, index) => { b[index] = Math.cos(index); });
          for (let run = 0; run < 20; ++run) model.run();
          const result = Object.values(model.results)[0];
          let first = 0;
          for (let k = 0; k < 300; ++k) first += a[k] * b[256 * k];
          console.log(model.threads, Math.abs(result[0] - first) < 1e-4);
          results.push(result.slice());
          model.dispose();
        }
        console.log(results[0].every((value, index) => Object.is(value, results[1][index])));
        "#,
    );
    assert_eq!(text, "1 true\n3 true\ntrue\n");
}
