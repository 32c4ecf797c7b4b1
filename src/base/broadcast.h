// SPDX-License-Identifier: Apache-2.0
// How two lists of extents, numbers or symbols, are lined up to broadcast: at their last axes.
#pragma once

#include <cstddef>

namespace anymps {

// join(extent, other) for each axis that both have makes `extent` what the result has there; the
// other axes are those of the longer list.
template <typename List, typename Join>
List broadcast_lists(const List& a, const List& b, Join join) {
  const List& wide = a.size() >= b.size() ? a : b;
  const List& narrow = a.size() >= b.size() ? b : a;
  List result = wide;
  const size_t lead = wide.size() - narrow.size();
  for (size_t i = 0; i < narrow.size(); ++i) join(result[lead + i], narrow[i]);
  return result;
}

}  // namespace anymps
