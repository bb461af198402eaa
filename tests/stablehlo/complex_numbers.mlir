// What StableHLO defines for complex numbers and HLO's opcodes do not take. Values by hand.

func.func @cube_root() {
  %x = stablehlo.constant dense<[(0.0, 8.0), (27.0, 0.0)]> : tensor<2xcomplex<f64>>
  %root = stablehlo.cbrt %x : tensor<2xcomplex<f64>>
  check.expect_almost_eq_const %root, dense<[(1.7320508075688772, 1.0), (3.0, 0.0)]> : tensor<2xcomplex<f64>>
  func.return
}

func.func @order() {
  %x = stablehlo.constant dense<[(1.0, 2.0), (1.0, 3.0), (-4.0, 9.0)]> : tensor<3xcomplex<f32>>
  %y = stablehlo.constant dense<[(1.0, 5.0), (0.0, 9.0), (-3.0, 0.0)]> : tensor<3xcomplex<f32>>
  %larger = stablehlo.maximum %x, %y : tensor<3xcomplex<f32>>
  %smaller = stablehlo.minimum %x, %y : tensor<3xcomplex<f32>>
  check.expect_eq_const %larger, dense<[(1.0, 5.0), (1.0, 3.0), (-3.0, 0.0)]> : tensor<3xcomplex<f32>>
  check.expect_eq_const %smaller, dense<[(1.0, 2.0), (0.0, 9.0), (-4.0, 9.0)]> : tensor<3xcomplex<f32>>
  func.return
}

func.func @to_real() {
  %x = stablehlo.constant dense<[(0.0, 1.0), (2.5, -1.0)]> : tensor<2xcomplex<f32>>
  %real = stablehlo.convert %x : (tensor<2xcomplex<f32>>) -> tensor<2xf64>
  %truth = stablehlo.convert %x : (tensor<2xcomplex<f32>>) -> tensor<2xi1>
  check.expect_eq_const %real, dense<[0.0, 2.5]> : tensor<2xf64>
  check.expect_eq_const %truth, dense<[false, true]> : tensor<2xi1>
  func.return
}
