// SPDX-License-Identifier: Apache-2.0
// A program that ends while a stream computes: neither hangs nor crashes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime/executable.h"
#include "support/device_tensor.h"

namespace anymps {
namespace {

using testing::tensor;

// The first object of the program goes last: what the engine has destroyed by then is gone while
// the stream computes for a while.
struct LastMoments {
  bool wanted = false;
  ~LastMoments() {
    if (wanted) usleep(300000);
  }
};
__attribute__((init_priority(101))) LastMoments last_moments;

class Exit : public ::testing::TestWithParam<const char*> {};

TEST_P(Exit, WhileAStreamRunsAModel) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer takes a thread that runs at the end for a leak";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        alarm(60);
        const DevicePtr device = Device::get(GetParam());
        Graph graph;
        Value* x = graph.input("x", DType::kF32, {256, 256});
        Value* y = graph.add("softmax", {graph.add("matmul", {x, x})});
        graph.set_outputs({y, graph.add("reduce_sum", {graph.add("exp", {x})})});
        const auto executable = std::make_shared<Executable>(device, graph, CompileOptions{});
        Queue* queue = device->create_queue().release();
        const Tensor feed = tensor(*device, {256, 256}, std::vector<float>(65536, 1));
        std::vector<Tensor> results;
        for (int i = 0; i < 10000; ++i) executable->submit({feed}, results, *queue);
        last_moments.wanted = true;
        std::exit(queue->idle() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Drivers, Exit, ::testing::Values("cpu", "reference"));

}  // namespace
}  // namespace anymps
