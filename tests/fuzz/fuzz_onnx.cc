// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ONNX file: they become a graph or give an Error, and nothing else ever happens.
// Every view that the reader gives out is read to its last byte, so that ASan sees one that points
// outside.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "formats/onnx/read/import.h"

namespace {

uint8_t touch(std::string_view bytes) {
  uint8_t sum = 0;
  for (char c : bytes) sum ^= static_cast<uint8_t>(c);
  return sum;
}

uint8_t touch(const anymps::onnx::Graph& graph) {
  uint8_t sum = touch(graph.name);
  for (const auto& tensor : graph.initializers) sum ^= touch(tensor.data) ^ touch(tensor.name);
  for (const auto& node : graph.nodes) {
    for (std::string_view input : node.inputs) sum ^= touch(input);
    for (const auto& attribute : node.attributes) {
      sum ^= touch(attribute.s);
      for (const auto& tensor : attribute.tensors) sum ^= touch(tensor.data);
      for (const auto& inner : attribute.graphs) sum ^= touch(inner);
    }
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  volatile uint8_t sink = 0;
  try {
    anymps::onnx::Model model = anymps::onnx::parse_model(bytes);
    sink = touch(model.graph);
    anymps::verify(*anymps::onnx::import_model(model));
  } catch (const anymps::Error& error) {
    if (error.code() == anymps::Code::kInternal) throw;  // our fault, not the file's
  }
  try {
    sink = touch(anymps::onnx::parse_tensor(bytes).data);
  } catch (const anymps::Error&) {
  }
  (void)sink;
  return 0;
}
