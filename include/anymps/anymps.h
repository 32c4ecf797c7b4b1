/* SPDX-License-Identifier: Apache-2.0
 * The C interface of AnyMPS. It is stable: functions are added, never changed, and structs that
 * callers fill in start with their size. Every function that can fail returns an amps_status; the
 * message of the last failure on the calling thread is amps_last_error(). Functions may be called
 * from any thread; a graph under construction must not be shared between threads.
 *
 * Names: amps_<object>_<verb>. Objects are reference-counted handles: whoever gets one from a
 * function releases it with amps_<object>_release. Strings handed out as `const char*` live as long
 * as the object they came from; an amps_string belongs to the caller.
 */
#ifndef ANYMPS_ANYMPS_H_
#define ANYMPS_ANYMPS_H_

#include <stddef.h>
#include <stdint.h>

#define AMPS_ABI_VERSION 1

#if defined(ANYMPS_BUILDING)
#define AMPS_API __attribute__((visibility("default")))
#else
#define AMPS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status ------------------------------------------------------------------------------- */

typedef enum amps_status {
  AMPS_OK = 0,
  AMPS_INVALID_ARGUMENT = 1,
  AMPS_NOT_FOUND = 2,
  AMPS_UNSUPPORTED = 3,
  AMPS_OUT_OF_MEMORY = 4,
  AMPS_CORRUPT = 5,
  AMPS_IO = 6,
  AMPS_INTERNAL = 7,
  AMPS_CANCELLED = 8,
  AMPS_MISMATCH = 9 /* ANYMPS_CHECK found a wrong number */
} amps_status;

/* What can fail returns a status; the reason is here until the thread's next such call. What
 * returns none cannot fail: about a NULL handle or an index past the end it answers 0, NULL, "" or
 * -1. */
AMPS_API const char* amps_last_error(void); /* "" when the last call succeeded */
AMPS_API const char* amps_status_name(amps_status status);
AMPS_API int amps_abi_version(void); /* AMPS_ABI_VERSION of the library */
AMPS_API const char* amps_version(void);

typedef struct amps_string amps_string;
AMPS_API const char* amps_string_data(const amps_string* string); /* zero-terminated */
AMPS_API size_t amps_string_size(const amps_string* string);
AMPS_API void amps_string_release(amps_string* string);

/* ---- Types -------------------------------------------------------------------------------- */

typedef enum amps_dtype {
  AMPS_F32 = 0,
  AMPS_F16 = 1,
  AMPS_BF16 = 2,
  AMPS_F64 = 3,
  AMPS_I8 = 4,
  AMPS_I16 = 5,
  AMPS_I32 = 6,
  AMPS_I64 = 7,
  AMPS_U8 = 8,
  AMPS_U16 = 9,
  AMPS_U32 = 10,
  AMPS_U64 = 11,
  AMPS_BOOL = 12,
  AMPS_C64 = 13,
  /* Narrow types: one byte per element. They can be moved, cast, quantized and dequantized. */
  AMPS_I4 = 14,
  AMPS_U4 = 15,
  AMPS_I2 = 16,
  AMPS_U2 = 17,
  AMPS_F8E4M3 = 18,
  AMPS_F8E5M2 = 19,
  AMPS_F8E4M3FNUZ = 20,
  AMPS_F8E5M2FNUZ = 21,
  AMPS_F8E8M0 = 22,
  AMPS_F4E2M1 = 23,
  AMPS_STRING = 24, /* made and read with amps_tensor_from_strings and amps_tensor_string */
  AMPS_C128 = 25,
  AMPS_DTYPE_FORCE_INT = 0x7fffffff /* any int may be passed; one that is no type is an error */
} amps_dtype;

AMPS_API const char* amps_dtype_name(amps_dtype dtype); /* "f32" */
AMPS_API size_t amps_dtype_size(amps_dtype dtype);
AMPS_API amps_status amps_dtype_parse(const char* name, amps_dtype* dtype);

/* ---- Devices and memory ------------------------------------------------------------------- */

typedef struct amps_device amps_device;
typedef struct amps_executable amps_executable;
typedef struct amps_stream amps_stream;
typedef struct amps_event amps_event;
typedef struct amps_profiler amps_profiler;

/* "cpu", "reference", "null"; NULL or "": the default (ANYMPS_DRIVER). "cpu:1" to "cpu:63" are
 * further devices of the same driver, with memory, limits, statistics and caches of their own.
 * There is one device per name; it lives as long as the process and needs no release. */
AMPS_API amps_status amps_device_get(const char* name, amps_device** device);
AMPS_API size_t amps_device_count(void);
AMPS_API const char* amps_device_name_at(size_t index); /* NULL past the end */
AMPS_API const char* amps_device_name(const amps_device* device);
AMPS_API const char* amps_device_description(amps_device* device);
AMPS_API int amps_device_max_threads(amps_device* device);
/* How many threads compute at most, from now on; at first as many as the process has cores (its
 * affinity and quota of CPU time count), or ANYMPS_NUM_THREADS. Results do not depend on it. */
AMPS_API amps_status amps_device_set_max_threads(amps_device* device, int threads);
/* Seconds, over all callers since the process began: that the device's threads computed beside
 * their callers, and that callers waited for work which such threads had begun. */
AMPS_API amps_status amps_device_thread_times(amps_device* device, double* helped, double* waited);
/* Calls fn with 0 to count - 1 on up to this many of the device's threads (0: all), in any order,
 * and returns when all have returned. Runs inside share the threads: several small runs beside each
 * other are often faster than one after the other on all threads. */
AMPS_API amps_status amps_device_parallel(amps_device* device, size_t count, int threads,
                                          void (*fn)(void* context, size_t index), void* context);
AMPS_API amps_status amps_device_synchronize(amps_device* device);

typedef struct amps_memory_stats {
  size_t size; /* sizeof(amps_memory_stats), set by the caller */
  uint64_t allocated, reserved, pooled, peak_allocated, peak_reserved;
  uint64_t allocations, frees, raw_allocations, pool_hits;
  uint64_t packed_weights; /* bytes, part of allocated */
} amps_memory_stats;

AMPS_API amps_status amps_device_memory_stats(amps_device* device, amps_memory_stats* stats);
AMPS_API amps_status amps_device_reset_peaks(amps_device* device);
AMPS_API amps_status amps_device_empty_cache(amps_device* device);
/* Gives back what has lain free longer than MPS_MAX_BUFFER_AGE. Every call that takes or frees
 * memory does that in passing; a host that goes idle calls this now and then, since the library
 * starts no thread for it. Cheap when there is nothing to do. */
AMPS_API amps_status amps_device_trim(amps_device* device);
/* The most that `reserved` may be. 0: the default, MPS_MEMORY_LIMIT, or what the machine or its
 * container has. What does not fit is AMPS_OUT_OF_MEMORY. */
AMPS_API amps_status amps_device_set_memory_limit(amps_device* device, size_t bytes);

/* What the device may hold in all (its limit), and what of that is not in use. */
AMPS_API amps_status amps_device_memory_info(amps_device* device, uint64_t* free_bytes,
                                             uint64_t* total_bytes);

/* Raw memory of the device, for frameworks that make their own tensors. It goes back with the
 * release, but not before the work is done that the recorded streams had at that moment. */
typedef struct amps_buffer amps_buffer;
AMPS_API amps_status amps_buffer_create(amps_device* device, size_t bytes, amps_buffer** buffer);
AMPS_API void* amps_buffer_data(const amps_buffer* buffer);
AMPS_API size_t amps_buffer_size(const amps_buffer* buffer);
AMPS_API amps_status amps_buffer_record_stream(amps_buffer* buffer, amps_stream* stream);
AMPS_API void amps_buffer_release(amps_buffer* buffer);

typedef struct amps_cache_stats {
  size_t size; /* sizeof(amps_cache_stats), set by the caller */
  uint64_t entries, capacity, hits, misses, evictions;
} amps_cache_stats;

/* The device's bounded caches: compiled graphs, and prepared kernels of eager calls. */
AMPS_API amps_status amps_device_executable_cache(amps_device* device, amps_cache_stats* stats);
AMPS_API amps_status amps_device_eager_cache(amps_device* device, amps_cache_stats* stats);
AMPS_API amps_status amps_device_clear_caches(amps_device* device);

/* ---- Tensors ------------------------------------------------------------------------------ */

typedef struct amps_tensor amps_tensor;

AMPS_API amps_status amps_tensor_empty(amps_device* device, amps_dtype dtype, size_t rank,
                                       const int64_t* dims, amps_tensor** tensor);
/* Copies from host memory; strides (in elements) may be NULL for row-major. */
AMPS_API amps_status amps_tensor_from_host(amps_device* device, amps_dtype dtype, size_t rank,
                                           const int64_t* dims, const int64_t* strides,
                                           const void* data, amps_tensor** tensor);
/* Uses the caller's memory without a copy, where the device shares the host's memory. `release` is
 * called once when the last use is over; it may be NULL. */
AMPS_API amps_status amps_tensor_wrap(amps_device* device, amps_dtype dtype, size_t rank,
                                      const int64_t* dims, const int64_t* strides, void* data,
                                      void (*release)(void* context), void* context,
                                      amps_tensor** tensor);
/* Another view of the same memory: offset and strides in elements. */
AMPS_API amps_status amps_tensor_view(const amps_tensor* tensor, size_t rank, const int64_t* dims,
                                      const int64_t* strides, int64_t offset, amps_tensor** view);
AMPS_API amps_status amps_tensor_to_host(const amps_tensor* tensor, void* data, size_t bytes);
AMPS_API amps_dtype amps_tensor_dtype(const amps_tensor* tensor);
AMPS_API size_t amps_tensor_rank(const amps_tensor* tensor);
AMPS_API const int64_t* amps_tensor_dims(const amps_tensor* tensor);
AMPS_API const int64_t* amps_tensor_strides(const amps_tensor* tensor);
AMPS_API size_t amps_tensor_bytes(const amps_tensor* tensor); /* of its elements, packed */
AMPS_API void* amps_tensor_data(const amps_tensor* tensor);   /* device address of the first one */
/* Strings: `sizes` may be NULL for zero-terminated ones. The pointer that amps_tensor_string gives
 * lives as long as the tensor; `index` counts elements in row-major order. */
AMPS_API amps_status amps_tensor_from_strings(amps_device* device, size_t rank, const int64_t* dims,
                                              const char* const* data, const size_t* sizes,
                                              amps_tensor** tensor);
AMPS_API amps_status amps_tensor_string(const amps_tensor* tensor, int64_t index, const char** data,
                                        size_t* bytes);
/* What a value is besides a single tensor: a list, an optional, a list of maps that share their
 * keys (two items: keys [C], values [N, C]). Lists are made of tensors and read item by item. */
typedef enum amps_container {
  AMPS_TENSOR = 0,
  AMPS_SEQUENCE = 1,
  AMPS_OPTIONAL = 2,
  AMPS_OPTIONAL_SEQUENCE = 3,
  AMPS_MAPS = 4,
  AMPS_CONTAINER_FORCE_INT = 0x7fffffff
} amps_container;
AMPS_API amps_status amps_tensor_list(amps_device* device, amps_container container,
                                      amps_dtype dtype, amps_tensor* const* items, size_t count,
                                      amps_tensor** list);
/* An optional that holds nothing. */
AMPS_API amps_status amps_tensor_nothing(amps_device* device, amps_container container,
                                         amps_dtype dtype, amps_tensor** nothing);
AMPS_API amps_container amps_tensor_container(const amps_tensor* tensor);
AMPS_API int64_t amps_tensor_item_count(const amps_tensor* tensor); /* -1: nothing, or a tensor */
AMPS_API amps_status amps_tensor_item(const amps_tensor* list, size_t index, amps_tensor** item);
AMPS_API void amps_tensor_retain(amps_tensor* tensor);
AMPS_API void amps_tensor_release(amps_tensor* tensor);

/* ---- Ops ---------------------------------------------------------------------------------- */

typedef struct amps_op amps_op;

AMPS_API const amps_op* amps_op_find(const char* name); /* NULL: none; lives forever */
AMPS_API const char* amps_op_name(const amps_op* op);
AMPS_API size_t amps_op_count(void);
AMPS_API const amps_op* amps_op_at(size_t index);
/* The op table as "text", "markdown", "json", "matrix" (which driver has which kernel), "hpp" or
 * "mpsgraph" (what covers each method of MPSGraph). */
AMPS_API amps_status amps_ops_text(const char* format, amps_string** text);

typedef enum amps_attr_kind {
  AMPS_ATTR_INT = 0, /* bools and dtypes too */
  AMPS_ATTR_FLOAT = 1,
  AMPS_ATTR_STRING = 2,
  AMPS_ATTR_INTS = 3,
  AMPS_ATTR_FLOATS = 4,
  AMPS_ATTR_GRAPH = 5, /* a body of control flow; in graphs only */
  AMPS_ATTR_FORCE_INT = 0x7fffffff
} amps_attr_kind;

typedef struct amps_attr {
  const char* name;
  amps_attr_kind kind;
  int64_t i;
  double f;
  const char* s;
  const int64_t* ints;
  const double* floats;
  size_t count;                   /* of ints or floats */
  const struct amps_graph* graph; /* copied; it sees nothing but its inputs */
} amps_attr;

/* Computes one op at once. `inputs` may hold NULL for absent optional ones. Outputs that are NULL
 * are made; those given (right dtype and shape) are written to, with any strides. Their memory may
 * be that of inputs, in part or in whole, but not that of another output. */
AMPS_API amps_status amps_eager(amps_device* device, const amps_op* op, amps_tensor* const* inputs,
                                size_t input_count, const amps_attr* attrs, size_t attr_count,
                                amps_tensor** outputs, size_t output_count);

/* ---- Calls without handles ---------------------------------------------------------------- */

/* A tensor in the caller's memory, by value: nothing is wrapped, counted or kept. What a framework
 * that owns its memory hands over for every call. */
typedef struct amps_view {
  void* data;             /* element [0, ..., 0]; of a tensor without elements it may be NULL */
  const int64_t* dims;    /* `rank` extents */
  const int64_t* strides; /* in elements; NULL: row-major */
  amps_dtype dtype;
  int32_t rank; /* -1: an optional input that is left out; at most AMPS_MAX_RANK */
} amps_view;
enum { AMPS_MAX_RANK = 64 };

/* An op with its attributes, checked once for any number of calls, from any thread. Attributes that
 * `parameters` names, numbers all, come with each call instead: a kernel that can read them then
 * serves all values. */
typedef struct amps_call amps_call;
AMPS_API amps_status amps_call_create(amps_device* device, const amps_op* op,
                                      const amps_attr* attrs, size_t attr_count,
                                      const char* const* parameters, size_t parameter_count,
                                      amps_call** call);
AMPS_API void amps_call_release(amps_call* call);

/* Computes into the outputs' memory: right dtypes and dims, any strides that keep the elements
 * apart. It may be that of inputs, in part or in whole, but not that of another output. With a
 * stream the call is queued there, in order with other work on it: the memory (not the views) must
 * stay until it is done, and an error of the run is returned by amps_stream_synchronize. */
AMPS_API amps_status amps_call_run(const amps_call* call, const amps_view* inputs,
                                   size_t input_count, const double* parameters,
                                   const amps_view* outputs, size_t output_count,
                                   amps_stream* stream);

/* The same for inputs whose elements stay as they are from call to call, such as weights: what the
 * kernels of products make of them (a packed copy) is then kept. versions[i] is 0 for an input that
 * may change at any time. Any other number says: the elements are those that this address had, with
 * these dims and strides, in earlier calls with the same number. So a new number is due whenever
 * elements change, and for new memory at an old address; numbers from one counter that never
 * repeats are right. A queued call reads them when it runs. NULL: all 0. */
AMPS_API amps_status amps_call_run_versions(const amps_call* call, const amps_view* inputs,
                                            size_t input_count, const uint64_t* versions,
                                            const double* parameters, const amps_view* outputs,
                                            size_t output_count, amps_stream* stream);
/* Lets go of what is kept of the memory. Releasing a buffer (amps_buffer_release) does that for its
 * own. A call that is still queued may make it again, so numbers must not repeat after it either.
 */
AMPS_API amps_status amps_device_forget(amps_device* device, const void* memory, size_t bytes);

/* What a result will be. */
typedef struct amps_type {
  amps_dtype dtype;
  int32_t rank;
  int64_t dims[AMPS_MAX_RANK]; /* the first `rank` are set */
} amps_type;
/* The types of the results, without a run. The inputs' memory is read only where shapes depend on
 * elements. */
AMPS_API amps_status amps_call_infer(const amps_call* call, const amps_view* inputs,
                                     size_t input_count, amps_type* results, size_t result_count);

/* A call whose dtypes, dims and strides are the same each time, checked and looked up once, so that
 * a run takes addresses alone: as many as there are views here, whose memory is not looked at and
 * may be NULL. NULL is stored, and AMPS_OK returned, for a call that takes more than a kernel
 * (parameters, shapes that depend on elements, copies, scratch memory): it is for amps_call_run.
 * May be run from any thread, and outlive the call. */
typedef struct amps_fixed_call amps_fixed_call;
AMPS_API amps_status amps_call_fix(const amps_call* call, const amps_view* inputs,
                                   size_t input_count, const amps_view* outputs,
                                   size_t output_count, amps_fixed_call** fixed);
AMPS_API void amps_fixed_call_release(amps_fixed_call* call);
/* Computes at once; what memory may be is as for amps_call_run. NULL for an input left out. */
AMPS_API amps_status amps_fixed_call_run(const amps_fixed_call* call, void* const* inputs,
                                         void* const* outputs);

/* What eager calls on the device had to do beside their kernels since it was last reset, as "text"
 * or "json": ops whose calls ran the reference kernel, packed inputs or computed outputs aside. */
AMPS_API amps_status amps_device_eager_report(amps_device* device, const char* format,
                                              amps_string** text);
AMPS_API amps_status amps_device_reset_eager_report(amps_device* device);
/* Times every eager call on the device; NULL: no longer. The profiler may be released meanwhile. */
AMPS_API amps_status amps_device_profile_eager(amps_device* device, amps_profiler* profiler);

/* ---- Ops of your own ---------------------------------------------------------------------- */

enum { AMPS_CUSTOM_MAX_RANK = 8 };
typedef struct amps_custom_tensor {
  amps_dtype dtype;
  int64_t rank; /* -1: an input that is left out */
  /* While shapes are inferred, extents that are not known are negative; equal numbers mean equal
   * extents, also among the outputs. */
  int64_t dims[AMPS_CUSTOM_MAX_RANK];
  void* data; /* row-major; NULL while shapes are inferred */
} amps_custom_tensor;

typedef struct amps_custom_call {
  size_t size; /* sizeof(amps_custom_call) of the library */
  const amps_custom_tensor* inputs;
  size_t input_count;
  amps_custom_tensor* outputs;
  size_t output_count;
  const amps_attr* attrs; /* of the node, as in the file */
  size_t attr_count;
  void* context; /* of the op */
} amps_custom_call;

/* Both functions return NULL, or why they cannot do it. `infer` tells the outputs' dtypes, ranks
 * and dims; `run` computes their elements. They are called from several threads at once, and equal
 * inputs must give equal outputs. */
typedef struct amps_custom_op {
  size_t size;      /* sizeof(amps_custom_op), set by the caller */
  const char* name; /* "my.domain.Op": nodes of this domain and op in ONNX files */
  const char* (*infer)(const amps_custom_call* call);
  const char* (*run)(const amps_custom_call* call);
  void* context;
} amps_custom_op;

/* For as long as the process lives. AMPS_INVALID_ARGUMENT if there is one of this name. */
AMPS_API amps_status amps_op_register(const amps_custom_op* op);
/* Loads a shared library that exports
 *   const char* amps_op_library(amps_status (*add)(const amps_custom_op* op));
 * which adds its ops and returns NULL, or what is wrong. A library is loaded once; the functions
 * must not call into AnyMPS. */
AMPS_API amps_status amps_op_library_load(const char* path);

/* ---- Graphs ------------------------------------------------------------------------------- */

typedef struct amps_graph amps_graph;
typedef struct amps_value amps_value; /* belongs to its graph */

AMPS_API amps_status amps_graph_create(const char* name, amps_graph** graph);
/* Loads .onnx, .mps and .pte files; the content decides, not the name. Of a program of ExecuTorch
 * it is the method "forward", or the only one; amps_program_open gives the others. From memory,
 * what ExecuTorch hands to the delegate "MPSBackend" can be loaded too. */
AMPS_API amps_status amps_graph_load(const char* path, amps_graph** graph);
AMPS_API amps_status amps_graph_load_memory(const void* data, size_t bytes, const char* name,
                                            amps_graph** graph);
/* A file may give an input a default (ONNX: an initializer that is listed as an input too). It is a
 * constant of the graph, unless `inputs` names it: then it is an input like the others, in the
 * file's order. AMPS_NOT_FOUND for a name that is not an input. */
AMPS_API amps_status amps_graph_load_inputs(const char* path, const char* const* inputs,
                                            size_t count, amps_graph** graph);
AMPS_API amps_status amps_graph_load_memory_inputs(const void* data, size_t bytes, const char* name,
                                                   const char* const* inputs, size_t count,
                                                   amps_graph** graph);
/* What ExecuTorch hands to the delegate "MPSBackend". The bytes are used in place and must
 * outlive the graph and what is compiled from it. `dims` (NULL: as declared there) are the extents
 * of all inputs, one after the other; -1: dynamic. */
AMPS_API amps_status amps_graph_load_payload(const void* data, size_t bytes, const char* name,
                                             const int64_t* dims, size_t dim_count,
                                             amps_graph** graph);
/* Products (matrices, convolutions, attention) and what follows them elementwise are computed in
 * AMPS_F16 or AMPS_BF16 instead of AMPS_F32; sums, norms, softmax and exponentials are not. Inputs
 * and outputs keep their types. Values that the graph has handed out are no longer valid. */
AMPS_API amps_status amps_graph_set_precision(amps_graph* graph, amps_dtype dtype);
/* The name says the format: an ONNX model for NAME.onnx, else an .mps file. */
AMPS_API amps_status amps_graph_save(const amps_graph* graph, const char* path);
/* The bytes of such a file; the format is "mps" (NULL too) or "onnx". amps_graph_load_memory reads
 * them. */
AMPS_API amps_status amps_graph_save_memory(const amps_graph* graph, const char* format,
                                            amps_string** bytes);
AMPS_API void amps_graph_release(amps_graph* graph);

/* An extent of -1 is dynamic; dim_names (may be NULL, as may its entries) names the extents, and
 * equal names mean equal extents. */
AMPS_API amps_status amps_graph_input(amps_graph* graph, const char* name, amps_dtype dtype,
                                      size_t rank, const int64_t* dims,
                                      const char* const* dim_names, amps_value** value);
AMPS_API amps_status amps_graph_constant(amps_graph* graph, const char* name, amps_dtype dtype,
                                         size_t rank, const int64_t* dims, const void* data,
                                         amps_value** value);
/* A constant over the caller's memory, which is not copied and must stay as it is until `release`
 * (may be NULL) is called: once, from any thread, when graph and executables are done with it. If
 * the function fails, it is not called. Passes may fold the constant and kernels may pack it, but
 * nothing is decided by its elements; amps_executable_refresh tells that they have changed. With
 * strides, the elements are packed where they are used. A saved file holds them as they are then.
 */
AMPS_API amps_status amps_graph_constant_view(amps_graph* graph, const char* name,
                                              const amps_view* view, void (*release)(void* context),
                                              void* context, amps_value** value);
/* An input that is a list or may be nothing; its tensors are of one dtype and of any shape. */
AMPS_API amps_status amps_graph_list_input(amps_graph* graph, const char* name,
                                           amps_container container, amps_dtype dtype,
                                           amps_value** value);
/* A constant of strings: `sizes` may be NULL if they end with a zero. */
AMPS_API amps_status amps_graph_string_constant(amps_graph* graph, const char* name, size_t rank,
                                                const int64_t* dims, const char* const* data,
                                                const size_t* sizes, amps_value** value);
/* Adds a node. `outputs` receives output_count values (at most what the op has). */
AMPS_API amps_status amps_graph_op(amps_graph* graph, const amps_op* op, amps_value* const* inputs,
                                   size_t input_count, const amps_attr* attrs, size_t attr_count,
                                   const char* name, amps_value** outputs, size_t output_count);
AMPS_API amps_status amps_graph_set_outputs(amps_graph* graph, amps_value* const* outputs,
                                            size_t count);
/* The gradient of y to each of xs, as further values of the graph: of the sum of y's elements, or
 * of sum(seed * y) for a seed of y's type. Zeros where y does not depend on x. xs must be floats.
 * AMPS_UNSUPPORTED, with the node, if an op on the way has no gradient. */
AMPS_API amps_status amps_graph_gradient(amps_graph* graph, amps_value* y, amps_value* const* xs,
                                         size_t count, amps_value** grads);
AMPS_API amps_status amps_graph_gradient_seeded(amps_graph* graph, amps_value* y, amps_value* seed,
                                                amps_value* const* xs, size_t count,
                                                amps_value** grads);

/* A value's type: an extent that is not known is -1, and dim_name tells its symbol. */
AMPS_API const char* amps_value_name(const amps_value* value);
AMPS_API amps_dtype amps_value_dtype(const amps_value* value);
AMPS_API amps_container amps_value_container(const amps_value* value);
AMPS_API int64_t amps_value_rank(const amps_value* value); /* -1: not known */
AMPS_API int64_t amps_value_dim(const amps_value* value, size_t axis);
AMPS_API const char* amps_value_dim_name(const amps_value* value, size_t axis); /* NULL: a number */
AMPS_API size_t amps_graph_input_count(const amps_graph* graph);
AMPS_API const amps_value* amps_graph_input_at(const amps_graph* graph, size_t index);
AMPS_API size_t amps_graph_output_count(const amps_graph* graph);
AMPS_API const amps_value* amps_graph_output_at(const amps_graph* graph, size_t index);
/* Inputs with a default that are constants of this graph: names and types. */
AMPS_API size_t amps_graph_default_count(const amps_graph* graph);
AMPS_API const amps_value* amps_graph_default_at(const amps_graph* graph, size_t index);
/* Every value of the graph: inputs, constants and what the nodes make, in running order. Writes up
 * to `capacity` of them and returns how many there are. For tools that look inside;
 * amps_graph_set_outputs takes these values too. */
AMPS_API size_t amps_graph_values(amps_graph* graph, amps_value** values, size_t capacity);
AMPS_API const amps_op* amps_value_op(const amps_value* value); /* what makes it; NULL: no node */
/* The graph as "text", "json" or "svg". */
AMPS_API amps_status amps_graph_text(const amps_graph* graph, const char* format,
                                     amps_string** text);

/* ---- Programs ----------------------------------------------------------------------------- */

/* A file of ExecuTorch (.pte), or a bundle of such a file with test cases. `method` may be NULL in
 * all of these: the method "forward", or the only one. */
typedef struct amps_program amps_program;

AMPS_API amps_status amps_program_open(const char* path, amps_program** program);
AMPS_API amps_status amps_program_open_memory(const void* data, size_t bytes, const char* name,
                                              amps_program** program); /* copies the bytes */
AMPS_API void amps_program_release(amps_program* program);
AMPS_API size_t amps_program_method_count(const amps_program* program);
AMPS_API const char* amps_program_method_at(const amps_program* program, size_t index);
/* The inputs and outputs of the graph are those of the method that are tensors or numbers, the
 * inputs without the numbers: these are fixed in the file. The graph's tensors are in the logical
 * order of their axes, however the file says that they lie in memory. */
AMPS_API amps_status amps_program_graph(const amps_program* program, const char* method,
                                        amps_graph** graph);

/* The delegates of a method: the backend ("MPSBackend"), and what an option of its compilation is
 * set to, as raw bytes ("use_fp16": one byte); *value is NULL if it is not set. */
AMPS_API amps_status amps_program_delegate_count(const amps_program* program, const char* method,
                                                 size_t* count);
AMPS_API amps_status amps_program_delegate_backend(const amps_program* program, const char* method,
                                                   size_t index, const char** backend);
AMPS_API amps_status amps_program_delegate_option(const amps_program* program, const char* method,
                                                  size_t index, const char* key,
                                                  amps_string** value);

/* Test cases of a bundle; a program without has 0. Values come in the order of the graph's inputs
 * or outputs; a number comes as a tensor without axes. The tensor is NULL for
 * an output of which a case says nothing. */
typedef enum amps_test_side {
  AMPS_TEST_INPUTS = 0,
  AMPS_TEST_OUTPUTS = 1,
  AMPS_TEST_FORCE_INT = 0x7fffffff
} amps_test_side;
AMPS_API amps_status amps_program_test_count(const amps_program* program, const char* method,
                                             size_t* count);
AMPS_API amps_status amps_program_test_size(const amps_program* program, const char* method,
                                            size_t test, amps_test_side side, size_t* count);
AMPS_API amps_status amps_program_test_tensor(const amps_program* program, const char* method,
                                              size_t test, amps_test_side side, size_t index,
                                              amps_device* device, amps_tensor** tensor);
/* What is in the file, as "text" or "json". */
AMPS_API amps_status amps_program_text(const amps_program* program, const char* format,
                                       amps_string** text);

/* ---- Executables -------------------------------------------------------------------------- */

/* The most threads that a caller, or ANYMPS_NUM_THREADS, may ask for. */
#define AMPS_MAX_THREADS 1024

typedef struct amps_compile_options {
  size_t size;                /* sizeof(amps_compile_options), set by the caller */
  int threads;                /* 0: the device's default; at most AMPS_MAX_THREADS */
  int optimization_level;     /* 0: none, 1: all passes (MPSGraph's default) */
  int check;                  /* compare every node with the reference driver */
  size_t plan_cache;          /* feed shapes that are kept ready; 0: 16 */
  const char* without_passes; /* comma-separated; NULL: none */
  /* Results that may lie in the memory of feeds, for updates in place (optimizers, running
   * statistics, caches of keys and values). A run that is given one piece of memory for both, same
   * dtype and dims, row-major, then needs no copy where a kernel works in place or the feed has
   * been read before; the result is right in every case, and for separate memory too. */
  const struct amps_alias* aliases; /* may be NULL */
  size_t alias_count;
  int denormals; /* an amps_denormals */
  /* "int8", "int4": large constant matrices (weights of products, tables of embeddings) are rounded
   * to so few bits and stay so in memory and in saved files; results change by that. Of 8 bits each
   * output of a product has a scale, of 4 bits each 32 weights of an output; tables are of 8 bits
   * in either case, and so is what 32 does not divide. Needs optimization level 1. NULL: not. */
  const char* quantize;
} amps_compile_options;

/* What runs take subnormal numbers for (f32 below 1.2e-38), which are slow on many processors.
 * Flushed, they are zeros, as operands and as results; those of f16 stay. Ops that are about bits
 * (nextafter, frexp, ldexp) and ops of your own keep them in any case, and so do devices other than
 * "cpu". */
typedef enum amps_denormals {
  AMPS_DENORMALS_DEFAULT = 0, /* what ANYMPS_DENORMALS says, else flushed */
  AMPS_DENORMALS_FLUSH = 1,
  AMPS_DENORMALS_KEEP = 2,
  /* What ANYMPS_DENORMALS says, else as the thread has it that runs, as in calls of single ops: for
   * graphs that stand for a framework's op. */
  AMPS_DENORMALS_AS_CALLS = 3,
  AMPS_DENORMALS_FORCE_INT = 0x7fffffff
} amps_denormals;

typedef struct amps_alias {
  size_t result, feed; /* by number; each of them at most once */
} amps_alias;

/* Options may be NULL. The graph may be changed or released afterwards. */
AMPS_API amps_status amps_compile(amps_device* device, const amps_graph* graph,
                                  const amps_compile_options* options,
                                  amps_executable** executable);
/* The same through the device's bounded cache: the same graph and options give the same object. */
AMPS_API amps_status amps_compile_cached(amps_device* device, const amps_graph* graph,
                                         const amps_compile_options* options,
                                         amps_executable** executable);
/* The optimised graph as an .mps file; loading one skips the passes that have run. */
AMPS_API amps_status amps_executable_save(const amps_executable* executable, const char* path);
AMPS_API amps_status amps_executable_load(amps_device* device, const char* path,
                                          const amps_compile_options* options,
                                          amps_executable** executable);
/* The same in memory. The bytes are copied; `name` (may be NULL) stands for the path in errors. */
AMPS_API amps_status amps_executable_save_memory(const amps_executable* executable,
                                                 amps_string** bytes);
AMPS_API amps_status amps_executable_load_memory(amps_device* device, const void* data,
                                                 size_t bytes, const char* name,
                                                 const amps_compile_options* options,
                                                 amps_executable** executable);
AMPS_API void amps_executable_release(amps_executable* executable);

AMPS_API size_t amps_executable_input_count(const amps_executable* executable);
AMPS_API const amps_value* amps_executable_input_at(const amps_executable* executable,
                                                    size_t index);
AMPS_API size_t amps_executable_output_count(const amps_executable* executable);
AMPS_API const amps_value* amps_executable_output_at(const amps_executable* executable,
                                                     size_t index);

/* The same executable with dimensions of the graph bound by their names, beside those that are
 * bound already: what the op `dimension` gives where no feed's shape tells it. Runs, result dims
 * and plans of the new handle use them; a feed that says otherwise is an error. Costs no more than
 * a small allocation, so it may be made for a single call. AMPS_NOT_FOUND for a name that the graph
 * lacks. */
typedef struct amps_binding {
  const char* name;
  int64_t value;
} amps_binding;
AMPS_API amps_status amps_executable_bind(const amps_executable* executable,
                                          const amps_binding* bindings, size_t count,
                                          amps_executable** bound);

/* Runs and waits. Results that are NULL are made; those given are written to: their memory may be
 * that of feeds (which costs a copy, unless the compile options name them as aliases), but not that
 * of another result. Stream and profiler may be NULL. One executable may run on several threads at
 * once. */
AMPS_API amps_status amps_executable_run(amps_executable* executable, amps_tensor* const* feeds,
                                         size_t feed_count, amps_tensor** results,
                                         size_t result_count, amps_stream* stream,
                                         amps_profiler* profiler);
/* The same on views, all given, of any strides: results that are not row-major, or that share
 * memory with feeds, cost a copy. With a stream the run is queued there, as amps_call_run is. */
AMPS_API amps_status amps_executable_run_views(amps_executable* executable, const amps_view* feeds,
                                               size_t feed_count, const amps_view* results,
                                               size_t result_count, amps_stream* stream);
/* Queues the work on the stream; an error of the run is returned by amps_stream_synchronize. */
AMPS_API amps_status amps_executable_submit(amps_executable* executable, amps_tensor* const* feeds,
                                            size_t feed_count, amps_tensor** results,
                                            size_t result_count, amps_stream* stream);
/* What the ops read_variable and assign_variable use. A variable that was never assigned or set is
 * NULL. A tensor that is given is copied. */
AMPS_API amps_status amps_executable_variable(amps_executable* executable, const char* name,
                                              amps_tensor** tensor);
AMPS_API amps_status amps_executable_set_variable(amps_executable* executable, const char* name,
                                                  const amps_tensor* tensor);
/* 1 if a run leaves something behind for later ones (assign_variable): a second run of the same
 * feeds may then give other results. */
AMPS_API int amps_executable_stateful(const amps_executable* executable);
/* Constants of amps_graph_constant_view that have changed, by their names (amps_value_name). */
typedef struct amps_update {
  const char* name;
  const amps_view* view; /* where it lies now: dtype and dims as before; NULL: where it lay */
  void (*release)(void* context); /* of the new memory, as for amps_graph_constant_view */
  void* context;                  /* of release */
} amps_update;
/* Makes anew what was folded or packed of these constants, for each set of feed shapes that is kept
 * ready; nothing else is prepared again, and no pass runs. A run sees all of the old numbers or all
 * of the new ones: the function waits for those that have begun, and those that come meanwhile wait
 * for it. Numbers that change in place are written by `write` (may be NULL), which is called when
 * no run of this executable reads them and must not use it; or else by the caller while there is no
 * run. AMPS_NOT_FOUND for a name that is no such constant; if it fails, nothing has changed. */
AMPS_API amps_status amps_executable_refresh(amps_executable* executable,
                                             const amps_update* updates, size_t count,
                                             void (*write)(void* context), void* context);
AMPS_API amps_status amps_executable_plan_cache(const amps_executable* executable,
                                                amps_cache_stats* stats);
AMPS_API amps_status amps_executable_clear_plans(amps_executable* executable);
/* The shapes of the results for feeds of these shapes, without a run: so that memory for them can
 * be there before. Dims lie one after the other. feed_ranks may be NULL: as in the graph; feed_dims
 * may be NULL if all are static. result_ranks has one entry per result, -1: not known, or no
 * tensor; at most `capacity` extents are written to result_dims, -1: depends on the feeds'
 * elements; *dim_count: how many there are. Reads amps_executable_input_count ranks and as many
 * dims as they say, and writes amps_executable_output_count ranks, whatever room there is: the
 * function below takes the lengths. */
AMPS_API amps_status amps_executable_result_dims(amps_executable* executable,
                                                 const size_t* feed_ranks, const int64_t* feed_dims,
                                                 int64_t* result_ranks, int64_t* result_dims,
                                                 size_t capacity, size_t* dim_count);
/* The same with the number of feeds' ranks (NULL and 0: as in the graph), of their dims (NULL and 0
 * if all are static) and of the results' ranks, which must be those of the graph. */
AMPS_API amps_status amps_executable_result_dims_for(amps_executable* executable,
                                                     const size_t* feed_ranks, size_t feed_count,
                                                     const int64_t* feed_dims,
                                                     size_t feed_dim_count, int64_t* result_ranks,
                                                     size_t result_count, int64_t* result_dims,
                                                     size_t capacity, size_t* dim_count);
/* "text", "json", "svg": the optimised graph; "passes": what each pass did; for the shapes of these
 * feeds (dims one after the other, ranks as in the graph; may be NULL if all are static): "plan":
 * steps and kernels, "memory": the arena, as JSON. */
AMPS_API amps_status amps_executable_text(amps_executable* executable, const char* format,
                                          const int64_t* feed_dims, amps_string** text);
/* The same with the number of dims, which must be that of all feeds' extents together; NULL and 0
 * if all are static. */
AMPS_API amps_status amps_executable_text_for(amps_executable* executable, const char* format,
                                              const int64_t* feed_dims, size_t dim_count,
                                              amps_string** text);

/* ---- Streams, events, profiler ------------------------------------------------------------ */

/* In a child of fork() a stream of the parent is empty: work that was queued when the process
 * forked is done by the parent alone, and events behind it count as done in the child. */
AMPS_API amps_status amps_stream_create(amps_device* device, amps_stream** stream);
AMPS_API amps_status amps_stream_synchronize(amps_stream* stream);
AMPS_API amps_status amps_stream_wait(amps_stream* stream, amps_event* event);
AMPS_API amps_status amps_stream_record(amps_stream* stream, amps_event** event);
AMPS_API void amps_stream_release(amps_stream* stream);

/* The stream puts calls off from now on, and computes on the threads that call. Up to `window`
 * elementwise calls, casts and copies among them (amps_call_run), wait and then run as one pass
 * over the elements, with the same results: when the stream is synchronized, flushed or released,
 * an event is recorded or waited for, another op or an executable comes, memory or shapes of the
 * calls do not fit together, the window is full, another thread calls here or this one elsewhere,
 * the process forks or ends. Dtypes and shapes are checked at the call. Inputs of one element are
 * read at the call; all other memory must stay, and what is read must not be changed by others,
 * until the call has run. 0: nothing waits, each call runs at once. At most AMPS_MAX_WINDOW are of
 * use. */
enum { AMPS_MAX_WINDOW = 24 };
AMPS_API amps_status amps_stream_defer(amps_stream* stream, int window);
/* Runs the calls that wait, and returns an error of such a run, as amps_stream_synchronize does. */
AMPS_API amps_status amps_stream_flush(amps_stream* stream);
/* The memory is about to be freed or used for something else: what waiting calls would store there
 * is dropped, though calls that read it as a value still do, and calls that read what is there now
 * run at once. A buffer of amps_buffer_create needs none of this if it is recorded on the stream
 * (amps_buffer_record_stream): released while calls wait, it stays until they have run, and results
 * that nobody can see are not stored. */
AMPS_API amps_status amps_stream_forget(amps_stream* stream, const void* memory, size_t bytes);

AMPS_API int amps_event_done(amps_event* event);
AMPS_API amps_status amps_event_synchronize(amps_event* event);
AMPS_API amps_status amps_event_elapsed(amps_event* start, amps_event* end, double* milliseconds);
AMPS_API void amps_event_release(amps_event* event);

AMPS_API amps_status amps_profiler_create(amps_profiler** profiler);
/* "table", "json" or "trace" (opens in Perfetto and chrome://tracing). */
AMPS_API amps_status amps_profiler_text(const amps_profiler* profiler, const char* format,
                                        amps_string** text);
AMPS_API amps_status amps_profiler_reset(amps_profiler* profiler);
AMPS_API void amps_profiler_release(amps_profiler* profiler);

/* ---- Files -------------------------------------------------------------------------------- */

typedef struct amps_bytes {
  const void* data;
  size_t size;
} amps_bytes;

/* Writes a file of these parts, as models are saved: aside, and in place of the old one when it is
 * complete, so that whoever has the old one open or mapped keeps it and an error leaves it as it
 * was. Links are followed; what is not a regular file (a pipe that is read, /dev/stdout) is written
 * directly. */
AMPS_API amps_status amps_file_write(const char* path, const amps_bytes* parts, size_t count);

/* ---- The machine -------------------------------------------------------------------------- */

/* Devices, cores, instruction sets, libraries, passes and environment variables, as JSON. */
AMPS_API amps_status amps_doctor(amps_string** json);

/* ---- All of it as a table ----------------------------------------------------------------- */

/* For a program that loads the library itself, and wants nothing of it but this:
 *   void* library = dlopen("libanymps.so", RTLD_NOW | RTLD_LOCAL);
 *   const amps_api* (*get)(int) = (const amps_api* (*)(int))dlsym(library, "amps_get_api");
 *   const amps_api* api = get(AMPS_ABI_VERSION);
 * The functions above without their "amps_", in this order; new ones come at the end. */
/* clang-format off */
#define AMPS_API_FUNCTIONS(X) \
  X(last_error) X(status_name) X(abi_version) X(version) X(string_data) X(string_size) \
  X(string_release) X(dtype_name) X(dtype_size) X(dtype_parse) X(device_get) X(device_count) \
  X(device_name_at) X(device_name) X(device_description) X(device_max_threads) \
  X(device_parallel) X(device_synchronize) X(device_memory_stats) X(device_reset_peaks) \
  X(device_empty_cache) X(device_set_memory_limit) X(device_executable_cache) \
  X(device_eager_cache) X(device_clear_caches) X(tensor_empty) X(tensor_from_host) \
  X(tensor_wrap) X(tensor_view) X(tensor_to_host) X(tensor_dtype) X(tensor_rank) X(tensor_dims) \
  X(tensor_strides) X(tensor_bytes) X(tensor_data) X(tensor_from_strings) X(tensor_string) \
  X(tensor_list) X(tensor_nothing) X(tensor_container) X(tensor_item_count) X(tensor_item) \
  X(tensor_retain) X(tensor_release) X(op_find) X(op_name) X(op_count) X(op_at) X(ops_text) \
  X(eager) X(op_register) X(op_library_load) X(graph_create) X(graph_load) X(graph_load_memory) \
  X(graph_load_inputs) X(graph_load_memory_inputs) X(graph_load_payload) X(graph_set_precision) \
  X(graph_save) X(graph_release) X(graph_input) X(graph_constant) X(graph_list_input) \
  X(graph_string_constant) X(graph_op) X(graph_set_outputs) X(graph_gradient) \
  X(graph_gradient_seeded) X(value_name) X(value_dtype) X(value_container) X(value_rank) \
  X(value_dim) X(value_dim_name) X(graph_input_count) X(graph_input_at) X(graph_output_count) \
  X(graph_output_at) X(graph_default_count) X(graph_default_at) X(graph_values) X(value_op) \
  X(graph_text) X(program_open) X(program_open_memory) X(program_release) \
  X(program_method_count) X(program_method_at) X(program_graph) X(program_delegate_count) \
  X(program_delegate_backend) X(program_delegate_option) X(program_test_count) \
  X(program_test_size) X(program_test_tensor) X(program_text) X(compile) X(compile_cached) \
  X(executable_save) X(executable_load) X(executable_release) X(executable_input_count) \
  X(executable_input_at) X(executable_output_count) X(executable_output_at) X(executable_run) \
  X(executable_submit) X(executable_variable) X(executable_set_variable) \
  X(executable_plan_cache) X(executable_clear_plans) X(executable_result_dims) \
  X(executable_text) X(stream_create) X(stream_synchronize) X(stream_wait) X(stream_record) \
  X(stream_release) X(event_done) X(event_synchronize) X(event_elapsed) X(event_release) \
  X(profiler_create) X(profiler_text) X(profiler_reset) X(profiler_release) X(doctor) \
  X(device_trim) X(executable_stateful) X(file_write) X(executable_text_for) \
  X(executable_result_dims_for) \
  X(device_set_max_threads) X(device_thread_times) \
  X(call_create) X(call_release) X(call_run) X(call_infer) X(device_eager_report) \
  X(device_reset_eager_report) X(device_profile_eager) X(device_memory_info) X(buffer_create) \
  X(buffer_data) X(buffer_size) X(buffer_record_stream) X(buffer_release) X(executable_run_views) \
  X(graph_constant_view) X(executable_refresh) X(graph_save_memory) X(executable_save_memory) \
  X(executable_load_memory) X(executable_bind) \
  X(stream_defer) X(stream_flush) X(stream_forget) \
  X(call_run_versions) X(device_forget) \
  X(call_fix) X(fixed_call_release) X(fixed_call_run)
/* clang-format on */

typedef struct amps_api {
  size_t
      size; /* of the table, in bytes: a function past it is one that the library does not have */
#define AMPS_API_MEMBER(name) __typeof__(amps_##name)* name;
  AMPS_API_FUNCTIONS(AMPS_API_MEMBER)
#undef AMPS_API_MEMBER
} amps_api;

/* NULL for a version that the library does not know. The table lives as long as the library. */
AMPS_API const amps_api* amps_get_api(int version);

#ifdef __cplusplus
}
#endif

#endif /* ANYMPS_ANYMPS_H_ */
