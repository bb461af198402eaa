// Arrays of every type that both the server and arithmetic have, eight rows each.
func.func @main(%flag: tensor<8x3xi1>, %i8: tensor<8x3xi8>, %u8: tensor<8x3xui8>, %i16: tensor<8x3xi16>,
                %u32: tensor<8x3xui32>, %i64: tensor<8x3xi64>, %f16: tensor<8x3xf16>, %bf16: tensor<8x3xbf16>,
                %f64: tensor<8x3xf64>)
    -> (tensor<8x3xi1>, tensor<8x3xi8>, tensor<8x3xui8>, tensor<8x3xi16>, tensor<8x3xui32>, tensor<8x3xi64>,
        tensor<8x3xf16>, tensor<8x3xbf16>, tensor<8x3xf64>, tensor<8x3xi32>) {
  %0 = stablehlo.not %flag : tensor<8x3xi1>
  %1 = stablehlo.add %i8, %i8 : tensor<8x3xi8>
  %2 = stablehlo.add %u8, %u8 : tensor<8x3xui8>
  %3 = stablehlo.multiply %i16, %i16 : tensor<8x3xi16>
  %4 = stablehlo.add %u32, %u32 : tensor<8x3xui32>
  %5 = stablehlo.negate %i64 : tensor<8x3xi64>
  %6 = stablehlo.multiply %f16, %f16 : tensor<8x3xf16>
  %7 = stablehlo.negate %bf16 : tensor<8x3xbf16>
  %8 = stablehlo.multiply %f64, %f64 : tensor<8x3xf64>
  %9 = stablehlo.convert %flag : (tensor<8x3xi1>) -> tensor<8x3xi32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<8x3xi1>, tensor<8x3xi8>, tensor<8x3xui8>, tensor<8x3xi16>,
    tensor<8x3xui32>, tensor<8x3xi64>, tensor<8x3xf16>, tensor<8x3xbf16>, tensor<8x3xf64>, tensor<8x3xi32>
}
