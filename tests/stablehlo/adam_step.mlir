module @jit_adam_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<10xf32>, %arg1: tensor<10xf32>) -> (tensor<10xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %1 = stablehlo.multiply %0, %arg1 : tensor<10xf32>
    %cst_0 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %3 = stablehlo.multiply %2, %arg1 : tensor<10xf32>
    %4 = stablehlo.multiply %3, %arg1 : tensor<10xf32>
    %cst_1 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %6 = stablehlo.divide %1, %5 : tensor<10xf32>
    %cst_2 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %8 = stablehlo.multiply %7, %6 : tensor<10xf32>
    %cst_3 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %10 = stablehlo.divide %4, %9 : tensor<10xf32>
    %11 = stablehlo.sqrt %10 : tensor<10xf32>
    %cst_4 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<10xf32>
    %13 = stablehlo.add %11, %12 : tensor<10xf32>
    %14 = stablehlo.divide %8, %13 : tensor<10xf32>
    %15 = stablehlo.subtract %arg0, %14 : tensor<10xf32>
    return %15 : tensor<10xf32>
  }
}
