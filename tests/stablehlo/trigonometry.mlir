module @jit_trigonometry attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xf32>) -> (tensor<3x4xf32> {jax.result_info = "result[0]"}, tensor<3x4xf32> {jax.result_info = "result[1]"}, tensor<3x4xf32> {jax.result_info = "result[2]"}, tensor<3x4xf32> {jax.result_info = "result[3]"}, tensor<3x4xf32> {jax.result_info = "result[4]"}, tensor<3x4xf32> {jax.result_info = "result[5]"}, tensor<3x4xf32> {jax.result_info = "result[6]"}, tensor<3x4xf32> {jax.result_info = "result[7]"}, tensor<3x4xf32> {jax.result_info = "result[8]"}, tensor<3x4xf32> {jax.result_info = "result[9]"}) {
    %0 = stablehlo.tanh %arg0 : tensor<3x4xf32>
    %1 = chlo.asin %0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %2 = chlo.acos %0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %3 = chlo.atan %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %4 = chlo.asinh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %5 = chlo.atanh %0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %6 = stablehlo.sine %arg0 : tensor<3x4xf32>
    %7 = stablehlo.cosine %arg0 : tensor<3x4xf32>
    %8 = stablehlo.tan %arg0 : tensor<3x4xf32>
    %9 = chlo.sinh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %10 = chlo.cosh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    return %6, %7, %8, %9, %10, %1, %2, %3, %4, %5 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  }
}
