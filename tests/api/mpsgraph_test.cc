// SPDX-License-Identifier: Apache-2.0
// The records name MPSGraph's methods as Apple spells them, and the list of methods is whole.
#include "api/mpsgraph.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "ops/op.h"

namespace anymps::api {
namespace {

TEST(Mpsgraph, RecordsNameMethodsThatExist) {
  std::set<std::string> selectors;
  for (const MpsMethod& method : mpsgraph_methods())
    EXPECT_TRUE(selectors.insert(method.selector).second) << method.selector << " comes twice";
  EXPECT_EQ(selectors.size(), 378u);
  for (const Op* op : all_ops())
    for (const std::string& selector : op->mps)
      EXPECT_TRUE(selectors.contains(selector))
          << op->name << " says it covers " << selector << ", which is no method of MPSGraph";
}

TEST(Mpsgraph, PageShowsEveryMethod) {
  const std::string page = mpsgraph_markdown();
  size_t covered = 0;
  for (const MpsMethod& method : mpsgraph_methods()) {
    covered += method.covered();
    EXPECT_NE(page.find("`" + method.selector + "`"), std::string::npos) << method.selector;
  }
  std::printf("MPSGraph methods covered: %zu of 378\n", covered);
  EXPECT_NE(page.find("[softmax](ops.md#softmax)"), std::string::npos);
  EXPECT_NE(page.find("`gradientForPrimaryTensor:withTensors:name:` | `amps_graph_gradient`"),
            std::string::npos);
}

}  // namespace
}  // namespace anymps::api
