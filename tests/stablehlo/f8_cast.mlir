module @jit_f8_cast attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16xf32>) -> (tensor<16xf32> {jax.result_info = "result[0]"}, tensor<16xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.convert %arg0 : (tensor<16xf32>) -> tensor<16xf8E4M3FN>
    %1 = stablehlo.convert %0 : (tensor<16xf8E4M3FN>) -> tensor<16xf32>
    %2 = stablehlo.convert %arg0 : (tensor<16xf32>) -> tensor<16xf8E5M2>
    %3 = stablehlo.convert %2 : (tensor<16xf8E5M2>) -> tensor<16xf32>
    return %1, %3 : tensor<16xf32>, tensor<16xf32>
  }
}
