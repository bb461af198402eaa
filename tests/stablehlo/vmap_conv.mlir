module @jit_vmap_conv attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x2x8x8x2xf32>, %arg1: tensor<3x3x2x4xf32>) -> (tensor<3x2x6x6x4xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<3x2x8x8x2xf32>) -> tensor<6x8x8x2xf32>
    %1 = stablehlo.convolution(%0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<6x8x8x2xf32>, tensor<3x3x2x4xf32>) -> tensor<6x6x6x4xf32>
    %2 = stablehlo.reshape %1 : (tensor<6x6x6x4xf32>) -> tensor<3x2x6x6x4xf32>
    return %2 : tensor<3x2x6x6x4xf32>
  }
}
