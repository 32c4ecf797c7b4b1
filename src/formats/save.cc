// SPDX-License-Identifier: Apache-2.0
#include "formats/save.h"

#include "base/output_file.h"
#include "formats/mps/mps.h"
#include "formats/onnx/write/export.h"

namespace anymps {

void save_graph(const Graph& graph, const std::string& path, const MappedFiles& sources) {
  if (!path.ends_with(".onnx")) return save_mps(graph, path, {}, sources);
  const std::string bytes = onnx::export_model(graph);
  check_whole(sources);
  OutputFile file(path, "save");
  file.write(bytes.data(), bytes.size());
  file.keep();
}

std::string graph_bytes(const Graph& graph, const std::string& format) {
  if (format == "onnx") return onnx::export_model(graph);
  require(format == "mps", "[save] the format '{}' is not one of mps, onnx", format);
  return mps_bytes(graph);
}

}  // namespace anymps
