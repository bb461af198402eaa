module @jit_rnn_scan attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<7x3x4xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<8x8xf32>, %arg3: tensor<8xf32>) -> (tensor<3x8xf64> {jax.result_info = "result[0]"}, tensor<7x3xf64> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x8xf64>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<7x3xf64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %2:7 = stablehlo.while(%iterArg = %arg0, %iterArg_1 = %arg1, %iterArg_2 = %arg2, %iterArg_3 = %arg3, %iterArg_4 = %c, %iterArg_5 = %0, %iterArg_6 = %1) : tensor<7x3x4xf32>, tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32>, tensor<i64>, tensor<3x8xf64>, tensor<7x3xf64>
    cond {
      %c_7 = stablehlo.constant dense<7> : tensor<i64>
      %3 = stablehlo.compare LT, %iterArg_4, %c_7, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_4) : (tensor<7x3x4xf32>, tensor<i64>) -> tensor<3x4xf32>
      %4:2 = func.call @closed_call(%iterArg_1, %iterArg_2, %iterArg_3, %iterArg_5, %3) : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32>, tensor<3x8xf64>, tensor<3x4xf32>) -> (tensor<3x8xf64>, tensor<3xf64>)
      %5 = func.call @dynamic_update_index_in_dim(%iterArg_6, %4#1, %iterArg_4) : (tensor<7x3xf64>, tensor<3xf64>, tensor<i64>) -> tensor<7x3xf64>
      %c_7 = stablehlo.constant dense<1> : tensor<i64>
      %6 = stablehlo.add %iterArg_4, %c_7 : tensor<i64>
      stablehlo.return %iterArg, %iterArg_1, %iterArg_2, %iterArg_3, %6, %4#0, %5 : tensor<7x3x4xf32>, tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32>, tensor<i64>, tensor<3x8xf64>, tensor<7x3xf64>
    }
    return %2#5, %2#6 : tensor<3x8xf64>, tensor<7x3xf64>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<7x3x4xf32>, %arg1: tensor<i64>) -> tensor<3x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 3, 4] : (tensor<7x3x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x3x4xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
    return %1 : tensor<3x4xf32>
  }
  func.func private @closed_call(%arg0: tensor<4x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<3x8xf64>, %arg4: tensor<3x4xf32>) -> (tensor<3x8xf64>, tensor<3xf64>) {
    %0 = stablehlo.dot_general %arg4, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %1 = stablehlo.convert %arg3 : tensor<3x8xf64>
    %2 = stablehlo.convert %arg1 : (tensor<8x8xf32>) -> tensor<8x8xf64>
    %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x8xf64>, tensor<8x8xf64>) -> tensor<3x8xf64>
    %4 = stablehlo.convert %0 : (tensor<3x8xf32>) -> tensor<3x8xf64>
    %5 = stablehlo.add %4, %3 : tensor<3x8xf64>
    %6 = stablehlo.convert %arg2 : (tensor<8xf32>) -> tensor<8xf64>
    %7 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<8xf64>) -> tensor<1x8xf64>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x8xf64>) -> tensor<3x8xf64>
    %9 = stablehlo.add %5, %8 : tensor<3x8xf64>
    %10 = stablehlo.tanh %9 : tensor<3x8xf64>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %11 = stablehlo.reduce(%10 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<3x8xf64>, tensor<f64>) -> tensor<3xf64>
    return %10, %11 : tensor<3x8xf64>, tensor<3xf64>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<7x3xf64>, %arg1: tensor<3xf64>, %arg2: tensor<i64>) -> tensor<7x3xf64> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf64>) -> tensor<1x3xf64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<7x3xf64>, tensor<1x3xf64>, tensor<i64>, tensor<i64>) -> tensor<7x3xf64>
    return %1 : tensor<7x3xf64>
  }
}
