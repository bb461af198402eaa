module @jit_special attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xf32>) -> (tensor<3x4xf32> {jax.result_info = "result[0]"}, tensor<3x4xf32> {jax.result_info = "result[1]"}, tensor<3x4xf32> {jax.result_info = "result[2]"}, tensor<3x4xf32> {jax.result_info = "result[3]"}, tensor<3x4xf32> {jax.result_info = "result[4]"}) {
    %0 = stablehlo.abs %arg0 : tensor<3x4xf32>
    %cst = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %2 = stablehlo.add %0, %1 : tensor<3x4xf32>
    %3 = chlo.erf %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %4 = chlo.erfc %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %5 = stablehlo.tanh %arg0 : tensor<3x4xf32>
    %6 = chlo.erf_inv %5 : tensor<3x4xf32> -> tensor<3x4xf32>
    %7 = chlo.lgamma %2 : tensor<3x4xf32> -> tensor<3x4xf32>
    %8 = chlo.digamma %2 : tensor<3x4xf32> -> tensor<3x4xf32>
    return %3, %4, %6, %7, %8 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  }
}
