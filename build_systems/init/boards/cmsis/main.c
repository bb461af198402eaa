// Runs the compiled model once, on the zeros with which all arguments begin, and prints the first
// element of each result. @NAME@_c.h has functions for arguments and results:
//
@ACCESSORS@
#include <stdio.h>

#include "@NAME@_c.h"

#if defined(__GNUC__) && !defined(__ARMCC_VERSION)
// Ends of the stack, which the device's linker script defines.
extern char __StackLimit[], __StackTop[];
#define STACK_BYTES ((unsigned long)(__StackTop - __StackLimit))
#else
#define STACK_BYTES (@CAPITALS@_STACK_BYTES + 512ul)
#endif

// All memory of the model but its weights, which are in flash.
static unsigned char memory[@CAPITALS@_ARENA_BYTES];

int main(void) {
  if (STACK_BYTES < @CAPITALS@_STACK_BYTES + 512ul) {
    printf("a run needs %lu bytes of stack: raise __STACK_SIZE in the linker script\n", @CAPITALS@_STACK_BYTES + 512ul);
    return 1;
  }
  @NAME@_state* state = @NAME@_init(memory);
  if (@NAME@_run(state) != 0) {
    printf("%s\n", @NAME@_error(state));
    return 1;
  }
@RESULTS@
  return 0;
}
