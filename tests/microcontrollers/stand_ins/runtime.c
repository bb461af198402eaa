// Functions that the stand-ins' programs need from a C library, and the call of their entry.
#include <stdarg.h>
#include <stddef.h>

#include "board.h"

void ENTRY(void);

int run(void) {
  ENTRY();
  return 0;
}

void* memcpy(void* to, const void* from, size_t count) {
  volatile unsigned char* at = (volatile unsigned char*)to;
  for (size_t i = 0; i < count; ++i) at[i] = ((const unsigned char*)from)[i];
  return to;
}

void* memset(void* to, int value, size_t count) {
  volatile unsigned char* at = (volatile unsigned char*)to;
  for (size_t i = 0; i < count; ++i) at[i] = (unsigned char)value;
  return to;
}

// Writes a number with three digits after the point.
void write_double(double value) {
  char text[24];
  char* at = text + sizeof text;
  const int is_negative = value < 0;
  uint32_t thousandths = (uint32_t)((is_negative ? -value : value) * 1000 + 0.5);
  *--at = 0;
  for (int digit = 0; digit < 4 || thousandths != 0; ++digit) {
    if (digit == 3) *--at = '.';
    *--at = (char)('0' + thousandths % 10);
    thousandths /= 10;
  }
  if (is_negative) *--at = '-';
  write_text(at);
}

// Takes %s, %g, and %lu.
int printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  for (; *format != 0; ++format) {
    if (*format != '%') {
      const char text[2] = {*format, 0};
      write_text(text);
      continue;
    }
    ++format;
    if (*format == 's') write_text(va_arg(arguments, const char*));
    if (*format == 'g') write_double(va_arg(arguments, double));
    if (*format == 'l') {
      ++format;
      write_double((double)va_arg(arguments, unsigned long));
    }
  }
  va_end(arguments);
  return 0;
}
