// The stand-in for CUPTI, in the library of the stand-in for CUDA's driver, whose work it observes.
// Included by standin_cuda.c only.
//
// Records have the positions of CUpti_ActivityKernel9, CUpti_ActivityMemcpy5, and
// CUpti_ActivityMemset4. Buffers are returned by another thread, and only when they are flushed.

enum { RECORDS_OF = 64, KERNEL_BYTES = 240, OTHER_BYTES = 96 };

typedef void (*buffer_requested)(uint8_t** buffer, size_t* bytes, size_t* max_records);
typedef void (*buffer_completed)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid_bytes);

struct buffer {
  struct buffer* next;
  uint8_t* memory;
  size_t bytes, valid;
};

static buffer_requested requested;
static buffer_completed completed;
static struct buffer* buffers;
static unsigned int enabled;
static size_t dropped;
static uint64_t now = 1000;

static void put_u32(uint8_t* record, int position, uint32_t value) { memcpy(record + position, &value, sizeof value); }
static void put_u64(uint8_t* record, int position, uint64_t value) { memcpy(record + position, &value, sizeof value); }

static uint32_t stream_number(const void* stream) { return (uint32_t)((uintptr_t)stream >> 4); }

static size_t record_bytes(const uint8_t* record) {
  uint32_t kind;
  memcpy(&kind, record, sizeof kind);
  return kind == 10 ? KERNEL_BYTES : OTHER_BYTES;
}

// Records executed work if its kind is enabled.
static void observe(const struct work* work, const struct object* stream) {
  const int kind = work->kind == KERNEL ? 10 : work->kind == FILL ? 2 : work->kind == WAIT ? 0 : 1;
  const size_t bytes = kind == 10 ? KERNEL_BYTES : OTHER_BYTES;
  uint8_t* record;
  if (kind == 0 || (enabled >> kind & 1) == 0) return;
  if (buffers == NULL || buffers->bytes - buffers->valid < bytes || buffers->valid >= RECORDS_OF * bytes) {
    struct buffer* const buffer = calloc(1, sizeof *buffer);
    size_t max_records = 0;
    requested(&buffer->memory, &buffer->bytes, &max_records);
    if (buffer->memory == NULL || max_records != 0) {
      free(buffer);
      dropped += 1;
      return;
    }
    buffer->next = buffers;
    buffers = buffer;
  }
  record = buffers->memory + buffers->valid;
  buffers->valid += bytes;
  memset(record, 0xee, bytes);
  put_u32(record, 0, (uint32_t)kind);
  put_u64(record, 16, now);
  put_u64(record, 24, now + 5);
  now += 10;
  if (kind == 10) {
    put_u32(record, 44, (uint32_t)stream->device + 1);
    put_u32(record, 48, work->is_node && machine.graph_stream != 0 ? machine.graph_stream : stream_number(stream));
    memcpy(record + 104, &work->kernel->name, sizeof work->kernel->name);
    put_u64(record, 144, (uint64_t)work->is_node);
    return;
  }
  record[4] = work->kind == COPY_IN ? 1 : work->kind == COPY_OUT ? 2 : 8;
  put_u64(record, 8, work->bytes);
  put_u32(record, 36, (uint32_t)stream->device + 1);
  put_u32(record, 40, work->is_node && machine.graph_stream != 0 ? machine.graph_stream : stream_number(stream));
  put_u64(record, 64, (uint64_t)work->is_node);
}

CALL cuptiGetVersion(uint32_t* version) {
  const int code = enter("cuptiGetVersion");
  *version = (uint32_t)machine.cupti_version;
  return leave(code);
}
CALL cuptiGetResultString(int result, const char** text) {
  *text = result == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR_OF_THE_STANDIN";
  return 0;
}
CALL cuptiGetTimestamp(uint64_t* nanoseconds) {
  const int code = enter("cuptiGetTimestamp");
  *nanoseconds = now;
  return leave(code);
}
CALL cuptiGetContextId(void* context, uint32_t* id) {
  const int code = enter("cuptiGetContextId");
  *id = (uint32_t)((struct object*)context)->device + 1;
  return leave(code);
}
CALL cuptiGetStreamIdEx(void* context, void* stream, uint8_t is_per_thread, uint32_t* id) {
  const int code = enter("cuptiGetStreamIdEx");
  (void)context;
  if (is_per_thread != 0) misuse("stream of a thread");
  if (find(stream, STANDIN_STREAM, "cuptiGetStreamIdEx") == NULL) return leave(1);
  *id = stream_number(stream);
  return leave(code);
}
CALL cuptiActivityRegisterCallbacks(buffer_requested request, buffer_completed complete) {
  const int code = enter("cuptiActivityRegisterCallbacks");
  if (code == 0) {
    requested = request;
    completed = complete;
  }
  return leave(code);
}
CALL cuptiActivityEnable(int kind) {
  const int code = enter("cuptiActivityEnable");
  if (requested == NULL) misuse("records are enabled without buffers");
  if ((enabled >> kind & 1) != 0) misuse("records of kind %d are enabled twice", kind);
  if (code == 0) enabled |= 1u << kind;
  return leave(code);
}
CALL cuptiActivityDisable(int kind) {
  const int code = enter("cuptiActivityDisable");
  if ((enabled >> kind & 1) == 0) misuse("records of kind %d are disabled twice", kind);
  enabled &= ~(1u << kind);
  return leave(code);
}

static void* return_buffers(void* list) {
  struct buffer* buffer = list;
  while (buffer != NULL) {
    struct buffer* const next = buffer->next;
    completed(NULL, 0, buffer->memory, buffer->bytes, buffer->valid);
    free(buffer);
    buffer = next;
  }
  return NULL;
}

CALL cuptiActivityFlushAll(uint32_t flags) {
  const int code = enter("cuptiActivityFlushAll");
  struct buffer* const list = code == 0 && (flags == 1 || !machine.is_flush_forced) ? buffers : NULL;
  pthread_t thread;
  if (list != NULL) buffers = NULL;
  (void)leave(code);
  if (list == NULL) return code;
  if (pthread_create(&thread, NULL, return_buffers, list) != 0) return 1;
  return pthread_join(thread, NULL);
}
CALL cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, unsigned char** record) {
  const int code = enter("cuptiActivityGetNextRecord");
  uint8_t* const next = *record == NULL ? buffer : *record + record_bytes(*record);
  if (code != 0) return leave(code);
  if ((size_t)(next - buffer) >= valid_bytes) return leave(12);
  *record = next;
  return leave(0);
}
CALL cuptiActivityGetNumDroppedRecords(void* context, uint32_t stream, size_t* count) {
  const int code = enter("cuptiActivityGetNumDroppedRecords");
  (void)context;
  (void)stream;
  *count = dropped;
  dropped = 0;
  return leave(code);
}
