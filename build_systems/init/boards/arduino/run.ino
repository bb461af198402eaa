// Runs the compiled model once, on the zeros with which all arguments begin, and prints the first
// element of each result. @NAME@_c.h has functions for arguments and results:
//
@ACCESSORS@
#include <@NAME@_c.h>

// All memory of the model but its weights, which are in flash.
static unsigned char memory[@CAPITALS@_ARENA_BYTES];

void setup() {
  Serial.begin(115200);
  @NAME@_state* state = @NAME@_init(memory);
  if (@NAME@_run(state) != 0) {
    Serial.println(@NAME@_error(state));
    return;
  }
@RESULTS@
}

void loop() {}
