module @jit_searching attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8xi32>) -> (tensor<3xi32> {jax.result_info = "result[0]"}, tensor<10xi64> {jax.result_info = "result[1]"}, tensor<8xi32> {jax.result_info = "result[2]"}) {
    %c = stablehlo.constant dense<[0, 4, 10]> : tensor<3xi32>
    %0 = call @sort(%arg0) : (tensor<8xi32>) -> tensor<8xi32>
    %1 = call @searchsorted(%0, %c) : (tensor<8xi32>, tensor<3xi32>) -> tensor<3xi32>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<10xi64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %3 = call @clip(%arg0, %c_1) : (tensor<8xi32>, tensor<i64>) -> tensor<8xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %5 = stablehlo.compare LT, %3, %4, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    %c_3 = stablehlo.constant dense<10> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %7 = stablehlo.add %3, %6 : tensor<8xi32>
    %8 = stablehlo.select %5, %7, %3 : tensor<8xi1>, tensor<8xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %c_4 = stablehlo.constant dense<1> : tensor<i64>
    %10 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %11 = "stablehlo.scatter"(%2, %9, %10) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg1: tensor<i64>, %arg2: tensor<i64>):
      %43 = stablehlo.add %arg1, %arg2 : tensor<i64>
      stablehlo.return %43 : tensor<i64>
    }) : (tensor<10xi64>, tensor<8x1xi32>, tensor<8xi64>) -> tensor<10xi64>
    %12:3 = call @_unique_sorted_mask(%arg0) : (tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi1>, tensor<8xi64>)
    %13 = call @cumsum(%12#1) : (tensor<8xi1>) -> tensor<8xi64>
    %c_5 = stablehlo.constant dense<0> : tensor<i64>
    %14 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %c_6 = stablehlo.constant dense<0> : tensor<i64>
    %15 = call @clip_2(%13, %c_6) : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
    %c_7 = stablehlo.constant dense<0> : tensor<i64>
    %16 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %17 = stablehlo.compare LT, %15, %16, SIGNED : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
    %c_8 = stablehlo.constant dense<8> : tensor<i64>
    %18 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %19 = stablehlo.add %15, %18 : tensor<8xi64>
    %20 = stablehlo.select %17, %19, %15 : tensor<8xi1>, tensor<8xi64>
    %21 = stablehlo.convert %20 : (tensor<8xi64>) -> tensor<8xi32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %c_9 = stablehlo.constant dense<1> : tensor<i64>
    %23 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %24 = "stablehlo.scatter"(%14, %22, %23) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg1: tensor<i64>, %arg2: tensor<i64>):
      %43 = stablehlo.add %arg1, %arg2 : tensor<i64>
      stablehlo.return %43 : tensor<i64>
    }) : (tensor<8xi64>, tensor<8x1xi32>, tensor<8xi64>) -> tensor<8xi64>
    %25 = call @cumsum_3(%24) : (tensor<8xi64>) -> tensor<8xi64>
    %c_10 = stablehlo.constant dense<1> : tensor<i64>
    %26 = call @floor_divide_4(%25, %c_10) : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
    %c_11 = stablehlo.constant dense<8> : tensor<i64>
    %27 = call @remainder(%26, %c_11) : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
    %c_12 = stablehlo.constant dense<0> : tensor<i64>
    %28 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %29 = stablehlo.compare LT, %27, %28, SIGNED : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
    %c_13 = stablehlo.constant dense<8> : tensor<i64>
    %30 = stablehlo.broadcast_in_dim %c_13, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %31 = stablehlo.add %27, %30 : tensor<8xi64>
    %32 = stablehlo.select %29, %31, %27 : tensor<8xi1>, tensor<8xi64>
    %33 = stablehlo.convert %32 : (tensor<8xi64>) -> tensor<8xi32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %35 = "stablehlo.gather"(%12#0, %34) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<8xi32>, tensor<8x1xi32>) -> tensor<8xi32>
    %36 = stablehlo.iota dim = 0 : tensor<8xi64>
    %37 = stablehlo.convert %12#1 : (tensor<8xi1>) -> tensor<8xi32>
    %38 = stablehlo.convert %37 : (tensor<8xi32>) -> tensor<8xi64>
    %c_14 = stablehlo.constant dense<0> : tensor<i64>
    %39 = stablehlo.reduce(%38 init: %c_14) applies stablehlo.add across dimensions = [0] : (tensor<8xi64>, tensor<i64>) -> tensor<i64>
    %40 = stablehlo.broadcast_in_dim %39, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %41 = stablehlo.compare LT, %36, %40, SIGNED : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
    %c_15 = stablehlo.constant dense<-1> : tensor<i32>
    %42 = call @_where_6(%41, %35, %c_15) : (tensor<8xi1>, tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    return %1, %11, %42 : tensor<3xi32>, tensor<10xi64>, tensor<8xi32>
  }
  func.func private @sort(%arg0: tensor<8xi32>) -> tensor<8xi32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>):
      %1 = stablehlo.compare LT, %arg1, %arg2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) : (tensor<8xi32>) -> tensor<8xi32>
    return %0 : tensor<8xi32>
  }
  func.func private @searchsorted(%arg0: tensor<8xi32>, %arg1: tensor<3xi32>) -> tensor<3xi32> {
    %0 = call @_searchsorted_scan_impl(%arg0, %arg1) : (tensor<8xi32>, tensor<3xi32>) -> tensor<3xi32>
    return %0 : tensor<3xi32>
  }
  func.func private @_searchsorted_scan_impl(%arg0: tensor<8xi32>, %arg1: tensor<3xi32>) -> tensor<3xi32> {
    %0 = call @_searchsorted_scan_impl_0(%arg0, %arg1) : (tensor<8xi32>, tensor<3xi32>) -> tensor<3xi32>
    return %0 : tensor<3xi32>
  }
  func.func private @_searchsorted_scan_impl_0(%arg0: tensor<8xi32>, %arg1: tensor<3xi32>) -> tensor<3xi32> {
    %c = stablehlo.constant dense<0> : tensor<ui32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %c_0 = stablehlo.constant dense<8> : tensor<ui32>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %2:5 = stablehlo.while(%iterArg = %arg0, %iterArg_2 = %arg1, %iterArg_3 = %c_1, %iterArg_4 = %0, %iterArg_5 = %1) : tensor<8xi32>, tensor<3xi32>, tensor<i64>, tensor<3xui32>, tensor<3xui32>
    cond {
      %c_6 = stablehlo.constant dense<4> : tensor<i64>
      %4 = stablehlo.compare LT, %iterArg_3, %c_6, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %4:2 = func.call @closed_call(%iterArg, %iterArg_2, %iterArg_4, %iterArg_5) : (tensor<8xi32>, tensor<3xi32>, tensor<3xui32>, tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>)
      %c_6 = stablehlo.constant dense<1> : tensor<i64>
      %5 = stablehlo.add %iterArg_3, %c_6 : tensor<i64>
      stablehlo.return %iterArg, %iterArg_2, %5, %4#0, %4#1 : tensor<8xi32>, tensor<3xi32>, tensor<i64>, tensor<3xui32>, tensor<3xui32>
    }
    %3 = stablehlo.convert %2#4 : (tensor<3xui32>) -> tensor<3xi32>
    return %3 : tensor<3xi32>
  }
  func.func private @closed_call(%arg0: tensor<8xi32>, %arg1: tensor<3xi32>, %arg2: tensor<3xui32>, %arg3: tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>) {
    %0 = stablehlo.subtract %arg3, %arg2 : tensor<3xui32>
    %c = stablehlo.constant dense<2> : tensor<i64>
    %1 = call @floor_divide(%0, %c) : (tensor<3xui32>, tensor<i64>) -> tensor<3xui32>
    %2 = stablehlo.add %arg2, %1 : tensor<3xui32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xui32>) -> tensor<3x1xui32>
    %4 = "stablehlo.gather"(%arg0, %3) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<8xi32>, tensor<3x1xui32>) -> tensor<3x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<3x1xi32>) -> tensor<3xi32>
    %6 = stablehlo.compare LE, %arg1, %5, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %7 = stablehlo.select %6, %arg2, %2 : tensor<3xi1>, tensor<3xui32>
    %8 = stablehlo.select %6, %2, %arg3 : tensor<3xi1>, tensor<3xui32>
    return %7, %8 : tensor<3xui32>, tensor<3xui32>
  }
  func.func private @floor_divide(%arg0: tensor<3xui32>, %arg1: tensor<i64>) -> tensor<3xui32> {
    %0 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<ui32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %2 = stablehlo.divide %arg0, %1 : tensor<3xui32>
    return %2 : tensor<3xui32>
  }
  func.func private @clip(%arg0: tensor<8xi32>, %arg1: tensor<i64>) -> tensor<8xi32> {
    %0 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<8xi32>
    return %2 : tensor<8xi32>
  }
  func.func private @_unique_sorted_mask(%arg0: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi1>, tensor<8xi64>) {
    %0 = stablehlo.reshape %arg0 : (tensor<8xi32>) -> tensor<8x1xi32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x1xi32>) -> tensor<1x8xi32>
    %2 = stablehlo.reverse %1, dims = [0] : tensor<1x8xi32>
    %3 = call @lexsort(%2) : (tensor<1x8xi32>) -> tensor<8xi64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %4 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %5 = stablehlo.compare LT, %3, %4, SIGNED : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
    %c_0 = stablehlo.constant dense<8> : tensor<i64>
    %6 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %7 = stablehlo.add %3, %6 : tensor<8xi64>
    %8 = stablehlo.select %5, %7, %3 : tensor<8xi1>, tensor<8xi64>
    %9 = stablehlo.convert %8 : (tensor<8xi64>) -> tensor<8xi32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %11 = "stablehlo.gather"(%arg0, %10) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<8xi32>, tensor<8x1xi32>) -> tensor<8xi32>
    %c_1 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i1>) -> tensor<8xi1>
    %13 = stablehlo.slice %11 [1:8] : (tensor<8xi32>) -> tensor<7xi32>
    %14 = stablehlo.slice %11 [0:7] : (tensor<8xi32>) -> tensor<7xi32>
    %15 = stablehlo.compare NE, %13, %14, SIGNED : (tensor<7xi32>, tensor<7xi32>) -> tensor<7xi1>
    %c_2 = stablehlo.constant dense<false> : tensor<i1>
    %16 = stablehlo.reduce(%15 init: %c_2) applies stablehlo.or across dimensions = [] : (tensor<7xi1>, tensor<i1>) -> tensor<7xi1>
    %c_3 = stablehlo.constant dense<1> : tensor<i32>
    %17 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %18 = "stablehlo.scatter"(%12, %17, %16) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg1: tensor<i1>, %arg2: tensor<i1>):
      stablehlo.return %arg2 : tensor<i1>
    }) : (tensor<8xi1>, tensor<1xi32>, tensor<7xi1>) -> tensor<8xi1>
    return %11, %18, %3 : tensor<8xi32>, tensor<8xi1>, tensor<8xi64>
  }
  func.func private @lexsort(%arg0: tensor<1x8xi32>) -> tensor<8xi64> {
    %0 = stablehlo.slice %arg0 [0:1, 0:8] : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %1 = stablehlo.reshape %0 : (tensor<1x8xi32>) -> tensor<8xi32>
    %2 = stablehlo.iota dim = 0 : tensor<8xi64>
    %3:2 = "stablehlo.sort"(%1, %2) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>, %arg3: tensor<i64>, %arg4: tensor<i64>):
      %4 = stablehlo.compare LT, %arg1, %arg2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }) : (tensor<8xi32>, tensor<8xi64>) -> (tensor<8xi32>, tensor<8xi64>)
    return %3#1 : tensor<8xi64>
  }
  func.func private @cumsum(%arg0: tensor<8xi1>) -> tensor<8xi64> {
    %0 = stablehlo.convert %arg0 : (tensor<8xi1>) -> tensor<8xi64>
    %1 = call @cumsum_1(%0) : (tensor<8xi64>) -> tensor<8xi64>
    return %1 : tensor<8xi64>
  }
  func.func private @cumsum_1(%arg0: tensor<8xi64>) -> tensor<8xi64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<i64>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1>, padding = dense<[[7, 0]]> : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 8>, window_strides = array<i64: 1>}> ({
    ^bb0(%arg1: tensor<i64>, %arg2: tensor<i64>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<i64>
      stablehlo.return %2 : tensor<i64>
    }) : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
    return %1 : tensor<8xi64>
  }
  func.func private @clip_2(%arg0: tensor<8xi64>, %arg1: tensor<i64>) -> tensor<8xi64> {
    %0 = stablehlo.convert %arg1 : tensor<i64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %2 = stablehlo.maximum %1, %arg0 : tensor<8xi64>
    return %2 : tensor<8xi64>
  }
  func.func private @cumsum_3(%arg0: tensor<8xi64>) -> tensor<8xi64> {
    %0 = call @cumsum_1(%arg0) : (tensor<8xi64>) -> tensor<8xi64>
    return %0 : tensor<8xi64>
  }
  func.func private @floor_divide_4(%arg0: tensor<8xi64>, %arg1: tensor<i64>) -> tensor<8xi64> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %1 = stablehlo.divide %arg0, %0 : tensor<8xi64>
    %2 = stablehlo.sign %arg0 : tensor<8xi64>
    %3 = stablehlo.sign %arg1 : tensor<i64>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %5 = stablehlo.compare NE, %2, %4, SIGNED : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
    %6 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %7 = stablehlo.remainder %arg0, %6 : tensor<8xi64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %8 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %9 = stablehlo.compare NE, %7, %8, SIGNED : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
    %10 = stablehlo.and %5, %9 : tensor<8xi1>
    %c_0 = stablehlo.constant dense<1> : tensor<i64>
    %11 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %12 = stablehlo.subtract %1, %11 : tensor<8xi64>
    %13 = call @_where(%10, %12, %1) : (tensor<8xi1>, tensor<8xi64>, tensor<8xi64>) -> tensor<8xi64>
    return %13 : tensor<8xi64>
  }
  func.func private @_where(%arg0: tensor<8xi1>, %arg1: tensor<8xi64>, %arg2: tensor<8xi64>) -> tensor<8xi64> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<8xi1>, tensor<8xi64>
    return %0 : tensor<8xi64>
  }
  func.func private @remainder(%arg0: tensor<8xi64>, %arg1: tensor<i64>) -> tensor<8xi64> {
    %0 = stablehlo.convert %arg1 : tensor<i64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %1 = stablehlo.compare EQ, %0, %c, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<i64>
    %2 = call @_where_5(%1, %c_0, %0) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %4 = stablehlo.remainder %arg0, %3 : tensor<8xi64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
    %c_3 = stablehlo.constant dense<0> : tensor<i64>
    %9 = stablehlo.compare LT, %2, %c_3, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<8xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>
    %12 = stablehlo.and %11, %6 : tensor<8xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %14 = stablehlo.add %4, %13 : tensor<8xi64>
    %15 = stablehlo.select %12, %14, %4 : tensor<8xi1>, tensor<8xi64>
    return %15 : tensor<8xi64>
  }
  func.func private @_where_5(%arg0: tensor<i1>, %arg1: tensor<i64>, %arg2: tensor<i64>) -> tensor<i64> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i64>
    return %0 : tensor<i64>
  }
  func.func private @_where_6(%arg0: tensor<8xi1>, %arg1: tensor<8xi32>, %arg2: tensor<i32>) -> tensor<8xi32> {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<8xi1>, tensor<8xi32>
    return %1 : tensor<8xi32>
  }
}
