// SPDX-License-Identifier: Apache-2.0
#include "graph/fingerprint.h"

#include "graph/printer.h"

namespace anymps {

namespace {

// Two independent 64-bit hashes: a collision would run the wrong graph.
struct Hash128 {
  uint64_t a = 0xcbf29ce484222325u, b = 0x9e3779b97f4a7c15u;
  void add(std::string_view text) {
    for (const char c : text) {
      a = (a ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
      b = (b + static_cast<unsigned char>(c) + 1) * 0xd6e8feb86659fd93u;
      b ^= b >> 32;
    }
  }
};

void add_constants(Hash128& hash, const Graph& graph) {
  for (const Value* value : graph.values())
    if (value->is_constant()) hash.add(fmt::format("{}={};", value->name, value->constant->id()));
  for (const auto& node : graph.nodes())
    for (const AttrValue& attr : node->attrs.values())
      if (const auto* inner = std::get_if<std::shared_ptr<Graph>>(&attr); inner && *inner)
        add_constants(hash, **inner);
}

}  // namespace

std::string fingerprint(const Graph& graph) {
  Hash128 hash;
  hash.add(to_text(graph));  // with the graphs in it
  add_constants(hash, graph);
  return fmt::format("{:016x}{:016x}", hash.a, hash.b);
}

}  // namespace anymps
