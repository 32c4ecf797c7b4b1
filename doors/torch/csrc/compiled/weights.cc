// SPDX-License-Identifier: Apache-2.0
#include "compiled/weights.h"

#include <algorithm>

namespace anymps::aten {

namespace {

// Constants are packed and folded when the graph is compiled: so many runs pay for it.
constexpr int64_t kRunsThatPay = 8;
constexpr int64_t kMostCalls = 1024;

}  // namespace

Weights::Weights(std::vector<size_t> inputs) {
  for (const size_t input : inputs) seen_.push_back({input, nullptr});
}

bool Weights::look(Seen& seen, const at::Tensor& tensor) {
  const void* data = tensor.const_data_ptr();
  const uint64_t version = tensor.is_inference() ? 0 : tensor._version();
  const bool same_storage = seen.storage && seen.storage->is_of(tensor);
  if (!same_storage) seen.storage = std::make_shared<Watched>(tensor.storage());
  const uint64_t writes = seen.storage->writes();
  const bool same =
      same_storage && data == seen.data && version == seen.version && writes == seen.writes;
  seen.data = data;
  seen.version = version;
  seen.writes = writes;
  seen.calls_unchanged = same ? seen.calls_unchanged + 1 : 0;
  return same;
}

bool Weights::constants_stay(const std::vector<at::Tensor>& inputs) {
  bool stay = true;
  for (Seen& seen : seen_)
    if (!look(seen, inputs[seen.input]) && seen.constant) stay = false;
  if (stay) {
    ++runs_;
    return true;
  }
  // What lasted is chosen anew at once; what did not is waited for, each time longer.
  if (runs_ < kRunsThatPay)
    wanted_calls_ = std::min(std::max<int64_t>(2 * wanted_calls_, 2), kMostCalls);
  else
    wanted_calls_ = 0;
  for (Seen& seen : seen_) seen.constant = false;
  return false;
}

std::vector<size_t> Weights::choose_constants() {
  std::vector<size_t> chosen;
  for (const Seen& seen : seen_)
    if (seen.calls_unchanged >= wanted_calls_) chosen.push_back(seen.input);
  if (chosen.empty()) return chosen;
  for (Seen& seen : seen_) seen.constant = seen.calls_unchanged >= wanted_calls_;
  runs_ = 1;
  return chosen;
}

}  // namespace anymps::aten
