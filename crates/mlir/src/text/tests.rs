//! Tests of parsed programs, and of the errors for invalid ones.

use super::parse;
use crate::{Attribute, Module, Operation, Type};
use shape::PrimitiveType;

/// The operations in the body of the only function.
fn body(module: &Module) -> &[Operation] {
    let function = match module.operations[0].name.as_str() {
        "builtin.module" => &module.operations[0].regions[0].blocks[0].operations[0],
        _ => &module.operations[0],
    };
    &function.regions[0].blocks[0].operations
}

fn integers(operation: &Operation, name: &str) -> Vec<i64> {
    operation
        .attribute(name)
        .and_then(Attribute::integers)
        .unwrap_or_else(|| panic!("no '{name}' in {operation:?}"))
}

fn message(text: &str) -> String {
    parse(text).expect_err("expected an error").message().to_owned()
}

#[test]
fn functions_have_named_arguments_with_types_and_attributes() {
    let text = r#"module @jit_f attributes {mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x?xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<ui8>) -> (tensor<ui8> {jax.result_info = "[0]"}) {
    return %x : tensor<ui8>
  }
}"#;
    let module = parse(text).expect("a program");
    let function = &module.operations[0].regions[0].blocks[0].operations[0];
    assert_eq!(function.attribute("sym_name"), Some(&Attribute::String("main".to_owned())));
    let arguments = &function.regions[0].blocks[0].arguments;
    assert_eq!(module[arguments[0]].name, "arg0");
    let tensor = module[arguments[0]].value_type.as_tensor().expect("a tensor");
    assert_eq!(tensor.sizes, [Some(2), None]);
    assert_eq!(module[arguments[1]].value_type, Type::Scalar(PrimitiveType::U8).scalar_tensor());
    let Some(Attribute::Array(attributes)) = function.attribute("res_attrs") else { panic!("no attributes") };
    let info = attributes[0].dictionary().and_then(|fields| fields.get("jax.result_info"));
    assert_eq!(info.and_then(Attribute::text), Some("[0]"));
    assert_eq!(body(&module)[0].operands, [arguments[1]]);
}

#[test]
fn short_forms_get_the_names_of_the_generic_form() {
    let text = r#"func.func @f(%a: tensor<4x6xf32>, %b: tensor<6x8xf32>, %i: tensor<i32>) -> tensor<4x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [DEFAULT, HIGHEST] : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.slice %a [0:4:2, 1:6] : (tensor<4x6xf32>) -> tensor<2x5xf32>
  %2 = stablehlo.compare LT, %a, %a, TOTALORDER : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
  %3 = stablehlo.iota dim = 1 : tensor<4x6xi32>
  %4 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %5 = stablehlo.dynamic_slice %a, %i, %i, sizes = [2, 2] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
  %6 = stablehlo.reduce_precision %a, format = e5m10 : tensor<4x6xf32>
  %7 = stablehlo.select %2, %a, %a : tensor<4x6xi1>, tensor<4x6xf32>
  return %0 : tensor<4x8xf32>
}"#;
    let module = parse(text).expect("a program");
    let operations = body(&module);
    let numbers =
        operations[0].attribute("dot_dimension_numbers").and_then(Attribute::dictionary).expect("a record");
    assert_eq!(numbers.get("lhs_contracting_dimensions"), Some(&Attribute::Integers(vec![1])));
    assert_eq!(numbers.get("rhs_contracting_dimensions"), Some(&Attribute::Integers(vec![0])));
    assert_eq!(integers(&operations[1], "start_indices"), [0, 1]);
    assert_eq!(integers(&operations[1], "limit_indices"), [4, 6]);
    assert_eq!(integers(&operations[1], "strides"), [2, 1]);
    assert_eq!(operations[2].attribute("comparison_direction"), Some(&Attribute::Keyword("LT".to_owned())));
    assert_eq!(operations[2].attribute("compare_type"), Some(&Attribute::Keyword("TOTALORDER".to_owned())));
    assert_eq!(operations[3].attribute("iota_dimension"), Some(&Attribute::Integer(1)));
    assert_eq!(integers(&operations[4], "permutation"), [1, 0]);
    assert_eq!(integers(&operations[5], "slice_sizes"), [2, 2]);
    assert_eq!(operations[6].attribute("exponent_bits"), Some(&Attribute::Integer(5)));
    let selected = module[operations[7].results[0]].value_type.as_tensor().expect("a tensor");
    assert_eq!(*selected.element, Type::Scalar(PrimitiveType::F32));
}

#[test]
fn convolutions_have_labels_and_a_window() {
    let text = r#"func.func @f(%x: tensor<1x3x8x8xf32>, %k: tensor<3x3x3x4xf32>) -> tensor<1x4x4x8xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[0, 1, i, o]->[b, f, 0, 1], window = {stride = [2, 1], pad = [[0, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<3x3x3x4xf32>) -> tensor<1x4x4x8xf32>
  return %0 : tensor<1x4x4x8xf32>
}"#;
    let module = parse(text).expect("a program");
    let convolution = &body(&module)[0];
    let labels = convolution.attribute("dimension_numbers").and_then(Attribute::dictionary).expect("labels");
    assert_eq!(labels.get("input_feature_dimension"), Some(&Attribute::Integer(1)));
    assert_eq!(labels.get("input_spatial_dimensions"), Some(&Attribute::Integers(vec![2, 3])));
    assert_eq!(labels.get("kernel_output_feature_dimension"), Some(&Attribute::Integer(3)));
    assert_eq!(integers(convolution, "window_strides"), [2, 1]);
    assert_eq!(integers(convolution, "padding"), [0, 1, 1, 1]);
    assert_eq!(integers(convolution, "window_reversal"), [0, 1]);
}

#[test]
fn constants_are_lists_bytes_or_one_element_for_all() {
    let text = r#"func.func @f() -> tensor<2x2xf32> {
  %0 = stablehlo.constant dense<[[1.0, -0.0], [0x7FC00000, 2.5e-1]]> : tensor<2x2xf32>
  %1 = stablehlo.constant dense<"0x0000803F00000040"> : tensor<2xf32>
  %2 = stablehlo.constant dense<7> : tensor<3xi64>
  %3 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
  %4 = stablehlo.constant dense<(1.0, -2.0)> : tensor<complex<f32>>
  %5 = stablehlo.constant dense<> : tensor<0x4xi8>
  %6 = stablehlo.constant dense<"0x05"> : tensor<3xi1>
  return %0 : tensor<2x2xf32>
}"#;
    let module = parse(text).expect("a program");
    let elements = |k: usize| match body(&module)[k].attribute("value") {
        Some(Attribute::Elements(elements)) => elements.clone(),
        other => panic!("{other:?}"),
    };
    let values = elements(0).to_literal().expect("small").to_vec::<f32>().expect("f32");
    assert_eq!((values[0], values[1].to_bits(), values[3]), (1.0, 0x8000_0000, 0.25));
    assert!(values[2].is_nan());
    assert_eq!(elements(1).to_literal().and_then(|l| l.to_vec::<f32>()), Some(vec![1.0, 2.0]));
    assert!(elements(2).all.is_none(), "one element for all");
    assert_eq!(elements(2).to_literal().and_then(|l| l.to_vec::<i64>()), Some(vec![7; 3]));
    assert_eq!(elements(3).to_literal().and_then(|l| l.to_vec::<bool>()), Some(vec![true, false, true]));
    assert_eq!(elements(4).to_literal().and_then(|l| l.to_vec::<[f32; 2]>()), Some(vec![[1.0, -2.0]]));
    assert_eq!(elements(5).shape.element_count(), 0);
    assert_eq!(elements(6).to_literal().and_then(|l| l.to_vec::<bool>()), Some(vec![true, false, true]));
}

#[test]
fn regions_see_enclosing_names_and_shadow_them() {
    let text = r#"func.func @f(%x: tensor<i32>) -> tensor<i32> {
  %c = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%i = %x, %s = %c) : tensor<i32>, tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %c = stablehlo.add %s, %s : tensor<i32>
    stablehlo.return %i, %c : tensor<i32>, tensor<i32>
  }
  %r = stablehlo.reduce(%0#1 init: %c) applies stablehlo.add across dimensions = [] : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}"#;
    let module = parse(text).expect("a program");
    let operations = body(&module);
    let outer = operations[0].results[0];
    let condition = &operations[1].regions[0].blocks[0].operations[0];
    assert_eq!(condition.operands[1], outer);
    let reduce = &operations[2];
    assert_eq!(reduce.operands, [operations[1].results[1], outer], "the body's %c is out of scope");
    assert_eq!(reduce.regions[0].blocks[0].operations[0].name, "stablehlo.add");
}

#[test]
fn aliases_and_locations_can_precede_or_follow_their_uses() {
    let text = r##"#map = #stablehlo<precision HIGHEST>
!t = tensor<2xf32>
func.func @f(%x: !t loc("x")) -> !t {
  %0 = "stablehlo.exponential"(%x) <{result_accuracy = #acc}> : (!t) -> !t loc(#loc1)
  return %0 : !t
}
#acc = #map
#loc1 = loc("jit(f)/exp"("file.py":3:4))
"##;
    let module = parse(text).expect("a program");
    let exponential = &body(&module)[0];
    assert_eq!(exponential.attribute("result_accuracy"), Some(&Attribute::Keyword("HIGHEST".to_owned())));
    assert_eq!(exponential.location, "jit(f)/exp");
}

#[test]
fn a_fused_location_has_the_name_of_its_source() {
    let text = "func.func @f(%x: tensor<f32>) -> tensor<f32> {\n  %0 = stablehlo.abs %x : tensor<f32> \
                loc(fused[\"Abs:\", \"a/b\"])\n  %1 = stablehlo.abs %0 : tensor<f32> loc(fused<1>[unknown, \"c\"])\n  \
                return %1 : tensor<f32>\n}\n";
    let module = parse(text).expect("a program");
    assert_eq!(body(&module)[0].location, "a/b");
    assert_eq!(body(&module)[1].location, "", "only plain names count");
}

#[test]
fn quantized_types_and_resources_are_read() {
    let text = r#"func.func @f(%x: tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.5:3, 0.25, 1.0:-1}>>) -> tensor<2xf32> {
  %0 = stablehlo.constant dense_resource<blob> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
{-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000000803F00000040"
    }
  }
#-}
"#;
    let module = parse(text).expect("a program");
    let argument = module.operations[0].regions[0].blocks[0].arguments[0];
    let Type::Quantized(quantization) = &*module[argument].value_type.as_tensor().expect("a tensor").element
    else {
        panic!("not quantized")
    };
    assert_eq!(quantization.scales, [0.5, 0.25, 1.0]);
    assert_eq!(quantization.zero_points, [3, 0, -1]);
    assert_eq!((quantization.dimension, quantization.storage_range), (Some(1), Some((-127, 127))));
    let Some(Attribute::Elements(elements)) = body(&module)[0].attribute("value") else {
        panic!("no elements")
    };
    assert_eq!(elements.to_literal().and_then(|l| l.to_vec::<f32>()), Some(vec![1.0, 2.0]));
}

#[test]
fn errors_state_the_line_and_the_cause() {
    let within = |line: &str| {
        format!(
            "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {{\n  {line}\n  return %x : tensor<2xf32>\n}}"
        )
    };
    let cases = [
        ("%0 = stablehlo.abs %y : tensor<2xf32>", "2: %y is used before it is defined"),
        ("%0 = stablehlo.abs %x : tensor<2xfoo>", "2: expected a type, found 'foo>'"),
        ("%0:2 = stablehlo.abs %x : tensor<2xf32>", "2: stablehlo.abs has 1 results, but 2 are named"),
        (
            "%0 = \"stablehlo.abs\"(%x) : (tensor<3xf32>) -> tensor<2xf32>",
            "the types of stablehlo.abs's operands",
        ),
        (
            "%0 = stablehlo.constant dense<[1.0]> : tensor<2xf32>",
            "2: expected 2 elements in dimension 0 of f32[2], got 1",
        ),
        (
            "%0 = stablehlo.constant dense<[1, 300]> : tensor<2xi8>",
            "2: expected an element of type s8, found '300]",
        ),
        ("%0 = stablehlo.constant dense<1.0> : tensor<99999999999x99999999999xf32>", "has too many elements"),
        ("%0 = stablehlo.constant dense<[[1.0], [2.0]]> : tensor<2xf32>", "lists nest deeper"),
        ("\"cf.br\"()[^bb1] : () -> ()", "2: successors"),
        ("%0 = stablehlo.iota dim = : tensor<2xf32>", "2: expected an attribute"),
    ];
    for (line, expected) in cases {
        let actual = message(&within(line));
        assert!(actual.contains(expected), "{line}\n  says: {actual}");
    }
    assert!(message("func.func @f() {").contains("unclosed bracket"));
    assert!(message("module {\n  \"unfinished").starts_with("2: unterminated string"));
}

#[test]
fn operations_know_their_lines() {
    let text = "// first\nfunc.func @f(%x: tensor<i32>) -> tensor<i32> {\n\n  %0 = stablehlo.while(%i = %x) : tensor<i32>\n  cond {\n    \
                %p = stablehlo.constant dense<true> : tensor<i1>\n    stablehlo.return %p : tensor<i1>\n  } do {\n    \
                stablehlo.return %i : tensor<i32>\n  }\n  return %0 : tensor<i32>\n}";
    let module = parse(text).expect("a program");
    let operations = body(&module);
    assert_eq!(module.operations[0].line, 2);
    assert_eq!(operations.iter().map(|operation| operation.line).collect::<Vec<_>>(), [4, 11]);
    let within =
        |k: usize| operations[0].regions[k].blocks[0].operations.iter().map(|operation| operation.line);
    assert_eq!(within(0).chain(within(1)).collect::<Vec<_>>(), [6, 7, 9]);
}

#[test]
fn deep_nesting_is_rejected() {
    let attribute = format!("\"a.b\"() {{x = {}{}}} : () -> ()", "[".repeat(5000), "]".repeat(5000));
    assert!(message(&attribute).contains("nest deeper than"));
    let types = format!("func.func @f(%x: {}tensor<f32>{}) {{\n}}", "tuple<".repeat(5000), ">".repeat(5000));
    assert!(message(&types).contains("nest deeper than"));
    let regions = format!("{}{}", "\"a.b\"() ({".repeat(5000), "}) : () -> ()".repeat(5000));
    assert!(message(&regions).contains("nest deeper than"));
    let alias = "#a = #b\n#b = #a\n\"a.b\"() {x = #a} : () -> ()";
    assert!(message(alias).contains("nest deeper than"));
}

#[test]
fn aliases_of_aliases_stay_small() {
    let mut text = "#a0 = [1]\n".to_owned();
    for level in 1..60 {
        let inner = format!("#a{}", level - 1);
        text.push_str(&format!("#a{level} = [{inner}, {inner}, {inner}, {inner}]\n"));
    }
    text.push_str("\"a.b\"() {x = #a59} : () -> ()");
    assert!(message(&text).contains("the values of aliases exceed"));
}
