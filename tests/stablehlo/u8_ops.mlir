module @jit_u8_ops attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<10xui8>) -> (tensor<10xui8> {jax.result_info = "result[0]"}, tensor<10xui8> {jax.result_info = "result[1]"}, tensor<10xi8> {jax.result_info = "result[2]"}, tensor<10xui8> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<10xui8>
    %c = stablehlo.constant dense<30> : tensor<ui8>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui8>) -> tensor<10xui8>
    %2 = stablehlo.subtract %arg0, %1 : tensor<10xui8>
    %3 = stablehlo.convert %arg0 : (tensor<10xui8>) -> tensor<10xi8>
    %4 = stablehlo.popcnt %arg0 : tensor<10xui8>
    return %0, %2, %3, %4 : tensor<10xui8>, tensor<10xui8>, tensor<10xi8>, tensor<10xui8>
  }
}
