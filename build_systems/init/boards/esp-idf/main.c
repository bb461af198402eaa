// Runs the compiled model once, on the zeros with which all arguments begin, and prints the first
// element of each result. @NAME@_c.h has functions for arguments and results:
//
@ACCESSORS@
#include <stdio.h>

#include "sdkconfig.h"

#include "@NAME@_c.h"

_Static_assert(@CAPITALS@_STACK_BYTES + 1024 <= CONFIG_ESP_MAIN_TASK_STACK_SIZE, "raise CONFIG_ESP_MAIN_TASK_STACK_SIZE");

// All memory of the model but its weights, which are in flash.
static unsigned char memory[@CAPITALS@_ARENA_BYTES];

void app_main(void) {
  @NAME@_state* state = @NAME@_init(memory);
  if (@NAME@_run(state) != 0) {
    printf("%s\n", @NAME@_error(state));
    return;
  }
@RESULTS@
}
