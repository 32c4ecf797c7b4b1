// SPDX-License-Identifier: Apache-2.0
#include "exporters/save.h"

#include <fstream>

#include "exporters/onnx/export.h"
#include "graph/serializer.h"

namespace anymps {

void save_graph(const Graph& graph, const std::string& path) {
  if (!path.ends_with(".onnx")) return save_mps(graph, path);
  const std::string bytes = onnx::export_model(graph);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) fail(Code::kIo, "[save] cannot write {}", path);
}

}  // namespace anymps
