// A C function that compiled code calls in place of an op: `tfcompile --custom-call OP=symbol`.
//
// The program that links the object defines the function:
//
//     extern "C" int32_t my_op(tfcompile_custom_call* call) {
//       const float* x = (const float*)call->inputs[0].data;
//       float* y = (float*)call->outputs[0].data;
//       ...
//       return 0;
//     }
//
// The function is called each time that the node runs, on the thread that called Run(). No other
// work of that run is in progress meanwhile, but other instances may be running, so the function
// must guard shared state. It must not throw, because compiled code cannot be unwound. All memory
// of the description stays valid until the function returns.

#ifndef TFCOMPILE_CUSTOM_CALL_H_
#define TFCOMPILE_CUSTOM_CALL_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Element types, numbered as in TensorFlow's DataType.
enum tfcompile_type {
  TFCOMPILE_FLOAT = 1,
  TFCOMPILE_DOUBLE = 2,
  TFCOMPILE_INT32 = 3,
  TFCOMPILE_UINT8 = 4,
  TFCOMPILE_INT16 = 5,
  TFCOMPILE_INT8 = 6,
  TFCOMPILE_COMPLEX64 = 8,  // Real part, then imaginary part.
  TFCOMPILE_INT64 = 9,
  TFCOMPILE_BOOL = 10,  // One byte, 0 or 1.
  TFCOMPILE_BFLOAT16 = 14,
  TFCOMPILE_UINT16 = 17,
  TFCOMPILE_COMPLEX128 = 18,
  TFCOMPILE_HALF = 19,
  TFCOMPILE_UINT32 = 22,
  TFCOMPILE_UINT64 = 23
};

// A dense, row-major array. Inputs are read-only. Outputs are uninitialized and must be written
// completely.
typedef struct tfcompile_custom_call_buffer {
  int64_t rank;               // Number of dimensions.
  int64_t type;               // A tfcompile_type.
  int64_t bytes;              // Size of all elements in bytes.
  void* data;                 // Aligned as an element, not more.
  const int64_t* dimensions;  // Size of each of the `rank` dimensions.
} tfcompile_custom_call_buffer;

// A call of the function.
typedef struct tfcompile_custom_call {
  uint64_t size;  // Size of this struct in the object's version; fields are only ever appended.
  int64_t num_inputs;
  int64_t num_outputs;
  const tfcompile_custom_call_buffer* inputs;   // Buffers in the order of the node's inputs.
  const tfcompile_custom_call_buffer* outputs;  // Buffers in the order of the node's outputs.
  const char* node;                             // Name of the node in the graph.
  const char* op;                               // Op of the node.
  const char* attributes;                       // Attributes of the node as JSON, such as
                                                // {"T":"float","alpha":0.5}.
  const char* error;                            // On entry, a message about this node. If the
                                                // function returns nonzero, error_msg() returns
                                                // this text, which must live as long as the
                                                // program.
} tfcompile_custom_call;

// Returns 0 on success. Otherwise the run ends, Run() returns false, and the remaining results are
// undefined.
typedef int32_t tfcompile_custom_call_function(tfcompile_custom_call* call);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_CUSTOM_CALL_H_
