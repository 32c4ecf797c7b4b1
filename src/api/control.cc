// SPDX-License-Identifier: Apache-2.0
// The C interface of what the runtime runs itself: inputs that are lists, strings in graphs,
// variables.
#include "api/handles.h"
#include "memory/string_constant.h"
#include "runtime/structural.h"

using namespace anymps;
using namespace anymps::api;

extern "C" {

amps_status amps_graph_list_input(amps_graph* graph, const char* name, amps_container container,
                                  amps_dtype dtype, amps_value** value) {
  return guard([&] {
    const int code = static_cast<int>(container);
    require(code > 0 && code < kContainerCount && static_cast<Container>(code) != Container::kMaps,
            "[api] an input cannot be a container of kind {}", code);
    const ValueType type{
        checked_dtype(dtype), false, {}, std::nullopt, static_cast<Container>(code)};
    Value* made = need(graph, "graph").graph->input(&need(name, "name"), type);
    if (value) *value = handle(made);
  });
}

amps_status amps_graph_string_constant(amps_graph* graph, const char* name, size_t rank,
                                       const int64_t* dims, const char* const* data,
                                       const size_t* sizes, amps_value** value) {
  return guard([&] {
    const TensorDesc desc(DType::kString, checked_shape(rank, dims));
    for (const int64_t extent : desc.shape) require(extent >= 0, "[api] an extent is {}", extent);
    require(data != nullptr || desc.count() == 0, "[api] data is NULL");
    std::vector<std::string> texts;
    for (int64_t i = 0; i < desc.count(); ++i) {
      require(data[i] != nullptr, "[api] string {} is NULL", i);
      texts.push_back(sizes ? std::string(data[i], sizes[i]) : std::string(data[i]));
    }
    Value* made =
        need(graph, "graph")
            .graph->constant(string_constant(desc.shape, std::move(texts)), name ? name : "");
    need(value, "value") = handle(made);
  });
}

amps_status amps_executable_variable(amps_executable* executable, const char* name,
                                     amps_tensor** tensor) {
  return guard([&] {
    need(tensor, "tensor") = nullptr;
    Executable& compiled = *need(executable, "executable").executable;
    const auto value = compiled.variables().get(&need(name, "name"));
    if (!value) return;
    auto made = std::make_unique<amps_tensor>();
    made->device = executable->device;
    made->tensor = compiled.device().empty(value->desc.dtype, value->desc.shape);
    compiled.device().copy(*value, made->tensor, compiled.device().queue());
    *tensor = made.release();
  });
}

amps_status amps_executable_set_variable(amps_executable* executable, const char* name,
                                         const amps_tensor* tensor) {
  return guard([&] {
    Executable& compiled = *need(executable, "executable").executable;
    const Tensor& given = need(tensor, "tensor").tensor;
    require(tensor->device == executable->device, "[api] the tensor is on another device");
    require(given.container == Container::kTensor && given.desc.dtype != DType::kString,
            "[api] variables hold tensors of numbers");
    Tensor own = compiled.device().empty(given.desc.dtype, given.desc.shape);
    compiled.device().copy(given, own, compiled.device().queue());
    compiled.variables().set(&need(name, "name"), std::move(own));
  });
}

}  // extern "C"
