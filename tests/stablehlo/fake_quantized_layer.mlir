module @jit_fake_quantized_layer attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x16xf32>) -> (tensor<5x8xi8> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<"0xF903417389A55272C0D05EECC654C2E9250D96885D41560A51D5F44AA0CEA0F47AA3E2E767B401C3864090C800FC9E7B40769839CB0B6CC73AA9D378EC04CB9EED1FF547DD1D466AED8B38075FF6DE90F524455AB7184EC3D85715022C037B418EA60B52922F42495FB10E4DDCB1FB95B95B2B5C5760D0F91EC66B825625C138"> : tensor<16x8xi8>
    %cst = stablehlo.constant dense<[2.000000e-03, 0.00457142852, 0.00714285718, 0.00971428584, 0.012285714, 0.0148571432, 0.0174285714, 2.000000e-02]> : tensor<8xf32>
    %cst_0 = stablehlo.constant dense<3.000000e-02> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5x16xf32>
    %1 = stablehlo.divide %arg0, %0 : tensor<5x16xf32>
    %2 = call @round(%1) : (tensor<5x16xf32>) -> tensor<5x16xf32>
    %cst_1 = stablehlo.constant dense<5.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<5x16xf32>
    %4 = stablehlo.add %2, %3 : tensor<5x16xf32>
    %c_2 = stablehlo.constant dense<-128> : tensor<i64>
    %c_3 = stablehlo.constant dense<127> : tensor<i64>
    %5 = call @clip(%4, %c_2, %c_3) : (tensor<5x16xf32>, tensor<i64>, tensor<i64>) -> tensor<5x16xf32>
    %6 = stablehlo.convert %5 : (tensor<5x16xf32>) -> tensor<5x16xi8>
    %7 = stablehlo.convert %6 : (tensor<5x16xi8>) -> tensor<5x16xf32>
    %cst_4 = stablehlo.constant dense<5.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<5x16xf32>
    %9 = stablehlo.subtract %7, %8 : tensor<5x16xf32>
    %cst_5 = stablehlo.constant dense<3.000000e-02> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<5x16xf32>
    %11 = stablehlo.multiply %9, %10 : tensor<5x16xf32>
    %12 = stablehlo.convert %c : (tensor<16x8xi8>) -> tensor<16x8xf32>
    %13 = stablehlo.broadcast_in_dim %cst, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<16x8xf32>
    %15 = stablehlo.multiply %12, %14 : tensor<16x8xf32>
    %16 = stablehlo.dot_general %11, %15, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x16xf32>, tensor<16x8xf32>) -> tensor<5x8xf32>
    %cst_6 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
    %18 = stablehlo.add %16, %17 : tensor<5x8xf32>
    %19 = call @relu(%18) : (tensor<5x8xf32>) -> tensor<5x8xf32>
    %cst_7 = stablehlo.constant dense<5.000000e-02> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
    %21 = stablehlo.divide %19, %20 : tensor<5x8xf32>
    %22 = call @round_0(%21) : (tensor<5x8xf32>) -> tensor<5x8xf32>
    %cst_8 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
    %24 = stablehlo.subtract %22, %23 : tensor<5x8xf32>
    %c_9 = stablehlo.constant dense<-128> : tensor<i64>
    %c_10 = stablehlo.constant dense<127> : tensor<i64>
    %25 = call @clip_1(%24, %c_9, %c_10) : (tensor<5x8xf32>, tensor<i64>, tensor<i64>) -> tensor<5x8xf32>
    %26 = stablehlo.convert %25 : (tensor<5x8xf32>) -> tensor<5x8xi8>
    return %26 : tensor<5x8xi8>
  }
  func.func private @round(%arg0: tensor<5x16xf32>) -> tensor<5x16xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<5x16xf32>
    return %0 : tensor<5x16xf32>
  }
  func.func private @clip(%arg0: tensor<5x16xf32>, %arg1: tensor<i64>, %arg2: tensor<i64>) -> tensor<5x16xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<5x16xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<5x16xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i64>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<5x16xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<5x16xf32>
    return %5 : tensor<5x16xf32>
  }
  func.func private @relu(%arg0: tensor<5x8xf32>) -> tensor<5x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<5x8xf32>
    return %1 : tensor<5x8xf32>
  }
  func.func private @round_0(%arg0: tensor<5x8xf32>) -> tensor<5x8xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<5x8xf32>
    return %0 : tensor<5x8xf32>
  }
  func.func private @clip_1(%arg0: tensor<5x8xf32>, %arg1: tensor<i64>, %arg2: tensor<i64>) -> tensor<5x8xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<5x8xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i64>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<5x8xf32>
    return %5 : tensor<5x8xf32>
  }
}
