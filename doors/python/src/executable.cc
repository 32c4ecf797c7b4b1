// SPDX-License-Identifier: Apache-2.0
// Executables, streams, events and the profiler. The GIL is free while the engine works.
#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include "core.h"

namespace anymps::python {

namespace {

// Guarded by the GIL. Never destroyed: streams may outlive the module.
std::set<amps::Stream*>& live_streams() {
  static auto& streams = *new std::set<amps::Stream*>;
  return streams;
}

// The thread in which the interpreter ends, once it does.
std::atomic<std::thread::id> ending_thread;

std::vector<amps_tensor*> handles(const std::vector<const Tensor*>& tensors) {
  std::vector<amps_tensor*> list;
  for (const Tensor* tensor : tensors) list.push_back(tensor ? tensor->c() : nullptr);
  return list;
}

std::vector<Tensor> results_of(const Executable& executable, const std::vector<amps_tensor*>& out,
                               const std::vector<const Tensor*>& given) {
  std::vector<Tensor> results;
  for (size_t i = 0; i < out.size(); ++i)
    results.push_back(
        i < given.size() && given[i] ? *given[i] : Tensor{amps::Tensor(out[i]), executable.device});
  return results;
}

// Results that are given are written to, which read-only memory must not be.
std::vector<amps_tensor*> room_for(const Executable& executable,
                                   const std::vector<const Tensor*>& given) {
  std::vector<amps_tensor*> out(amps_executable_output_count(executable.c()), nullptr);
  if (given.size() > out.size())
    invalid("[run] " + std::to_string(given.size()) + " results are given, the graph has " +
            std::to_string(out.size()) + " outputs");
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) continue;
    if (given[i]->readonly) invalid("[run] result " + std::to_string(i) + " is read-only");
    out[i] = given[i]->c();
  }
  return out;
}

std::vector<Tensor> run(const Executable& executable, const std::vector<const Tensor*>& feeds,
                        const std::vector<const Tensor*>& results, Stream* stream,
                        amps::Profiler* profiler) {
  const std::vector<amps_tensor*> in = handles(feeds);
  std::vector<amps_tensor*> out = room_for(executable, results);
  {
    nb::gil_scoped_release unlocked;
    amps::check(amps_executable_run(executable.c(), in.data(), in.size(), out.data(), out.size(),
                                    stream ? stream->c() : nullptr,
                                    profiler ? profiler->c() : nullptr));
  }
  return results_of(executable, out, results);
}

std::vector<Tensor> submit(const Executable& executable, const std::vector<const Tensor*>& feeds,
                           Stream& stream) {
  const std::vector<amps_tensor*> in = handles(feeds);
  std::vector<amps_tensor*> out = room_for(executable, {});
  {
    nb::gil_scoped_release unlocked;
    amps::check(amps_executable_submit(executable.c(), in.data(), in.size(), out.data(), out.size(),
                                       stream.c()));
  }
  return results_of(executable, out, {});
}

// Constants that changed, with the memory that they moved to, if they did. `write` runs while no
// run is under way; what it throws is thrown when the numbers that it wrote are in use.
void refresh(const Executable& executable,
             const std::vector<std::pair<std::string, std::optional<Tensor>>>& changes,
             nb::object write) {
  struct Write {
    nb::object function;
    std::exception_ptr error;
    static void call(void* context) {
      auto& to = *static_cast<Write*>(context);
      const nb::gil_scoped_acquire locked;
      try {
        to.function();
      } catch (...) {
        to.error = std::current_exception();
      }
    }
  } written{std::move(write), nullptr};
  std::vector<amps_view> views(changes.size());
  std::vector<std::unique_ptr<Held>> held;
  std::vector<amps_update> updates;
  for (size_t i = 0; i < changes.size(); ++i) {
    const auto& [name, tensor] = changes[i];
    updates.push_back({c_text(name), nullptr, nullptr, nullptr});
    if (!tensor) continue;
    need_host_memory(*tensor);
    views[i] = view_of(*tensor);
    held.push_back(std::make_unique<Held>(*tensor));
    updates.back() = {c_text(name), &views[i], Held::release, held.back()->context()};
  }
  const bool writes = !written.function.is_none();
  without_gil([&] {
    amps::check(amps_executable_refresh(executable.c(), updates.data(), updates.size(),
                                        writes ? Write::call : nullptr, &written));
  });
  for (const auto& memory : held) memory->taken = true;
  if (written.error) std::rethrow_exception(written.error);
}

Executable bind(const Executable& executable,
                const std::vector<std::pair<std::string, int64_t>>& values) {
  for (const auto& [name, value] : values) (void)c_text(name);
  return {executable.executable.bind(values), executable.device, executable.signature};
}

}  // namespace

struct Signature {
  struct Input {
    nb::str name;
    amps_dtype dtype;
  };
  std::vector<Input> inputs;
  size_t outputs = 0;
  bool plain = true;  // all are tensors that Python sees through the buffer protocol
};

namespace {

std::shared_ptr<const Signature> signature_of(const Executable& executable) {
  auto made = std::make_shared<Signature>();
  const auto look_at = [&](const amps::Value& value) {
    made->plain = made->plain && amps_value_container(value.c()) == AMPS_TENSOR &&
                  has_buffer(amps_value_dtype(value.c()));
  };
  for (const amps::Value& input : executable.executable.inputs()) {
    look_at(input);
    const std::string name = input.name();
    made->inputs.push_back({nb::steal<nb::str>(PyUnicode_DecodeUTF8(
                                name.data(), static_cast<Py_ssize_t>(name.size()), "replace")),
                            amps_value_dtype(input.c())});
  }
  for (const amps::Value& output : executable.executable.outputs()) {
    look_at(output);
    ++made->outputs;
  }
  return made;
}

struct Numpy {
  nb::object array = nb::module_::import_("numpy").attr("ndarray");
  nb::object asarray = nb::module_::import_("numpy").attr("asarray");
  // Never destroyed: the interpreter goes first.
  static const Numpy& get() {
    static const auto& numpy = *new Numpy;
    return numpy;
  }
};

struct Handles {
  std::vector<amps_tensor*> tensors;
  ~Handles() {
    for (amps_tensor* tensor : tensors) amps_tensor_release(tensor);
  }
};

// A call with numpy arrays of the inputs' dtypes, by position or by name, whose results are such
// arrays: most calls, and for small models most of their time would go into Python's code. None:
// nothing has been done, and the call is one for `Executable.__call__` (anymps/_executable.py).
nb::object call(Executable& executable, nb::tuple args, nb::dict named, amps::Profiler* profiler) {
  if (!executable.signature) executable.signature = signature_of(executable);
  const std::shared_ptr<const Signature> signature = executable.signature;
  const Numpy& numpy = Numpy::get();
  const size_t given = args.size();
  if (!signature->plain || given + named.size() != signature->inputs.size()) return nb::none();
  Handles feeds, results;
  for (size_t i = 0; i < signature->inputs.size(); ++i) {
    const Signature::Input& input = signature->inputs[i];
    PyObject* array = i < given ? PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i))
                                : PyDict_GetItem(named.ptr(), input.name.ptr());
    if (!array || Py_TYPE(array) != reinterpret_cast<PyTypeObject*>(numpy.array.ptr()))
      return nb::none();
    amps_tensor* feed = plain_feed(array, input.dtype, executable.device);
    if (!feed) return nb::none();
    feeds.tensors.push_back(feed);
  }
  results.tensors.resize(signature->outputs, nullptr);
  {
    nb::gil_scoped_release unlocked;
    amps::check(amps_executable_run(executable.c(), feeds.tensors.data(), feeds.tensors.size(),
                                    results.tensors.data(), results.tensors.size(), nullptr,
                                    profiler ? profiler->c() : nullptr));
  }
  const auto give = [&](amps_tensor*& result) {
    const nb::object tensor =
        nb::cast(Tensor{amps::Tensor(std::exchange(result, nullptr)), executable.device});
    const nb::object view = nb::steal(PyMemoryView_FromObject(tensor.ptr()));
    if (!view) throw nb::python_error();
    return nb::object(numpy.asarray(view));
  };
  if (signature->outputs == 1) return give(results.tensors[0]);
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(signature->outputs)));
  for (size_t i = 0; i < signature->outputs; ++i)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i),
                     give(results.tensors[i]).release().ptr());
  return tuple;
}

}  // namespace

amps_view view_of(const Tensor& tensor) {
  amps_tensor* c = tensor.c();
  return {amps_tensor_data(c), amps_tensor_dims(c), amps_tensor_strides(c), amps_tensor_dtype(c),
          static_cast<int32_t>(amps_tensor_rank(c))};
}

Held::Held(const Tensor& of) : tensor(of.c()) { amps_tensor_retain(tensor); }
Held::~Held() {
  if (!taken) release(tensor);
}
void Held::release(void* context) { amps_tensor_release(static_cast<amps_tensor*>(context)); }

Stream::Stream(amps::Stream stream) : stream_(std::move(stream)) {
  live_streams().insert(&*stream_);
}

Stream::~Stream() {
  live_streams().erase(&*stream_);
  without_gil([this] { stream_.reset(); });
}

void finish_streams() {
  std::vector<amps::Stream> streams;
  for (const amps::Stream* stream : live_streams()) streams.push_back(*stream);
  without_gil([&] {
    // Nobody is left to be told of an error of the work.
    for (const amps::Stream& stream : streams) (void)amps_stream_synchronize(stream.c());
    streams.clear();
  });
  ending_thread = std::this_thread::get_id();
}

bool may_take_gil() {
  const std::thread::id ending = ending_thread;
  return ending == std::thread::id() || ending == std::this_thread::get_id();
}

void bind_executable(nb::module_& m) {
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<amps::Event>(m, "Event")
      .def_prop_ro("done", &amps::Event::done)
      .def("synchronize", &amps::Event::synchronize, Unlocked())
      .def("milliseconds_until", &amps::Event::milliseconds_until, Unlocked());
  nb::class_<Stream>(m, "Stream")
      .def(
          "synchronize", [](Stream& s) { (*s).synchronize(); }, Unlocked())
      .def(
          "wait", [](Stream& s, const amps::Event& event) { (*s).wait(event); }, Unlocked())
      .def(
          "record", [](Stream& s) { return (*s).record(); }, Unlocked());
  nb::class_<amps::Profiler>(m, "Profiler")
      .def(nb::init<>())
      .def("reset", &amps::Profiler::reset, Unlocked())
      .def("text", &amps::Profiler::text, nb::arg("format") = "table", Unlocked());
  nb::class_<Executable>(m, "Executable")
      .def("run", run, nb::arg("feeds"), nb::arg("results"), nb::arg("stream").none(),
           nb::arg("profiler").none())
      .def("call", call, nb::arg("args"), nb::arg("named"), nb::arg("profiler").none())
      .def("submit", submit)
      .def("refresh", refresh, nb::arg("changes"), nb::arg("write").none())
      .def("bind", bind)
      .def("bytes",
           [](const Executable& e) {
             std::string bytes;
             without_gil([&] { bytes = e.executable.bytes(); });
             return bytes_of(bytes);
           })
      .def_prop_ro("inputs",
                   values_of<Executable, amps_executable_input_count, amps_executable_input_at>)
      .def_prop_ro("outputs",
                   values_of<Executable, amps_executable_output_count, amps_executable_output_at>)
      .def(
          "text",
          [](const Executable& e, const std::string& format, const std::vector<int64_t>& dims) {
            return e.executable.text(c_text(format), dims);
          },
          Unlocked())
      .def("variable",
           [](const Executable& e, const std::string& name) -> std::optional<Tensor> {
             amps_tensor* value = nullptr;
             without_gil(
                 [&] { amps::check(amps_executable_variable(e.c(), c_text(name), &value)); });
             if (!value) return std::nullopt;
             return Tensor{amps::Tensor(value), e.device};
           })
      .def(
          "set_variable",
          [](const Executable& e, const std::string& name, const Tensor& value) {
            amps::check(amps_executable_set_variable(e.c(), c_text(name), value.c()));
          },
          Unlocked())
      .def("plan_cache",
           [](const Executable& e) {
             amps_cache_stats stats{};
             stats.size = sizeof(stats);
             amps::check(amps_executable_plan_cache(e.c(), &stats));
             return dict_of({{"entries", stats.entries},
                             {"capacity", stats.capacity},
                             {"hits", stats.hits},
                             {"misses", stats.misses},
                             {"evictions", stats.evictions}});
           })
      .def(
          "clear_plans", [](Executable& e) { e.executable.clear_plans(); }, Unlocked())
      .def(
          "save",
          [](const Executable& e, const std::string& path) { e.executable.save(c_text(path)); },
          Unlocked());
}

}  // namespace anymps::python
