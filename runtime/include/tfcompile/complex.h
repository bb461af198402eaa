// Complex numbers as plain structs with the layout of std::complex: a `reinterpret_cast<std::complex<float>*>` of a
// buffer is a valid view of it.

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

static_assert(sizeof(complex64) == 8 && sizeof(complex128) == 16, "complex numbers are interleaved");

}  // namespace tfcompile

#endif  // TFCOMPILE_COMPLEX_H_
