// Complex numbers as plain structs with the layout of std::complex, so that a buffer may be viewed
// through `reinterpret_cast<std::complex<float>*>`.

#ifndef TFCOMPILE_COMPLEX_H_
#define TFCOMPILE_COMPLEX_H_

namespace tfcompile {

// c64: two floats.
struct complex64 {
  float real;
  float imag;
};

// c128: two doubles.
struct complex128 {
  double real;
  double imag;
};

static_assert(sizeof(complex64) == 8 && sizeof(complex128) == 16, "complex numbers must be interleaved");

}  // namespace tfcompile

#endif  // TFCOMPILE_COMPLEX_H_
