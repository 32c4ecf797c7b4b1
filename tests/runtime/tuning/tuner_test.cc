// SPDX-License-Identifier: Apache-2.0
// ANYMPS_TUNE=on: which of several kernels is taken, that it is measured once, and what may not
// change. The kernels of the driver "racer" compute -x whatever the op, and take as long as they
// spin.
#include "runtime/tuning/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/thread_pool.h"
#include "drivers/kernel_ways.h"
#include "runtime/eager/eager.h"
#include "runtime/tuning/choice_store.h"
#include "support/device_tensor.h"
#include "support/temporary_folder.h"

namespace anymps {
namespace {

using testing::elements;
using testing::error_of;
using testing::tensor;
using Numbers = std::vector<float>;

constexpr int kFast = 0, kSlow = 300'000;

thread_local int limit = 0;
std::string last_run;
size_t runs = 0;

class Racer final : public Driver {
 public:
  const char* name() const override { return "racer"; }
  std::string description() const override { return "spins"; }
  std::string timing_identity() const override { return "a machine\nwith two lines"; }
  DriverTraits traits() const override { return {}; }
  int use_threads(int threads) override { return std::exchange(limit, threads); }
  void restore_threads(int before) override { limit = before; }
  int max_threads() const override { return 2; }
};

struct Spinner final : Kernel {
  std::string name;
  int one, more;  // turns, with one thread and with two
  int64_t count;
  float off;
  void run(const KernelArgs& args) const override {
    last_run = name;
    ++runs;
    for (volatile int turn = limit == 1 ? one : more; turn > 0;) turn = turn - 1;
    for (int64_t i = 0; i < count; ++i)
      static_cast<float*>(args.outputs[0])[i] =
          -static_cast<const float*>(args.inputs[0])[i] * (1 + off);
  }
  std::string detail() const override { return name; }
};

struct Register {
  Register(const char* op, int order, const char* name, int one, int more, float off = 0) {
    KernelRegistrar("racer", op, name, order, [=](const KernelRequest& request, std::string& why) {
      auto kernel = std::make_shared<Spinner>();
      const std::string_view way = AskedWay::now();
      if (way == "refused") return refuse(why, "never");
      kernel->name = way.empty() ? name : fmt::format("{}/{}", name, way);
      kernel->one = way == "quick" ? kFast : one;
      kernel->more = way == "quick" ? kFast : more;
      kernel->count = request.out().count();
      kernel->off = off;
      return KernelPtr(std::move(kernel));
    });
  }
};

constexpr float kRounding = 3e-7f;  // within the tolerance of all ops here

Driver& racer() {
  static const DriverRegistrar driver("racer", [] { return std::make_unique<Racer>(); });
  [[maybe_unused]] static const Register kernels[] = {
      {"neg", 1, "slow", kSlow, kSlow},
      {"neg", 2, "fast", kFast, kFast},
      {"abs", 1, "slow", kSlow, kSlow},
      {"abs", 2, "wrong", kFast, kFast, 0.5f},
      {"exp", 1, "fast", kFast, kFast},
      {"exp", 2, "slow", kSlow, kSlow},
      // Rounds otherwise, and is faster with two threads only.
      {"sin", 1, "usual", kSlow, kSlow},
      {"sin", 2, "rounding", 2 * kSlow, kFast, kRounding},
      {"sin", 3, "same", 2 * kSlow, kSlow / 4},
      // Rounds otherwise, and is faster with one thread only.
      {"cos", 1, "usual", kSlow, kFast},
      {"cos", 2, "rounding", kFast, kSlow, kRounding},
      // It is a way of a kernel that is fast.
      {"tan", 1, "ways", kSlow, kSlow},
      {"sqrt", 1, "only", kSlow, kSlow},
  };
  static const KernelWays ways("racer", "tan", "ways", {"refused", "quick"});
  return get_driver("racer");
}

class Tuning : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("ANYMPS_TUNE", "on", 1);
    setenv("ANYMPS_TUNE_CACHE", folder_.path().c_str(), 1);
  }
  void TearDown() override {
    unsetenv("ANYMPS_TUNE");
    unsetenv("ANYMPS_TUNE_CACHE");
  }
  // As in a process of its own.
  static DevicePtr device() { return std::make_shared<Device>(racer(), "racer"); }
  // The kernel that a graph of one node runs.
  static std::string taken(const DevicePtr& device, const char* op, int threads = 1) {
    Graph graph;
    graph.set_outputs({graph.add(op, {graph.input("x", DType::kF32, {kElements})})});
    Executable executable(device, graph, {.threads = threads});
    std::vector<Tensor> results;
    executable.run({tensor(*device, {kElements}, Numbers(kElements, 1))}, results);
    return last_run;
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_.path()),
                                             std::filesystem::directory_iterator()));
  }

  static constexpr int64_t kElements = 100;
  testing::TemporaryFolder folder_;
};

TEST_F(Tuning, TakesTheFastest) {
  const DevicePtr device = this->device();
  EXPECT_EQ(taken(device, "neg"), "fast");
  EXPECT_EQ(taken(device, "exp"), "fast");
  EXPECT_EQ(taken(device, "tan"), "ways/quick");
  EXPECT_EQ(device->choices().measured(), 3u);
  EXPECT_EQ(taken(device, "sqrt"), "only");
  EXPECT_EQ(device->choices().measured(), 3u);
}

TEST_F(Tuning, NeverWhatComputesOtherNumbers) { EXPECT_EQ(taken(device(), "abs"), "slow"); }

TEST_F(Tuning, IsOffByDefault) {
  const DevicePtr device = this->device();
  for (const char* word : {"", "off"}) {
    setenv("ANYMPS_TUNE", word, 1);
    runs = 0;
    EXPECT_EQ(taken(device, "neg"), "slow");
    EXPECT_EQ(runs, 1u);
    EXPECT_EQ(device->choices().measured(), 0u);
    EXPECT_EQ(files(), 0u);
  }
  for (const char* word : {"yes", "on,off"}) {
    setenv("ANYMPS_TUNE", word, 1);
    const std::string error = error_of([&] { taken(device, "neg"); });
    EXPECT_NE(error.find(fmt::format("ANYMPS_TUNE='{}'", word)), std::string::npos) << error;
  }
}

TEST_F(Tuning, CallsOfSingleOpsAreNotMeasured) {
  const DevicePtr device = this->device();
  const Tensor x = tensor(*device, {2}, {1, 2});
  std::vector<Tensor> y(1);
  Eager(*device, 8).call(get_op("neg"), std::vector<const Tensor*>{&x}, {}, y);
  EXPECT_EQ(last_run, "slow");
  EXPECT_EQ(device->choices().measured(), 0u);
}

// A thread more or less may not change a bit: what rounds otherwise is judged on one thread.
TEST_F(Tuning, ThreadsDoNotDecideHowItRounds) {
  const DevicePtr device = this->device();
  EXPECT_EQ(taken(device, "sin", 2), "same");
  EXPECT_EQ(taken(device, "sin", 1), "usual");
  EXPECT_EQ(taken(device, "cos", 2), "rounding");
  EXPECT_EQ(taken(device, "cos", 1), "rounding");
  EXPECT_EQ(device->choices().measured(), 4u);
}

TEST_F(Tuning, AnotherProcessMeasuresNothing) {
  EXPECT_EQ(taken(device(), "neg", 2), "fast");
  EXPECT_EQ(files(), 2u);  // of one thread and of two
  const DevicePtr second = device();
  runs = 0;
  EXPECT_EQ(taken(second, "neg", 2), "fast");
  EXPECT_EQ(taken(second, "neg", 1), "fast");
  EXPECT_EQ(runs, 2u);
  EXPECT_EQ(second->choices().measured(), 0u);
  EXPECT_EQ(taken(second, "exp", 1), "fast");
  EXPECT_EQ(second->choices().measured(), 1u);
}

TEST_F(Tuning, ADamagedFileIsWrittenAnew) {
  const DevicePtr first = device();
  const std::string path = first->choices().path(1);
  for (const std::string& content :
       {std::string("nonsense"), std::string(), std::string(300, '\0')}) {
    std::ofstream(path, std::ios::trunc) << content;
    const DevicePtr device = this->device();
    EXPECT_NE(device->choices().report(1).problem, "");
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(taken(device, "neg"), "fast");
    EXPECT_EQ(taken(device, "exp"), "fast");
    const std::string told = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(told.find(path + " is not used"), std::string::npos) << told;
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
    EXPECT_EQ(device->choices().measured(), 2u);
    const ChoiceStore::Report report = this->device()->choices().report(1);
    EXPECT_EQ(report.problem, "");
    EXPECT_EQ(report.choices, 2u);
  }
}

// What a file may say at worst: kernels that there are not, or that refuse.
TEST_F(Tuning, NamesThatNobodyHas) {
  EXPECT_EQ(taken(device(), "tan"), "ways/quick");
  const std::string path = device()->choices().path(1);
  std::string identity, why;
  {
    std::ifstream file(path);
    std::getline(file, identity);
    std::getline(file, identity);
  }
  const auto found = read_choices(path, identity, why);
  ASSERT_TRUE(found && found->size() == 1) << why;
  for (const char* name : {"nobody", "ways/refused", "ways/", "reference", "slow"}) {
    ASSERT_TRUE(add_choices(path, identity, {{found->begin()->first, name}}, why)) << why;
    EXPECT_EQ(taken(device(), "tan"), "ways") << name;
  }
}

TEST_F(Tuning, AFolderThatCannotBeWrittenIsNoError) {
  setenv("ANYMPS_TUNE_CACHE", "/dev/null/folder", 1);
  const DevicePtr device = this->device();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(taken(device, "neg"), "fast");
  EXPECT_EQ(taken(device, "neg"), "fast");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(device->choices().measured(), 1u);
}

// Convolutions in most of the ways in which the CPU driver computes them, and products.
std::unique_ptr<Graph> small_net() {
  auto graph = std::make_unique<Graph>();
  uint64_t seed = 1;
  const auto weights = [&](Shape shape) {
    Numbers numbers(static_cast<size_t>(element_count(shape)));
    for (float& number : numbers) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      number = (static_cast<float>(seed >> 40) * 0x1p-24f - 0.5f) * 0.2f;
    }
    return graph->constant(Constant::of(std::move(shape), numbers));
  };
  const NamedAttrs padded{{"pads", Ints{1, 1, 1, 1}}};
  Value* x = graph->input("x", DType::kF32, {1, 3, 28, 28});
  x = graph->add("conv", {x, weights({24, 3, 3, 3})}, padded);
  x = graph->add("conv", {x, weights({24, 1, 3, 3})}, {padded[0], {"groups", 24}});
  x = graph->add("conv", {x, weights({40, 24, 1, 1})});
  x = graph->add("relu", {graph->add("conv", {x, weights({32, 40, 3, 3})}, padded)});
  x = graph->add("max_pool", {x}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  x = graph->add("reshape", {x}, {{"shape", Ints{14, 448}}});
  graph->set_outputs({graph->add("matmul", {x, weights({448, 64})})});
  return graph;
}

Numbers result_of(const Graph& graph, int threads) {
  const auto device = std::make_shared<Device>(get_driver("cpu"), "cpu");
  Numbers x(3 * 28 * 28);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  std::vector<Tensor> results;
  Executable(device, graph, {.threads = threads})
      .run({tensor(*device, {1, 3, 28, 28}, x)}, results);
  return elements(*device, results[0]);
}

TEST_F(Tuning, NumbersOfTheCpuDriver) {
  const int before = ThreadPool::get().size();
  ThreadPool::get().resize(2);
  const auto graph = small_net();
  const Numbers tuned = result_of(*graph, 2), one = result_of(*graph, 1);
  EXPECT_EQ(files(), 2u);
  unsetenv("ANYMPS_TUNE");
  const Numbers usual = result_of(*graph, 1);
  ThreadPool::get().resize(before);
  EXPECT_EQ(tuned, one);  // the same bits
  ASSERT_EQ(tuned.size(), usual.size());
  float largest = 0;
  for (const float number : usual) largest = std::max(largest, std::abs(number));
  for (size_t i = 0; i < usual.size(); ++i) ASSERT_NEAR(tuned[i], usual[i], 1e-5 * largest) << i;
}

}  // namespace
}  // namespace anymps
