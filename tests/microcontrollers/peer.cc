// Runs a TensorFlow Lite model with TensorFlow Lite Micro on an emulated board, once, and prints
// its result and what scripts/microcontrollers/peer.py measures. `model` and `feed` are files that
// the script links in.
#include <cstdint>
#include <cstring>
#include <new>

#include "tensorflow/lite/micro/debug_log.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"

extern "C" {
#include "board.h"
extern const unsigned char model[], feed[];
}

// The script reports the bytes in use instead of this capacity.
alignas(16) static uint8_t arena[ARENA_BYTES];

extern "C" void DebugLog(const char* format, va_list) { write_text(format); }
extern "C" int DebugVsnprintf(char*, size_t, const char*, va_list) { return 0; }
extern "C" __attribute__((noreturn)) void abort() {
  write_text("abort\n");
  for (;;) __asm__ volatile("bkpt 0xab");
}

using Resolver = tflite::MicroMutableOpResolver<6>;
alignas(Resolver) static uint8_t resolver_memory[sizeof(Resolver)];
alignas(tflite::MicroInterpreter) static uint8_t interpreter_memory[sizeof(tflite::MicroInterpreter)];

extern "C" int run() {
  Resolver* resolver = new (resolver_memory) Resolver();
  ADD_OPERATORS(resolver);
  auto* interpreter = new (interpreter_memory)
      tflite::MicroInterpreter(tflite::GetModel(model), *resolver, arena, sizeof(arena));
  if (interpreter->AllocateTensors() != kTfLiteOk) return 1;
  TfLiteTensor* input = interpreter->input(0);
  std::memcpy(input->data.raw, feed, input->bytes);
  paint_stack();
  const uint64_t begin = ticks();
  const TfLiteStatus status = interpreter->Invoke();
  const uint64_t end = ticks();
  write_number("stack", stack_used());
  write_number("ticks", end - begin);
  write_number("arena", interpreter->arena_used_bytes());
  write_bytes("result", interpreter->output(0)->data.raw, interpreter->output(0)->bytes);
  return status == kTfLiteOk ? 0 : 1;
}
