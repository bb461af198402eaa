module @jit_f16_math attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x4xf16>) -> (tensor<4x4xf16> {jax.result_info = "result"}) {
    %0 = stablehlo.exponential %arg0 : tensor<4x4xf16>
    %1 = stablehlo.tanh %arg0 : tensor<4x4xf16>
    %2 = stablehlo.add %0, %1 : tensor<4x4xf16>
    return %2 : tensor<4x4xf16>
  }
}
