// Start of a program on a Cortex-M in QEMU, without a C library: the vector table, memory, and text
// output and the end of the program by semihosting.

#include <stddef.h>
#include <stdint.h>

extern unsigned char start_of_data[], end_of_data[], data_in_code[], start_of_bss[], end_of_bss[];
int main(void);

void* memcpy(void* to, const void* from, size_t bytes) {
  unsigned char* a = to;
  const unsigned char* b = from;
  while (bytes-- > 0) *a++ = *b++;
  return to;
}

void* memset(void* to, int value, size_t bytes) {
  unsigned char* a = to;
  while (bytes-- > 0) *a++ = (unsigned char)value;
  return to;
}

static void call_host(int32_t operation, const void* argument) {
  register int32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

int puts(const char* text) {
  call_host(0x04, text);
  call_host(0x04, "\n");
  return 0;
}

void reset(void) {
  // Enables the floating-point unit.
  *(volatile uint32_t*)0xe000ed88 |= 0xfu << 20;
  __asm__ volatile("dsb\n isb");
  (void)memcpy(start_of_data, data_in_code, (size_t)(end_of_data - start_of_data));
  (void)memset(start_of_bss, 0, (size_t)(end_of_bss - start_of_bss));
  const uint32_t reason[2] = {0x20026, (uint32_t)main()};
  call_host(0x20, reason);
  for (;;) {
  }
}

static void fault(void) {
  (void)puts("fault");
  const uint32_t reason[2] = {0x20026, 99};
  call_host(0x20, reason);
  for (;;) {
  }
}

__attribute__((section(".vectors"), used)) static const uintptr_t vectors[16] = {
    0x20400000, (uintptr_t)reset, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault};
