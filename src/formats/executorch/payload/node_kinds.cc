// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/payload/node_kinds.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "formats/executorch/converter_table.h"

namespace anymps::executorch {

static constexpr std::string_view kKinds[] = {
    "MPSHardTanh",
    "MPSReLU",
    "MPSGELU",
    "MPSLeakyReLU",
    "MPSSoftmax",
    "MPSLogSoftmax",
    "MPSAdd",
    "MPSSub",
    "MPSMul",
    "MPSDiv",
    "MPSFmod",
    "MPSRemainder",
    "MPSMin",
    "MPSMax",
    "MPSPow",
    "MPSAtan2",
    "MPSBitwiseAnd",
    "MPSBitwiseOr",
    "MPSBitwiseXor",
    "MPSMinimum",
    "MPSExp",
    "MPSExp2",
    "MPSReciprocal",
    "MPSSqrt",
    "MPSNeg",
    "MPSLog",
    "MPSLog10",
    "MPSLog2",
    "MPSErf",
    "MPSFloor",
    "MPSCeil",
    "MPSRsqrt",
    "MPSSigmoid",
    "MPSSin",
    "MPSSign",
    "MPSCos",
    "MPSTan",
    "MPSAbs",
    "MPSAsin",
    "MPSAcos",
    "MPSAtan",
    "MPSSinh",
    "MPSCosh",
    "MPSTanh",
    "MPSAsinh",
    "MPSAcosh",
    "MPSAtanh",
    "MPSBitwiseNot",
    "MPSIsnan",
    "MPSIsinf",
    "MPSRound",
    "MPSLogicalNot",
    "MPSMatMul",
    "MPSAddmm",
    "MPSFull",
    "MPSFullLike",
    "MPSClamp",
    "MPSWhere",
    "MPSIndexSelect",
    "MPSEmbedding",
    "MPSIndexTensor",
    "MPSIndexPut",
    "MPSScatter",
    "MPSMean",
    "MPSPermute",
    "MPSView",
    "MPSExpand",
    "MPSCat",
    "MPSSqueeze",
    "MPSUnsqueeze",
    "MPSSelect",
    "MPSSlice",
    "MPSPixelShuffle",
    "MPSSplitWithSizes",
    "MPSCast",
    "MPSConv2D",
    "MPSDepthwiseConv2D",
    "MPSEq",
    "MPSNe",
    "MPSGe",
    "MPSGt",
    "MPSLe",
    "MPSLt",
    "MPSBatchNorm",
    "MPSLayerNorm",
    "MPSMaxPool2DWithIndices",
    "MPSAvgPool2D",
    "MPSConstantPadND",
    "MPSArange",
    "MPSDequantizePerChannelGroup",
};

std::span<const std::string_view> node_kinds() { return kKinds; }

namespace {

using NodeTable = ConverterTable<NodeConverter>;

NodeTable& registered_nodes() {
  static auto* table = new NodeTable();
  return *table;
}

// Kinds have torch's names: "isnan" is "MPSIsnan".
std::string kind_of_aten(std::string aten) {
  aten[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(aten[0])));
  return "MPS" + aten;
}

// With the kinds whose op of the table has torch's name and that no converter is registered for.
const NodeTable& node_table() {
  static const auto* complete = [] {
    auto* table = new NodeTable(registered_nodes());
    for (const Op* op : all_ops()) {
      if (op->aten.empty()) continue;
      const std::string kind = kind_of_aten(op->aten);
      if (std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds))
        table->add_if_new(kind, {.kind = kind, .same_as = op});
    }
    return table;
  }();
  return *complete;
}

}  // namespace

NodeConverters::NodeConverters(std::initializer_list<NodeConverter> list) {
  for (const NodeConverter& converter : list) registered_nodes().add(converter.kind, converter);
}

const NodeConverter* find_node(std::string_view kind) { return node_table().find(kind); }

std::string label_of(std::string_view kind) {
  if (kind.starts_with("MPS")) kind.remove_prefix(3);
  std::string label;
  for (size_t i = 0; i < kind.size(); ++i) {
    const auto letter = static_cast<unsigned char>(kind[i]);
    // A word starts at a capital that a small letter follows.
    if (i > 0 && std::isupper(letter) && i + 1 < kind.size() &&
        std::islower(static_cast<unsigned char>(kind[i + 1])))
      label += '_';
    label += static_cast<char>(std::tolower(letter));
  }
  return label;
}

}  // namespace anymps::executorch
