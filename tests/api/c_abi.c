/* SPDX-License-Identifier: Apache-2.0
 * The C interface from C11, with nothing of C++ in sight: it compiles as C, and each call does what
 * the header says. Returns the number of failed checks. */
#include <stdio.h>
#include <string.h>

#include "anymps/anymps.h"

static int failures = 0;
static int checks = 0;

#define CHECK(condition)                                                              \
  do {                                                                                \
    ++checks;                                                                         \
    if (!(condition)) {                                                               \
      ++failures;                                                                     \
      fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
              amps_last_error());                                                     \
    }                                                                                 \
  } while (0)

static void released(void* context) { ++*(int*)context; }

static void test_status(void) {
  amps_device* device = NULL;
  CHECK(amps_abi_version() == AMPS_ABI_VERSION);
  CHECK(amps_device_get("no such device", &device) == AMPS_NOT_FOUND);
  CHECK(strstr(amps_last_error(), "no such device") != NULL);
  CHECK(amps_device_get("cpu", NULL) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_device_get("cpu", &device) == AMPS_OK && device != NULL);
  CHECK(strcmp(amps_last_error(), "") == 0);
  CHECK(strcmp(amps_device_name(device), "cpu") == 0);
  CHECK(strcmp(amps_status_name(AMPS_OUT_OF_MEMORY), "out of memory") == 0);
}

static void test_dtypes(void) {
  amps_dtype dtype;
  CHECK(amps_dtype_parse("bfloat16", &dtype) == AMPS_OK && dtype == AMPS_BF16);
  CHECK(amps_dtype_parse("f128", &dtype) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_dtype_parse("complex128", &dtype) == AMPS_OK && dtype == AMPS_C128);
  CHECK(amps_dtype_size(AMPS_C128) == 16 && amps_dtype_size(AMPS_C64) == 8);
  CHECK(amps_dtype_size((amps_dtype)99) == 0);
}

static void test_tensors(amps_device* device) {
  const int64_t dims[2] = {2, 3}, transposed[2] = {3, 2}, strides[2] = {1, 3},
                huge[2] = {INT64_MAX, 8};
  float data[6] = {1, 2, 3, 4, 5, 6}, out[6];
  amps_tensor *tensor = NULL, *view = NULL, *wrapped = NULL;
  int gone = 0;
  CHECK(amps_tensor_from_host(device, AMPS_F32, 2, dims, NULL, data, &tensor) == AMPS_OK);
  CHECK(amps_tensor_rank(tensor) == 2 && amps_tensor_dims(tensor)[1] == 3);
  CHECK(amps_tensor_bytes(tensor) == sizeof(data));
  CHECK(amps_tensor_view(tensor, 2, transposed, strides, 0, &view) == AMPS_OK);
  CHECK(amps_tensor_to_host(view, out, sizeof(out)) == AMPS_OK && out[1] == 4 && out[5] == 6);
  CHECK(amps_tensor_to_host(view, out, 4) == AMPS_INVALID_ARGUMENT);
  amps_tensor_release(view);
  CHECK(amps_tensor_view(tensor, 2, transposed, strides, 1, &view) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_tensor_empty(device, AMPS_F32, 2, huge, &view) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_tensor_empty(device, (amps_dtype)77, 2, dims, &view) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_tensor_empty(device, AMPS_F32, 2, NULL, &view) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_tensor_wrap(device, AMPS_F32, 2, dims, NULL, data, released, &gone, &wrapped) ==
        AMPS_OK);
  CHECK(amps_tensor_data(wrapped) == (void*)data);
  amps_tensor_retain(wrapped);
  amps_tensor_release(wrapped);
  CHECK(gone == 0);
  amps_tensor_release(wrapped);
  CHECK(gone == 1);
  amps_tensor_release(tensor);
  amps_tensor_release(NULL);
}

static void test_eager(amps_device* device) {
  const int64_t dims[1] = {4};
  const float a[4] = {1, -2, 3, -4};
  float out[4];
  amps_tensor *x = NULL, *y[1] = {NULL};
  const amps_op* leaky = amps_op_find("leaky_relu");
  amps_attr alpha = {"alpha", AMPS_ATTR_FLOAT, 0, 0.5, NULL, NULL, NULL, 0, NULL};
  amps_attr unknown = {"beta", AMPS_ATTR_FLOAT, 0, 0.5, NULL, NULL, NULL, 0, NULL};
  amps_cache_stats stats;
  CHECK(leaky != NULL && amps_op_find("no_such_op") == NULL && amps_op_find(NULL) == NULL);
  CHECK(amps_tensor_from_host(device, AMPS_F32, 1, dims, NULL, a, &x) == AMPS_OK);
  CHECK(amps_eager(device, leaky, &x, 1, &alpha, 1, y, 1) == AMPS_OK);
  CHECK(amps_tensor_to_host(y[0], out, sizeof(out)) == AMPS_OK && out[1] == -1 && out[3] == -2);
  /* in place: the output is the input */
  CHECK(amps_eager(device, leaky, &x, 1, &alpha, 1, &x, 1) == AMPS_OK);
  CHECK(amps_tensor_to_host(x, out, sizeof(out)) == AMPS_OK && out[0] == 1 && out[3] == -2);
  CHECK(amps_eager(device, leaky, &x, 1, &unknown, 1, y, 1) == AMPS_INVALID_ARGUMENT);
  CHECK(strstr(amps_last_error(), "[leaky_relu]") != NULL);
  CHECK(amps_eager(device, leaky, NULL, 0, NULL, 0, y, 1) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_eager(device, leaky, NULL, 1, NULL, 0, y, 1) == AMPS_INVALID_ARGUMENT);
  {
    /* an optional input may be NULL: no lower bound */
    amps_tensor* bounded[3] = {x, NULL, x};
    amps_tensor* clamped = NULL;
    CHECK(amps_eager(device, amps_op_find("clamp"), bounded, 3, NULL, 0, &clamped, 1) == AMPS_OK);
    amps_tensor_release(clamped);
  }
  stats.size = sizeof(stats);
  CHECK(amps_device_eager_cache(device, &stats) == AMPS_OK && stats.entries >= 1 &&
        stats.hits >= 1);
  amps_tensor_release(x);
  amps_tensor_release(y[0]);
}

static amps_graph* branch(const char* op) {
  amps_graph* graph = NULL;
  amps_value *x = NULL, *y = NULL;
  CHECK(amps_graph_create(op, &graph) == AMPS_OK);
  CHECK(amps_graph_input(graph, "x", AMPS_F32, 0, NULL, NULL, &x) == AMPS_OK);
  CHECK(amps_graph_op(graph, amps_op_find(op), &x, 1, NULL, 0, NULL, &y, 1) == AMPS_OK);
  CHECK(amps_graph_set_outputs(graph, &y, 1) == AMPS_OK);
  return graph;
}

/* condition ? -x : exp(x), the length of a list, and a variable that adds up. */
static void test_control_flow(amps_device* device) {
  const unsigned char truth = 1;
  const float two = 2, zero = 0;
  float number;
  int64_t length, ranks[4];
  size_t dim_count = 0;
  const char* words[2] = {"a", "b c"};
  const int64_t pair[1] = {2};
  amps_graph *graph = NULL, *yes = branch("neg"), *no = branch("exp");
  amps_value *condition, *x, *list, *strings, *start, *old, *sum, *inputs[2], *outputs[4];
  amps_attr bodies[2] = {{"then_branch", AMPS_ATTR_GRAPH, 0, 0, NULL, NULL, NULL, 0, yes},
                         {"else_branch", AMPS_ATTR_GRAPH, 0, 0, NULL, NULL, NULL, 0, no}};
  amps_attr name = {"variable", AMPS_ATTR_STRING, 0, 0, "sum", NULL, NULL, 0, NULL};
  amps_executable* executable = NULL;
  amps_tensor *feeds[3] = {NULL, NULL, NULL}, *results[4] = {NULL, NULL, NULL, NULL}, *held = NULL;
  CHECK(amps_graph_create("control", &graph) == AMPS_OK);
  CHECK(amps_graph_input(graph, "c", AMPS_BOOL, 0, NULL, NULL, &condition) == AMPS_OK);
  CHECK(amps_graph_input(graph, "x", AMPS_F32, 0, NULL, NULL, &x) == AMPS_OK);
  CHECK(amps_graph_list_input(graph, "l", AMPS_SEQUENCE, AMPS_F32, &list) == AMPS_OK);
  CHECK(amps_graph_list_input(graph, "m", (amps_container)9, AMPS_F32, &list) ==
        AMPS_INVALID_ARGUMENT);
  CHECK(amps_graph_string_constant(graph, "w", 1, pair, words, NULL, &strings) == AMPS_OK);
  CHECK(amps_graph_constant(graph, "bad", AMPS_STRING, 1, pair, words, &old) ==
        AMPS_INVALID_ARGUMENT);
  CHECK(amps_graph_constant(graph, "start", AMPS_F32, 0, NULL, &zero, &start) == AMPS_OK);
  inputs[0] = condition;
  inputs[1] = x;
  CHECK(amps_graph_op(graph, amps_op_find("if_else"), inputs, 2, bodies, 2, "choice", &outputs[0],
                      1) == AMPS_OK);
  amps_graph_release(yes);
  amps_graph_release(no);
  CHECK(amps_graph_op(graph, amps_op_find("sequence_length"), &list, 1, NULL, 0, NULL, &outputs[1],
                      1) == AMPS_OK);
  CHECK(amps_graph_op(graph, amps_op_find("read_variable"), &start, 1, &name, 1, NULL, &old, 1) ==
        AMPS_OK);
  inputs[0] = old;
  CHECK(amps_graph_op(graph, amps_op_find("add"), inputs, 2, NULL, 0, NULL, &sum, 1) == AMPS_OK);
  CHECK(amps_graph_op(graph, amps_op_find("assign_variable"), &sum, 1, &name, 1, NULL, &outputs[2],
                      1) == AMPS_OK);
  outputs[3] = strings;
  CHECK(amps_graph_set_outputs(graph, outputs, 4) == AMPS_OK);
  CHECK(amps_compile(device, graph, NULL, &executable) == AMPS_OK);
  amps_graph_release(graph);
  CHECK(amps_tensor_from_host(device, AMPS_BOOL, 0, NULL, NULL, &truth, &feeds[0]) == AMPS_OK);
  CHECK(amps_tensor_from_host(device, AMPS_F32, 0, NULL, NULL, &two, &feeds[1]) == AMPS_OK);
  CHECK(amps_tensor_list(device, AMPS_SEQUENCE, AMPS_F32, &feeds[1], 1, &feeds[2]) == AMPS_OK);
  CHECK(amps_executable_result_dims(executable, NULL, pair, ranks, &length, 1, &dim_count) ==
        AMPS_OK);
  CHECK(ranks[0] == 0 && ranks[1] == 0 && ranks[2] == 0 && ranks[3] == 1 && dim_count == 1);
  CHECK(length == 2);
  CHECK(amps_executable_variable(executable, "sum", &held) == AMPS_OK && held == NULL);
  CHECK(amps_executable_set_variable(executable, "sum", feeds[2]) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_executable_set_variable(executable, "sum", feeds[1]) == AMPS_OK);
  CHECK(amps_executable_run(executable, feeds, 3, results, 4, NULL, NULL) == AMPS_OK);
  CHECK(amps_tensor_to_host(results[0], &number, sizeof(number)) == AMPS_OK && number == -2);
  CHECK(amps_tensor_to_host(results[1], &length, sizeof(length)) == AMPS_OK && length == 1);
  {
    const char* data = NULL;
    size_t bytes = 0;
    CHECK(amps_tensor_string(results[3], 1, &data, &bytes) == AMPS_OK && bytes == 3 &&
          strcmp(data, "b c") == 0);
  }
  CHECK(amps_executable_variable(executable, "sum", &held) == AMPS_OK && held != NULL);
  CHECK(amps_tensor_to_host(held, &number, sizeof(number)) == AMPS_OK && number == 4);
  amps_tensor_release(held);
  for (int i = 0; i < 4; ++i) amps_tensor_release(results[i]);
  for (int i = 0; i < 3; ++i) amps_tensor_release(feeds[i]);
  amps_executable_release(executable);
}

static void test_graph(amps_device* device) {
  const int64_t dims[2] = {-1, 2};
  const char* names[2] = {"N", NULL};
  const float weights[4] = {1, 2, 3, 4}, rows[6] = {1, 1, 2, 0, 0, 2};
  const int64_t square[2] = {2, 2}, fed[2] = {3, 2};
  float out[6];
  amps_graph* graph = NULL;
  amps_value *x = NULL, *w = NULL, *y = NULL, *inputs[2];
  amps_executable* executable = NULL;
  amps_tensor *feed = NULL, *result = NULL;
  amps_string* text = NULL;
  amps_profiler* profiler = NULL;
  amps_value* all[3];
  amps_compile_options options;
  const size_t feed_rank = 2;
  const int64_t misfit[2] = {3, 4};
  int64_t result_rank = 0, result_dims[2] = {0, 0};
  size_t dim_count = 0;
  memset(&options, 0, sizeof(options));
  options.size = sizeof(options);
  options.threads = 1;
  options.optimization_level = 1;
  CHECK(amps_graph_create("test", &graph) == AMPS_OK);
  CHECK(amps_graph_input(graph, "x", AMPS_F32, 2, dims, names, &x) == AMPS_OK);
  CHECK(amps_graph_input(graph, "x", AMPS_F32, 2, dims, names, &x) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_graph_constant(graph, "w", AMPS_F32, 2, square, weights, &w) == AMPS_OK);
  inputs[0] = x;
  inputs[1] = w;
  CHECK(amps_graph_op(graph, amps_op_find("matmul"), inputs, 2, NULL, 0, "product", &y, 1) ==
        AMPS_OK);
  CHECK(amps_value_dim(y, 0) == -1 && strcmp(amps_value_dim_name(y, 0), "N") == 0);
  CHECK(amps_value_dim(y, 1) == 2 && amps_value_dim_name(y, 1) == NULL);
  CHECK(amps_graph_values(graph, NULL, 0) == 3 && amps_graph_values(graph, all, 3) == 3);
  CHECK(all[0] == x && all[1] == w && all[2] == y);
  CHECK(amps_value_op(y) == amps_op_find("matmul") && amps_value_op(x) == NULL);
  CHECK(amps_compile(device, graph, &options, &executable) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_graph_set_outputs(graph, &y, 1) == AMPS_OK);
  CHECK(amps_compile(device, graph, &options, &executable) == AMPS_OK);
  CHECK(amps_graph_text(graph, "text", &text) == AMPS_OK &&
        strstr(amps_string_data(text), "matmul"));
  amps_string_release(text);
  CHECK(amps_graph_set_precision(graph, AMPS_F64) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_graph_set_precision(NULL, AMPS_F16) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_graph_set_precision(graph, AMPS_F16) == AMPS_OK);
  CHECK(amps_graph_text(graph, "text", &text) == AMPS_OK && strstr(amps_string_data(text), "f16"));
  amps_string_release(text);
  CHECK(amps_graph_text(graph, "paper", &text) == AMPS_INVALID_ARGUMENT);
  amps_graph_release(graph);
  CHECK(amps_executable_result_dims(executable, NULL, fed, &result_rank, result_dims, 2,
                                    &dim_count) == AMPS_OK);
  CHECK(result_rank == 2 && dim_count == 2 && result_dims[0] == 3 && result_dims[1] == 2);
  result_dims[1] = 77; /* room for one extent */
  CHECK(amps_executable_result_dims(executable, &feed_rank, fed, &result_rank, result_dims, 1,
                                    &dim_count) == AMPS_OK);
  CHECK(dim_count == 2 && result_dims[0] == 3 && result_dims[1] == 77);
  CHECK(amps_executable_result_dims(executable, NULL, misfit, &result_rank, result_dims, 2,
                                    &dim_count) == AMPS_INVALID_ARGUMENT);
  CHECK(strstr(amps_last_error(), "'x' must be f32[N, 2], [3, 4] given") != NULL);
  CHECK(amps_executable_result_dims(executable, NULL, dims, &result_rank, result_dims, 2,
                                    &dim_count) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_executable_result_dims(executable, NULL, NULL, &result_rank, result_dims, 2,
                                    &dim_count) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_executable_result_dims(executable, NULL, fed, NULL, result_dims, 2, &dim_count) ==
        AMPS_INVALID_ARGUMENT);
  CHECK(amps_executable_result_dims(executable, NULL, fed, &result_rank, NULL, 2, &dim_count) ==
        AMPS_INVALID_ARGUMENT);
  CHECK(amps_executable_result_dims(NULL, NULL, fed, &result_rank, result_dims, 2, &dim_count) ==
        AMPS_INVALID_ARGUMENT);
  CHECK(amps_tensor_from_host(device, AMPS_F32, 2, fed, NULL, rows, &feed) == AMPS_OK);
  CHECK(amps_profiler_create(&profiler) == AMPS_OK);
  CHECK(amps_executable_run(executable, &feed, 1, &result, 1, NULL, profiler) == AMPS_OK);
  CHECK(amps_tensor_to_host(result, out, sizeof(out)) == AMPS_OK && out[0] == 4 && out[5] == 8);
  CHECK(amps_profiler_text(profiler, "trace", &text) == AMPS_OK);
  CHECK(strstr(amps_string_data(text), "traceEvents") != NULL);
  amps_string_release(text);
  CHECK(amps_executable_run(executable, &feed, 1, &result, 2, NULL, NULL) == AMPS_INVALID_ARGUMENT);
  amps_profiler_release(profiler);
  amps_tensor_release(feed);
  amps_tensor_release(result);
  amps_executable_release(executable);
}

static void test_gradient(amps_device* device) {
  const int64_t dims[1] = {3};
  const float at[3] = {1, -2, 0.5f}, weights[3] = {1, 10, 100};
  float out[3];
  amps_graph* graph = NULL;
  amps_value *x = NULL, *w = NULL, *i = NULL, *y = NULL, *grads[2] = {NULL, NULL}, *xs[2];
  amps_executable* executable = NULL;
  amps_tensor *feeds[2] = {NULL, NULL}, *results[2] = {NULL, NULL};
  CHECK(amps_graph_create("gradient", &graph) == AMPS_OK);
  CHECK(amps_graph_input(graph, "x", AMPS_F32, 1, dims, NULL, &x) == AMPS_OK);
  CHECK(amps_graph_input(graph, "w", AMPS_F32, 1, dims, NULL, &w) == AMPS_OK);
  CHECK(amps_graph_op(graph, amps_op_find("square"), &x, 1, NULL, 0, NULL, &y, 1) == AMPS_OK);
  xs[0] = x;
  xs[1] = y;
  CHECK(amps_graph_gradient_seeded(graph, y, w, xs, 2, grads) == AMPS_OK);
  CHECK(amps_value_rank(grads[0]) == 1 && amps_value_dim(grads[0], 0) == 3);
  CHECK(amps_graph_gradient(graph, y, xs, 1, &grads[1]) == AMPS_OK);
  CHECK(amps_graph_set_outputs(graph, grads, 2) == AMPS_OK);
  CHECK(amps_compile(device, graph, NULL, &executable) == AMPS_OK);
  CHECK(amps_tensor_from_host(device, AMPS_F32, 1, dims, NULL, at, &feeds[0]) == AMPS_OK);
  CHECK(amps_tensor_from_host(device, AMPS_F32, 1, dims, NULL, weights, &feeds[1]) == AMPS_OK);
  CHECK(amps_executable_run(executable, feeds, 2, results, 2, NULL, NULL) == AMPS_OK);
  CHECK(amps_tensor_to_host(results[0], out, sizeof(out)) == AMPS_OK);
  CHECK(out[0] == 2 && out[1] == -40 && out[2] == 100);
  CHECK(amps_tensor_to_host(results[1], out, sizeof(out)) == AMPS_OK);
  CHECK(out[0] == 2 && out[1] == -4 && out[2] == 1);
  CHECK(amps_graph_input(graph, "i", AMPS_I64, 1, dims, NULL, &i) == AMPS_OK);
  CHECK(amps_graph_gradient(graph, y, &i, 1, grads) == AMPS_INVALID_ARGUMENT);
  CHECK(strstr(amps_last_error(), "'i' is i64[3]") != NULL);
  CHECK(amps_graph_gradient(graph, NULL, xs, 1, grads) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_graph_gradient(graph, y, NULL, 1, grads) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_graph_gradient(graph, y, xs, 1, NULL) == AMPS_INVALID_ARGUMENT);
  amps_tensor_release(feeds[0]);
  amps_tensor_release(feeds[1]);
  amps_tensor_release(results[0]);
  amps_tensor_release(results[1]);
  amps_executable_release(executable);
  amps_graph_release(graph);
}

static void test_streams(amps_device* device) {
  amps_stream* stream = NULL;
  amps_event *start = NULL, *end = NULL;
  double passed = -1;
  CHECK(amps_stream_create(device, &stream) == AMPS_OK);
  CHECK(amps_stream_record(stream, &start) == AMPS_OK &&
        amps_stream_record(stream, &end) == AMPS_OK);
  CHECK(amps_event_synchronize(end) == AMPS_OK && amps_event_done(start));
  CHECK(amps_event_elapsed(start, end, &passed) == AMPS_OK && passed >= 0);
  CHECK(amps_stream_synchronize(stream) == AMPS_OK);
  amps_event_release(start);
  amps_event_release(end);
  amps_stream_release(stream);
}

static void test_memory(amps_device* device) {
  const int64_t dims[1] = {1000};
  amps_memory_stats before, after, small;
  amps_tensor* tensor = NULL;
  before.size = after.size = sizeof(before);
  CHECK(amps_device_memory_stats(device, &before) == AMPS_OK);
  CHECK(amps_tensor_empty(device, AMPS_F64, 1, dims, &tensor) == AMPS_OK);
  CHECK(amps_device_memory_stats(device, &after) == AMPS_OK);
  CHECK(after.allocated == before.allocated + 8000);
  amps_tensor_release(tensor);
  CHECK(amps_device_memory_stats(device, &after) == AMPS_OK && after.allocated == before.allocated);
  small.size = sizeof(size_t) + sizeof(uint64_t); /* an older caller that knows one field */
  small.reserved = 12345;
  CHECK(amps_device_memory_stats(device, &small) == AMPS_OK);
  CHECK(small.allocated == after.allocated && small.reserved == 12345);
  CHECK(amps_device_empty_cache(device) == AMPS_OK);
}

static void test_files(void) {
  amps_graph* graph = NULL;
  CHECK(amps_graph_load("/no/such/file.onnx", &graph) == AMPS_NOT_FOUND && graph == NULL);
  CHECK(amps_graph_load_memory("garbage", 7, "garbage", &graph) != AMPS_OK && graph == NULL);
  CHECK(amps_graph_load_memory(NULL, 3, "null", &graph) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_graph_load_payload("garbage!", 8, "bad", NULL, 0, &graph) == AMPS_CORRUPT && !graph);
  CHECK(strstr(amps_last_error(), "MPSBackend"));
}

/* y = x * w as an ONNX model of IR version 3, where w is an input whose default is 3. */
static const unsigned char kWithDefault[] = {
    8,   3,  58,  85,  10,  14, 10, 1,  120, 10, 1,  119, 18, 1,  121, 34, 3,  77, 117,
    108, 18, 1,   103, 42,  13, 8,  1,  16,  1,  34, 4,   0,  0,  64,  64, 66, 1,  119,
    90,  15, 10,  1,   120, 18, 10, 10, 8,   8,  1,  18,  4,  10, 2,   8,  1,  90, 15,
    10,  1,  119, 18,  10,  10, 8,  8,  1,   18, 4,  10,  2,  8,  1,   98, 15, 10, 1,
    121, 18, 10,  10,  8,   8,  1,  18, 4,   10, 2,  8,   1,  66, 4,   10, 0,  16, 8};

static void test_default_inputs(amps_device* device) {
  const int64_t dims[1] = {1};
  const float seven = 7, two = 2;
  const char *w = "w", *nobody = "nobody";
  float y = 0;
  amps_graph *graph = NULL, *open = NULL;
  amps_executable *executable = NULL, *fed = NULL;
  amps_tensor *feeds[2] = {NULL, NULL}, *result = NULL;
  CHECK(amps_tensor_from_host(device, AMPS_F32, 1, dims, NULL, &seven, &feeds[0]) == AMPS_OK);
  CHECK(amps_tensor_from_host(device, AMPS_F32, 1, dims, NULL, &two, &feeds[1]) == AMPS_OK);
  CHECK(amps_graph_load_memory(kWithDefault, sizeof(kWithDefault), "m", &graph) == AMPS_OK);
  CHECK(amps_graph_input_count(graph) == 1 && amps_graph_default_count(graph) == 1);
  CHECK(strcmp(amps_value_name(amps_graph_default_at(graph, 0)), "w") == 0);
  CHECK(amps_value_dim(amps_graph_default_at(graph, 0), 0) == 1);
  CHECK(amps_graph_default_at(graph, 1) == NULL);
  CHECK(amps_compile(device, graph, NULL, &executable) == AMPS_OK);
  CHECK(amps_executable_run(executable, feeds, 1, &result, 1, NULL, NULL) == AMPS_OK);
  CHECK(amps_tensor_to_host(result, &y, sizeof(y)) == AMPS_OK && y == 21);
  CHECK(amps_graph_load_memory_inputs(kWithDefault, sizeof(kWithDefault), "m", &w, 1, &open) ==
        AMPS_OK);
  CHECK(amps_graph_input_count(open) == 2 && amps_graph_default_count(open) == 0);
  CHECK(amps_compile(device, open, NULL, &fed) == AMPS_OK);
  CHECK(amps_executable_run(fed, feeds, 2, &result, 1, NULL, NULL) == AMPS_OK);
  CHECK(amps_tensor_to_host(result, &y, sizeof(y)) == AMPS_OK && y == 14);
  amps_graph_release(open);
  CHECK(amps_graph_load_memory_inputs(kWithDefault, sizeof(kWithDefault), "m", &nobody, 1, &open) ==
            AMPS_NOT_FOUND &&
        open == NULL);
  CHECK(amps_graph_load_memory_inputs(kWithDefault, sizeof(kWithDefault), "m", NULL, 1, &open) ==
        AMPS_INVALID_ARGUMENT);
  amps_executable_release(executable);
  amps_executable_release(fed);
  amps_graph_release(graph);
  amps_tensor_release(feeds[0]);
  amps_tensor_release(feeds[1]);
  amps_tensor_release(result);
}

static void test_programs(amps_device* device) {
  const char* path = "tests/data/executorch/portable/methods.pte";
  amps_program* program = NULL;
  amps_graph* graph = NULL;
  amps_executable* executable = NULL;
  amps_tensor *input = NULL, *expected = NULL, *result = NULL;
  amps_string* text = NULL;
  const char* backend = NULL;
  float found[3], wanted[3];
  size_t count = 0;
  CHECK(amps_program_open("no/such.pte", &program) == AMPS_NOT_FOUND && program == NULL);
  CHECK(amps_program_open_memory("junk", 4, NULL, &program) == AMPS_CORRUPT);
  CHECK(amps_program_open(NULL, &program) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_program_open(path, NULL) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_program_open(path, &program) == AMPS_OK);
  CHECK(amps_program_method_count(program) == 2);
  CHECK(strcmp(amps_program_method_at(program, 0), "decode") == 0);
  CHECK(amps_program_method_at(program, 2) == NULL);
  CHECK(amps_program_graph(program, NULL, &graph) == AMPS_NOT_FOUND);
  CHECK(strstr(amps_last_error(), "it has: decode, encode") != NULL);
  CHECK(amps_program_graph(program, "decode", &graph) == AMPS_OK);
  CHECK(amps_program_delegate_count(program, "decode", &count) == AMPS_OK && count == 0);
  CHECK(amps_program_delegate_backend(program, "decode", 0, &backend) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_program_delegate_option(program, "decode", 0, "x", &text) == AMPS_INVALID_ARGUMENT);
  CHECK(amps_program_test_count(program, "decode", &count) == AMPS_OK && count == 1);
  CHECK(amps_program_test_size(program, "decode", 0, AMPS_TEST_INPUTS, &count) == AMPS_OK);
  CHECK(count == 1);
  CHECK(amps_program_test_size(program, "decode", 1, AMPS_TEST_INPUTS, &count) ==
        AMPS_INVALID_ARGUMENT);
  CHECK(amps_program_test_tensor(program, "decode", 0, AMPS_TEST_INPUTS, 1, device, &input) ==
        AMPS_INVALID_ARGUMENT);
  CHECK(amps_program_test_tensor(program, "decode", 0, AMPS_TEST_INPUTS, 0, NULL, &input) ==
        AMPS_INVALID_ARGUMENT);
  CHECK(amps_program_test_tensor(program, "decode", 0, AMPS_TEST_INPUTS, 0, device, &input) ==
        AMPS_OK);
  CHECK(amps_program_test_tensor(program, "decode", 0, AMPS_TEST_OUTPUTS, 0, device, &expected) ==
        AMPS_OK);
  CHECK(amps_program_text(program, "json", &text) == AMPS_OK &&
        strstr(amps_string_data(text), "\"decode\"") != NULL);
  amps_string_release(text);
  CHECK(amps_program_text(program, "paper", &text) == AMPS_INVALID_ARGUMENT);
  amps_program_release(program); /* the graph keeps what it needs of the file */
  CHECK(amps_compile(device, graph, NULL, &executable) == AMPS_OK);
  CHECK(amps_executable_run(executable, &input, 1, &result, 1, NULL, NULL) == AMPS_OK);
  CHECK(amps_tensor_to_host(result, found, sizeof(found)) == AMPS_OK);
  CHECK(amps_tensor_to_host(expected, wanted, sizeof(wanted)) == AMPS_OK);
  CHECK(memcmp(found, wanted, sizeof(found)) == 0);
  amps_tensor_release(input);
  amps_tensor_release(expected);
  amps_tensor_release(result);
  amps_executable_release(executable);
  amps_graph_release(graph);
}

static void test_null_handles(void) {
  CHECK(amps_string_data(NULL)[0] == 0 && amps_string_size(NULL) == 0);
  CHECK(amps_device_name(NULL)[0] == 0 && amps_device_description(NULL)[0] == 0);
  CHECK(amps_device_max_threads(NULL) == 0 && amps_device_name_at(99) == NULL);
  CHECK(amps_tensor_rank(NULL) == 0 && amps_tensor_bytes(NULL) == 0 && !amps_tensor_data(NULL));
  CHECK(amps_tensor_dims(NULL) == NULL && amps_tensor_strides(NULL) == NULL);
  CHECK((int)amps_tensor_dtype(NULL) == 0 && (int)amps_tensor_container(NULL) == 0);
  CHECK(amps_tensor_item_count(NULL) == -1);
  CHECK(amps_op_name(NULL)[0] == 0 && amps_op_at(amps_op_count()) == NULL);
  CHECK(amps_value_name(NULL)[0] == 0 && (int)amps_value_dtype(NULL) == 0);
  CHECK((int)amps_value_container(NULL) == 0 && amps_value_rank(NULL) == -1);
  CHECK(amps_value_dim(NULL, 0) == -1 && !amps_value_dim_name(NULL, 0) && !amps_value_op(NULL));
  CHECK(amps_graph_input_count(NULL) == 0 && amps_graph_input_at(NULL, 0) == NULL);
  CHECK(amps_graph_output_count(NULL) == 0 && amps_graph_output_at(NULL, 0) == NULL);
  CHECK(amps_graph_default_count(NULL) == 0 && amps_graph_default_at(NULL, 0) == NULL);
  CHECK(amps_graph_values(NULL, NULL, 0) == 0);
  CHECK(amps_program_method_count(NULL) == 0 && amps_program_method_at(NULL, 0) == NULL);
  CHECK(amps_executable_input_count(NULL) == 0 && amps_executable_input_at(NULL, 0) == NULL);
  CHECK(amps_executable_output_count(NULL) == 0 && amps_executable_output_at(NULL, 0) == NULL);
  CHECK(amps_event_done(NULL) == 0);
  amps_tensor_retain(NULL);
  amps_tensor_release(NULL);
  amps_graph_release(NULL);
  amps_executable_release(NULL);
  amps_stream_release(NULL);
  amps_event_release(NULL);
  amps_profiler_release(NULL);
  amps_program_release(NULL);
  amps_string_release(NULL);
}

int main(void) {
  amps_device* device = NULL;
  amps_string* text = NULL;
  test_status();
  test_dtypes();
  test_null_handles();
  if (amps_device_get("cpu", &device) != AMPS_OK) return 1;
  void (*const tests[])(amps_device*) = {test_tensors,      test_eager,          test_graph,
                                         test_control_flow, test_gradient,       test_streams,
                                         test_memory,       test_default_inputs, test_programs};
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; ++i) tests[i](device);
  test_files();
  CHECK(amps_doctor(&text) == AMPS_OK && strstr(amps_string_data(text), "\"devices\"") != NULL);
  amps_string_release(text);
  printf("%d passed, %d failed\n", checks - failures, failures);
  return failures != 0;
}
