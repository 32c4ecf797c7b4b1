// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/effects.h"

#include <algorithm>

#include "formats/executorch/operators/kernel_call.h"

namespace anymps::executorch {

namespace {

// A value, or those in a list.
void add_ids(const Method& method, int32_t id, std::vector<int32_t>& to) {
  const EValue& value = method.values[id];
  if (const auto* list = std::get_if<TensorList>(&value)) {
    for (const int32_t item : list->items)
      if (item >= 0) to.push_back(item);
  } else if (const auto* ints = std::get_if<IntList>(&value)) {
    to.insert(to.end(), ints->items.begin(), ints->items.end());
  } else {
    to.push_back(id);
  }
}

bool all_in(const std::vector<int32_t>& list, const std::vector<int32_t>& sorted) {
  return !list.empty() && std::all_of(list.begin(), list.end(), [&](int32_t id) {
    return std::binary_search(sorted.begin(), sorted.end(), id);
  });
}

// The last argument is the result, or a list of them. Out-tensors stand before it as well.
Effects kernel_effects(const Method& method, const KernelCall& call) {
  Effects effects;
  if (call.args.empty()) return effects;
  if (call.op == kCopyIndex) {
    effects.reads.assign(call.args.begin() + 1, call.args.end());
    effects.writes.push_back(call.args[0]);
    return effects;
  }
  add_ids(method, call.args.back(), effects.writes);
  std::vector<int32_t> results = effects.writes;
  std::sort(results.begin(), results.end());
  const std::vector<size_t>& changed = changed_arguments(call.op);
  size_t end = call.args.size() - 1;
  // Not more than there are results: one of them may be an argument that is read as well.
  for (size_t left = results.size(); end > 0 && !is_in_place(changed); --end) {
    std::vector<int32_t> ids;
    add_ids(method, call.args[end - 1], ids);
    if (ids.size() > left || !all_in(ids, results)) break;
    left -= ids.size();
  }
  for (size_t i = 0; i < end; ++i) add_ids(method, call.args[i], effects.reads);
  for (const size_t i : changed)
    if (i < call.args.size()) effects.writes.push_back(call.args[i]);
  return effects;
}

}  // namespace

const std::vector<size_t>& changed_arguments(const std::string& op) {
  static const std::vector<size_t> kNone;
  const KernelConverter* converter = find_kernel(op);
  return converter ? converter->changes : kNone;
}

Effects effects_of(const Method& method, const Instruction& instruction,
                   const std::vector<size_t>& inputs) {
  Effects effects;
  if (const auto* kernel = std::get_if<KernelCall>(&instruction))
    return kernel_effects(method, *kernel);
  if (const auto* call = std::get_if<DelegateCall>(&instruction)) {
    const size_t count = std::min(inputs[call->delegate], call->args.size());
    for (size_t i = 0; i < call->args.size(); ++i)
      add_ids(method, call->args[i], i < count ? effects.reads : effects.writes);
  } else if (const auto* move = std::get_if<MoveCall>(&instruction)) {
    effects.reads.push_back(move->from);
    effects.writes.push_back(move->to);
  } else if (const auto* jump = std::get_if<JumpFalse>(&instruction)) {
    effects.reads.push_back(jump->condition);
  }
  return effects;
}

}  // namespace anymps::executorch
