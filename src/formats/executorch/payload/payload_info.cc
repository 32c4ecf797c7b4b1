// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/payload/payload_info.h"

#include "formats/executorch/payload/node_kinds.h"
#include "formats/executorch/payload/payload.h"
#include "formats/executorch/program/flat.h"
#include "formats/executorch/schema/payload_fields.h"

namespace anymps::executorch {

PayloadInfo payload_info(const Source& payload) {
  const PayloadParts parts = split_payload(payload);
  const FlatBuffer flat(parts.graph, payload.name);
  const FlatTable root = flat.root("MPSGraph");
  PayloadInfo info;
  for (const FlatTable& node : root.tables(field::MpsGraph::kNodes, "MPSNode")) {
    const auto kind = node.scalar<uint8_t>(field::MpsNode::kKind);
    ++info.kinds[kind == 0 || kind > node_kinds().size() ? fmt::format("kind {}", kind)
                                                         : std::string(node_kinds()[kind - 1u])];
  }
  info.inputs = root.numbers<int32_t>(field::MpsGraph::kInputs).size();
  info.outputs = root.numbers<int32_t>(field::MpsGraph::kOutputs).size();
  info.constants = root.numbers<int32_t>(field::MpsGraph::kConstants).size();
  info.constant_bytes = parts.segment.size();
  return info;
}

}  // namespace anymps::executorch
