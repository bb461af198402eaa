module @jit_rnn_grad attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<7x3x4xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<8x8xf32>, %arg3: tensor<8xf32>) -> (tensor<4x8xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x8xf64>
    %1 = stablehlo.convert %arg3 : (tensor<8xf32>) -> tensor<8xf64>
    %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<8xf64>) -> tensor<1x8xf64>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<7x3xf64>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %4 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<7x3x8xf64>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %5 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<7x3x8xf64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %6:9 = stablehlo.while(%iterArg = %arg0, %iterArg_10 = %arg1, %iterArg_11 = %arg2, %iterArg_12 = %2, %iterArg_13 = %c, %iterArg_14 = %0, %iterArg_15 = %3, %iterArg_16 = %4, %iterArg_17 = %5) : tensor<7x3x4xf32>, tensor<4x8xf32>, tensor<8x8xf32>, tensor<1x8xf64>, tensor<i64>, tensor<3x8xf64>, tensor<7x3xf64>, tensor<7x3x8xf64>, tensor<7x3x8xf64>
    cond {
      %c_18 = stablehlo.constant dense<7> : tensor<i64>
      %17 = stablehlo.compare LT, %iterArg_13, %c_18, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %17 : tensor<i1>
    } do {
      %17 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_13) : (tensor<7x3x4xf32>, tensor<i64>) -> tensor<3x4xf32>
      %18:4 = func.call @closed_call(%iterArg_10, %iterArg_11, %iterArg_12, %iterArg_14, %17) : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<1x8xf64>, tensor<3x8xf64>, tensor<3x4xf32>) -> (tensor<3x8xf64>, tensor<3xf64>, tensor<3x8xf64>, tensor<3x8xf64>)
      %19 = func.call @dynamic_update_index_in_dim(%iterArg_15, %18#1, %iterArg_13) : (tensor<7x3xf64>, tensor<3xf64>, tensor<i64>) -> tensor<7x3xf64>
      %20 = func.call @dynamic_update_index_in_dim_0(%iterArg_16, %18#2, %iterArg_13) : (tensor<7x3x8xf64>, tensor<3x8xf64>, tensor<i64>) -> tensor<7x3x8xf64>
      %21 = func.call @dynamic_update_index_in_dim_0(%iterArg_17, %18#3, %iterArg_13) : (tensor<7x3x8xf64>, tensor<3x8xf64>, tensor<i64>) -> tensor<7x3x8xf64>
      %c_18 = stablehlo.constant dense<1> : tensor<i64>
      %22 = stablehlo.add %iterArg_13, %c_18 : tensor<i64>
      stablehlo.return %iterArg, %iterArg_10, %iterArg_11, %iterArg_12, %22, %18#0, %19, %20, %21 : tensor<7x3x4xf32>, tensor<4x8xf32>, tensor<8x8xf32>, tensor<1x8xf64>, tensor<i64>, tensor<3x8xf64>, tensor<7x3xf64>, tensor<7x3x8xf64>, tensor<7x3x8xf64>
    }
    %7 = stablehlo.multiply %6#6, %6#6 : tensor<7x3xf64>
    %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %8 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f64>) -> tensor<7x3xf64>
    %9 = stablehlo.multiply %8, %6#6 : tensor<7x3xf64>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %10 = stablehlo.reduce(%7 init: %cst_4) applies stablehlo.add across dimensions = [0, 1] : (tensor<7x3xf64>, tensor<f64>) -> tensor<f64>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %11 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f64>) -> tensor<3x8xf64>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %12 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f64>) -> tensor<7x3xf64>
    %13 = stablehlo.multiply %12, %9 : tensor<7x3xf64>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %14 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f64>) -> tensor<3x8xf64>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %c_9 = stablehlo.constant dense<0> : tensor<i64>
    %16:8 = stablehlo.while(%iterArg = %13, %iterArg_10 = %arg0, %iterArg_11 = %6#7, %iterArg_12 = %6#8, %iterArg_13 = %arg2, %iterArg_14 = %c_9, %iterArg_15 = %15, %iterArg_16 = %14) : tensor<7x3xf64>, tensor<7x3x4xf32>, tensor<7x3x8xf64>, tensor<7x3x8xf64>, tensor<8x8xf32>, tensor<i64>, tensor<4x8xf32>, tensor<3x8xf64>
    cond {
      %c_17 = stablehlo.constant dense<7> : tensor<i64>
      %17 = stablehlo.compare LT, %iterArg_14, %c_17, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %17 : tensor<i1>
    } do {
      %c_17 = stablehlo.constant dense<7> : tensor<i64>
      %17 = stablehlo.subtract %c_17, %iterArg_14 : tensor<i64>
      %c_18 = stablehlo.constant dense<1> : tensor<i64>
      %18 = stablehlo.subtract %17, %c_18 : tensor<i64>
      %19 = func.call @dynamic_index_in_dim_1(%iterArg, %18) : (tensor<7x3xf64>, tensor<i64>) -> tensor<3xf64>
      %20 = func.call @dynamic_index_in_dim(%iterArg_10, %18) : (tensor<7x3x4xf32>, tensor<i64>) -> tensor<3x4xf32>
      %21 = func.call @dynamic_index_in_dim_2(%iterArg_11, %18) : (tensor<7x3x8xf64>, tensor<i64>) -> tensor<3x8xf64>
      %22 = func.call @dynamic_index_in_dim_2(%iterArg_12, %18) : (tensor<7x3x8xf64>, tensor<i64>) -> tensor<3x8xf64>
      %23:2 = func.call @closed_call_3(%iterArg_13, %iterArg_15, %iterArg_16, %19, %20, %21, %22) : (tensor<8x8xf32>, tensor<4x8xf32>, tensor<3x8xf64>, tensor<3xf64>, tensor<3x4xf32>, tensor<3x8xf64>, tensor<3x8xf64>) -> (tensor<4x8xf32>, tensor<3x8xf64>)
      %c_19 = stablehlo.constant dense<1> : tensor<i64>
      %24 = stablehlo.add %iterArg_14, %c_19 : tensor<i64>
      stablehlo.return %iterArg, %iterArg_10, %iterArg_11, %iterArg_12, %iterArg_13, %24, %23#0, %23#1 : tensor<7x3xf64>, tensor<7x3x4xf32>, tensor<7x3x8xf64>, tensor<7x3x8xf64>, tensor<8x8xf32>, tensor<i64>, tensor<4x8xf32>, tensor<3x8xf64>
    }
    return %16#6 : tensor<4x8xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<7x3x4xf32>, %arg1: tensor<i64>) -> tensor<3x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 3, 4] : (tensor<7x3x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x3x4xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
    return %1 : tensor<3x4xf32>
  }
  func.func private @closed_call(%arg0: tensor<4x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<1x8xf64>, %arg3: tensor<3x8xf64>, %arg4: tensor<3x4xf32>) -> (tensor<3x8xf64>, tensor<3xf64>, tensor<3x8xf64>, tensor<3x8xf64>) {
    %0 = stablehlo.dot_general %arg4, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %1 = stablehlo.convert %arg3 : tensor<3x8xf64>
    %2 = stablehlo.convert %arg1 : (tensor<8x8xf32>) -> tensor<8x8xf64>
    %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x8xf64>, tensor<8x8xf64>) -> tensor<3x8xf64>
    %4 = stablehlo.convert %0 : (tensor<3x8xf32>) -> tensor<3x8xf64>
    %5 = stablehlo.add %4, %3 : tensor<3x8xf64>
    %6 = stablehlo.broadcast_in_dim %arg2, dims = [0, 1] : (tensor<1x8xf64>) -> tensor<3x8xf64>
    %7 = stablehlo.add %5, %6 : tensor<3x8xf64>
    %8 = stablehlo.tanh %7 : tensor<3x8xf64>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x8xf64>
    %10 = stablehlo.subtract %9, %8 : tensor<3x8xf64>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %11 = stablehlo.reduce(%8 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<3x8xf64>, tensor<f64>) -> tensor<3xf64>
    return %8, %11, %8, %10 : tensor<3x8xf64>, tensor<3xf64>, tensor<3x8xf64>, tensor<3x8xf64>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<7x3xf64>, %arg1: tensor<3xf64>, %arg2: tensor<i64>) -> tensor<7x3xf64> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf64>) -> tensor<1x3xf64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<7x3xf64>, tensor<1x3xf64>, tensor<i64>, tensor<i64>) -> tensor<7x3xf64>
    return %1 : tensor<7x3xf64>
  }
  func.func private @dynamic_update_index_in_dim_0(%arg0: tensor<7x3x8xf64>, %arg1: tensor<3x8xf64>, %arg2: tensor<i64>) -> tensor<7x3x8xf64> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<3x8xf64>) -> tensor<1x3x8xf64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<7x3x8xf64>, tensor<1x3x8xf64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<7x3x8xf64>
    return %1 : tensor<7x3x8xf64>
  }
  func.func private @dynamic_index_in_dim_1(%arg0: tensor<7x3xf64>, %arg1: tensor<i64>) -> tensor<3xf64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 3] : (tensor<7x3xf64>, tensor<i64>, tensor<i64>) -> tensor<1x3xf64>
    %1 = stablehlo.reshape %0 : (tensor<1x3xf64>) -> tensor<3xf64>
    return %1 : tensor<3xf64>
  }
  func.func private @dynamic_index_in_dim_2(%arg0: tensor<7x3x8xf64>, %arg1: tensor<i64>) -> tensor<3x8xf64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 3, 8] : (tensor<7x3x8xf64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x3x8xf64>
    %1 = stablehlo.reshape %0 : (tensor<1x3x8xf64>) -> tensor<3x8xf64>
    return %1 : tensor<3x8xf64>
  }
  func.func private @closed_call_3(%arg0: tensor<8x8xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<3x8xf64>, %arg3: tensor<3xf64>, %arg4: tensor<3x4xf32>, %arg5: tensor<3x8xf64>, %arg6: tensor<3x8xf64>) -> (tensor<4x8xf32>, tensor<3x8xf64>) {
    %0 = stablehlo.broadcast_in_dim %arg3, dims = [0] : (tensor<3xf64>) -> tensor<3x8xf64>
    %1 = stablehlo.add %arg2, %0 : tensor<3x8xf64>
    %2 = stablehlo.multiply %1, %arg6 : tensor<3x8xf64>
    %3 = stablehlo.multiply %2, %arg5 : tensor<3x8xf64>
    %4 = stablehlo.add %2, %3 : tensor<3x8xf64>
    %5 = stablehlo.convert %4 : (tensor<3x8xf64>) -> tensor<3x8xf32>
    %6 = stablehlo.convert %4 : tensor<3x8xf64>
    %7 = stablehlo.convert %arg0 : (tensor<8x8xf32>) -> tensor<8x8xf64>
    %8 = stablehlo.dot_general %6, %7, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<3x8xf64>, tensor<8x8xf64>) -> tensor<3x8xf64>
    %9 = stablehlo.dot_general %5, %arg4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x8xf32>, tensor<3x4xf32>) -> tensor<8x4xf32>
    %10 = stablehlo.transpose %9, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %11 = stablehlo.add %arg1, %10 : tensor<4x8xf32>
    return %11, %8 : tensor<4x8xf32>, tensor<3x8xf64>
  }
}
