// Groups of rows with a matrix each, groups of summands with a result each, groups of products; the values are by hand.
func.func public @main() {
  %rows = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %matrices = stablehlo.constant dense<[[[1.0], [10.0]], [[100.0], [1000.0]]]> : tensor<2x2x1xf32>
  %sizes = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %of_rows = "chlo.ragged_dot"(%rows, %matrices, %sizes) {
    ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_batching_dimensions = [],
      rhs_batching_dimensions = [],
      lhs_contracting_dimensions = [1],
      rhs_contracting_dimensions = [1],
      lhs_ragged_dimensions = [0],
      rhs_group_dimensions = [0]
    >
  } : (tensor<3x2xf32>, tensor<2x2x1xf32>, tensor<2xi32>) -> tensor<3x1xf32>
  check.expect_eq_const %of_rows, dense<[[21.0], [4300.0], [6500.0]]> : tensor<3x1xf32>
  %lhs = stablehlo.constant dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]> : tensor<1x2x3xf32>
  %rhs = stablehlo.constant dense<[[[1.0], [10.0], [100.0]]]> : tensor<1x3x1xf32>
  %parts = stablehlo.constant dense<[2, 1]> : tensor<2xi64>
  %of_summands = "chlo.ragged_dot"(%lhs, %rhs, %parts) {
    ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_batching_dimensions = [0],
      rhs_batching_dimensions = [0],
      lhs_contracting_dimensions = [2],
      rhs_contracting_dimensions = [1],
      lhs_ragged_dimensions = [2],
      rhs_group_dimensions = []
    >
  } : (tensor<1x2x3xf32>, tensor<1x3x1xf32>, tensor<2xi64>) -> tensor<2x1x2x1xf32>
  check.expect_eq_const %of_summands, dense<[[[[21.0], [54.0]]], [[[300.0], [600.0]]]]> : tensor<2x1x2x1xf32>
  %of_products = "chlo.ragged_dot"(%lhs, %rhs, %parts) {
    ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_batching_dimensions = [0],
      rhs_batching_dimensions = [0],
      lhs_contracting_dimensions = [2],
      rhs_contracting_dimensions = [1],
      lhs_ragged_dimensions = [0],
      rhs_group_dimensions = []
    >
  } : (tensor<1x2x3xf32>, tensor<1x3x1xf32>, tensor<2xi64>) -> tensor<1x2x1xf32>
  check.expect_eq_const %of_products, dense<[[[321.0], [654.0]]]> : tensor<1x2x1xf32>
  return
}
