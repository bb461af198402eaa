module @jit_shapes attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x5x6xf32>) -> (tensor<6x4x5xf32> {jax.result_info = "result[0]"}, tensor<10x6xf32> {jax.result_info = "result[1]"}, tensor<4x10x6xf32> {jax.result_info = "result[2]"}, tensor<2x4x5x6xf32> {jax.result_info = "result[3]"}, tensor<4x10x6xf32> {jax.result_info = "result[4]"}, tensor<4x5x12xf32> {jax.result_info = "result[5]"}, tensor<4x5x6xf32> {jax.result_info = "result[6]"}, tensor<4x5x6xf32> {jax.result_info = "result[7]"}, tensor<5x7x8xf32> {jax.result_info = "result[8]"}) {
    %0 = stablehlo.concatenate %arg0, %arg0, dim = 1 : (tensor<4x5x6xf32>, tensor<4x5x6xf32>) -> tensor<4x10x6xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2, 3] : (tensor<4x5x6xf32>) -> tensor<1x4x5x6xf32>
    %2 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2, 3] : (tensor<4x5x6xf32>) -> tensor<1x4x5x6xf32>
    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1x4x5x6xf32>, tensor<1x4x5x6xf32>) -> tensor<2x4x5x6xf32>
    %4 = stablehlo.reshape %arg0 : (tensor<4x5x6xf32>) -> tensor<1x4x1x5x1x6xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3, 4, 5] : (tensor<1x4x1x5x1x6xf32>) -> tensor<1x4x2x5x1x6xf32>
    %6 = stablehlo.reshape %5 : (tensor<1x4x2x5x1x6xf32>) -> tensor<4x10x6xf32>
    %7 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1, 2] : (tensor<4x5x6xf32>) -> tensor<4x5x6x2xf32>
    %8 = stablehlo.reshape %7 : (tensor<4x5x6x2xf32>) -> tensor<4x5x12xf32>
    %9 = call @_roll_static(%arg0) : (tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
    %10 = call @_flip(%arg0) : (tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %11 = call @_pad(%arg0, %c) : (tensor<4x5x6xf32>, tensor<i64>) -> tensor<5x7x8xf32>
    %12 = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<4x5x6xf32>) -> tensor<6x4x5xf32>
    %13 = stablehlo.reshape %arg0 : (tensor<4x5x6xf32>) -> tensor<20x6xf32>
    %14 = stablehlo.slice %13 [0:20:2, 0:6] : (tensor<20x6xf32>) -> tensor<10x6xf32>
    %15 = stablehlo.reverse %14, dims = [1] : tensor<10x6xf32>
    return %12, %15, %0, %3, %6, %8, %9, %10, %11 : tensor<6x4x5xf32>, tensor<10x6xf32>, tensor<4x10x6xf32>, tensor<2x4x5x6xf32>, tensor<4x10x6xf32>, tensor<4x5x12xf32>, tensor<4x5x6xf32>, tensor<4x5x6xf32>, tensor<5x7x8xf32>
  }
  func.func private @_roll_static(%arg0: tensor<4x5x6xf32>) -> tensor<4x5x6xf32> {
    %0 = stablehlo.slice %arg0 [0:4, 3:5, 0:6] : (tensor<4x5x6xf32>) -> tensor<4x2x6xf32>
    %1 = stablehlo.slice %arg0 [0:4, 0:3, 0:6] : (tensor<4x5x6xf32>) -> tensor<4x3x6xf32>
    %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<4x2x6xf32>, tensor<4x3x6xf32>) -> tensor<4x5x6xf32>
    return %2 : tensor<4x5x6xf32>
  }
  func.func private @_flip(%arg0: tensor<4x5x6xf32>) -> tensor<4x5x6xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<4x5x6xf32>
    return %0 : tensor<4x5x6xf32>
  }
  func.func private @_pad(%arg0: tensor<4x5x6xf32>, %arg1: tensor<i64>) -> tensor<5x7x8xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [1, 0, 1], high = [0, 2, 1], interior = [0, 0, 0] : (tensor<4x5x6xf32>, tensor<f32>) -> tensor<5x7x8xf32>
    return %1 : tensor<5x7x8xf32>
  }
}
