module @jit_jacobians attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5xf32>) -> (tensor<5x5xf32> {jax.result_info = "result[0]"}, tensor<5x5xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.iota dim = 0 : tensor<5x5xi64>
    %1 = stablehlo.iota dim = 1 : tensor<5x5xi64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<5x5xi64>
    %3 = stablehlo.add %0, %2 : tensor<5x5xi64>
    %4 = stablehlo.compare EQ, %3, %1, SIGNED : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
    %5 = stablehlo.convert %4 : (tensor<5x5xi1>) -> tensor<5x5xf32>
    %6 = stablehlo.slice %5 [0:5, 0:5] : (tensor<5x5xf32>) -> tensor<5x5xf32>
    %7 = stablehlo.convert %6 : tensor<5x5xf32>
    %8 = stablehlo.sine %arg0 : tensor<5xf32>
    %9 = stablehlo.cosine %arg0 : tensor<5xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<1x5xf32>) -> tensor<5x5xf32>
    %12 = stablehlo.multiply %7, %11 : tensor<5x5xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.reduce(%7 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<5x5xf32>, tensor<f32>) -> tensor<5xf32>
    %15 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %16 = stablehlo.multiply %8, %15 : tensor<5xf32>
    %17 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<5x5xf32>
    %18 = stablehlo.multiply %12, %17 : tensor<5x5xf32>
    %19 = stablehlo.broadcast_in_dim %8, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %20 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<5xf32>) -> tensor<5x1xf32>
    %21 = stablehlo.broadcast_in_dim %19, dims = [0, 1] : (tensor<1x5xf32>) -> tensor<5x5xf32>
    %22 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<5x1xf32>) -> tensor<5x5xf32>
    %23 = stablehlo.multiply %21, %22 : tensor<5x5xf32>
    %24 = stablehlo.add %18, %23 : tensor<5x5xf32>
    %25 = stablehlo.transpose %24, dims = [1, 0] : (tensor<5x5xf32>) -> tensor<5x5xf32>
    %26 = stablehlo.slice %25 [0:5, 0:5] : (tensor<5x5xf32>) -> tensor<5x5xf32>
    %27 = stablehlo.iota dim = 0 : tensor<5x5xi64>
    %28 = stablehlo.iota dim = 1 : tensor<5x5xi64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %29 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<5x5xi64>
    %30 = stablehlo.add %27, %29 : tensor<5x5xi64>
    %31 = stablehlo.compare EQ, %30, %28, SIGNED : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
    %32 = stablehlo.convert %31 : (tensor<5x5xi1>) -> tensor<5x5xf32>
    %33 = stablehlo.slice %32 [0:5, 0:5] : (tensor<5x5xf32>) -> tensor<5x5xf32>
    %34 = stablehlo.convert %33 : tensor<5x5xf32>
    %35 = stablehlo.multiply %arg0, %arg0 : tensor<5xf32>
    %36 = stablehlo.multiply %35, %arg0 : tensor<5xf32>
    %37 = stablehlo.multiply %arg0, %arg0 : tensor<5xf32>
    %cst_2 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %39 = stablehlo.multiply %38, %37 : tensor<5xf32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %41 = stablehlo.broadcast_in_dim %40, dims = [0, 1] : (tensor<1x5xf32>) -> tensor<5x5xf32>
    %42 = stablehlo.multiply %34, %41 : tensor<5x5xf32>
    %43 = stablehlo.multiply %arg0, %arg0 : tensor<5xf32>
    %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %44 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %45 = stablehlo.multiply %44, %arg0 : tensor<5xf32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [0, 1] : (tensor<1x5xf32>) -> tensor<5x5xf32>
    %48 = stablehlo.multiply %34, %47 : tensor<5x5xf32>
    %cst_4 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %49 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %50 = stablehlo.multiply %49, %43 : tensor<5xf32>
    %cst_5 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<5x5xf32>
    %52 = stablehlo.multiply %51, %48 : tensor<5x5xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %53 = stablehlo.reduce(%36 init: %cst_6) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %54 = stablehlo.reduce(%42 init: %cst_7) applies stablehlo.add across dimensions = [1] : (tensor<5x5xf32>, tensor<f32>) -> tensor<5xf32>
    %55 = stablehlo.iota dim = 0 : tensor<1x1xi64>
    %56 = stablehlo.iota dim = 1 : tensor<1x1xi64>
    %c_8 = stablehlo.constant dense<0> : tensor<i64>
    %57 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i64>) -> tensor<1x1xi64>
    %58 = stablehlo.add %55, %57 : tensor<1x1xi64>
    %59 = stablehlo.compare EQ, %58, %56, SIGNED : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi1>
    %60 = stablehlo.convert %59 : (tensor<1x1xi1>) -> tensor<1x1xf32>
    %61 = stablehlo.slice %60 [0:1, 0:1] : (tensor<1x1xf32>) -> tensor<1x1xf32>
    %62 = stablehlo.reshape %61 : (tensor<1x1xf32>) -> tensor<1xf32>
    %63 = stablehlo.convert %62 : tensor<1xf32>
    %64 = stablehlo.broadcast_in_dim %63, dims = [0] : (tensor<1xf32>) -> tensor<1x5xf32>
    %65 = stablehlo.broadcast_in_dim %50, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %66 = stablehlo.broadcast_in_dim %52, dims = [0, 2] : (tensor<5x5xf32>) -> tensor<5x1x5xf32>
    %67 = stablehlo.multiply %64, %65 : tensor<1x5xf32>
    %68 = stablehlo.broadcast_in_dim %64, dims = [1, 2] : (tensor<1x5xf32>) -> tensor<1x1x5xf32>
    %69 = stablehlo.broadcast_in_dim %68, dims = [0, 1, 2] : (tensor<1x1x5xf32>) -> tensor<5x1x5xf32>
    %70 = stablehlo.multiply %69, %66 : tensor<5x1x5xf32>
    %71 = stablehlo.slice %67 [0:1, 0:5] : (tensor<1x5xf32>) -> tensor<1x5xf32>
    %72 = stablehlo.slice %70 [0:5, 0:1, 0:5] : (tensor<5x1x5xf32>) -> tensor<5x1x5xf32>
    %73 = stablehlo.reshape %71 : (tensor<1x5xf32>) -> tensor<5xf32>
    %74 = stablehlo.reshape %72 : (tensor<5x1x5xf32>) -> tensor<5x5xf32>
    %75 = stablehlo.transpose %74, dims = [1, 0] : (tensor<5x5xf32>) -> tensor<5x5xf32>
    %76 = stablehlo.slice %75 [0:5, 0:5] : (tensor<5x5xf32>) -> tensor<5x5xf32>
    return %26, %76 : tensor<5x5xf32>, tensor<5x5xf32>
  }
}
