// SPDX-License-Identifier: Apache-2.0
#include "importers/executorch/effects.h"

#include <algorithm>

namespace anymps::executorch {

namespace {

// A value, or those in a list.
void add_ids(const Method& method, int32_t id, std::vector<int32_t>& to) {
  const EValue& value = method.values[static_cast<size_t>(id)];
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
  const bool in_place = is_in_place(call.op);
  size_t end = call.args.size() - 1;
  while (end > 0 && !in_place) {
    std::vector<int32_t> ids;
    add_ids(method, call.args[end - 1], ids);
    if (!all_in(ids, results)) break;
    --end;
  }
  for (size_t i = 0; i < end; ++i) add_ids(method, call.args[i], effects.reads);
  for (const size_t i : written_arguments(call.op))
    if (i < call.args.size()) effects.writes.push_back(call.args[i]);
  return effects;
}

}  // namespace

bool is_in_place(const std::string& op) {
  const size_t end = std::min(op.find('.'), op.size());
  return end > 0 && op[end - 1] == '_';
}

std::vector<size_t> written_arguments(const std::string& op) {
  if (is_in_place(op)) return {0};
  if (op == "llama::update_cache.out") return {1};
  if (op == "llama::sdpa_with_kv_cache.out") return {3, 4};
  return {};
}

Effects effects_of(const Method& method, const Instruction& instruction,
                   const std::vector<size_t>& inputs) {
  Effects effects;
  if (const auto* kernel = std::get_if<KernelCall>(&instruction))
    return kernel_effects(method, *kernel);
  if (const auto* call = std::get_if<DelegateCall>(&instruction)) {
    const size_t count = std::min(inputs[static_cast<size_t>(call->delegate)], call->args.size());
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
