// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/read/registry.h"

#include <algorithm>
#include <map>

#include "formats/onnx/read/import.h"

namespace anymps::onnx {

static const std::map<std::string_view, const Converter*>& table() {
  static const auto* kTable = [] {
    auto* made = new std::map<std::string_view, const Converter*>();
    for (auto family : {
             attention_converters(),
             bitwise_converters(),
             cast_converters(),
             constant_converters(),
             contrib_attention_converters(),
             contrib_converters(),
             data_converters(),
             linalg_converters(),
             loss_converters(),
             math_converters(),
             ml_converters(),
             ml_map_converters(),
             ml_svm_converters(),
             ml_tree_converters(),
             nn_converters(),
             random_converters(),
             quantization_contrib_converters(),
             quantization_converters(),
             reduction_converters(),
             resize_converters(),
             rnn_converters(),
             sequence_converters(),
             scatter_converters(),
             shape_converters(),
             sort_converters(),
             training_converters(),
             signal_converters(),
             vision_converters(),
             string_converters(),
         })
      for (const Converter& converter : family)
        if (!converter.same_as || find_op(converter.same_as))
          require(made->emplace(converter.op, &converter).second, "ONNX's {} has two converters",
                  converter.op);
    return made;
  }();
  return *kTable;
}

const Converter* find_converter(std::string_view domain, std::string_view op) {
  const bool standard = domain.empty() || domain == "ai.onnx";
  const std::string name = standard ? std::string(op) : fmt::format("{}.{}", domain, op);
  auto found = table().find(name);
  return found == table().end() ? custom_converter(name) : found->second;
}

std::vector<std::string> supported_ops() {
  std::vector<std::string> names;
  for (const auto& [name, converter] : table()) names.emplace_back(name);
  names.insert(names.end(), {"If", "Loop", "Scan", "SequenceMap"});  // control_flow.cc
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace anymps::onnx
