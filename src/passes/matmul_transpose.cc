// SPDX-License-Identifier: Apache-2.0
// A transpose of the last two axes before a matmul becomes a flag of the matmul:
//   matmul(a, transpose(w, [1, 0]))  ->  matmul(a, w) {transpose_b}
// Weights are then packed as the file stores them, without a transposed copy.
#include <algorithm>

#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

namespace {

// What `value` is the transpose of, in its last two axes alone.
Value* before_transpose(const Value* value) {
  Node* node = made_by(value, "transpose");
  if (!node || rank_of(node->input(0)) < 2) return nullptr;
  std::vector<int64_t> perm = perm_of(*node);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return std::is_sorted(perm.begin(), perm.end()) ? node->input(0) : nullptr;
}

}  // namespace

PASS(matmul_transpose, 130, "transposes of a matmul's operands become its flags") {
  static constexpr const char* kFlags[] = {"transpose_a", "transpose_b"};
  Rewriter rewriter(graph);
  return rewriter.each([&](Node& node) {
    if (!node.is("matmul")) return false;
    std::vector<Value*> inputs = node.inputs;
    Attrs attrs = node.attrs;
    bool changed = false;
    for (size_t i = 0; i < 2; ++i) {
      Value* source = before_transpose(inputs[i]);
      if (!source) continue;
      inputs[i] = source;
      attrs.set({kFlags[i], !attrs.b(kFlags[i])});
      changed = true;
    }
    return changed &&
           rewriter.replace(node.output(), graph.add("matmul", inputs, attrs.named(), node.name));
  });
}

}  // namespace anymps
