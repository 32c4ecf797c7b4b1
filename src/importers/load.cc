// SPDX-License-Identifier: Apache-2.0
#include "importers/load.h"

#include "base/mapped_file.h"
#include "graph/serializer.h"
#include "importers/executorch/import.h"
#include "importers/onnx/import.h"

namespace anymps {

namespace {

// Other files than ONNX give no input a default: what is asked for must be an input already.
std::unique_ptr<Graph> with_inputs(std::unique_ptr<Graph> graph, const std::string& name,
                                   const DefaultInputs* defaults) {
  for (size_t i = 0; defaults && i < defaults->wanted.size(); ++i) {
    const Value* value = graph->find_value(defaults->wanted[i]);
    if (!value || !value->is_input())
      fail(Code::kNotFound, "[load] {}: there is no input '{}'", name, defaults->wanted[i]);
  }
  return graph;
}

}  // namespace

std::unique_ptr<Graph> load_graph(const std::string& path, std::string* compiled_for,
                                  DefaultInputs* defaults) {
  auto file = MappedFile::open(path, "load");
  if (executorch::is_executorch(file->bytes()))
    return with_inputs(executorch::import_source({file->bytes(), file, true, path}), path,
                       defaults);
  if (!is_mps(file->bytes())) return onnx::import_file(path, defaults);
  Metadata metadata;
  auto graph = load_mps(file->bytes(), file, true, path, &metadata);
  if (compiled_for) *compiled_for = metadata[kCompiledFor];
  return with_inputs(std::move(graph), path, defaults);
}

std::unique_ptr<Graph> load_graph(std::vector<std::byte> bytes, const std::string& name,
                                  DefaultInputs* defaults) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::string_view view(reinterpret_cast<const char*>(owner->data()), owner->size());
  if (executorch::is_executorch(view))
    return with_inputs(executorch::import_source({view, owner, false, name}), name, defaults);
  if (is_mps(view)) return with_inputs(load_mps(view, owner, false, name), name, defaults);
  onnx::ParseOptions options;
  options.file = name;
  options.owner = owner;
  return onnx::import_model(onnx::parse_model(view, options), defaults);
}

}  // namespace anymps
