// SPDX-License-Identifier: Apache-2.0
// Subnormal numbers: what runs of executables and calls of single ops take them for, on the calling
// thread and on those that help; that the caller's mode is as before; and what never changes.
#include "base/denormals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "base/thread_pool.h"
#include "runtime/eager/eager.h"
#include "runtime/executable.h"
#include "support/child.h"
#include "support/device_tensor.h"
#include "support/graph_parts.h"

namespace anymps {
namespace {

using float_control::Word;
using testing::body;
using testing::elements;
using testing::error_of;
using testing::tensor;
using Numbers = std::vector<float>;

constexpr float kTiny = 0x1p-140f;  // subnormal

Numbers first_result(const DevicePtr& device, const Graph& graph, const std::vector<Tensor>& feeds,
                     CompileOptions options = {}) {
  std::vector<Tensor> results;
  Executable(device, graph, std::move(options)).run(feeds, results);
  return elements(*device, results[0]);
}

// x + x, whose operands and result are subnormal.
std::unique_ptr<Graph> doubling() {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->input("x", DType::kF32, {2});
  graph->set_outputs({graph->add("add", {x, x})});
  return graph;
}
const Numbers kKept = {2 * kTiny, 2}, kFlushed = {0, 2};

class ModesOfRuns : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("ANYMPS_DENORMALS"); }
  DevicePtr device_ = Device::get("cpu");
  std::vector<Tensor> feeds_ = {tensor(*device_, {2}, {kTiny, 1})};
  Numbers run(const Graph& graph, DenormalOption option) {
    return first_result(device_, graph, feeds_, {.denormals = option});
  }
  Numbers call() {  // the same op without a graph
    Eager eager(*device_, 8);
    std::vector<Tensor> y(1);
    eager.call(get_op("add"), std::vector<const Tensor*>{feeds_.data(), feeds_.data()}, {}, y);
    return elements(*device_, y[0]);
  }
};

TEST_F(ModesOfRuns, EachExecutableHasItsOwn) {
  const auto graph = doubling();
  EXPECT_EQ(run(*graph, DenormalOption::kDefault), kFlushed);
  EXPECT_EQ(run(*graph, DenormalOption::kFlush), kFlushed);
  EXPECT_EQ(run(*graph, DenormalOption::kKeep), kKept);
  EXPECT_EQ(run(*graph, DenormalOption::kAsCalls), kKept);
  EXPECT_EQ(call(), kKept);
}

TEST_F(ModesOfRuns, TheEnvironmentIsTheDefault) {
  const auto graph = doubling();
  setenv("ANYMPS_DENORMALS", "keep", 1);
  EXPECT_EQ(run(*graph, DenormalOption::kDefault), kKept);
  EXPECT_EQ(run(*graph, DenormalOption::kFlush), kFlushed);
  setenv("ANYMPS_DENORMALS", "flush", 1);
  EXPECT_EQ(run(*graph, DenormalOption::kDefault), kFlushed);
  EXPECT_EQ(run(*graph, DenormalOption::kKeep), kKept);
  EXPECT_EQ(run(*graph, DenormalOption::kAsCalls), kFlushed);
  EXPECT_EQ(call(), kFlushed);
  setenv("ANYMPS_DENORMALS", "often", 1);
  const std::string error = error_of([&] { run(*graph, DenormalOption::kDefault); });
  EXPECT_NE(error.find("ANYMPS_DENORMALS='often'"), std::string::npos) << error;
}

// A framework may have set it for its thread: single ops follow, executables do as they are asked.
TEST_F(ModesOfRuns, OfAThreadThatFlushes) {
  const auto graph = doubling();
  const DenormalScope flush(Denormals::kFlush);
  const Word before = float_control::read();
  const auto bits = [](const Numbers& numbers) { return std::bit_cast<uint32_t>(numbers[0]); };
  EXPECT_EQ(bits(call()), 0u);
  EXPECT_EQ(bits(run(*graph, DenormalOption::kAsCalls)), 0u);
  EXPECT_EQ(bits(run(*graph, DenormalOption::kDefault)), 0u);
  EXPECT_EQ(bits(run(*graph, DenormalOption::kKeep)), std::bit_cast<uint32_t>(2 * kTiny));
  EXPECT_EQ(float_control::read() & float_control::kFlush, before & float_control::kFlush);
}

TEST_F(ModesOfRuns, TheReferenceKeeps) {
  const DevicePtr device = Device::get("reference");
  EXPECT_EQ(first_result(device, *doubling(), {tensor(*device, {2}, {kTiny, 1})},
                         {.denormals = DenormalOption::kFlush}),
            kKept);
}

TEST_F(ModesOfRuns, InterpretedGraphsAndBodies) {
  Graph graph;
  Value* condition = graph.input("c", DType::kBool, {});
  Value* x = graph.input("x", DType::kF32, {2});
  auto yes = std::make_shared<Graph>(), no = std::make_shared<Graph>();
  Value* a = yes->input("a", x->type);
  yes->set_outputs({yes->add("add", {a, a})});
  Value* b = no->input("b", x->type);
  no->set_outputs({no->add("neg", {b})});
  Node* node = graph.add_node(get_op("if_else"), {condition, x},
                              {body("then_branch", yes), body("else_branch", no)}, "choice", 1);
  // What is not zero, and how much of it: a shape that depends on data.
  Value* places = graph.add("nonzero", {graph.add("greater", {node->output(), x})});
  graph.set_outputs({graph.add("identity", {node->output()}), places});
  const bool truth = true;
  feeds_.insert(feeds_.begin(), device_->from_host(TensorDesc(DType::kBool, {}), &truth));
  for (const auto& [option, expected, count] :
       {std::tuple{DenormalOption::kFlush, kFlushed, 1}, {DenormalOption::kKeep, kKept, 2}}) {
    std::vector<Tensor> results;
    Executable(device_, graph, {.denormals = option}).run(feeds_, results);
    EXPECT_EQ(elements(*device_, results[0]), expected);
    EXPECT_EQ(results[1].desc.count(), count);
  }
}

TEST_F(ModesOfRuns, QueuesAndForkedChildren) {
  const auto graph = doubling();
  Executable flush(device_, *graph), keep(device_, *graph, {.denormals = DenormalOption::kKeep});
  const auto queue = device_->create_queue();
  const auto both = [&](const auto& run) {
    std::vector<Tensor> a, b;
    run(flush, a);
    run(keep, b);
    return elements(*device_, a[0]) == kFlushed && elements(*device_, b[0]) == kKept;
  };
  const auto submitted = [&](Executable& executable, std::vector<Tensor>& results) {
    executable.submit(feeds_, results, *queue);
    queue->synchronize();
  };
  EXPECT_TRUE(both(submitted));
  const auto now = [&](Executable& executable, std::vector<Tensor>& results) {
    executable.run(feeds_, results);
  };
  EXPECT_EQ(testing::end_of_child([&] { return both(now); }), "good");
}

TEST_F(ModesOfRuns, CallersBesideEachOther) {
  const auto graph = doubling();
  Executable flush(device_, *graph), keep(device_, *graph, {.denormals = DenormalOption::kKeep});
  std::atomic<int> wrong = 0;
  const auto caller = [&](Executable& executable, const Numbers& expected) {
    for (int round = 0; round < 300; ++round) {
      std::vector<Tensor> results;
      executable.run(feeds_, results);
      wrong += elements(*device_, results[0]) != expected;
    }
  };
  std::thread one(caller, std::ref(flush), kFlushed), other(caller, std::ref(keep), kKept);
  one.join();
  other.join();
  EXPECT_EQ(wrong, 0);
}

// What is folded is what the reference gives, whatever the mode of the caller and of the runs; and
// ops without a kernel of the driver's, such as those about bits, have the reference's.
TEST_F(ModesOfRuns, FoldingAndBitsAreExact) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  Value* tiny = graph.constant(Constant::of<float>({2}, {kTiny, 1}));
  std::vector<float> many(1 << 15, kTiny);  // folded on demand
  Value* large = graph.constant(Constant::of<float>({1 << 15}, many));
  Value* one = graph.constant(Constant::of<float>({2}, {1, 1}));
  // By the driver's kernel, which needs memory for its scales.
  std::vector<int8_t> threes(1 << 15, 3);
  Value* steps = graph.add("dequantize",
                           {graph.constant(Constant::of<int8_t>({2, 1 << 14}, threes)),
                            graph.constant(Constant::of<float>({2}, {kTiny, 0.1f}))},
                           {{"axis", 0}});
  Node* parts = graph.add_node(get_op("frexp"), {x}, {}, "parts", 2);
  graph.set_outputs({graph.add("add", {tiny, tiny}), graph.add("add", {large, large}),
                     graph.add("nextafter", {graph.add("sub", {x, x}), one}), parts->outputs[0],
                     parts->outputs[1], graph.add("reinterpret", {x}, {{"dtype", DType::kI32}}),
                     graph.add("mul", {steps, graph.scalar(DType::kF32, 1)})});
  for (const Denormals mode : {Denormals::kKeep, Denormals::kFlush}) {
    std::vector<Tensor> results;
    {
      const DenormalScope scope(mode);
      Executable(device_, graph, {.check = mode == Denormals::kFlush}).run(feeds_, results);
    }
    EXPECT_EQ(elements(*device_, results[0]), kKept);
    EXPECT_EQ(elements(*device_, results[1]), Numbers(many.size(), 2 * kTiny));
    EXPECT_EQ(elements(*device_, results[2]), (Numbers{0x1p-149f, 0x1p-149f}));
    EXPECT_EQ(elements(*device_, results[3]), (Numbers{0.5f, 0.5f}));
    EXPECT_EQ(elements<int32_t>(*device_, results[4]), (std::vector<int32_t>{-139, 1}));
    EXPECT_EQ(elements<int32_t>(*device_, results[5])[0], std::bit_cast<int32_t>(kTiny));
    const Numbers scaled = elements(*device_, results[6]);
    EXPECT_EQ(scaled.front(), 3 * kTiny);
    EXPECT_EQ(scaled.back(), 3 * 0.1f);
  }
}

// Each op of the graph is compared with the reference, which sees the same zeros: operands that are
// subnormal make results that are not.
TEST_F(ModesOfRuns, TheCheckIsClean) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {16, 64});
  Value* w = graph.input("w", DType::kF32, {64, 32});
  graph.set_outputs({graph.add("matmul", {x, w}),
                     graph.add("mul", {x, graph.scalar(DType::kF32, 1e30)}),
                     graph.add("reciprocal", {x}), graph.add("log", {graph.add("abs", {x})}),
                     graph.add("cast", {x}, {{"dtype", DType::kF64}}),
                     graph.add("reduce_sum", {x}, {{"axes", std::vector<int64_t>{1}}}),
                     graph.add("softmax", {x})});
  Numbers tiny(16 * 64), small(64 * 32, 0x1p-64f);
  for (size_t i = 0; i < tiny.size(); ++i)
    tiny[i] = (i % 3 ? 0x1p-149f : 0x1p-64f) * static_cast<float>(i % 1000 + 1);
  const std::vector<Tensor> feeds = {tensor(*device_, {16, 64}, tiny),
                                     tensor(*device_, {64, 32}, small)};
  for (const DenormalOption option : {DenormalOption::kFlush, DenormalOption::kKeep}) {
    std::vector<Tensor> results;
    Executable executable(device_, graph, {.check = true, .denormals = option});
    EXPECT_NO_THROW(executable.run(feeds, results));
  }
}

// A driver whose kernel tells the modes of all threads that it works with, and fails if asked to.
struct Told {
  std::mutex mutex;
  std::set<bool> flushes;
  bool fail = false;
};
Told told;

DevicePtr teller() {
  class Teller final : public Driver {
   public:
    const char* name() const override { return "teller"; }
    std::string description() const override { return "tells its mode"; }
    DriverTraits traits() const override { return {.flushes_denormals = true}; }
  };
  static const DriverRegistrar driver("teller", [] { return std::make_unique<Teller>(); });
  static const KernelRegistrar kernel(
      "teller", "neg", "tells", 0, [](const KernelRequest&, std::string&) {
        return make_kernel([](const KernelArgs&) {
          std::atomic<int> begun = 0;
          ThreadPool::get().run(
              3, 3,
              [](void* context, int64_t) {
                auto& all = *static_cast<std::atomic<int>*>(context);
                ++all;
                while (all < 3) std::this_thread::yield();
                const std::lock_guard lock(told.mutex);
                told.flushes.insert(flushes_denormals());
              },
              &begun);
          if (told.fail) fail(Code::kInternal, "[teller] as asked");
        });
      });
  return Device::get("teller");
}

TEST(Denormals, AllThreadsOfARunAndNobodyAfterwards) {
  const int before = ThreadPool::get().size();
  ThreadPool::get().resize(3);
  const DevicePtr device = teller();
  Graph graph;
  graph.set_outputs({graph.add("neg", {graph.input("x", DType::kF32, {2})})});
  const std::vector<Tensor> feeds = {tensor(*device, {2}, {1, 2})};
  for (const bool caller_flushes : {false, true})
    for (const bool flushes : {true, false})
      for (const bool fails : {false, true}) {
        const DenormalScope caller(caller_flushes ? Denormals::kFlush : Denormals::kKeep);
        told.flushes.clear();
        told.fail = fails;
        Executable executable(
            device, graph, {.denormals = flushes ? DenormalOption::kFlush : DenormalOption::kKeep});
        std::vector<Tensor> results = {device->empty(DType::kF32, {2})};
        const Word now = float_control::read();
        std::string error;
        try {
          executable.run(feeds, results);
        } catch (const Error& thrown) {
          error = thrown.what();
        }
        EXPECT_EQ(float_control::read(), now);
        EXPECT_EQ(error.empty(), !fails) << error;
        EXPECT_EQ(told.flushes, std::set<bool>{flushes});
      }
  ThreadPool::get().resize(before);
}

}  // namespace
}  // namespace anymps
