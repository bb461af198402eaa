//! Tests of the entry function, names of arguments, rejected programs, and checks.

use shape::Literal;
use stablehlo::{CheckKind, Imported, import, import_each};

fn import_text(text: &str) -> Imported {
    import(&mlir::parse(text).expect("a text")).expect("a program")
}

fn message(text: &str) -> String {
    import(&mlir::parse(text).expect("a text")).expect_err("expected an error").message().to_owned()
}

#[test]
fn the_program_is_main_and_its_arguments_have_the_exporters_names() {
    let program = import_text(
        r#"module @jit_f {
  func.func private @double(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %x, %x : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func public @main(%arg0: tensor<2xf32>, %weight: tensor<2xf32>) -> (tensor<2xf32> {jax.result_info = "result['y'][0]"}, tensor<2xf32>) {
    %0 = call @double(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
    return %0, %weight : tensor<2xf32>, tensor<2xf32>
  }
}"#,
    );
    assert_eq!(program.interface.program_shape().parameter_names, ["arg0", "weight"]);
    assert_eq!(program.interface.result_names(), ["y_0", "result1"]);
    assert_eq!(program.module.name(), "jit_f");
    assert_eq!(program.module.computations().count(), 2, "the entry and its callee");
}

#[test]
fn loops_carry_captured_values() {
    let program = import_text(
        r#"func.func @main(%n: tensor<i32>, %step: tensor<i32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.while(%i = %zero) : tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %next = stablehlo.add %i, %step : tensor<i32>
    stablehlo.return %next : tensor<i32>
  }
  return %0 : tensor<i32>
}"#,
    );
    let text = program.module.to_text();
    assert!(
        text.contains("(s32[], s32[], s32[])"),
        "expected the counter, the limit, and the step in the state:\n{text}"
    );
}

#[test]
fn checks_are_results_after_those_of_the_program() {
    let text = r#"func.func @f() -> tensor<2xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  check.expect_almost_eq_const %0, dense<[1.0, 2.00005]> : tensor<2xf32>
  stablehlo.custom_call @check.expect_eq(%0, %0) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  return %0 : tensor<2xf32>
}
func.func @g() {
  func.return
}"#;
    let each = import_each(&mlir::parse(text).expect("a text")).expect("functions");
    assert_eq!(each.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["f", "g"]);
    let program = each[0].1.as_ref().expect("a program");
    let entry = program.module.entry_computation();
    assert_eq!(entry[entry.root()].operands().len(), 1 + 2 * 2);
    let kinds: Vec<CheckKind> = program.checks.iter().map(|check| check.kind).collect();
    assert_eq!(kinds, [CheckKind::AlmostEqual { tolerance: 1e-4 }, CheckKind::Equal]);
    let pair = [Literal::from_elements(&[2], &[1f32, 2.0]), Literal::from_elements(&[2], &[1f32, 2.00005])];
    assert!(program.checks[0].verify(&pair[0], &pair[1]).is_ok());
    let error = program.checks[1].verify(&pair[0], &pair[1]).expect_err("they differ");
    assert!(error.message().starts_with("4: the check fails at [1]"), "{error}");
}

#[test]
fn closeness_counts_representable_numbers() {
    let text = r#"func.func @f() {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  check.expect_close %0, %0, max_ulp_difference = 2 : tensor<f32>, tensor<f32>
  func.return
}"#;
    let program = import_text(text);
    let near = |steps: u32| Literal::scalar(f32::from_bits(1f32.to_bits() + steps));
    assert!(program.checks[0].verify(&near(2), &near(0)).is_ok());
    assert!(program.checks[0].verify(&near(3), &near(0)).is_err());
    assert!(program.checks[0].verify(&Literal::scalar(f32::NAN), &Literal::scalar(f32::NAN)).is_ok());
    assert!(program.checks[0].verify(&Literal::scalar(f32::INFINITY), &Literal::scalar(f32::MAX)).is_err());
}

#[test]
fn errors_state_the_line_and_the_operation() {
    let within = |line: &str| {
        format!(
            "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  {line}\n  return %x : tensor<4xf32>\n}}"
        )
    };
    let cases = [
        (
            "%0 = \"stablehlo.unheard_of\"(%x) : (tensor<4xf32>) -> tensor<4xf32>",
            "2: stablehlo.unheard_of: unknown operation",
        ),
        (
            "%0 = \"stablehlo.all_gather\"(%x) : (tensor<4xf32>) -> tensor<8xf32>",
            "2: stablehlo.all_gather: this operation requires several devices",
        ),
        ("%0 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<?xf32>", "neither a size nor a bound"),
        ("%0 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<5xf32>", "2: stablehlo.reshape: "),
        (
            "%0 = stablehlo.transpose %x, dims = [1] : (tensor<4xf32>) -> tensor<4xf32>",
            "2: stablehlo.transpose: ",
        ),
        ("%0 = call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>", "function 'main' calls itself"),
        ("%0 = call @nowhere(%x) : (tensor<4xf32>) -> tensor<4xf32>", "unknown function 'nowhere'"),
        ("%0 = stablehlo.exponential %x : tensor<4xcomplex<f32>>", "2: stablehlo.exponential: "),
    ];
    for (line, expected) in cases {
        let actual = message(&within(line));
        assert!(actual.contains(expected), "{line}\n  says: {actual}");
    }
    let several = "func.func @a() {\n func.return\n}\nfunc.func @b() {\n func.return\n}";
    assert!(message(several).contains("several public ones (a, b)"));
    assert!(message("func.func private @a() {\n func.return\n}").contains("no public function"));
}
