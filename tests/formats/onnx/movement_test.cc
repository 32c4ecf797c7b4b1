// SPDX-License-Identifier: Apache-2.0
// Scatters, and a cache that is written to.
#include <gtest/gtest.h>

#include "formats/onnx/model_builder.h"
#include "formats/onnx/run.h"

namespace anymps::onnx {
namespace {

TEST(OnnxMovement, Scatters) {
  const auto elements =
      ModelBuilder(18)
          .input("x", {1, 5})
          .ints("i1", {1, 1})
          .ints("s", {1, 2})
          .node("Reshape", {"i1", "s"}, {"i"})
          .floats("u", {1, 2}, {1.5f, 2})
          .output("y")
          .node("ScatterElements", {"x", "i", "u"}, {"y"}, {{"axis", 1}, {"reduction", "add"}});
  EXPECT_EQ(run_graph(*elements.import(), {floats({1, 5}, {1, 2, 3, 4, 5})})[0].values<float>(),
            (Floats{1, 5.5f, 3, 4, 5}));
  const auto cache =
      ModelBuilder(24)
          .input("cache", {2, 3, 1})
          .input("update", {2, 2, 1})
          .input("at", {2}, DataType::kInt64)
          .output("y")
          .node("TensorScatter", {"cache", "update", "at"}, {"y"}, {{"mode", "circular"}});
  EXPECT_EQ(run_graph(*cache.import(), {floats({2, 3, 1}, {1, 2, 3, 4, 5, 6}),
                                        floats({2, 2, 1}, {10, 20, 30, 40}), longs({2}, {1, 2})})[0]
                .values<float>(),
            (Floats{1, 10, 20, 40, 5, 30}));
}

}  // namespace
}  // namespace anymps::onnx
