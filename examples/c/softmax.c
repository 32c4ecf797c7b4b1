/* SPDX-License-Identifier: Apache-2.0
 * Softmax through the C interface, twice: as an eager call, and as a graph that is compiled and
 * run. Strict C11; every call is checked and every handle is released. Fails if the two disagree.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "anymps/anymps.h"

#define CHECK(call)                                                              \
  do {                                                                           \
    const amps_status status_ = (call);                                          \
    if (status_ != AMPS_OK) {                                                    \
      fprintf(stderr, "%s: %s\n", amps_status_name(status_), amps_last_error()); \
      exit(EXIT_FAILURE);                                                        \
    }                                                                            \
  } while (0)

enum { kRows = 2, kColumns = 4, kCount = kRows * kColumns };
static const int64_t kDims[] = {kRows, kColumns};
static const float kLogits[kCount] = {1, 2, 3, 4, -1, 0, 0, 1};

static const amps_op* softmax(void) {
  const amps_op* op = amps_op_find("softmax");
  if (op == NULL) {
    fprintf(stderr, "there is no op 'softmax'\n");
    exit(EXIT_FAILURE);
  }
  return op;
}

/* One op at once: no graph, nothing to compile. */
static void run_eager(amps_device* device, amps_tensor* x, const amps_attr* axis, float* result) {
  amps_tensor* y = NULL;
  CHECK(amps_eager(device, softmax(), &x, 1, axis, 1, &y, 1));
  CHECK(amps_tensor_to_host(y, result, kCount * sizeof(float)));
  amps_tensor_release(y);
}

/* The same as a graph, with a number of rows that is not fixed: -1, with the name "N". */
static void run_graph(amps_device* device, amps_tensor* x, const amps_attr* axis, float* result) {
  const int64_t dims[] = {-1, kColumns};
  const char* const names[] = {"N", NULL};
  amps_graph* graph = NULL;
  amps_value *in = NULL, *out = NULL;
  CHECK(amps_graph_create("softmax", &graph));
  CHECK(amps_graph_input(graph, "x", AMPS_F32, 2, dims, names, &in));
  CHECK(amps_graph_op(graph, softmax(), &in, 1, axis, 1, "y", &out, 1));
  CHECK(amps_graph_set_outputs(graph, &out, 1));

  amps_executable* executable = NULL;
  CHECK(amps_compile(device, graph, NULL, &executable));
  amps_graph_release(graph);

  amps_tensor* y = NULL;
  CHECK(amps_executable_run(executable, &x, 1, &y, 1, NULL, NULL));
  CHECK(amps_tensor_to_host(y, result, kCount * sizeof(float)));
  amps_tensor_release(y);
  amps_executable_release(executable);
}

int main(void) {
  amps_device* device = NULL;
  CHECK(amps_device_get(NULL, &device)); /* $ANYMPS_DRIVER, else "cpu" */
  printf("anymps %s on %s\n", amps_version(), amps_device_name(device));

  const amps_attr axis = {.name = "axis", .kind = AMPS_ATTR_INT, .i = -1};
  amps_tensor* x = NULL;
  CHECK(amps_tensor_from_host(device, AMPS_F32, 2, kDims, NULL, kLogits, &x));
  float eager[kCount], graph[kCount];
  run_eager(device, x, &axis, eager);
  run_graph(device, x, &axis, graph);
  amps_tensor_release(x);

  for (int row = 0; row < kRows; ++row) {
    float sum = 0;
    for (int column = 0; column < kColumns; ++column) {
      const float value = eager[row * kColumns + column];
      printf(" %.4f", (double)value);
      sum += value;
      if (!(fabsf(value - graph[row * kColumns + column]) <= 1e-6f)) {
        fprintf(stderr, "\neager call and graph disagree\n");
        return EXIT_FAILURE;
      }
    }
    printf("  (sum %.4f)\n", (double)sum);
  }
  return EXIT_SUCCESS;
}
