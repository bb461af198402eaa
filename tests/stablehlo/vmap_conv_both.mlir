module @jit_vmap_conv_both attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x8x8x2xf32>, %arg1: tensor<3x3x3x2x4xf32>) -> (tensor<3x1x8x8x4xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2, 3, 4] : (tensor<3x8x8x2xf32>) -> tensor<3x1x8x8x2xf32>
    %1 = stablehlo.transpose %0, dims = [1, 2, 3, 0, 4] : (tensor<3x1x8x8x2xf32>) -> tensor<1x8x8x3x2xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x8x8x3x2xf32>) -> tensor<1x8x8x6xf32>
    %3 = stablehlo.transpose %arg1, dims = [1, 2, 3, 0, 4] : (tensor<3x3x3x2x4xf32>) -> tensor<3x3x2x3x4xf32>
    %4 = stablehlo.reshape %3 : (tensor<3x3x2x3x4xf32>) -> tensor<3x3x2x12xf32>
    %5 = stablehlo.convolution(%2, %4) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 3 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x6xf32>, tensor<3x3x2x12xf32>) -> tensor<1x8x8x12xf32>
    %6 = stablehlo.reshape %5 : (tensor<1x8x8x12xf32>) -> tensor<1x8x8x3x4xf32>
    %7 = stablehlo.transpose %6, dims = [3, 0, 1, 2, 4] : (tensor<1x8x8x3x4xf32>) -> tensor<3x1x8x8x4xf32>
    return %7 : tensor<3x1x8x8x4xf32>
  }
}
