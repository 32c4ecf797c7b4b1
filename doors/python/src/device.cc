// SPDX-License-Identifier: Apache-2.0
// Devices: memory, caches, eager calls.
#include <algorithm>

#include "core.h"

namespace anymps::python {

namespace {

nb::dict memory_stats(const amps::Device& device) {
  const amps_memory_stats stats = device.memory();
  return dict_of({{"allocated", stats.allocated},
                  {"reserved", stats.reserved},
                  {"pooled", stats.pooled},
                  {"peak_allocated", stats.peak_allocated},
                  {"peak_reserved", stats.peak_reserved},
                  {"allocations", stats.allocations},
                  {"frees", stats.frees},
                  {"raw_allocations", stats.raw_allocations},
                  {"pool_hits", stats.pool_hits},
                  {"packed_weights", stats.packed_weights}});
}

std::vector<Tensor> eager(const amps::Device& device, const std::string& op,
                          const std::vector<const Tensor*>& inputs, const Attributes& attrs,
                          size_t outputs) {
  const amps_op* record = amps_op_find(c_text(op));
  if (!record) throw amps::Error(AMPS_NOT_FOUND, "[op] there is no op '" + op + "'");
  std::vector<amps_tensor*> in, out(outputs, nullptr);
  for (const Tensor* tensor : inputs) in.push_back(tensor ? tensor->c() : nullptr);
  std::vector<amps::Attr> store;
  const std::vector<amps_attr> list = attrs_of(attrs, store);
  {
    nb::gil_scoped_release unlocked;
    amps::check(amps_eager(device.c(), record, in.data(), in.size(), list.data(), list.size(),
                           out.data(), out.size()));
  }
  std::vector<Tensor> results;
  for (amps_tensor* tensor : out) results.push_back({amps::Tensor(tensor), device.c()});
  return results;
}

}  // namespace

void bind_device(nb::module_& m) {
  using amps::Device;
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Device>(m, "Device")
      .def_static(
          "get", [](const std::string& name) { return Device::get(c_text(name)); },
          nb::arg("name") = "", Unlocked())
      .def_prop_ro("name", &Device::name)
      .def_prop_ro("description", &Device::description)
      .def_prop_rw(
          "max_threads", &Device::max_threads,
          [](const Device& d, nb::int_ threads) {
            int beyond = 0;
            const long number = PyLong_AsLongAndOverflow(threads.ptr(), &beyond);
            // What no int holds is refused like any other number that is too large.
            const long most = AMPS_MAX_THREADS + 1;
            d.set_max_threads(static_cast<int>(beyond != 0 ? most : std::clamp(number, -1L, most)));
          })
      .def("thread_times",
           [](const Device& d) {
             const Device::ThreadTimes times = d.thread_times();
             return nb::make_tuple(times.helped, times.waited);
           })
      .def("synchronize", &Device::synchronize, Unlocked())
      .def("memory_stats", memory_stats)
      .def(
          "reset_peaks", [](const Device& d) { amps::check(amps_device_reset_peaks(d.c())); },
          Unlocked())
      .def("empty_cache", &Device::empty_cache, Unlocked())
      .def("trim", &Device::trim, Unlocked())
      .def(
          "set_memory_limit",
          [](const Device& d, size_t bytes) {
            amps::check(amps_device_set_memory_limit(d.c(), bytes));
          },
          Unlocked())
      .def(
          "clear_caches", [](const Device& d) { amps::check(amps_device_clear_caches(d.c())); },
          Unlocked())
      .def("create_stream", [](const Device& d) { return new Stream(d.create_stream()); })
      .def("load_executable",
           [](const Device& d, const std::string& path, int threads, bool check) {
             nb::gil_scoped_release unlocked;
             amps::CompileOptions options;
             options.threads = threads;
             options.check = check;
             return Executable{d.load(c_text(path), options), d.c()};
           })
      .def("_same", [](const Device& d, const Device& other) { return d.c() == other.c(); })
      .def("eager", eager, nb::arg("op"), nb::arg("inputs"), nb::arg("attrs"), nb::arg("outputs"));
  m.def("device_names", &Device::names);
}

}  // namespace anymps::python
