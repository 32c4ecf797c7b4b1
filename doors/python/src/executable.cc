// SPDX-License-Identifier: Apache-2.0
// Executables, streams, events and the profiler. The GIL is free while the engine works.
#include "core.h"

namespace pyamps {

namespace {

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
                        const std::vector<const Tensor*>& results, amps::Stream* stream,
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
                           amps::Stream& stream) {
  const std::vector<amps_tensor*> in = handles(feeds);
  std::vector<amps_tensor*> out = room_for(executable, {});
  {
    nb::gil_scoped_release unlocked;
    amps::check(amps_executable_submit(executable.c(), in.data(), in.size(), out.data(), out.size(),
                                       stream.c()));
  }
  return results_of(executable, out, {});
}

}  // namespace

void bind_executable(nb::module_& m) {
  nb::class_<amps::Event>(m, "Event")
      .def_prop_ro("done", &amps::Event::done)
      .def("synchronize", &amps::Event::synchronize, nb::call_guard<nb::gil_scoped_release>())
      .def("milliseconds_until", &amps::Event::milliseconds_until);
  nb::class_<amps::Stream>(m, "Stream")
      .def("synchronize", &amps::Stream::synchronize, nb::call_guard<nb::gil_scoped_release>())
      .def("wait", &amps::Stream::wait, nb::call_guard<nb::gil_scoped_release>())
      .def("record", &amps::Stream::record);
  nb::class_<amps::Profiler>(m, "Profiler")
      .def(nb::init<>())
      .def("reset", &amps::Profiler::reset)
      .def("text", &amps::Profiler::text, nb::arg("format") = "table");
  nb::class_<Executable>(m, "Executable")
      .def("run", run, nb::arg("feeds"), nb::arg("results"), nb::arg("stream").none(),
           nb::arg("profiler").none())
      .def("submit", submit)
      .def_prop_ro("inputs",
                   [](nb::object self) {
                     const auto& e = nb::cast<const Executable&>(self);
                     std::vector<Value> list;
                     auto owner = std::make_shared<Executable>(e);
                     for (size_t i = 0; i < amps_executable_input_count(e.c()); ++i)
                       list.push_back({owner, amps_executable_input_at(e.c(), i)});
                     return list;
                   })
      .def_prop_ro("outputs",
                   [](nb::object self) {
                     const auto& e = nb::cast<const Executable&>(self);
                     std::vector<Value> list;
                     auto owner = std::make_shared<Executable>(e);
                     for (size_t i = 0; i < amps_executable_output_count(e.c()); ++i)
                       list.push_back({owner, amps_executable_output_at(e.c(), i)});
                     return list;
                   })
      .def("text",
           [](const Executable& e, const std::string& format, const std::vector<int64_t>& dims) {
             nb::gil_scoped_release unlocked;
             return e.executable.text(format, dims);
           })
      .def("variable",
           [](const Executable& e, const std::string& name) -> std::optional<Tensor> {
             amps_tensor* value = nullptr;
             amps::check(amps_executable_variable(e.c(), name.c_str(), &value));
             if (!value) return std::nullopt;
             return Tensor{amps::Tensor(value), e.device};
           })
      .def("set_variable",
           [](const Executable& e, const std::string& name, const Tensor& value) {
             amps::check(amps_executable_set_variable(e.c(), name.c_str(), value.c()));
           })
      .def("plan_cache",
           [](const Executable& e) {
             amps_cache_stats stats{};
             stats.size = sizeof(stats);
             amps::check(amps_executable_plan_cache(e.c(), &stats));
             nb::dict dict;
             dict["entries"] = stats.entries;
             dict["capacity"] = stats.capacity;
             dict["hits"] = stats.hits;
             dict["misses"] = stats.misses;
             dict["evictions"] = stats.evictions;
             return dict;
           })
      .def("clear_plans", [](Executable& e) { e.executable.clear_plans(); })
      .def("save", [](const Executable& e, const std::string& path) { e.executable.save(path); });
}

}  // namespace pyamps
