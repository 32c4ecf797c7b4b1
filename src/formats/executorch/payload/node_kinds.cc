// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/payload/node_kinds.h"

#include <cctype>
#include <unordered_map>

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

static std::unordered_map<std::string_view, NodeConverter>& node_table() {
  static auto* table = new std::unordered_map<std::string_view, NodeConverter>();
  return *table;
}

NodeConverters::NodeConverters(std::initializer_list<NodeConverter> list) {
  for (const NodeConverter& converter : list)
    if (!node_table().emplace(converter.kind, converter).second)
      fail(Code::kInternal, "[mps payload] {} has two converters", converter.kind);
}

const NodeConverter* find_node(std::string_view kind) {
  const auto found = node_table().find(kind);
  return found == node_table().end() ? nullptr : &found->second;
}

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
