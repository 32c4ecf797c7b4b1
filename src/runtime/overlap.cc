// SPDX-License-Identifier: Apache-2.0
#include "runtime/overlap.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace anymps {

// From low to high addresses, only the result and the feed that reach farthest can still meet what
// comes.
std::vector<Tensor> take_apart(const std::vector<Tensor>& feeds, std::vector<Tensor>& results,
                               const Graph& graph, std::span<const Alias> aliases) {
  SmallVector<Reach, 16> reaches;
  for (size_t i = 0; i < results.size(); ++i) add_reach(results[i], i, reaches);
  std::vector<Tensor> taken;
  if (reaches.empty()) return taken;
  // A feed that is a result's memory to the byte is left out: what else meets it meets the result.
  const auto is_result = [&](size_t feed) {
    return std::any_of(aliases.begin(), aliases.end(), [&](const Alias& alias) {
      const Tensor &from = feeds[alias.feed], &to = results[alias.result];
      return alias.feed == feed && to.buffer && from.buffer && from.desc == to.desc &&
             to.desc.contiguous() && from.data() == to.data();
    });
  };
  const size_t of_feed = results.size();
  for (size_t i = 0; i < feeds.size(); ++i)
    if (aliases.empty() || !is_result(i)) add_reach(feeds[i], of_feed, reaches);
  std::sort(reaches.begin(), reaches.end(), [](const Reach& a, const Reach& b) {
    return std::less<const char*>()(a.begin, b.begin);
  });
  const auto take = [&](size_t result) {
    taken.resize(results.size());
    if (results[result].buffer) taken[result] = std::exchange(results[result], Tensor());
  };
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].buffer && !results[i].desc.contiguous()) take(i);
  const Reach *feed = nullptr, *result = nullptr;
  for (const Reach& next : reaches) {
    const bool is_feed = next.owner == of_feed;
    const bool meets_result = result && next.begin < result->end;
    if (is_feed && meets_result) take(result->owner);
    if (!is_feed && meets_result) {
      const auto [first, second] = std::minmax(result->owner, next.owner);
      fail(Code::kInvalidArgument, "[run] the memory given for results '{}' and '{}' overlaps",
           graph.outputs()[first]->name, graph.outputs()[second]->name);
    }
    if (!is_feed && feed && next.begin < feed->end) take(next.owner);
    const Reach*& farthest = is_feed ? feed : result;
    if (!farthest || farthest->end < next.end) farthest = &next;
  }
  return taken;
}

}  // namespace anymps
