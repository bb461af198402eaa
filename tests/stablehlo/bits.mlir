module @jit_bits attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x16xf32>) -> (tensor<3x16xi32> {jax.result_info = "result[0]"}, tensor<3x16xf32> {jax.result_info = "result[1]"}, tensor<3x16xf32> {jax.result_info = "result[2]"}, tensor<3x16xf32> {jax.result_info = "result[3]"}, tensor<3x16xf32> {jax.result_info = "result[4]"}, tensor<3x16xf32> {jax.result_info = "result[5]"}, tensor<3x16xf32> {jax.result_info = "result[6]"}) {
    %cst = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<3x16xf32>
    %2 = stablehlo.round_nearest_even %1 : tensor<3x16xf32>
    %3 = stablehlo.floor %arg0 : tensor<3x16xf32>
    %4 = stablehlo.ceil %arg0 : tensor<3x16xf32>
    %5 = call @trunc(%arg0) : (tensor<3x16xf32>) -> tensor<3x16xf32>
    %6 = stablehlo.bitcast_convert %arg0 : (tensor<3x16xf32>) -> tensor<3x16xi32>
    %7 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<3x16xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %9 = stablehlo.multiply %8, %arg0 : tensor<3x16xf32>
    %10 = chlo.next_after %arg0, %9 : tensor<3x16xf32>, tensor<3x16xf32> -> tensor<3x16xf32>
    return %6, %7, %10, %2, %3, %4, %5 : tensor<3x16xi32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>
  }
  func.func private @trunc(%arg0: tensor<3x16xf32>) -> tensor<3x16xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x16xf32>
    %1 = stablehlo.compare LT, %arg0, %0, FLOAT : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xi1>
    %2 = stablehlo.ceil %arg0 : tensor<3x16xf32>
    %3 = stablehlo.floor %arg0 : tensor<3x16xf32>
    %4 = call @_where(%1, %2, %3) : (tensor<3x16xi1>, tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
    return %4 : tensor<3x16xf32>
  }
  func.func private @_where(%arg0: tensor<3x16xi1>, %arg1: tensor<3x16xf32>, %arg2: tensor<3x16xf32>) -> tensor<3x16xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<3x16xi1>, tensor<3x16xf32>
    return %0 : tensor<3x16xf32>
  }
}
