module @jit_int8_layers attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x16xf32>, %arg1: tensor<2x6x7x3xf32>) -> (tensor<5x8xf32> {jax.result_info = "result[0]"}, tensor<2x6x7x8xf32> {jax.result_info = "result[1]"}) {
    %c = stablehlo.constant dense<"0xF903417389A55272C0D05EECC654C2E9250D96885D41560A51D5F44AA0CEA0F47AA3E2E767B401C3864090C800FC9E7B40769839CB0B6CC73AA9D378EC04CB9EED1FF547DD1D466AED8B38075FF6DE90F524455AB7184EC3D85715022C037B418EA60B52922F42495FB10E4DDCB1FB95B95B2B5C5760D0F91EC66B825625C138"> : tensor<16x8xi8>
    %c_0 = stablehlo.constant dense<"0xEA567FC8F8B73124584E7A7665A78BFBD8654CEC13176487FD2CF46B7353F7629329C5BF2E4463B65F54D1904553F6AAA6E042D189313EAE0FE6008222C30EEC1C9CDD2244E287390127A9EE625ED122964FC5D8770B60B3427F94BFA6C2D09365C26B43AC3246A1A2E092ECFB2A12F5B916F557333A12DEC8F312DEA69C8CB4E8C9AED137D06B14A4786146A94A33423619D86B7B30DC00109497FD10B7C4A26A02C74975CC66454B0769A79777FDE73BCC23584DA0783C33B06CE571BC985715E4797983204E311A0509CFA5E5327076B4887C2C4250DC"> : tensor<3x3x3x8xi8>
    %cst = stablehlo.constant dense<[2.000000e-03, 0.00457142852, 0.00714285718, 0.00971428584, 0.012285714, 0.0148571432, 0.0174285714, 2.000000e-02]> : tensor<8xf32>
    %cst_1 = stablehlo.constant dense<[4.00000026E-5, 9.14285701E-5, 1.42857141E-4, 1.9428572E-4, 2.45714269E-4, 2.97142862E-4, 3.48571426E-4, 4.000000e-04]> : tensor<8xf32>
    %0 = stablehlo.abs %arg0 : tensor<5x16xf32>
    %cst_2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst_2) applies stablehlo.maximum across dimensions = [1] : (tensor<5x16xf32>, tensor<f32>) -> tensor<5xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %cst_3 = stablehlo.constant dense<1.270000e+02> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<5x1xf32>
    %4 = stablehlo.divide %2, %3 : tensor<5x1xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x16xf32>
    %6 = stablehlo.divide %arg0, %5 : tensor<5x16xf32>
    %7 = call @round(%6) : (tensor<5x16xf32>) -> tensor<5x16xf32>
    %c_4 = stablehlo.constant dense<-127> : tensor<i64>
    %c_5 = stablehlo.constant dense<127> : tensor<i64>
    %8 = call @clip(%7, %c_4, %c_5) : (tensor<5x16xf32>, tensor<i64>, tensor<i64>) -> tensor<5x16xf32>
    %9 = stablehlo.convert %8 : (tensor<5x16xf32>) -> tensor<5x16xi8>
    %10 = stablehlo.dot_general %9, %c, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x16xi8>, tensor<16x8xi8>) -> tensor<5x8xi32>
    %cst_6 = stablehlo.constant dense<2.000000e-02> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x6x7x3xf32>
    %12 = stablehlo.divide %arg1, %11 : tensor<2x6x7x3xf32>
    %13 = call @round_0(%12) : (tensor<2x6x7x3xf32>) -> tensor<2x6x7x3xf32>
    %c_7 = stablehlo.constant dense<-128> : tensor<i64>
    %c_8 = stablehlo.constant dense<127> : tensor<i64>
    %14 = call @clip_1(%13, %c_7, %c_8) : (tensor<2x6x7x3xf32>, tensor<i64>, tensor<i64>) -> tensor<2x6x7x3xf32>
    %15 = stablehlo.convert %14 : (tensor<2x6x7x3xf32>) -> tensor<2x6x7x3xi8>
    %16 = stablehlo.convolution(%15, %c_0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x6x7x3xi8>, tensor<3x3x3x8xi8>) -> tensor<2x6x7x8xi32>
    %17 = stablehlo.convert %10 : (tensor<5x8xi32>) -> tensor<5x8xf32>
    %18 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x8xf32>
    %19 = stablehlo.multiply %17, %18 : tensor<5x8xf32>
    %20 = stablehlo.broadcast_in_dim %cst, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<5x8xf32>
    %22 = stablehlo.multiply %19, %21 : tensor<5x8xf32>
    %23 = stablehlo.convert %16 : (tensor<2x6x7x8xi32>) -> tensor<2x6x7x8xf32>
    %24 = stablehlo.broadcast_in_dim %cst_1, dims = [3] : (tensor<8xf32>) -> tensor<1x1x1x8xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xf32>) -> tensor<2x6x7x8xf32>
    %26 = stablehlo.multiply %23, %25 : tensor<2x6x7x8xf32>
    return %22, %26 : tensor<5x8xf32>, tensor<2x6x7x8xf32>
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
  func.func private @round_0(%arg0: tensor<2x6x7x3xf32>) -> tensor<2x6x7x3xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<2x6x7x3xf32>
    return %0 : tensor<2x6x7x3xf32>
  }
  func.func private @clip_1(%arg0: tensor<2x6x7x3xf32>, %arg1: tensor<i64>, %arg2: tensor<i64>) -> tensor<2x6x7x3xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x6x7x3xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<2x6x7x3xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i64>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<2x6x7x3xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<2x6x7x3xf32>
    return %5 : tensor<2x6x7x3xf32>
  }
}
