module @jit_piecewise attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32> {jax.result_info = "result[0]"}, tensor<2x3x4xf32> {jax.result_info = "result[1]"}, tensor<2x3x4xf32> {jax.result_info = "result[2]"}, tensor<2x3x4xf32> {jax.result_info = "result[3]"}, tensor<2x3x4xf32> {jax.result_info = "result[4]"}) {
    %cst = stablehlo.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>
    %0 = call @polyval(%cst, %arg0) : (tensor<3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %c = stablehlo.constant dense<-1> : tensor<i64>
    %c_0 = stablehlo.constant dense<1> : tensor<i64>
    %1 = call @clip(%arg0, %c, %c_0) : (tensor<2x3x4xf32>, tensor<i64>, tensor<i64>) -> tensor<2x3x4xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %3 = stablehlo.maximum %arg0, %2 : tensor<2x3x4xf32>
    %cst_2 = stablehlo.constant dense<5.000000e-01> : tensor<f64>
    %4 = call @heaviside(%arg0, %cst_2) : (tensor<2x3x4xf32>, tensor<f64>) -> tensor<2x3x4xf32>
    %5 = call @sinc(%arg0) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    return %0, %1, %3, %4, %5 : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
  }
  func.func private @polyval(%arg0: tensor<3xf32>, %arg1: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %1 = stablehlo.slice %arg0 [0:0] : (tensor<3xf32>) -> tensor<0xf32>
    %2 = stablehlo.slice %arg0 [0:3] : (tensor<3xf32>) -> tensor<3xf32>
    %3 = stablehlo.slice %2 [0:1] : (tensor<3xf32>) -> tensor<1xf32>
    %4 = stablehlo.reshape %3 : (tensor<1xf32>) -> tensor<f32>
    %5 = call @closed_call(%arg1, %0, %4) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
    %6 = stablehlo.slice %2 [1:2] : (tensor<3xf32>) -> tensor<1xf32>
    %7 = stablehlo.reshape %6 : (tensor<1xf32>) -> tensor<f32>
    %8 = call @closed_call(%arg1, %5, %7) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
    %9 = stablehlo.slice %2 [2:3] : (tensor<3xf32>) -> tensor<1xf32>
    %10 = stablehlo.reshape %9 : (tensor<1xf32>) -> tensor<f32>
    %11 = call @closed_call(%arg1, %8, %10) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
    return %11 : tensor<2x3x4xf32>
  }
  func.func private @closed_call(%arg0: tensor<2x3x4xf32>, %arg1: tensor<2x3x4xf32>, %arg2: tensor<f32>) -> tensor<2x3x4xf32> {
    %0 = stablehlo.multiply %arg1, %arg0 : tensor<2x3x4xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x3x4xf32>
    return %2 : tensor<2x3x4xf32>
  }
  func.func private @clip(%arg0: tensor<2x3x4xf32>, %arg1: tensor<i64>, %arg2: tensor<i64>) -> tensor<2x3x4xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<2x3x4xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i64>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<2x3x4xf32>
    return %5 : tensor<2x3x4xf32>
  }
  func.func private @heaviside(%arg0: tensor<2x3x4xf32>, %arg1: tensor<f64>) -> tensor<2x3x4xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<f64>) -> tensor<f32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %2 = stablehlo.compare LT, %arg0, %1, FLOAT : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xi1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %4 = stablehlo.compare GT, %arg0, %3, FLOAT : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xi1>
    %5 = stablehlo.compare NE, %arg0, %arg0, FLOAT : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xi1>
    %6 = call @_where(%5, %arg0, %0) : (tensor<2x3x4xi1>, tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %7 = call @_where_0(%4, %cst_1, %6) : (tensor<2x3x4xi1>, tensor<f32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = call @_where_0(%2, %cst_2, %7) : (tensor<2x3x4xi1>, tensor<f32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    return %8 : tensor<2x3x4xf32>
  }
  func.func private @_where(%arg0: tensor<2x3x4xi1>, %arg1: tensor<2x3x4xf32>, %arg2: tensor<f32>) -> tensor<2x3x4xf32> {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<2x3x4xi1>, tensor<2x3x4xf32>
    return %1 : tensor<2x3x4xf32>
  }
  func.func private @_where_0(%arg0: tensor<2x3x4xi1>, %arg1: tensor<f32>, %arg2: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %1 = stablehlo.select %arg0, %0, %arg2 : tensor<2x3x4xi1>, tensor<2x3x4xf32>
    return %1 : tensor<2x3x4xf32>
  }
  func.func private @sinc(%arg0: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %1 = stablehlo.compare EQ, %arg0, %0, FLOAT : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xi1>
    %cst_0 = stablehlo.constant dense<3.14159274> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %3 = stablehlo.multiply %2, %arg0 : tensor<2x3x4xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = call @_where_0(%1, %cst_1, %3) : (tensor<2x3x4xi1>, tensor<f32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %6 = stablehlo.multiply %3, %5 : tensor<2x3x4xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x3x4xf32>
    %8 = stablehlo.add %6, %7 : tensor<2x3x4xf32>
    %9 = stablehlo.sine %4 : tensor<2x3x4xf32>
    %10 = stablehlo.divide %9, %4 : tensor<2x3x4xf32>
    %11 = call @_where_1(%1, %8, %10) : (tensor<2x3x4xi1>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    return %11 : tensor<2x3x4xf32>
  }
  func.func private @_where_1(%arg0: tensor<2x3x4xi1>, %arg1: tensor<2x3x4xf32>, %arg2: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<2x3x4xi1>, tensor<2x3x4xf32>
    return %0 : tensor<2x3x4xf32>
  }
}
