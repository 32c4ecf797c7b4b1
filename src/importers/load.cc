// SPDX-License-Identifier: Apache-2.0
#include "importers/load.h"

#include "base/mapped_file.h"
#include "graph/serializer.h"
#include "importers/onnx/import.h"

namespace anymps {

std::unique_ptr<Graph> load_graph(const std::string& path, std::string* compiled_for) {
  auto file = MappedFile::open(path, "load");
  if (!is_mps(file->bytes())) return onnx::import_file(path);
  Metadata metadata;
  auto graph = load_mps(file->bytes(), file, true, path, &metadata);
  if (compiled_for) *compiled_for = metadata[kCompiledFor];
  return graph;
}

std::unique_ptr<Graph> load_graph(std::vector<std::byte> bytes, const std::string& name) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::string_view view(reinterpret_cast<const char*>(owner->data()), owner->size());
  if (is_mps(view)) return load_mps(view, owner, false, name);
  onnx::ParseOptions options;
  options.file = name;
  options.owner = owner;
  return onnx::import_model(onnx::parse_model(view, options));
}

}  // namespace anymps
