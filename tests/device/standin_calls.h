// The driver's functions of the stand-in for CUDA. Included by standin_cuda.c only.
//
// Functions that release something do so even if they are made to fail, as CUDA's do when they
// report an error of earlier work.

#define CALL EXPORT int
#define NEEDS_CONTEXT(name)                \
  const int code = enter_context(name);    \
  if (code != 0) return leave(code)

CALL cuInit(unsigned int flags) {
  const int code = enter("cuInit");
  if (flags != 0) misuse("cuInit with flags");
  return leave(code != 0 ? code : machine.devices == 0 ? 100 : 0);
}
CALL cuDriverGetVersion(int* version) {
  const int code = enter("cuDriverGetVersion");
  *version = machine.version;
  return leave(code);
}
CALL cuGetErrorName(int result, const char** text) {
  *text = result == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == 1   ? "CUDA_ERROR_INVALID_VALUE"
          : result == 100 ? "CUDA_ERROR_NO_DEVICE"
          : result == 218 ? "CUDA_ERROR_INVALID_PTX"
          : result == 500 ? "CUDA_ERROR_NOT_FOUND"
          : result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == 702 ? "CUDA_ERROR_LAUNCH_TIMEOUT"
          : result == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
                          : NULL;
  return *text == NULL;
}
CALL cuGetErrorString(int result, const char** text) {
  (void)result;
  *text = "the stand-in's description";
  return 0;
}
CALL cuDeviceGetCount(int* count) {
  const int code = enter("cuDeviceGetCount");
  *count = machine.devices;
  return leave(code);
}
CALL cuDeviceGet(int* device, int ordinal) {
  const int code = enter("cuDeviceGet");
  *device = ordinal;
  return leave(code != 0 ? code : ordinal < 0 || ordinal >= machine.devices ? 101 : 0);
}
CALL cuDeviceGetName(char* name, int bytes, int device) {
  const int code = enter("cuDeviceGetName");
  snprintf(name, (size_t)bytes, "Stand-in %d", device);
  return leave(code);
}
CALL cuDeviceGetAttribute(int* value, int attribute, int device) {
  const int code = enter("cuDeviceGetAttribute");
  const int arch = device == 0 ? machine.arch : 80;
  *value = attribute == 1    ? 1024
           : attribute == 5  ? INT32_MAX
           : attribute == 16 ? 4
           : attribute == 39 ? 2048
           : attribute == 75 ? arch / 10
                             : arch % 10;
  return leave(code);
}
CALL cuDeviceTotalMem_v2(size_t* bytes, int device) {
  const int code = enter("cuDeviceTotalMem_v2");
  (void)device;
  *bytes = machine.memory;
  return leave(code);
}

// ---- contexts

CALL cuDevicePrimaryCtxRetain(void** context, int device) {
  const int code = enter("cuDevicePrimaryCtxRetain");
  if (code != 0) return leave(code);
  if (retained[device]++ == 0) sticky[device] = 0;
  contexts[device].device = device;
  *context = &contexts[device];
  return leave(0);
}
CALL cuDevicePrimaryCtxRelease_v2(int device) {
  const int code = enter("cuDevicePrimaryCtxRelease_v2");
  struct object* object;
  if (retained[device] == 0) {
    misuse("context released too often");
  } else if (--retained[device] == 0) {
    for (object = objects; object != NULL; object = object->next) {
      if (!object->is_alive || object->device != device) continue;
      abandoned_count += 1;
      destroy(object);
    }
    sticky[device] = 0;
  }
  return leave(code);
}
CALL cuCtxPushCurrent_v2(void* context) {
  const int code = enter("cuCtxPushCurrent_v2");
  const int device = ((struct object*)context)->device;
  if (code != 0) return leave(code);
  if (retained[device] == 0) misuse("released context made current");
  stack[depth++] = device;
  return leave(0);
}
CALL cuCtxPopCurrent_v2(void** context) {
  const int code = enter("cuCtxPopCurrent_v2");
  if (depth == 0) {
    misuse("context popped without a push");
  } else {
    *context = &contexts[stack[--depth]];
  }
  return leave(code);
}
CALL cuCtxSynchronize(void) {
  NEEDS_CONTEXT("cuCtxSynchronize");
  run_device(current());
  return leave(sticky[current()]);
}

// ---- memory

CALL cuMemGetInfo_v2(size_t* free_bytes, size_t* bytes) {
  NEEDS_CONTEXT("cuMemGetInfo_v2");
  *bytes = machine.memory;
  *free_bytes = machine.memory - used[current()];
  return leave(0);
}
CALL cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  struct object* object;
  NEEDS_CONTEXT("cuMemAlloc_v2");
  if (bytes == 0) misuse("allocation of 0 bytes");
  if (bytes > machine.memory - used[current()]) return leave(2);
  object = create(STANDIN_MEMORY);
  object->bytes = bytes;
  object->memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  memset(object->memory, 0xa5, bytes);
  used[current()] += bytes;
  *address = (uint64_t)(uintptr_t)object->memory;
  return leave(0);
}
CALL cuMemFree_v2(uint64_t address) {
  const int code = enter_context("cuMemFree_v2");
  struct object* object;
  if (code == 201) return leave(code);
  run_device(current());
  for (object = objects; object != NULL; object = object->next) {
    if (object->kind == STANDIN_MEMORY && object->is_alive && (uint64_t)(uintptr_t)object->memory == address) break;
  }
  if (object == NULL) misuse("free of memory that is not allocated");
  if (object != NULL && object->device != current()) misuse("free of another context's memory");
  if (object != NULL) destroy(object);
  return leave(code);
}
CALL cuMemAllocHost_v2(void** memory, size_t bytes) {
  struct object* object;
  NEEDS_CONTEXT("cuMemAllocHost_v2");
  object = create(STANDIN_HOST);
  object->bytes = bytes;
  object->memory = malloc(bytes);
  memset(object->memory, 0xa5, bytes);
  *memory = object->memory;
  return leave(0);
}
CALL cuMemFreeHost(void* memory) {
  const int code = enter_context("cuMemFreeHost");
  struct object* object;
  if (code == 201) return leave(code);
  for (object = objects; object != NULL; object = object->next) {
    if (object->kind == STANDIN_HOST && object->is_alive && object->memory == memory) break;
  }
  if (object == NULL) misuse("free of pinned memory that is not allocated");
  if (object != NULL) destroy(object);
  return leave(code);
}

// ---- work

static int queue(const char* name, const struct work* work, void* handle) {
  struct object* const stream = find(handle, STANDIN_STREAM, name);
  if (stream == NULL) return 400;
  append(stream, work);
  return 0;
}

CALL cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  struct work work = {.kind = COPY_IN, .to = to, .from = (uint64_t)(uintptr_t)from, .bytes = bytes};
  int result;
  NEEDS_CONTEXT("cuMemcpyHtoDAsync_v2");
  if (!check_range(to, bytes, "copy in")) return leave(1);
  if (!is_pinned(from)) {
    const struct object* const target = find(stream, STANDIN_STREAM, "copy in");
    if (target != NULL && target->is_capturing) misuse("recorded copy from pageable memory");
    work.snapshot = malloc(bytes);
    memcpy(work.snapshot, from, bytes);
  }
  result = queue("copy in", &work, stream);
  if (result != 0) free(work.snapshot);
  return leave(result);
}
CALL cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  const struct work work = {.kind = COPY_OUT, .to = (uint64_t)(uintptr_t)to, .from = from, .bytes = bytes};
  NEEDS_CONTEXT("cuMemcpyDtoHAsync_v2");
  if (!check_range(from, bytes, "copy out")) return leave(1);
  return leave(queue("copy out", &work, stream));
}
CALL cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  const struct work work = {.kind = COPY, .to = to, .from = from, .bytes = bytes};
  NEEDS_CONTEXT("cuMemcpyDtoDAsync_v2");
  if (!check_range(to, bytes, "copy") || !check_range(from, bytes, "copy")) return leave(1);
  return leave(queue("copy", &work, stream));
}
CALL cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
  const struct work work = {.kind = FILL, .to = to, .bytes = bytes};
  NEEDS_CONTEXT("cuMemsetD8Async");
  if (value != 0) misuse("fill with %d", value);
  if (!check_range(to, bytes, "fill")) return leave(1);
  return leave(queue("fill", &work, stream));
}
CALL cuMemsetD32Async(uint64_t to, unsigned int value, size_t count, void* stream) {
  const struct work work = {.kind = FILL, .to = to, .bytes = 4 * count};
  NEEDS_CONTEXT("cuMemsetD32Async");
  if (value != 0 || to % 4 != 0) misuse("fill of words");
  if (!check_range(to, 4 * count, "fill of words")) return leave(1);
  return leave(queue("fill of words", &work, stream));
}
CALL cuLaunchKernel(void* function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                    unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, void* stream,
                    void** parameters, void** extra) {
  struct work work = {.kind = KERNEL, .groups = grid_x, .threads = block_x};
  struct object* const module = (struct object*)((uintptr_t)function / 16 * 16);
  int i;
  NEEDS_CONTEXT("cuLaunchKernel");
  if (grid_x == 0 || block_x == 0 || block_x > 1024 || grid_y * grid_z * block_y * block_z != 1 ||
      shared_bytes != 0 || extra != NULL) {
    misuse("launch with a wrong shape");
    return leave(1);
  }
  if (find(module, STANDIN_MODULE, "launch") == NULL) return leave(400);
  work.module = module;
  work.kernel = &builtins[(uintptr_t)function % 16];
  for (i = 0; i < work.kernel->parameters; ++i) memcpy(&work.parameter[i], parameters[i], 8);
  return leave(queue("launch", &work, stream));
}

// ---- streams and events

CALL cuStreamCreate(void** stream, unsigned int flags) {
  NEEDS_CONTEXT("cuStreamCreate");
  if (flags != 1) misuse("blocking stream");
  *stream = create(STANDIN_STREAM);
  return leave(0);
}
CALL cuStreamDestroy_v2(void* stream) {
  const int code = enter_context("cuStreamDestroy_v2");
  struct object* const object = code == 201 ? NULL : find(stream, STANDIN_STREAM, "cuStreamDestroy");
  if (object != NULL) {
    run_stream(object, object->queued);
    destroy(object);
  }
  return leave(code);
}
CALL cuStreamSynchronize(void* stream) {
  struct object* object;
  NEEDS_CONTEXT("cuStreamSynchronize");
  object = find(stream, STANDIN_STREAM, "cuStreamSynchronize");
  if (object == NULL) return leave(400);
  if (object->is_capturing) misuse("synchronization of a stream that is recorded");
  run_stream(object, object->queued);
  return leave(sticky[current()]);
}
CALL cuStreamWaitEvent(void* stream, void* event, unsigned int flags) {
  const struct object* marker;
  struct work work = {.kind = WAIT};
  NEEDS_CONTEXT("cuStreamWaitEvent");
  marker = find(event, STANDIN_EVENT, "cuStreamWaitEvent");
  if (marker == NULL || flags != 0) return leave(400);
  if (marker->stream == NULL) return leave(0);
  work.wait_stream = marker->stream;
  work.wait_number = marker->number;
  return leave(queue("wait", &work, stream));
}
CALL cuEventCreate(void** event, unsigned int flags) {
  NEEDS_CONTEXT("cuEventCreate");
  if (flags != 0 && flags != 2) misuse("event with flags");
  *event = create(STANDIN_EVENT);
  return leave(0);
}
CALL cuEventDestroy_v2(void* event) {
  const int code = enter_context("cuEventDestroy_v2");
  struct object* const object = code == 201 ? NULL : find(event, STANDIN_EVENT, "cuEventDestroy");
  if (object != NULL) destroy(object);
  return leave(code);
}
CALL cuEventRecord(void* event, void* stream) {
  struct object* object;
  struct object* on;
  NEEDS_CONTEXT("cuEventRecord");
  object = find(event, STANDIN_EVENT, "cuEventRecord");
  on = find(stream, STANDIN_STREAM, "cuEventRecord");
  if (object == NULL || on == NULL) return leave(400);
  object->stream = on;
  object->number = on->queued;
  return leave(0);
}
CALL cuEventSynchronize(void* event) {
  const struct object* object;
  NEEDS_CONTEXT("cuEventSynchronize");
  object = find(event, STANDIN_EVENT, "cuEventSynchronize");
  if (object == NULL) return leave(400);
  if (object->stream != NULL && object->stream->is_alive) run_stream(object->stream, object->number);
  return leave(sticky[current()]);
}
CALL cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  const struct object* first;
  const struct object* last;
  NEEDS_CONTEXT("cuEventElapsedTime");
  first = find(start, STANDIN_EVENT, "cuEventElapsedTime");
  last = find(end, STANDIN_EVENT, "cuEventElapsedTime");
  if (first == NULL || last == NULL) return leave(400);
  if (first->stream == NULL || last->stream == NULL || last->stream->executed < last->number) return leave(600);
  *milliseconds = (float)(last->number - first->number);
  return leave(0);
}

// ---- code

CALL cuModuleLoadDataEx(void** module, const void* image, unsigned int count, int* options, void** values) {
  // The PTX of a program that only copies has no kernel.
  const int is_empty = strstr(image, "\n.target ") != NULL && strstr(image, ".entry ") == NULL;
  struct object* object;
  NEEDS_CONTEXT("cuModuleLoadDataEx");
  if (strncmp(image, "STANDIN ", 8) != 0 && !is_empty) {
    if (count == 2 && options[0] == 5 && options[1] == 6) {
      snprintf(values[0], (size_t)(uintptr_t)values[1], "ptxas fatal: expected STANDIN");
    }
    return leave(218);
  }
  object = create(STANDIN_MODULE);
  object->names = strdup(is_empty ? "" : (const char*)image + 8);
  *module = object;
  return leave(0);
}
CALL cuModuleUnload(void* module) {
  const int code = enter_context("cuModuleUnload");
  struct object* const object = code == 201 ? NULL : find(module, STANDIN_MODULE, "cuModuleUnload");
  if (object != NULL) destroy(object);
  return leave(code);
}
// A function is its module's address, aligned to 16 bytes, plus the number of the kernel.
CALL cuModuleGetFunction(void** function, void* module, const char* name) {
  const struct object* object;
  size_t i;
  NEEDS_CONTEXT("cuModuleGetFunction");
  object = find(module, STANDIN_MODULE, "cuModuleGetFunction");
  if (object == NULL) return leave(400);
  for (i = 0; i < sizeof builtins / sizeof builtins[0]; ++i) {
    if (strcmp(builtins[i].name, name) != 0 || strstr(object->names, name) == NULL) continue;
    *function = (void*)((uintptr_t)module + i);
    return leave(0);
  }
  return leave(500);
}
CALL cuFuncGetAttribute(int* value, int attribute, void* function) {
  NEEDS_CONTEXT("cuFuncGetAttribute");
  (void)function;
  if (attribute != 0 && attribute != 1 && attribute != 3 && attribute != 4) {
    misuse("attribute %d of a function", attribute);
  }
  *value = attribute == 0 ? 1024 : attribute == 1 ? 48 : attribute == 4 ? 32 : 0;
  return leave(0);
}
CALL cuOccupancyMaxActiveBlocksPerMultiprocessor(int* workgroups, void* function, int threads, size_t shared_bytes) {
  NEEDS_CONTEXT("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  (void)function;
  if (threads < 1 || threads > 1024 || shared_bytes != 0) misuse("occupancy of a wrong shape");
  *workgroups = 1024 / threads;
  return leave(0);
}

// ---- graphs

CALL cuStreamBeginCapture_v2(void* stream, int mode) {
  struct object* object;
  NEEDS_CONTEXT("cuStreamBeginCapture_v2");
  object = find(stream, STANDIN_STREAM, "cuStreamBeginCapture");
  if (object == NULL || mode != 2) return leave(400);
  if (object->is_capturing) misuse("stream is already recorded");
  // Earlier work is not part of the recording.
  run_stream(object, object->queued);
  object->is_capturing = 1;
  return leave(sticky[current()]);
}
CALL cuStreamEndCapture(void* stream, void** graph) {
  const int code = enter_context("cuStreamEndCapture");
  struct object* const object = code == 201 ? NULL : find(stream, STANDIN_STREAM, "cuStreamEndCapture");
  struct object* recorded;
  *graph = NULL;
  if (object == NULL) return leave(code != 0 ? code : 400);
  if (!object->is_capturing) misuse("stream is not recorded");
  object->is_capturing = 0;
  if (code != 0) {
    free_work(object->first);
    object->first = NULL;
    return leave(code);
  }
  recorded = create(STANDIN_GRAPH);
  recorded->first = object->first;
  object->first = NULL;
  *graph = recorded;
  return leave(0);
}
CALL cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long flags) {
  const struct object* from;
  const struct work* work;
  struct object* object;
  NEEDS_CONTEXT("cuGraphInstantiateWithFlags");
  from = find(graph, STANDIN_GRAPH, "cuGraphInstantiate");
  if (from == NULL || flags != 0) return leave(400);
  object = create(STANDIN_EXECUTABLE);
  for (work = from->first; work != NULL; work = work->next) append(object, work);
  *executable = object;
  return leave(0);
}
CALL cuGraphLaunch(void* graph, void* stream) {
  const struct object* object;
  const struct work* work;
  struct object* on;
  NEEDS_CONTEXT("cuGraphLaunch");
  object = find(graph, STANDIN_EXECUTABLE, "cuGraphLaunch");
  on = find(stream, STANDIN_STREAM, "cuGraphLaunch");
  if (object == NULL || on == NULL) return leave(400);
  for (work = object->first; work != NULL; work = work->next) append(on, work)->is_node = 1;
  return leave(0);
}
CALL cuGraphExecDestroy(void* graph) {
  const int code = enter_context("cuGraphExecDestroy");
  struct object* const object = code == 201 ? NULL : find(graph, STANDIN_EXECUTABLE, "cuGraphExecDestroy");
  if (object != NULL) destroy(object);
  return leave(code);
}
CALL cuGraphDestroy(void* graph) {
  const int code = enter_context("cuGraphDestroy");
  struct object* const object = code == 201 ? NULL : find(graph, STANDIN_GRAPH, "cuGraphDestroy");
  if (object != NULL) destroy(object);
  return leave(code);
}
