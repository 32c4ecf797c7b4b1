// SPDX-License-Identifier: Apache-2.0
#include "formats/load.h"

#include "base/mapped_file.h"
#include "formats/executorch/import.h"
#include "formats/mps/mps.h"
#include "formats/onnx/read/import.h"

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

// ONNX has no mark of its own: it is what the others are not. What is not a model of it either, and
// is named or begins like a program of ExecuTorch, is a broken one of these, and the error says so.
template <typename Import>
std::unique_ptr<Graph> import_onnx(const executorch::Source& source, Import&& import) {
  try {
    return import();
  } catch (const Error& error) {
    if (error.code() != Code::kCorrupt || !executorch::seems_executorch(source)) throw;
  }
  return executorch::import_source(source);
}

std::unique_ptr<Graph> load_compiled(std::string_view bytes, std::shared_ptr<const void> owner,
                                     bool mapped, const std::string& name,
                                     std::string* compiled_for) {
  Metadata metadata;
  auto graph = load_mps(bytes, std::move(owner), mapped, name, &metadata);
  if (compiled_for) *compiled_for = metadata[kCompiledFor];
  return graph;
}

}  // namespace

std::unique_ptr<Graph> load_graph(const std::string& path, std::string* compiled_for,
                                  DefaultInputs* defaults) {
  auto file = MappedFile::open(path, "load");
  const executorch::Source source{file->bytes(), file, true, path};
  if (executorch::is_executorch(source.bytes))
    return with_inputs(executorch::import_source(source), path, defaults);
  if (!is_mps(source.bytes))
    return import_onnx(source,
                       [&] { return onnx::import_model(onnx::read_model(file), defaults); });
  return with_inputs(load_compiled(file->bytes(), file, true, path, compiled_for), path, defaults);
}

std::unique_ptr<Graph> load_graph(std::vector<std::byte> bytes, const std::string& name,
                                  DefaultInputs* defaults, std::string* compiled_for) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::string_view view(reinterpret_cast<const char*>(owner->data()), owner->size());
  const executorch::Source source{view, owner, false, name};
  if (executorch::is_executorch(view))
    return with_inputs(executorch::import_source(source), name, defaults);
  if (is_mps(view))
    return with_inputs(load_compiled(view, owner, false, name, compiled_for), name, defaults);
  onnx::ParseOptions options;
  options.file = name;
  options.owner = owner;
  return import_onnx(
      source, [&] { return onnx::import_model(onnx::parse_model(view, options), defaults); });
}

}  // namespace anymps
