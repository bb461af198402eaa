// Functions of an emulated board for test programs.
#ifndef BOARD_H_
#define BOARD_H_

#include <stddef.h>
#include <stdint.h>

// Writes a text to the emulator's output.
void write_text(const char* text);
// Writes bytes as hexadecimal digits, and a line feed.
void write_bytes(const char* name, const void* bytes, size_t count);
// Writes a number and a line feed.
void write_number(const char* name, uint64_t value);
// Ticks of the board's timer since the start. An emulator that counts one nanosecond for each
// instruction runs a fixed number of instructions in each.
uint64_t ticks(void);
// Fills the unused stack with a pattern. `stack_used` then returns the bytes below the caller's
// frame that were overwritten.
void paint_stack(void);
size_t stack_used(void);

// Runs the program under test. Returns 0 or a status.
int run(void);

#endif
