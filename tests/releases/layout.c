// Offsets of the structs that compiled objects read and write, as the first release had them, for
// addresses of 64 and of 32 bits. Objects of every release rely on them: lines are only ever added,
// for fields that are appended.

#include <stddef.h>
#include <stdint.h>

#include "tfcompile/constants_format.h"
#include "tfcompile/custom_call.h"
#include "tfcompile/frame.h"

#define AT(type, field, offset64, offset32) \
  _Static_assert(offsetof(type, field) == (sizeof(void*) == 8 ? offset64 : offset32), #field)

AT(struct tfcompile_frame, size, 0, 0);
AT(struct tfcompile_frame, version, 8, 8);
AT(struct tfcompile_frame, reserved, 12, 12);
AT(struct tfcompile_frame, args, 16, 16);
AT(struct tfcompile_frame, results, 24, 20);
AT(struct tfcompile_frame, temps, 32, 24);
AT(struct tfcompile_frame, constants, 40, 28);
AT(struct tfcompile_frame, parallel_for, 48, 32);
AT(struct tfcompile_frame, context, 56, 36);
AT(struct tfcompile_frame, max_workers, 64, 40);
AT(struct tfcompile_frame, scratch, 72, 48);
AT(struct tfcompile_frame, profile_counters, 80, 52);
AT(struct tfcompile_frame, error, 88, 56);
AT(struct tfcompile_frame, dynamic_sizes, 96, 60);
AT(struct tfcompile_frame, device, 104, 64);

AT(tfcompile_custom_call_buffer, rank, 0, 0);
AT(tfcompile_custom_call_buffer, type, 8, 8);
AT(tfcompile_custom_call_buffer, bytes, 16, 16);
AT(tfcompile_custom_call_buffer, data, 24, 24);
AT(tfcompile_custom_call_buffer, dimensions, 32, 28);

AT(tfcompile_custom_call, size, 0, 0);
AT(tfcompile_custom_call, num_inputs, 8, 8);
AT(tfcompile_custom_call, num_outputs, 16, 16);
AT(tfcompile_custom_call, inputs, 24, 24);
AT(tfcompile_custom_call, outputs, 32, 28);
AT(tfcompile_custom_call, node, 40, 32);
AT(tfcompile_custom_call, op, 48, 36);
AT(tfcompile_custom_call, attributes, 56, 40);
AT(tfcompile_custom_call, error, 64, 44);

_Static_assert(TFCOMPILE_FRAME_VERSION == 1, "the version of the frame");
_Static_assert(TFCOMPILE_ABORT == INT32_MIN, "the status of a failed assert");
_Static_assert(TFCOMPILE_CONSTANTS_VERSION == 1 && TFCOMPILE_CONSTANTS_VERSION_OFFSET == 8, "constants files");
_Static_assert(TFCOMPILE_FLOAT == 1 && TFCOMPILE_DOUBLE == 2 && TFCOMPILE_INT32 == 3 && TFCOMPILE_UINT8 == 4, "types");
_Static_assert(TFCOMPILE_INT16 == 5 && TFCOMPILE_INT8 == 6 && TFCOMPILE_COMPLEX64 == 8 && TFCOMPILE_INT64 == 9, "types");
_Static_assert(TFCOMPILE_BOOL == 10 && TFCOMPILE_BFLOAT16 == 14 && TFCOMPILE_UINT16 == 17, "types");
_Static_assert(TFCOMPILE_COMPLEX128 == 18 && TFCOMPILE_HALF == 19 && TFCOMPILE_UINT32 == 22, "types");
_Static_assert(TFCOMPILE_UINT64 == 23, "types");
