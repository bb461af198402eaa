/* Runs a layer and a program with variables on device 0 in C99: with host and with device memory. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "layer_c.h"
#include "train_c.h"

#define CHECK(condition)                                                \
  do {                                                                  \
    if (!(condition)) {                                                 \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);   \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

static void fill(float* x) {
  int i, k;
  for (i = 0; i < 2; ++i) {
    for (k = 0; k < 4; ++k) x[i * 4 + k] = layer_input(i, k);
  }
}

static void expect(const float* y) {
  int i, j;
  for (i = 0; i < 2; ++i) {
    for (j = 0; j < 3; ++j) CHECK(y[i * 3 + j] == layer_output(0, i, j));
  }
}

static void host_memory(void) {
  layer_state* const state = LAYER_CREATE();
  CHECK(state != NULL && layer_set_device(state, 0) == 0);
  fill(layer_arg_x(state));
  if (layer_run(state) != 0) fprintf(stderr, "%s\n", layer_error(state));
  expect(layer_result_y(state));
  CHECK(layer_set_device(state, 0) != 0 && strstr(layer_error(state), "before the first run") != NULL);
  CHECK(layer_run(state) == 0);
  layer_close(state);
  layer_close(state);
  CHECK(layer_run(state) == 0);
  expect(layer_result_y(state));
  LAYER_DESTROY(state);
}

static void device_memory(void) {
  layer_state* const state = LAYER_CREATE();
  struct tfcompile_device_error error;
  struct tfcompile_device* device;
  tfcompile_device_address in, out;
  void* stream = NULL;
  float x[8];
  float y[6];
  CHECK(state != NULL);
  device = layer_get_device(state);
  CHECK(device != NULL && layer_get_device_instance(state) != NULL);
  fill(x);
  /* The state's own memory, on its own stream. */
  in = (tfcompile_device_address)(uintptr_t)layer_arg_x_device_data(state);
  out = (tfcompile_device_address)(uintptr_t)layer_result_y_device_data(state);
  CHECK(in != 0 && out != 0);
  CHECK(tfcompile_device_copy_in(device, in, x, sizeof x, NULL, &error) == 0);
  CHECK(layer_run_async(state, NULL) == 0 && layer_synchronize(state) == 0);
  CHECK(tfcompile_device_copy_out(device, y, out, sizeof y, NULL, &error) == 0);
  expect(y);
  /* The caller's. */
  memset(y, 0, sizeof y);
  CHECK(tfcompile_device_alloc(device, sizeof x, &in, &error) == 0);
  CHECK(tfcompile_device_alloc(device, sizeof y, &out, &error) == 0);
  CHECK(tfcompile_device_stream_create(device, 0, &stream, &error) == 0);
  layer_set_arg_x_device_data(state, (const float*)(uintptr_t)in);
  layer_set_result_y_device_data(state, (const float*)(uintptr_t)out);
  CHECK(tfcompile_device_copy_in(device, in, x, sizeof x, stream, &error) == 0);
  CHECK(layer_run_async(state, stream) == 0);
  CHECK(tfcompile_device_copy_out(device, y, out, sizeof y, stream, &error) == 0);
  CHECK(tfcompile_device_stream_synchronize(device, stream, &error) == 0 && layer_synchronize(state) == 0);
  expect(y);
  tfcompile_device_stream_destroy(device, stream);
  CHECK(tfcompile_device_free(device, in, &error) == 0 && tfcompile_device_free(device, out, &error) == 0);
  LAYER_DESTROY(state);
}

static void variables(void) {
  train_state* const state = TRAIN_CREATE();
  const float scale[3] = {1, 2, 3};
  int i;
  CHECK(state != NULL);
  for (i = 0; i < 3; ++i) train_var_layer_kernel(state)[i] = 10;
  train_set_var_layer_scale(state, scale);
  *train_arg0(state) = 2;
  CHECK(train_run(state) == 0 && train_run(state) == 0);
  CHECK(train_result_before(state)[1] == 28 && train_var_layer_kernel(state)[1] == 18);
  TRAIN_DESTROY(state);
}

static void no_such_device(void) {
  layer_state* const state = LAYER_CREATE();
  CHECK(state != NULL && layer_set_device(state, 1000) == 0);
  CHECK(layer_run(state) != 0 && strstr(layer_error(state), "1000") != NULL);
  CHECK(layer_get_device(state) == NULL && layer_run_async(state, NULL) != 0);
  CHECK(layer_arg_x_device_data(state) == NULL);
  CHECK(layer_set_device(state, 0) == 0 && layer_run(state) == 0 && layer_error(state)[0] == '\0');
  LAYER_DESTROY(state);
}

int main(void) {
  host_memory();
  device_memory();
  variables();
  no_such_device();
  return 0;
}
