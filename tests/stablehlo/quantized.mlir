// Integers that stand for real numbers. Values by hand.

func.func @per_tensor() {
  %x = stablehlo.constant dense<[-1.0, 0.26, 100.0]> : tensor<3xf32>
  %q = stablehlo.uniform_quantize %x : (tensor<3xf32>) -> tensor<3x!quant.uniform<i8:f32, 0.5:3>>
  %stored = stablehlo.bitcast_convert %q : (tensor<3x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<3xi8>
  %real = stablehlo.uniform_dequantize %q : (tensor<3x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<3xf32>
  check.expect_eq_const %stored, dense<[1, 4, 127]> : tensor<3xi8>
  check.expect_eq_const %real, dense<[-1.0, 0.5, 62.0]> : tensor<3xf32>
  func.return
}

func.func @per_axis() {
  %x = stablehlo.constant dense<[[1.0, 2.0], [1.0, -300.0]]> : tensor<2x2xf32>
  %q = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<u8:f32:0, {0.5:0, 2.0:100}>>
  %t = stablehlo.transpose %q, dims = [0, 1] : (tensor<2x2x!quant.uniform<u8:f32:0, {0.5:0, 2.0:100}>>) -> tensor<2x2x!quant.uniform<u8:f32:0, {0.5:0, 2.0:100}>>
  %real = stablehlo.uniform_dequantize %t : (tensor<2x2x!quant.uniform<u8:f32:0, {0.5:0, 2.0:100}>>) -> tensor<2x2xf32>
  check.expect_eq_const %real, dense<[[1.0, 2.0], [0.0, -200.0]]> : tensor<2x2xf32>
  func.return
}

func.func @product() {
  %x = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %q = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 0.5>>
  %square = stablehlo.multiply %q, %q : (tensor<2x!quant.uniform<i8:f32, 0.5>>, tensor<2x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x!quant.uniform<i8<-100:100>:f32, 0.02:0>>
  %real = stablehlo.uniform_dequantize %square : (tensor<2x!quant.uniform<i8<-100:100>:f32, 0.02:0>>) -> tensor<2xf32>
  check.expect_almost_eq_const %real, dense<[2.0, 2.0]> : tensor<2xf32>
  func.return
}

// The barriers keep the layers from being evaluated when compiling.
func.func @dot() {
  %steps = stablehlo.constant dense<[[1, -3, 7, 10]]> : tensor<1x4xi8>
  %given = stablehlo.optimization_barrier %steps : tensor<1x4xi8>
  %x = stablehlo.bitcast_convert %given : (tensor<1x4xi8>) -> tensor<1x4x!quant.uniform<i8:f32, 0.5:2>>
  %weights = stablehlo.constant dense<[[1, 2, -3, 4], [5, -6, 7, 8], [-9, 10, 11, -12], [13, -14, 15, 16]]> : tensor<4x4xi8>
  %w = stablehlo.bitcast_convert %weights : (tensor<4x4xi8>) -> tensor<4x4x!quant.uniform<i8:f32:1, {0.5, 0.25, 1.0, 2.0}>>
  %sums = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1x4x!quant.uniform<i8:f32, 0.5:2>>, tensor<4x4x!quant.uniform<i8:f32:1, {0.5, 0.25, 1.0, 2.0}>>) -> tensor<1x4x!quant.uniform<i32:f32:1, {0.25, 0.125, 0.5, 1.0}>>
  %numbers = stablehlo.constant dense<[[4, 2, -100, 3]]> : tensor<1x4xi32>
  %bias = stablehlo.bitcast_convert %numbers : (tensor<1x4xi32>) -> tensor<1x4x!quant.uniform<i32:f32:1, {0.25, 0.125, 0.5, 1.0}>>
  %sum = stablehlo.add %sums, %bias : tensor<1x4x!quant.uniform<i32:f32:1, {0.25, 0.125, 0.5, 1.0}>>
  %y = stablehlo.uniform_quantize %sum : (tensor<1x4x!quant.uniform<i32:f32:1, {0.25, 0.125, 0.5, 1.0}>>) -> tensor<1x4x!quant.uniform<i8:f32, 0.5:-3>>
  %stored = stablehlo.bitcast_convert %y : (tensor<1x4x!quant.uniform<i8:f32, 0.5:-3>>) -> tensor<1x4xi8>
  check.expect_eq_const %stored, dense<[[15, -11, 40, 51]]> : tensor<1x4xi8>
  func.return
}

func.func @convolution() {
  %steps = stablehlo.constant dense<[[[2], [4], [-6]]]> : tensor<1x3x1xi8>
  %given = stablehlo.optimization_barrier %steps : tensor<1x3x1xi8>
  %x = stablehlo.bitcast_convert %given : (tensor<1x3x1xi8>) -> tensor<1x3x1x!quant.uniform<i8:f32, 1.0:-6>>
  %weights = stablehlo.constant dense<[[[1, 2, 3, 4]], [[0, 1, 0, -1]], [[2, 0, -2, 1]]]> : tensor<3x1x4xi8>
  %w = stablehlo.bitcast_convert %weights : (tensor<3x1x4xi8>) -> tensor<3x1x4x!quant.uniform<i8<-127:127>:f32, 0.5>>
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x1x!quant.uniform<i8:f32, 1.0:-6>>, tensor<3x1x4x!quant.uniform<i8<-127:127>:f32, 0.5>>) -> tensor<1x3x4x!quant.uniform<i8:f32, 1.0>>
  %stored = stablehlo.bitcast_convert %y : (tensor<1x3x4x!quant.uniform<i8:f32, 1.0>>) -> tensor<1x3x4xi8>
  check.expect_eq_const %stored, dense<[[[10, 4, -10, 1], [4, 13, 12, 11], [5, 10, 15, 20]]]> : tensor<1x3x4xi8>
  func.return
}
