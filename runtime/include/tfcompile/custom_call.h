// A C function that compiled code calls in place of an op: `tfcompile --custom-call OP=symbol`.
//
// The program that links the object defines the function,
//
//     extern "C" int32_t my_op(tfcompile_custom_call* call) {
//       const float* x = (const float*)call->inputs[0].data;
//       float* y = (float*)call->outputs[0].data;
//       ...
//       return 0;
//     }
//
// It is called once for each time that the node runs, on the thread that called Run(), while nothing else of that run is
// going on. Runs of other instances may be, so what it shares it has to guard. It throws nothing: compiled code cannot be
// unwound. Everything that the description points to lives until the function returns.

#ifndef TFCOMPILE_CUSTOM_CALL_H_
#define TFCOMPILE_CUSTOM_CALL_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Types of elements; the numbers are those of TensorFlow's DataType.
enum tfcompile_type {
  TFCOMPILE_FLOAT = 1,
  TFCOMPILE_DOUBLE = 2,
  TFCOMPILE_INT32 = 3,
  TFCOMPILE_UINT8 = 4,
  TFCOMPILE_INT16 = 5,
  TFCOMPILE_INT8 = 6,
  TFCOMPILE_COMPLEX64 = 8,  // Real part, then imaginary part.
  TFCOMPILE_INT64 = 9,
  TFCOMPILE_BOOL = 10,  // A byte, 0 or 1.
  TFCOMPILE_BFLOAT16 = 14,
  TFCOMPILE_UINT16 = 17,
  TFCOMPILE_COMPLEX128 = 18,
  TFCOMPILE_HALF = 19,
  TFCOMPILE_UINT32 = 22,
  TFCOMPILE_UINT64 = 23
};

// An array: row-major, without gaps. Inputs are only read; outputs hold anything before, and are written whole.
typedef struct tfcompile_custom_call_buffer {
  int64_t rank;               // How many dimensions.
  int64_t type;               // A tfcompile_type.
  int64_t bytes;              // Of all elements.
  void* data;                 // Aligned as an element, not more.
  const int64_t* dimensions;  // The size of each; rank of them.
} tfcompile_custom_call_buffer;

// A call.
typedef struct tfcompile_custom_call {
  uint64_t size;  // Bytes of this struct as the object knows it; fields are only ever added at the end.
  int64_t num_inputs;
  int64_t num_outputs;
  const tfcompile_custom_call_buffer* inputs;   // In the order of the node's inputs.
  const tfcompile_custom_call_buffer* outputs;  // In the order of its outputs.
  const char* node;                             // The name of the node in the graph.
  const char* op;                               // Its op.
  const char* attributes;                       // Its attributes, a JSON object: {"T":"float","alpha":0.5}.
  const char* error;                            // In: a message about this node. What it is where the function does not
                                                // return 0 is what error_msg() says; it must live as long as the program.
} tfcompile_custom_call;

// 0 if all is well. Else the run ends there, Run() returns false, and what the run would have made is undefined.
typedef int32_t tfcompile_custom_call_function(tfcompile_custom_call* call);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_CUSTOM_CALL_H_
