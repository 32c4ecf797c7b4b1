// SPDX-License-Identifier: Apache-2.0
// Programs of ExecuTorch.
#include "core.h"

namespace anymps::python {

namespace {

amps::Program open(const std::string& path) {
  nb::gil_scoped_release unlocked;
  return amps::Program::open(c_text(path));
}

amps::Program open_memory(nb::bytes data, const std::string& name) {
  const auto* first = reinterpret_cast<const std::byte*>(data.c_str());
  const size_t size = data.size();
  nb::gil_scoped_release unlocked;
  return amps::Program::open({first, size}, c_text(name));
}

Graph graph(const amps::Program& program, const std::string& method) {
  amps_graph* made = nullptr;
  {
    nb::gil_scoped_release unlocked;
    amps::check(amps_program_graph(program.c(), method.empty() ? nullptr : c_text(method), &made));
  }
  return {amps::detail::own(made)};
}

// None: a test says nothing of that output.
std::vector<std::optional<Tensor>> given(std::vector<amps::Tensor> tensors,
                                         const amps::Device& device) {
  std::vector<std::optional<Tensor>> list;
  for (amps::Tensor& tensor : tensors)
    list.push_back(tensor ? std::optional<Tensor>({std::move(tensor), device.c(), false})
                          : std::nullopt);
  return list;
}

}  // namespace

void bind_program(nb::module_& m) {
  nb::class_<amps::Program>(m, "Program")
      .def_static("open", open)
      .def_static("open_memory", open_memory)
      .def_prop_ro("methods", &amps::Program::methods)
      .def("graph", graph)
      .def("test_count", &amps::Program::test_count)
      .def("test_inputs",
           [](const amps::Program& p, size_t test, const amps::Device& device,
              const std::string& method) {
             return given(p.test_inputs(test, device, c_text(method)), device);
           })
      .def("test_outputs",
           [](const amps::Program& p, size_t test, const amps::Device& device,
              const std::string& method) {
             return given(p.test_outputs(test, device, c_text(method)), device);
           })
      .def("text", &amps::Program::text);
}

}  // namespace anymps::python
