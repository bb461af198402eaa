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
