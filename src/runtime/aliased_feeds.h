// SPDX-License-Identifier: Apache-2.0
// Feeds whose memory a result may lie in, while a plan is built: how long they are still needed. A
// result is written into such memory when nobody reads the feed any more, or by the very step that
// reads it last if its kernel works in place; else it is computed aside and copied at the end.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "runtime/plan.h"

namespace anymps {

class AliasedFeeds {
 public:
  AliasedFeeds(const Graph& graph, std::span<const Alias> aliases)
      : graph_(graph), aliases_(aliases), needs_(aliases.empty() ? 0 : graph.inputs().size()) {}

  std::optional<size_t> feed_of(size_t result) const {
    for (const Alias& alias : aliases_)
      if (alias.result == result) return alias.feed;
    return std::nullopt;
  }
  bool is_overwritten(size_t feed) const {
    return std::any_of(aliases_.begin(), aliases_.end(),
                       [&](const Alias& alias) { return alias.feed == feed; });
  }
  // A value lies in the feed's memory.
  void add(size_t feed, const Value& value) {
    if (needs_.empty()) return;
    needs_[feed].uses += value.users.size();
    needs_[feed].is_output = needs_[feed].is_output || graph_.is_output(&value);
  }
  void use(size_t feed) {  // one of the uses is over
    if (!needs_.empty()) --needs_[feed].uses;
  }
  // Whether nobody needs the feed after this many further uses.
  bool is_free_after(size_t uses, size_t feed) const {
    return needs_[feed].uses <= uses && !needs_[feed].is_output;
  }

 private:
  struct Need {
    size_t uses = 0;
    bool is_output = false;  // copied to a result at the end
  };
  const Graph& graph_;
  const std::span<const Alias> aliases_;
  std::vector<Need> needs_;  // of each feed; none where there is no alias
};

}  // namespace anymps
