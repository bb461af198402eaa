// Runs the compiled model once, on the zeros with which all arguments begin, and prints the first
// element of each result. @NAME@_c.h has functions for arguments and results:
//
@ACCESSORS@
#include <zephyr/kernel.h>

#include "@NAME@_c.h"

_Static_assert(@CAPITALS@_STACK_BYTES + 1024 <= CONFIG_MAIN_STACK_SIZE, "raise CONFIG_MAIN_STACK_SIZE in prj.conf");

// All memory of the model but its weights, which are in flash.
static unsigned char memory[@CAPITALS@_ARENA_BYTES];

int main(void) {
  @NAME@_state* state = @NAME@_init(memory);
  if (@NAME@_run(state) != 0) {
    printk("%s\n", @NAME@_error(state));
    return 1;
  }
@RESULTS@
  return 0;
}
