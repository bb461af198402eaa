module @jit_associative_scan attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<20xf32>) -> (tensor<20xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.slice %arg0 [0:19:2] : (tensor<20xf32>) -> tensor<10xf32>
    %1 = stablehlo.slice %arg0 [1:20:2] : (tensor<20xf32>) -> tensor<10xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<10xf32>
    %3 = stablehlo.add %2, %0 : tensor<10xf32>
    %4 = stablehlo.slice %3 [0:9:2] : (tensor<10xf32>) -> tensor<5xf32>
    %5 = stablehlo.slice %3 [1:10:2] : (tensor<10xf32>) -> tensor<5xf32>
    %6 = stablehlo.multiply %4, %5 : tensor<5xf32>
    %7 = stablehlo.add %6, %4 : tensor<5xf32>
    %8 = stablehlo.slice %7 [0:4:2] : (tensor<5xf32>) -> tensor<2xf32>
    %9 = stablehlo.slice %7 [1:5:2] : (tensor<5xf32>) -> tensor<2xf32>
    %10 = stablehlo.multiply %8, %9 : tensor<2xf32>
    %11 = stablehlo.add %10, %8 : tensor<2xf32>
    %12 = stablehlo.slice %11 [0:1:2] : (tensor<2xf32>) -> tensor<1xf32>
    %13 = stablehlo.slice %11 [1:2:2] : (tensor<2xf32>) -> tensor<1xf32>
    %14 = stablehlo.multiply %12, %13 : tensor<1xf32>
    %15 = stablehlo.add %14, %12 : tensor<1xf32>
    %16 = stablehlo.slice %15 [0:0] : (tensor<1xf32>) -> tensor<0xf32>
    %17 = stablehlo.slice %11 [2:2:2] : (tensor<2xf32>) -> tensor<0xf32>
    %18 = stablehlo.multiply %16, %17 : tensor<0xf32>
    %19 = stablehlo.add %18, %16 : tensor<0xf32>
    %20 = stablehlo.slice %11 [0:1] : (tensor<2xf32>) -> tensor<1xf32>
    %21 = stablehlo.concatenate %20, %19, dim = 0 : (tensor<1xf32>, tensor<0xf32>) -> tensor<1xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %22 = stablehlo.pad %21, %cst, low = [0], high = [1], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %23 = stablehlo.pad %15, %cst_0, low = [1], high = [0], interior = [1] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
    %24 = stablehlo.add %22, %23 : tensor<2xf32>
    %25 = stablehlo.slice %7 [2:5:2] : (tensor<5xf32>) -> tensor<2xf32>
    %26 = stablehlo.multiply %24, %25 : tensor<2xf32>
    %27 = stablehlo.add %26, %24 : tensor<2xf32>
    %28 = stablehlo.slice %7 [0:1] : (tensor<5xf32>) -> tensor<1xf32>
    %29 = stablehlo.concatenate %28, %27, dim = 0 : (tensor<1xf32>, tensor<2xf32>) -> tensor<3xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %30 = stablehlo.pad %29, %cst_1, low = [0], high = [0], interior = [1] : (tensor<3xf32>, tensor<f32>) -> tensor<5xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %31 = stablehlo.pad %24, %cst_2, low = [1], high = [1], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<5xf32>
    %32 = stablehlo.add %30, %31 : tensor<5xf32>
    %33 = stablehlo.slice %32 [0:4] : (tensor<5xf32>) -> tensor<4xf32>
    %34 = stablehlo.slice %3 [2:10:2] : (tensor<10xf32>) -> tensor<4xf32>
    %35 = stablehlo.multiply %33, %34 : tensor<4xf32>
    %36 = stablehlo.add %35, %33 : tensor<4xf32>
    %37 = stablehlo.slice %3 [0:1] : (tensor<10xf32>) -> tensor<1xf32>
    %38 = stablehlo.concatenate %37, %36, dim = 0 : (tensor<1xf32>, tensor<4xf32>) -> tensor<5xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %39 = stablehlo.pad %38, %cst_3, low = [0], high = [1], interior = [1] : (tensor<5xf32>, tensor<f32>) -> tensor<10xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %40 = stablehlo.pad %32, %cst_4, low = [1], high = [0], interior = [1] : (tensor<5xf32>, tensor<f32>) -> tensor<10xf32>
    %41 = stablehlo.add %39, %40 : tensor<10xf32>
    %42 = stablehlo.slice %41 [0:9] : (tensor<10xf32>) -> tensor<9xf32>
    %43 = stablehlo.slice %arg0 [2:20:2] : (tensor<20xf32>) -> tensor<9xf32>
    %44 = stablehlo.multiply %42, %43 : tensor<9xf32>
    %45 = stablehlo.add %44, %42 : tensor<9xf32>
    %46 = stablehlo.slice %arg0 [0:1] : (tensor<20xf32>) -> tensor<1xf32>
    %47 = stablehlo.concatenate %46, %45, dim = 0 : (tensor<1xf32>, tensor<9xf32>) -> tensor<10xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %48 = stablehlo.pad %47, %cst_5, low = [0], high = [1], interior = [1] : (tensor<10xf32>, tensor<f32>) -> tensor<20xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %49 = stablehlo.pad %41, %cst_6, low = [1], high = [0], interior = [1] : (tensor<10xf32>, tensor<f32>) -> tensor<20xf32>
    %50 = stablehlo.add %48, %49 : tensor<20xf32>
    return %50 : tensor<20xf32>
  }
}
