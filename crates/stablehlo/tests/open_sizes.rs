//! Open dimensions of arguments: which sizes are asked for, and what a program for them contains.

use stablehlo::{GivenSize, Imported, SizeRequest, dimensions, import_sized};

const SUM: &str = "func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = stablehlo.add %x, %y : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}";

fn request(given: &[(&str, GivenSize)]) -> SizeRequest {
    let given = given.iter().map(|(name, size)| ((*name).to_owned(), size.clone())).collect();
    SizeRequest { given, default_range: Some((1, 64)), ..SizeRequest::default() }
}

fn import(text: &str, given: &[(&str, GivenSize)]) -> Result<Imported, String> {
    let module = mlir::parse(text).expect("MLIR");
    import_sized(&module, None, &request(given)).map_err(|error| error.message().to_owned())
}

#[test]
fn a_leading_dimension_is_the_batch() {
    let Imported { module, interface, .. } = import(SUM, &[]).expect("a program");
    let sizes: Vec<_> =
        interface.sizes().map(|(k, size, range)| (k, size.label(), range.to_string())).collect();
    assert_eq!(sizes, [(2, "batch".to_owned(), "1..64".to_owned())]);
    let named = interface.arguments()[..2].iter().map(|argument| argument.named_dimensions.len());
    assert_eq!(named.collect::<Vec<_>>(), [1, 1]);
    assert_eq!(interface.results()[0].shape.to_string(), "f32[<=64,4]");
    // Equal sizes need no masks.
    let text = module.to_text();
    assert!(!text.contains("select") && !text.contains("iota"), "{text}");
}

#[test]
fn a_known_size_is_a_constant() {
    let Imported { interface, .. } = import(SUM, &[("batch", GivenSize::Known(3))]).expect("a program");
    assert_eq!(
        (interface.arguments().len(), interface.results()[0].shape.to_string()),
        (2, "f32[3,4]".to_owned())
    );
}

#[test]
fn equal_names_are_one_size_and_others_are_checked() {
    let text = SUM.replace("x4xf32", "xf32");
    let same = import(
        &text,
        &[
            ("x.0", GivenSize::Named("n".to_owned())),
            ("y.0", GivenSize::Named("n".to_owned())),
            ("n", GivenSize::Range(2, 5)),
        ],
    );
    assert_eq!(same.expect("a program").interface.sizes().count(), 1);
}

#[test]
fn errors_name_the_dimension_and_the_flag() {
    let later = "func.func @main(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {\n return %x : tensor<4x?xf32>\n}";
    let error = import(later, &[]).expect_err("an open dimension");
    assert!(
        error.contains("dimension 1 of argument 'x' has no size") && error.contains("--dim x.1=1..64"),
        "{error}"
    );
    let error = import(SUM, &[("rows", GivenSize::Known(3))]).expect_err("no such dimension");
    assert!(error.contains("--dim rows") && error.contains("batch"), "{error}");
    let fixed = SUM.replace('?', "2");
    let error = import(&fixed, &[("batch", GivenSize::Known(3))]).expect_err("fixed sizes");
    assert!(error.contains("all sizes of 'main' are fixed"), "{error}");
}

const CHECKED: &str = r#"func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %1 = stablehlo.compare GE, %0, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%1, %0) {error_message = "Expected 'batch - 4' to be greater or equal to 0, but found {0}", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  return %x : tensor<?xf32>
}"#;

#[test]
fn constraints_are_limits_or_checks() {
    let open = dimensions(&mlir::parse(CHECKED).expect("MLIR"), None, &request(&[])).expect("sizes");
    assert_eq!(open.expect("an open dimension").names["batch"], (4, 64));
    let text = |given: &[(&str, GivenSize)]| import(CHECKED, given).map(|program| program.module.to_text());
    assert!(!text(&[]).expect("a program").contains("tfcompile.Assert"));
    let checked = text(&[("batch", GivenSize::Range(1, 9))]).expect("a program");
    assert!(checked.contains("tfcompile.Assert") && checked.contains("batch - 4"), "{checked}");
    let error = text(&[("batch", GivenSize::Known(3))]).expect_err("a violated constraint");
    assert!(error.contains("to be greater or equal to 0"), "{error}");
    let error = text(&[("batch", GivenSize::Range(1, 3))]).expect_err("a range without valid sizes");
    assert!(error.contains("only supports sizes from 4 on"), "{error}");
}

#[test]
fn a_carried_array_keeps_its_size() {
    let text = r#"func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<?xf32>
   cond {
    %1 = stablehlo.compare LT, %i, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.concatenate %a, %a, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<?xf32>
  }
  return %0#1 : tensor<?xf32>
}"#;
    let error = import(text, &[]).expect_err("a growing array");
    assert!(error.contains("the size of dimension 0 of carried value 1 may change"), "{error}");
}
