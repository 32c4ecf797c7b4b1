// SPDX-License-Identifier: Apache-2.0
// Programs of ExecuTorch in the C interface.
#include "api/handles.h"
#include "base/mapped_file.h"
#include "formats/executorch/import.h"
#include "formats/executorch/program/bundle.h"
#include "formats/executorch/program/program_text.h"

using namespace anymps;
using namespace anymps::api;

struct amps_program {
  executorch::Bundle bundle;
  MappedFiles files = {};
};

namespace {

const executorch::Method& method_of(const amps_program* program, const char* name) {
  return need(program, "program").bundle.program.method(name ? name : "");
}

const executorch::Delegate& delegate_of(const amps_program* program, const char* method,
                                        size_t index) {
  const auto& delegates = method_of(program, method).delegates;
  require(index < delegates.size(), "[api] the method has {} delegates, {} asked for",
          delegates.size(), index);
  return delegates[index];
}

// The values of a test that belong to the inputs or outputs of the graph; null: it has none.
std::vector<const executorch::EValue*> test_values(const amps_program* program, const char* name,
                                                   size_t test, amps_test_side side) {
  const executorch::Method& method = method_of(program, name);
  const auto& tests = program->bundle.tests(method);
  require(test < tests.size(), "[api] method \"{}\" has {} test cases, {} asked for", method.name,
          tests.size(), test);
  require(side == AMPS_TEST_INPUTS || side == AMPS_TEST_OUTPUTS, "[api] {} is no side of a test",
          static_cast<int>(side));
  if (side == AMPS_TEST_OUTPUTS)
    return tests[test].outputs.empty() ? std::vector<const executorch::EValue*>()
                                       : executorch::expected_outputs(method, tests[test]);
  std::vector<const executorch::EValue*> list;
  for (const size_t i : executorch::fed_inputs(method)) list.push_back(&tests[test].inputs[i]);
  return list;
}

template <typename T>
Tensor scalar_tensor(Device& device, T number) {
  return device.from_host(TensorDesc(dtype_of<T>, {}), &number);
}

Tensor to_tensor(Device& device, const executorch::EValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return scalar_tensor(device, *number);
  if (const auto* number = std::get_if<double>(&value)) return scalar_tensor(device, *number);
  if (const auto* flag = std::get_if<bool>(&value)) return scalar_tensor(device, *flag);
  const auto* tensor = std::get_if<executorch::Tensor>(&value);
  require(tensor != nullptr, "[api] the test case has a {} there", executorch::kind_of(value));
  const TensorDesc desc(tensor->dtype, Shape(tensor->sizes.begin(), tensor->sizes.end()));
  std::vector<std::byte> elements(tensor->data->size());
  executorch::to_logical_order(*tensor, *tensor->data, elements.data());
  return device.from_host(desc, elements.data());
}

}  // namespace

extern "C" {

amps_status amps_program_open(const char* path, amps_program** program) {
  return guard([&] {
    need(program, "program") = nullptr;
    auto made = std::make_unique<amps_program>();
    const OpenedFiles opened;  // weights may lie in a separate file
    reading(opened.all(), [&] {
      auto file = MappedFile::open(&need(path, "path"), "executorch");
      made->bundle = executorch::read_bundle({file->bytes(), file, true, path});
    });
    made->files = opened.in_use();
    *program = made.release();
  });
}

amps_status amps_program_open_memory(const void* data, size_t bytes, const char* name,
                                     amps_program** program) {
  return guard([&] {
    need(program, "program") = nullptr;
    require(data != nullptr || bytes == 0, "[api] data is NULL");
    auto copy = std::make_shared<const std::string>(static_cast<const char*>(data), bytes);
    *program =
        new amps_program{executorch::read_bundle({*copy, copy, false, name ? name : "memory"})};
  });
}

// gcc 12 would split off a cold part without any code, and the unwinder would find its entry
// instead of that of the function after it: errors there would end the process. A cold function is
// not split.
[[gnu::cold]] void amps_program_release(amps_program* program) { delete program; }

size_t amps_program_method_count(const amps_program* program) {
  return program ? program->bundle.program.methods.size() : 0;
}
const char* amps_program_method_at(const amps_program* program, size_t index) {
  return index < amps_program_method_count(program)
             ? program->bundle.program.methods[index].name.c_str()
             : nullptr;
}

amps_status amps_program_graph(const amps_program* program, const char* method,
                               amps_graph** graph) {
  return guard([&] {
    need(graph, "graph") = nullptr;
    const executorch::Method& wanted = method_of(program, method);
    const OpenedFiles opened;
    std::unique_ptr<Graph> made;
    reading(program->files, [&] {
      reading(opened.all(),
              [&] { made = executorch::import_method(program->bundle.program, wanted); });
    });
    MappedFiles files = opened.in_use();
    files.insert(files.end(), program->files.begin(), program->files.end());
    *graph = new amps_graph{std::move(made), {}, std::move(files)};
  });
}

amps_status amps_program_delegate_count(const amps_program* program, const char* method,
                                        size_t* count) {
  return guard([&] { need(count, "count") = method_of(program, method).delegates.size(); });
}

amps_status amps_program_delegate_backend(const amps_program* program, const char* method,
                                          size_t index, const char** backend) {
  return guard(
      [&] { need(backend, "backend") = delegate_of(program, method, index).backend.c_str(); });
}

amps_status amps_program_delegate_option(const amps_program* program, const char* method,
                                         size_t index, const char* key, amps_string** value) {
  return guard([&] {
    need(value, "value") = nullptr;
    const std::string wanted = &need(key, "key");
    for (const auto& [name, bytes] : delegate_of(program, method, index).options)
      if (name == wanted && !*value) *value = new_string(bytes);
  });
}

amps_status amps_program_test_count(const amps_program* program, const char* method,
                                    size_t* count) {
  return guard([&] {
    const executorch::Method& wanted = method_of(program, method);
    need(count, "count") = program->bundle.tests(wanted).size();
  });
}

amps_status amps_program_test_size(const amps_program* program, const char* method, size_t test,
                                   amps_test_side side, size_t* count) {
  return guard([&] { need(count, "count") = test_values(program, method, test, side).size(); });
}

amps_status amps_program_test_tensor(const amps_program* program, const char* method, size_t test,
                                     amps_test_side side, size_t index, amps_device* device,
                                     amps_tensor** tensor) {
  return guard([&] {
    need(tensor, "tensor") = nullptr;
    const auto values = test_values(program, method, test, side);
    require(index < values.size(), "[api] the test case has {} values, {} asked for", values.size(),
            index);
    if (!values[index]) return;
    auto made = std::make_unique<amps_tensor>();
    made->device = &need(device, "device");
    reading(program->files, [&] { made->tensor = to_tensor(*device->device, *values[index]); });
    *tensor = made.release();
  });
}

amps_status amps_program_text(const amps_program* program, const char* format, amps_string** text) {
  return guard([&] {
    need(text, "text") = nullptr;
    *text = new_string(
        executorch::program_text(need(program, "program").bundle, &need(format, "format")));
  });
}

}  // extern "C"
