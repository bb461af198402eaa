// Controls of the stand-in for CUDA's driver, which its library exports beside the driver's
// functions.

#ifndef TESTS_DEVICE_STANDIN_H_
#define TESTS_DEVICE_STANDIN_H_

#include <stdint.h>

// Settings of the machine that the stand-in imitates, before a context is created.
struct standin_machine {
  int version;  // Of the driver: 12040 for CUDA 12.4.
  int devices;
  int arch;  // Of device 0. Device 1 has 80.
  uint64_t memory;  // Of each device.
  int cupti_version;
  uint32_t graph_stream;  // CUPTI's number for streams of graphs. 0: that of the launch.
  int is_flush_forced;    // CUPTI returns buffers only by force.
};

// Kinds of resources.
enum {
  STANDIN_CONTEXT,
  STANDIN_MEMORY,
  STANDIN_HOST,
  STANDIN_STREAM,
  STANDIN_EVENT,
  STANDIN_MODULE,
  STANDIN_GRAPH,
  STANDIN_EXECUTABLE,
  STANDIN_KINDS
};

struct standin {
  struct standin_machine* machine;
  // Forgets calls, failures, misuse, and the log.
  void (*reset)(void);
  // Makes the call number `number` from now fail (1 is the next), once.
  void (*fail_call)(long number, int code);
  // Makes all calls of a function fail after `successes` ones. Null: none.
  void (*fail_function)(const char* name, long successes, int code);
  // Name of the function whose call failed on purpose, or "".
  const char* (*failed)(void);
  // Number of calls since the reset: of all functions if `name` is null.
  long (*calls)(const char* name);
  // Operations that the devices executed, one line each.
  const char* (*log)(void);
  // First misuse since the reset, or "".
  const char* (*misuse)(void);
  // Number of resources of a kind that exist.
  long (*alive)(int kind);
  // Number of resources that ended only with their context since the reset.
  long (*abandoned)(void);
};

// Name of the exported function that returns the controls.
typedef const struct standin* (*standin_controls_function)(void);

#endif  // TESTS_DEVICE_STANDIN_H_
