module @attention {
  func.func public @main(%q: tensor<2x19x4x16xf32>, %k: tensor<2x35x4x16xf32>, %v: tensor<2x35x4x16xf32>, %mask: tensor<2x1x19x35xi1>) -> tensor<2x19x4x16xf32> {
    %d = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<2x19x4x16xf32>, tensor<2x35x4x16xf32>) -> tensor<2x4x19x35xf32>
    %scale = stablehlo.constant dense<0.25> : tensor<f32>
    %sb = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<2x4x19x35xf32>
    %x0 = stablehlo.multiply %d, %sb : tensor<2x4x19x35xf32>
    %low = stablehlo.constant dense<-3.40282347E+38> : tensor<f32>
    %lows = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<f32>) -> tensor<2x4x19x35xf32>
    %m4 = stablehlo.broadcast_in_dim %mask, dims = [0, 1, 2, 3] : (tensor<2x1x19x35xi1>) -> tensor<2x4x19x35xi1>
    %x = stablehlo.select %m4, %x0, %lows : tensor<2x4x19x35xi1>, tensor<2x4x19x35xf32>
    %ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %m = stablehlo.reduce(%x init: %ninf) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x19x35xf32>, tensor<f32>) -> tensor<2x4x19xf32>
    %nb = stablehlo.broadcast_in_dim %ninf, dims = [] : (tensor<f32>) -> tensor<2x4x19xf32>
    %mm = stablehlo.maximum %nb, %m : tensor<2x4x19xf32>
    %mk = stablehlo.broadcast_in_dim %mm, dims = [0, 1, 2] : (tensor<2x4x19xf32>) -> tensor<2x4x19x1xf32>
    %mb = stablehlo.broadcast_in_dim %mk, dims = [0, 1, 2, 3] : (tensor<2x4x19x1xf32>) -> tensor<2x4x19x35xf32>
    %c = stablehlo.subtract %x, %mb : tensor<2x4x19x35xf32>
    %e = stablehlo.exponential %c : tensor<2x4x19x35xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x4x19x35xf32>, tensor<f32>) -> tensor<2x4x19xf32>
    %sk = stablehlo.broadcast_in_dim %s, dims = [0, 1, 2] : (tensor<2x4x19xf32>) -> tensor<2x4x19x1xf32>
    %sbb = stablehlo.broadcast_in_dim %sk, dims = [0, 1, 2, 3] : (tensor<2x4x19x1xf32>) -> tensor<2x4x19x35xf32>
    %w = stablehlo.divide %e, %sbb : tensor<2x4x19x35xf32>
    %o = stablehlo.dot_general %w, %v, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<2x4x19x35xf32>, tensor<2x35x4x16xf32>) -> tensor<2x4x19x16xf32>
    %r = stablehlo.transpose %o, dims = [0, 2, 1, 3] : (tensor<2x4x19x16xf32>) -> tensor<2x19x4x16xf32>
    return %r : tensor<2x19x4x16xf32>
  }
}
