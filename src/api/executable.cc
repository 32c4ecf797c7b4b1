// SPDX-License-Identifier: Apache-2.0
// Executables and the profiler of the C interface.
#include <cstring>
#include <sstream>

#include "api/handles.h"
#include "base/thread_pool.h"
#include "formats/load.h"
#include "formats/mps/mps.h"
#include "graph/fingerprint.h"
#include "graph/printer.h"
#include "runtime/report.h"

using namespace anymps;
using namespace anymps::api;

namespace {

static_assert(kMostThreads == AMPS_MAX_THREADS);
static_assert(static_cast<int>(DenormalOption::kFlush) == AMPS_DENORMALS_FLUSH &&
              static_cast<int>(DenormalOption::kKeep) == AMPS_DENORMALS_KEEP &&
              static_cast<int>(DenormalOption::kAsCalls) == AMPS_DENORMALS_AS_CALLS);

CompileOptions options_of(const amps_compile_options* given) {
  CompileOptions options;
  if (!given) return options;
  amps_compile_options known{};
  known.optimization_level = 1;
  require(given->size >= sizeof(size_t), "[api] options.size must be set to sizeof the struct");
  std::memcpy(&known, given, std::min(given->size, sizeof(known)));
  require(known.threads >= 0 && known.threads <= kMostThreads,
          "[compile] {} threads: 0 means all cores, and at most {} can be asked for", known.threads,
          kMostThreads);
  require(known.optimization_level == 0 || known.optimization_level == 1,
          "[compile] optimization level {}: there are 0 (no passes) and 1 (all)",
          known.optimization_level);
  require(known.denormals >= AMPS_DENORMALS_DEFAULT && known.denormals <= AMPS_DENORMALS_AS_CALLS,
          "[compile] denormals {}: they are 0 (default), 1 (flush), 2 (keep) or 3 (as calls)",
          known.denormals);
  const std::string quantize = known.quantize ? known.quantize : "";
  require(quantize.empty() || quantize == "int8" || quantize == "int4",
          "[compile] quantize '{}': weights can be int8 or int4", quantize);
  require(quantize.empty() || known.optimization_level == 1,
          "[compile] quantize {} is a pass: it needs optimization level 1", quantize);
  options.threads = known.threads;
  options.optimization_level = known.optimization_level;
  options.check = known.check != 0;
  options.denormals = static_cast<DenormalOption>(known.denormals);
  options.weight_bits = quantize.empty() ? 0 : quantize == "int8" ? 8 : 4;
  if (known.plan_cache) options.plan_cache = known.plan_cache;
  require(known.aliases || known.alias_count == 0, "[compile] aliases is NULL");
  for (size_t i = 0; i < known.alias_count; ++i)
    options.aliases.push_back({known.aliases[i].result, known.aliases[i].feed});
  std::istringstream words(known.without_passes ? known.without_passes : "");
  for (std::string word; std::getline(words, word, ',');) options.without_passes.push_back(word);
  return options;
}

std::vector<Tensor> tensors_of(amps_executable* executable, amps_tensor* const* handles,
                               size_t count, const char* what) {
  std::vector<Tensor> tensors(count);
  for (size_t i = 0; i < count; ++i) {
    if (!handles || !handles[i]) continue;
    require(handles[i]->device == executable->device, "[run] {} {} is on device '{}', not '{}'",
            what, i, handles[i]->device->device->name(), executable->device->device->name());
    tensors[i] = handles[i]->tensor;
  }
  return tensors;
}

template <typename Run>
void run_with(amps_executable* executable, amps_tensor* const* feeds, size_t feed_count,
              amps_tensor** results, size_t result_count, Run&& run) {
  need(executable, "executable");
  const auto& graph = executable->executable->graph();
  require(result_count == graph.outputs().size(), "[run] the graph has {} outputs, {} asked for",
          graph.outputs().size(), result_count);
  const std::vector<Tensor> in = tensors_of(executable, feeds, feed_count, "feed");
  for (size_t i = 0; i < in.size(); ++i)
    require(in[i].buffer != nullptr || in[i].container != Container::kTensor,
            "[run] feed {} is NULL", i);
  require(results != nullptr, "[run] results is NULL");
  std::vector<Tensor> out = tensors_of(executable, results, result_count, "result");
  run(in, out);
  for (size_t i = 0; i < result_count; ++i) {
    if (results[i]) continue;
    results[i] = new amps_tensor;
    results[i]->device = executable->device;
    results[i]->tensor = std::move(out[i]);
  }
}

// The short way, for feeds like those of a run before; false: nothing has been done.
bool run_ready(amps_executable* executable, amps_tensor* const* feeds, size_t feed_count,
               amps_tensor** results, size_t result_count, Profiler* profiler) {
  if (!feeds || !results) return false;
  const auto plain = [&](const amps_tensor* given) {
    return given && given->device == executable->device && given->tensor.buffer &&
           given->tensor.container == Container::kTensor;
  };
  Views in, out;
  for (size_t i = 0; i < feed_count; ++i) {
    if (!plain(feeds[i])) return false;
    in.push_back(view_of(feeds[i]->tensor));
  }
  ReadyRun run(*executable->executable, in, executable->bindings);
  if (!run || result_count != run.results().size()) return false;
  for (size_t i = 0; i < result_count; ++i) {
    if (results[i] && !plain(results[i])) return false;
    out.push_back(results[i] ? view_of(results[i]->tensor) : TensorView());
  }
  if (!run.may_write(in, out)) return false;
  struct Made {
    SmallVector<amps_tensor*, 8> tensors;
    ~Made() {
      for (const amps_tensor* tensor : tensors) delete tensor;
    }
  } made;
  for (size_t i = 0; i < result_count; ++i) {
    if (results[i]) continue;
    const TensorDesc& desc = run.results()[i];
    made.tensors.reserve(made.tensors.size() + 1);
    made.tensors.push_back(new amps_tensor);
    made.tensors.back()->device = executable->device;
    made.tensors.back()->tensor = executable->device->device->empty(desc.dtype, desc.shape);
    out.begin()[i] = view_of(made.tensors.back()->tensor);
  }
  run.run(in, out, profiler);
  for (size_t i = 0, next = 0; i < result_count; ++i)
    if (!results[i]) results[i] = made.tensors[next++];
  made.tensors.clear();
  return true;
}

std::shared_ptr<Executable> compiled(const amps_device& device, const amps_graph& graph,
                                     CompileOptions options) {
  options.files = graph.files;
  std::shared_ptr<Executable> made;
  reading(graph.files, [&] {
    made = std::make_shared<Executable>(device.device, *graph.graph, std::move(options));
  });
  return made;
}

Metadata origin(const amps_executable& executable) {
  return {{kCompiledFor, executable.device->device->name()}};
}

// `load` returns a graph and tells whose passes have run.
template <typename Load>
void load_with(amps_device* device, const amps_compile_options* options,
               amps_executable** executable, Load&& load) {
  need(executable, "executable") = nullptr;
  need(device, "device");
  CompileOptions wanted = options_of(options);
  std::string compiled_for;
  std::shared_ptr<Executable> made;
  const OpenedFiles opened;
  reading(opened.all(), [&] {
    std::unique_ptr<Graph> graph = load(&compiled_for);
    const bool passed = compiled_for == device->device->name() && wanted.weight_bits == 0;
    if (passed) wanted.optimization_level = 0;
    wanted.files = opened.in_use();
    made = std::make_shared<Executable>(device->device, std::move(graph), wanted);
  });
  *executable = new amps_executable{device, std::move(made)};
}

bool assigns(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->op->name == "assign_variable") return true;
    for (const AttrValue& attr : node->attrs.values())
      if (const auto* body = std::get_if<std::shared_ptr<Graph>>(&attr))
        if (*body && assigns(**body)) return true;
  }
  return false;
}

size_t total_rank(const Executable& compiled) {
  size_t count = 0;
  for (const Value* input : compiled.graph().inputs()) count += input->shape().size();
  return count;
}

// Shapes from extents that lie one after the other, with the ranks of the graph. Without extents
// all must be static.
std::vector<Shape> feed_shapes(const Executable& compiled, const int64_t* dims, size_t count) {
  require(count == 0 || dims != nullptr, "[plan] feed_dims is NULL");
  const size_t expected = total_rank(compiled);
  require(count == 0 || count == expected,
          "[plan] {} extents are given, the inputs have {} in all (none may be given if all shapes "
          "are static)",
          count, expected);
  std::vector<Shape> feeds;
  for (const Value* input : compiled.graph().inputs()) {
    const size_t rank = input->shape().size();
    if (count == 0) {
      require(input->type.static_shape(),
              "[plan] input '{}' is {}: give the extents of all inputs, {} in all", input->name,
              to_string(input->type), expected);
      feeds.push_back(to_shape(input->shape()));
      continue;
    }
    feeds.emplace_back(dims, dims + rank);
    dims += rank;
  }
  return feeds;
}

// The same with ranks that the caller gives, for inputs that have none.
std::vector<Shape> ranked_shapes(const Executable& compiled, const size_t* ranks, size_t feeds,
                                 const int64_t* dims, size_t count) {
  const size_t inputs = compiled.graph().inputs().size();
  require(ranks != nullptr, "[result dims] feed_ranks is NULL");
  require(feeds == inputs, "[result dims] the graph has {} inputs, {} ranks given", inputs, feeds);
  require(dims != nullptr || count == 0, "[result dims] feed_dims is NULL");
  std::vector<Shape> shapes;
  size_t left = count;
  for (size_t i = 0; i < feeds; ++i) {
    require(ranks[i] <= left, "[result dims] the ranks ask for more than the {} extents given",
            count);
    shapes.push_back(checked_shape(ranks[i], dims));
    dims += ranks[i];
    left -= ranks[i];
  }
  require(left == 0, "[result dims] the ranks ask for {} extents, {} given", count - left, count);
  return shapes;
}

void write_result_dims(const amps_executable& executable, const std::vector<Shape>& feeds,
                       int64_t* result_ranks, int64_t* result_dims, size_t capacity,
                       size_t* dim_count) {
  const std::vector<ValueType> types =
      executable.executable->result_types(feeds, executable.bindings);
  size_t count = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    const bool ranked = types[i].ranked && types[i].container == Container::kTensor;
    (&need(result_ranks, "result_ranks"))[i] = ranked ? std::ssize(types[i].shape) : -1;
    for (size_t d = 0; ranked && d < types[i].shape.size(); ++d, ++count)
      if (count < capacity)
        (&need(result_dims, "result_dims"))[count] =
            types[i].shape[d].known() ? types[i].shape[d].value() : -1;
  }
  need(dim_count, "dim_count") = count;
}

void write_text(amps_executable* executable, const char* format, const int64_t* dims,
                size_t dim_count, amps_string** text) {
  need(text, "text") = nullptr;
  Executable& compiled = *need(executable, "executable").executable;
  const std::string kind = &need(format, "format");
  if (kind == "passes") {
    *text = new_string(passes_json(compiled));
  } else if (kind == "plan" || kind == "memory") {
    const std::vector<Shape> feeds = feed_shapes(compiled, dims, dim_count);
    auto plan = compiled.plan(feeds, executable->bindings);
    require(plan != nullptr, "[plan] the shapes depend on data, so there is no plan");
    *text = new_string(kind == "plan" ? plan_json(*plan) : memory_json(*plan));
  } else {
    const Gate::Inside inside(compiled.gate());
    *text = new_string(print_graph(compiled.graph(), kind));
  }
}

}  // namespace

extern "C" {

amps_status amps_compile(amps_device* device, const amps_graph* graph,
                         const amps_compile_options* options, amps_executable** executable) {
  return guard([&] {
    need(executable, "executable") = nullptr;
    need(device, "device");
    need(graph, "graph");
    *executable = new amps_executable{device, compiled(*device, *graph, options_of(options))};
  });
}

amps_status amps_compile_cached(amps_device* device, const amps_graph* graph,
                                const amps_compile_options* options, amps_executable** executable) {
  return guard([&] {
    need(executable, "executable") = nullptr;
    const CompileOptions wanted = options_of(options);
    std::string key = fmt::format("{}|{}|{}|{}|{}|{}|{}", fingerprint(*need(graph, "graph").graph),
                                  wanted.threads, wanted.optimization_level, wanted.check,
                                  static_cast<int>(wanted.denormals), wanted.weight_bits,
                                  fmt::join(wanted.without_passes, ","));
    for (const Alias& alias : wanted.aliases)
      key += fmt::format("|{}={}", alias.result, alias.feed);
    auto& cache = need(device, "device").device->executables();
    auto found = cache.find(key);
    if (!found) found = cache.insert(key, compiled(*device, *graph, wanted));
    *executable = new amps_executable{device, std::move(found)};
  });
}

amps_status amps_executable_save(const amps_executable* executable, const char* path) {
  return guard([&] {
    const Executable& compiled = *need(executable, "executable").executable;
    const MappedFiles& files = compiled.options().files;
    const Gate::Inside inside(compiled.gate());
    reading(files,
            [&] { save_mps(compiled.graph(), &need(path, "path"), origin(*executable), files); });
  });
}

amps_status amps_executable_save_memory(const amps_executable* executable, amps_string** bytes) {
  return guard([&] {
    need(bytes, "bytes") = nullptr;
    const Executable& compiled = *need(executable, "executable").executable;
    const Gate::Inside inside(compiled.gate());
    std::string made;
    reading(compiled.options().files,
            [&] { made = mps_bytes(compiled.graph(), origin(*executable)); });
    *bytes = new_string(std::move(made));
  });
}

amps_status amps_executable_load(amps_device* device, const char* path,
                                 const amps_compile_options* options,
                                 amps_executable** executable) {
  return guard([&] {
    load_with(device, options, executable,
              [&](std::string* to) { return load_graph(&need(path, "path"), to); });
  });
}

amps_status amps_executable_load_memory(amps_device* device, const void* data, size_t bytes,
                                        const char* name, const amps_compile_options* options,
                                        amps_executable** executable) {
  return guard([&] {
    load_with(device, options, executable, [&](std::string* to) {
      return load_graph(copied(data, bytes), name ? name : "memory", nullptr, to);
    });
  });
}

amps_status amps_executable_bind(const amps_executable* executable, const amps_binding* bindings,
                                 size_t count, amps_executable** bound) {
  return guard([&] {
    need(bound, "bound") = nullptr;
    need(executable, "executable");
    require(bindings || count == 0, "[api] bindings is NULL");
    std::vector<std::pair<std::string, int64_t>> values;
    for (size_t i = 0; i < count; ++i)
      values.emplace_back(&need(bindings[i].name, "the name of a dimension"), bindings[i].value);
    *bound = new amps_executable{executable->device, executable->executable,
                                 executable->executable->bind(values, executable->bindings)};
  });
}

void amps_executable_release(amps_executable* executable) { delete executable; }

size_t amps_executable_input_count(const amps_executable* executable) {
  return executable ? executable->executable->graph().inputs().size() : 0;
}
const amps_value* amps_executable_input_at(const amps_executable* executable, size_t index) {
  if (index >= amps_executable_input_count(executable)) return nullptr;
  return handle(static_cast<const Value*>(executable->executable->graph().inputs()[index]));
}
size_t amps_executable_output_count(const amps_executable* executable) {
  return executable ? executable->executable->graph().outputs().size() : 0;
}
const amps_value* amps_executable_output_at(const amps_executable* executable, size_t index) {
  if (index >= amps_executable_output_count(executable)) return nullptr;
  return handle(static_cast<const Value*>(executable->executable->graph().outputs()[index]));
}

amps_status amps_executable_run(amps_executable* executable, amps_tensor* const* feeds,
                                size_t feed_count, amps_tensor** results, size_t result_count,
                                amps_stream* stream, amps_profiler* profiler) {
  return guard([&] {
    settle(stream);
    need(executable, "executable");
    Profiler* watching = profiler ? profiler->profiler.get() : nullptr;
    if (!stream && run_ready(executable, feeds, feed_count, results, result_count, watching))
      return;
    run_with(executable, feeds, feed_count, results, result_count, [&](const auto& in, auto& out) {
      executable->executable->run_unprepared(in, out, stream ? stream->queue.get() : nullptr,
                                             watching, executable->bindings);
    });
  });
}

amps_status amps_executable_submit(amps_executable* executable, amps_tensor* const* feeds,
                                   size_t feed_count, amps_tensor** results, size_t result_count,
                                   amps_stream* stream) {
  return guard([&] {
    settle(stream);
    run_with(executable, feeds, feed_count, results, result_count, [&](const auto& in, auto& out) {
      executable->executable->submit(in, out, *need(stream, "stream").queue, executable->bindings);
    });
  });
}

int amps_executable_stateful(const amps_executable* executable) {
  return executable && assigns(executable->executable->graph());
}

amps_status amps_executable_plan_cache(const amps_executable* executable, amps_cache_stats* stats) {
  return guard([&] {
    const CacheStats now = need(executable, "executable").executable->plan_stats();
    give_cache(stats, now);
  });
}
amps_status amps_executable_clear_plans(amps_executable* executable) {
  return guard([&] { need(executable, "executable").executable->clear_plans(); });
}

amps_status amps_executable_result_dims(amps_executable* executable, const size_t* feed_ranks,
                                        const int64_t* feed_dims, int64_t* result_ranks,
                                        int64_t* result_dims, size_t capacity, size_t* dim_count) {
  return guard([&] {
    Executable& compiled = *need(executable, "executable").executable;
    const auto& inputs = compiled.graph().inputs();
    std::vector<Shape> feeds;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!feed_dims) {
        feeds.push_back(to_shape(inputs[i]->shape()));
        continue;
      }
      const size_t rank = feed_ranks ? feed_ranks[i] : inputs[i]->shape().size();
      feeds.push_back(checked_shape(rank, feed_dims));
      feed_dims += rank;
    }
    write_result_dims(*executable, feeds, result_ranks, result_dims, capacity, dim_count);
  });
}

amps_status amps_executable_result_dims_for(amps_executable* executable, const size_t* feed_ranks,
                                            size_t feed_count, const int64_t* feed_dims,
                                            size_t feed_dim_count, int64_t* result_ranks,
                                            size_t result_count, int64_t* result_dims,
                                            size_t capacity, size_t* dim_count) {
  return guard([&] {
    Executable& compiled = *need(executable, "executable").executable;
    const size_t results = compiled.graph().outputs().size();
    require(result_count == results, "[result dims] the graph has {} outputs, {} ranks asked for",
            results, result_count);
    write_result_dims(*executable,
                      feed_count == 0 ? feed_shapes(compiled, feed_dims, feed_dim_count)
                                      : ranked_shapes(compiled, feed_ranks, feed_count, feed_dims,
                                                      feed_dim_count),
                      result_ranks, result_dims, capacity, dim_count);
  });
}

amps_status amps_executable_text(amps_executable* executable, const char* format,
                                 const int64_t* feed_dims, amps_string** text) {
  return guard([&] {
    const size_t count = feed_dims ? total_rank(*need(executable, "executable").executable) : 0;
    write_text(executable, format, feed_dims, count, text);
  });
}

amps_status amps_executable_text_for(amps_executable* executable, const char* format,
                                     const int64_t* feed_dims, size_t dim_count,
                                     amps_string** text) {
  return guard([&] { write_text(executable, format, feed_dims, dim_count, text); });
}

amps_status amps_profiler_create(amps_profiler** profiler) {
  return guard([&] { need(profiler, "profiler") = new amps_profiler; });
}
amps_status amps_profiler_text(const amps_profiler* profiler, const char* format,
                               amps_string** text) {
  return guard([&] {
    need(text, "text") = nullptr;
    const Profiler& data = *need(profiler, "profiler").profiler;
    const std::string kind = &need(format, "format");
    require(kind == "table" || kind == "json" || kind == "trace",
            "[profiler] format '{}' is not one of table, json, trace", kind);
    *text = new_string(kind == "table"  ? data.table()
                       : kind == "json" ? data.json()
                                        : data.trace());
  });
}
amps_status amps_profiler_reset(amps_profiler* profiler) {
  return guard([&] { need(profiler, "profiler").profiler->reset(); });
}
void amps_profiler_release(amps_profiler* profiler) { delete profiler; }

}  // extern "C"
