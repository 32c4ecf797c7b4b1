// SPDX-License-Identifier: Apache-2.0
// Inputs of a request and the pieces that their bytes come in.
#include <gtest/gtest.h>

#include "fake_request.h"

namespace anymps::serving {
namespace {

TEST(InputList, GivesEachInputItsPieces) {
  const std::vector<int64_t> shape{4};
  const char bytes[8] = {};
  InputList inputs;
  for (const int round : {1, 2}) {  // the second in the memory of the first
    inputs.clear();
    for (const int pieces : {3, 0, 40 * round, 1}) {
      inputs.add("x", AMPS_U8, shape);
      for (int i = 0; i < pieces; ++i) inputs.add_piece(bytes + i % 8, i);
    }
    inputs.finish();
    ASSERT_EQ(inputs.list().size(), 4u);
    EXPECT_EQ(inputs.list()[0].pieces.size(), 3u);
    EXPECT_TRUE(inputs.list()[1].pieces.empty());
    EXPECT_EQ(inputs.list()[2].pieces.size(), size_t(40 * round));
    EXPECT_EQ(inputs.list()[3].pieces.size(), 1u);
    for (const Input& input : inputs.list())
      for (size_t i = 0; i < input.pieces.size(); ++i) {
        EXPECT_EQ(input.pieces[i].data, bytes + i % 8);
        EXPECT_EQ(input.pieces[i].bytes, i);
      }
  }
}

}  // namespace
}  // namespace anymps::serving
