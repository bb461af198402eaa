// `add` adds the product of its argument and the weights to a total. `show` returns twice the total.
module @counter {
  func.func public @add(%x: tensor<1x4xf32>, %total: tensor<1x3xf32> {tf.aliasing_output = 0 : i32})
      -> (tensor<1x3xf32>, tensor<1x3xf32> {jax.result_info = "product"}) {
    %w = stablehlo.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0], [9.0, 10.0, 11.0]]> : tensor<4x3xf32>
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32>
    %n = stablehlo.add %total, %p : tensor<1x3xf32>
    func.return %n, %p : tensor<1x3xf32>, tensor<1x3xf32>
  }
  func.func public @show(%total: tensor<1x3xf32> {tf.aliasing_output = 1 : i32})
      -> (tensor<1x3xf32> {jax.result_info = "twice"}, tensor<1x3xf32>) {
    %d = stablehlo.add %total, %total : tensor<1x3xf32>
    func.return %d, %total : tensor<1x3xf32>, tensor<1x3xf32>
  }
}
