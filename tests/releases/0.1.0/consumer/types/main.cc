// Element types beyond float and int, rank 0, and an argument without elements. The graph doubles
// each argument.

#include <complex>

#include "check.h"
#include "doubled.h"

int main() {
  Doubled doubled;
  doubled.arg_half(0) = tfcompile::FloatToHalf(1.5f);
  doubled.arg_half(1) = tfcompile::FloatToHalf(40000.0f);
  doubled.arg_bfloat16(0) = tfcompile::FloatToBFloat16(-0.25f);
  doubled.arg_double(2) = 1e300;
  doubled.arg_complex64(1) = {1.0f, -2.0f};
  doubled.arg_complex128(0) = {0.125, 3.0};
  doubled.arg_int8(0) = 100;
  doubled.arg_int16(1) = -12345;
  doubled.arg_int64(2) = std::int64_t{1} << 40;
  doubled.arg_uint8(0) = 200;
  doubled.arg_scalar() = 21.0f;
  CHECK(doubled.Run());
  CHECK(tfcompile::HalfToFloat(doubled.result_half(0)) == 3.0f);
  CHECK(doubled.result_half(1) == 0x7c00);  // 80000 is infinity.
  CHECK(tfcompile::BFloat16ToFloat(doubled.result_bfloat16(0)) == -0.5f);
  CHECK(doubled.result_double(2) == 2e300);
  CHECK(doubled.result_complex64(1).real == 2.0f && doubled.result_complex64(1).imag == -4.0f);
  const auto* view = reinterpret_cast<const std::complex<double>*>(doubled.result_complex128_data());
  CHECK(view[0] == std::complex<double>(0.25, 6.0));
  CHECK(doubled.result_int8(0) == -56 && doubled.result_uint8(0) == 144);
  CHECK(doubled.result_int16(1) == -24690);
  CHECK(doubled.result_int64(2) == std::int64_t{1} << 41);
  CHECK(doubled.result_scalar() == 42.0f);
  CHECK(doubled.arg_empty_count() == 0 && doubled.result_empty_size() == 0);
  CHECK(doubled.ProgramShape()->parameters(9).dimensions(1) == 0);
  CHECK(doubled.ProgramShape()->parameters(1).element_type() == xla::BF16);
  return 0;
}
