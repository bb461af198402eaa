// Startup code and output of the test programs on emulated boards: Cortex-M and 32-bit RISC-V
// without an operating system. The emulator's semihosting prints and ends the program.
#include "board.h"

extern uint32_t data_image[], data_begin[], data_end[], bss_begin[], bss_end[];
extern uint32_t stack_bottom[], stack_top[];

#define PATTERN 0xa5c3965au

#ifdef __riscv
static uintptr_t ask(uintptr_t operation, uintptr_t argument) {
  register uintptr_t a0 __asm__("a0") = operation;
  register uintptr_t a1 __asm__("a1") = argument;
  // The three instructions that mark a request must not be compressed.
  __asm__ volatile(
      ".option push\n.option norvc\n.balign 16\nslli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
      : "+r"(a0)
      : "r"(a1)
      : "memory");
  return a0;
}
#else
static uintptr_t ask(uintptr_t operation, uintptr_t argument) {
  register uintptr_t r0 __asm__("r0") = operation;
  register uintptr_t r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}
#endif

enum { WRITE0 = 0x04, EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

__attribute__((noreturn)) static void leave(uint32_t status) {
  uint32_t block[2] = {APPLICATION_EXIT, status};
  for (;;) ask(EXIT_EXTENDED, (uintptr_t)block);
}

void write_text(const char* text) { ask(WRITE0, (uintptr_t)text); }

void write_bytes(const char* name, const void* bytes, size_t count) {
  const char* digits = "0123456789abcdef";
  const unsigned char* from = (const unsigned char*)bytes;
  char line[129];
  write_text(name);
  write_text(" ");
  for (size_t at = 0; at < count;) {
    size_t length = 0;
    for (; at < count && length < 128; ++at) {
      line[length++] = digits[from[at] >> 4];
      line[length++] = digits[from[at] & 15];
    }
    line[length] = 0;
    write_text(line);
  }
  write_text("\n");
}

void write_number(const char* name, uint64_t value) {
  unsigned char bytes[8];
  for (int k = 0; k < 8; ++k) bytes[k] = (unsigned char)(value >> (56 - 8 * k));
  write_bytes(name, bytes, 8);
}

#ifdef __riscv
uint64_t ticks(void) {
  uint32_t low, high, again;
  do {
    __asm__ volatile("csrr %0, minstreth\ncsrr %1, minstret\ncsrr %2, minstreth"
                     : "=r"(high), "=r"(low), "=r"(again));
  } while (high != again);
  return (uint64_t)high << 32 | low;
}
#else
static volatile uint32_t* word(uintptr_t address) { return (volatile uint32_t*)address; }
static volatile uint32_t wraps;
static void tick(void) { ++wraps; }

enum { SYSTICK = 0xe000e010u };

uint64_t ticks(void) {
  uint32_t before, value;
  do {
    before = wraps;
    value = *word(SYSTICK + 8);
  } while (before != wraps);
  return ((uint64_t)before << 24) + (0xffffffu - value);
}
#endif

__attribute__((noinline)) void paint_stack(void) {
  volatile uint32_t here;
  // Leaves room for this function's own frame.
  for (volatile uint32_t* at = stack_bottom; at < &here - 16; ++at) *at = PATTERN;
}

__attribute__((noinline)) size_t stack_used(void) {
  volatile uint32_t here;
  volatile uint32_t* at = stack_bottom;
  while (at < &here && *at == PATTERN) ++at;
  return (size_t)((const char*)&here - (const char*)at);
}

static void begin(void) {
  const uint32_t* from = data_image;
  for (uint32_t* to = data_begin; to < data_end; ++to) *to = *from++;
  for (uint32_t* to = bss_begin; to < bss_end; ++to) *to = 0;
#ifndef __riscv
#ifdef __ARM_FP
  // Access to the floating-point unit and to vectors.
  *word(0xe000ed88u) |= 0xf << 20;
  __asm__ volatile("dsb\nisb");
#endif
  *word(SYSTICK + 4) = 0xffffff;
  *word(SYSTICK + 8) = 0;
  *word(SYSTICK) = 7;
#endif
  leave((uint32_t)run());
}

#ifdef __riscv
static void fault(void) {
  write_text("fault\n");
  leave(99);
}
__attribute__((naked, section(".vectors"))) void start(void) {
  __asm__ volatile(
      ".option push\n.option norelax\nla gp, data_begin\n.option pop\nla sp, stack_top\nla t0, %0\n"
      "csrw mtvec, t0\nj %1"
      :
      : "i"(fault), "i"(begin));
}
#else
static void fault(void) {
  write_text("fault\n");
  leave(99);
}
void start(void) { begin(); }
__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, start, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, tick,
};
#endif
