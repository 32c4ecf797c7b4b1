// SPDX-License-Identifier: Apache-2.0
// Recurrent layers with packed weights against the reference: units and sequences that do and do
// not fill a tile, every option, lengths in any order, and the bits on several threads.
#include <algorithm>
#include <cmath>

#include "against_reference.h"
#include "base/thread_pool.h"
#include "drivers/cpu/layers/recurrent/recurrent_bytes.h"

namespace anymps {
namespace {

using testing::inputs_of;
using testing::KernelCase;
using testing::TestTensor;

struct Layer {
  const char* op;
  int64_t hidden = 5, batch = 2, steps = 4, width = 3;
  const char* direction = "forward";
  bool linear = false, lengths = false, states = false, bias = true, batch_first = false;
  double clip = 0;
  bool peephole = false, input_forget = false, torch_order = false, dynamic = false;
  const char* activation = "tanh";  // of rnn
};

KernelCase make_case(const Layer& l) {
  const std::string op = l.op;
  const int64_t gates = op == "lstm" ? 4 : op == "gru" ? 3 : 1, rows = gates * l.hidden;
  const int64_t d = l.direction == std::string("bidirectional") ? 2 : 1;
  const auto random = [](Shape shape, uint64_t seed, double bound) {
    return TestTensor(DType::kF32, std::move(shape)).fill(seed, -bound, bound);
  };
  const Shape state = l.batch_first ? Shape{l.batch, d, l.hidden} : Shape{d, l.batch, l.hidden};
  KernelCase test{l.op, "packed", {}, {}, op == "lstm" ? size_t{3} : size_t{2}, {1, 2, 3}};
  test.inputs = {
      random(l.batch_first ? Shape{l.batch, l.steps, l.width} : Shape{l.steps, l.batch, l.width}, 1,
             1),
      random({d, rows, l.width}, 2, 0.5),
      // Larger ones make an rnn of many units chaotic.
      random({d, rows, l.hidden}, 3, 1.2 / std::sqrt(l.hidden + 8))};
  test.inputs.resize(op == "lstm" ? 8 : 6);
  if (l.bias) test.inputs[3] = random({d, 2 * rows}, 4, 0.5);
  if (l.lengths) {
    std::vector<double> lengths;
    for (int64_t n = 0; n < l.batch; ++n)
      lengths.push_back(static_cast<double>((n * 67 + l.steps - 1) % (l.steps + 1)));
    test.inputs[4] = TestTensor(DType::kI32, {l.batch}, lengths);
  }
  if (l.states) {
    test.inputs[5] = random(state, 5, 1);
    if (op == "lstm") test.inputs[6] = random(state, 6, 1);
  }
  if (l.peephole) test.inputs[7] = random({d, 3 * l.hidden}, 7, 1);
  test.attrs = {{"hidden_size", l.hidden},
                {"direction", l.direction},
                {"clip", l.clip},
                {"layout", l.batch_first ? 1 : 0}};
  if (op == "lstm") test.attrs.push_back({"input_forget", l.input_forget});
  if (l.dynamic) test.attrs.push_back({"dynamic_bytes", true});
  if (op != "rnn") test.attrs.push_back({"gate_order", l.torch_order ? "torch" : "onnx"});
  if (op == "gru") test.attrs.push_back({"linear_before_reset", l.linear});
  if (op == "rnn") test.attrs.push_back({"activation", l.activation});
  return test;
}

void check(const Layer& l, double tolerance = 2e-5) {
  SCOPED_TRACE(fmt::format("{} hidden {} batch {} steps {} width {} {} lengths {} first {}", l.op,
                           l.hidden, l.batch, l.steps, l.width, l.direction, l.lengths,
                           l.batch_first));
  testing::expect_same(make_case(l), tolerance);
}

// The layers, gru twice.
const Layer kLayers[] = {{"lstm"}, {"gru"}, {.op = "gru", .linear = true}, {"rnn"}};

TEST(CpuRecurrentPacked, Extents) {
  for (Layer l : kLayers)
    for (const int64_t hidden : {1, 4, 15, 16, 17, 48, 67, 130})
      for (const int64_t batch : {1, 2, 3, 4, 5, 7, 8, 13, 30}) {
        l.hidden = hidden;
        l.batch = batch;
        check(l);
      }
}

TEST(CpuRecurrentPacked, ManySteps) {  // several spans of the projection
  for (Layer l : kLayers) {
    l.width = 19;
    for (const int64_t hidden : {20, 96})
      for (const int64_t batch : {1, 3}) {
        l.hidden = hidden;
        l.batch = batch;
        l.steps = 150;
        for (const bool lengths : {false, true}) {
          l.lengths = lengths;
          for (const char* direction : {"forward", "reverse"}) {
            l.direction = direction;
            check(l, 2e-4);
          }
        }
      }
  }
}

TEST(CpuRecurrentPacked, Options) {
  for (Layer l : kLayers)
    for (const char* direction : {"forward", "reverse", "bidirectional"})
      for (int options = 0; options < 32; ++options) {
        l.direction = direction;
        l.batch = 5;
        l.hidden = 18;
        l.lengths = options & 1;
        l.states = options & 2;
        l.bias = options & 4;
        l.batch_first = options & 8;
        l.clip = options & 16 ? 0.4 : 0;
        const bool lstm = l.op == std::string("lstm");
        l.peephole = lstm && (options & 3) == 1;
        l.input_forget = lstm && (options & 9) == 8;
        l.torch_order = (options & 6) == 6;
        check(l);
      }
}

TEST(CpuRecurrentPacked, ActivationsOfRnn) {
  for (const char* activation : {"tanh", "sigmoid", "relu"})
    check({.op = "rnn", .hidden = 21, .direction = "bidirectional", .activation = activation});
}

TEST(CpuRecurrentPacked, Views) {
  for (Layer l : kLayers) {
    l.states = l.lengths = true;
    l.direction = "bidirectional";
    KernelCase test = make_case(l);
    for (const size_t i : {0u, 4u, 5u, 6u})
      if (i < test.inputs.size() && test.inputs[i])
        test.inputs[i] = testing::spread(*test.inputs[i]);
    testing::expect_same(std::move(test), 2e-5);
  }
}

TEST(CpuRecurrentPacked, SamplesAndHalves) {
  for (const char* name : {"lstm", "gru", "rnn"})
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      const Op& op = get_op(name);
      size_t served = 0;
      for (const Sample& sample : op.test.samples) {
        SCOPED_TRACE(std::string(name) + " " + sample.label);
        KernelCase test{name,         "packed",          inputs_of(op, sample, dtype),
                        sample.attrs, op.main_outputs(), {1, 2, 3}};
        const auto result = testing::run_cpu_kernel(test);
        if (!result.kernel) {
          EXPECT_TRUE(result.why == "other activations" || result.why == "no steps or no sequences")
              << result.why;
          continue;
        }
        ++served;
        const auto expected = testing::expected_of(test);
        for (size_t i = 0; i < expected.size(); ++i)
          EXPECT_TRUE(same(result.outputs[i], expected[i], op.test.tolerance.of(dtype)))
              << "output " << i;
      }
      EXPECT_GE(served, op.test.samples.size() - 3);
    }
}

TEST(CpuRecurrentPacked, NanAndInfinity) {
  for (Layer l : kLayers)
    for (const double clip : {0.0, 0.5})
      for (const double special : {testing::kNan, testing::kInf}) {
        l.clip = clip;
        l.hidden = 7;
        KernelCase test = make_case(l);
        test.inputs[0]->put({1, 1, 0}, special);
        testing::expect_same(std::move(test), 2e-5);
      }
}

// Weights become multiples of a step: one for all, or one for each row.
KernelCase in_steps(const Layer& l, bool by_rows) {
  KernelCase test = make_case(l);
  for (const size_t input : {1u, 2u}) {
    TestTensor& weights = *test.inputs[input];
    auto* numbers = static_cast<float*>(weights.ptr());
    float most = 0;
    for (int64_t i = 0; i < weights.count(); ++i) most = std::max(most, std::abs(numbers[i]));
    for (int64_t i = 0; i < weights.count(); ++i) {
      const int64_t row = i / weights.shape().back();
      const float step = most / 127 * (by_rows ? 1 + 0.013f * static_cast<float>(row % 7) : 1);
      numbers[i] = std::clamp(std::nearbyint(numbers[i] / step), -128.0f, 127.0f) * step;
    }
  }
  return test;
}

void check_in_steps(const Layer& l, bool by_rows = false, double tolerance = 2e-5) {
  SCOPED_TRACE(fmt::format("{} hidden {} batch {} steps {} {} by rows {}", l.op, l.hidden, l.batch,
                           l.steps, l.direction, by_rows));
  KernelCase test = in_steps(l, by_rows);
  const bool bounded = l.activation != std::string("relu");
  EXPECT_EQ(testing::run_cpu_kernel(test).kernel->detail(),
            cpu::takes_byte_weights(l.hidden) && bounded ? "packed bytes" : "packed");
  testing::expect_same(std::move(test), tolerance);
}

TEST(CpuRecurrentPacked, WeightsInSteps) {
  for (Layer l : kLayers)
    for (const int64_t hidden : {5, 8, 15, 16, 33, 67, 130})
      for (const int64_t batch : {1, 2, 3, 7}) {
        l.hidden = hidden;
        l.batch = batch;
        l.direction = batch == 3 ? "bidirectional" : "forward";
        l.lengths = l.states = batch == 7;
        l.width = hidden % 3 == 0 ? 3 : 19;
        check_in_steps(l, hidden % 2 == 1);
      }
  check_in_steps({.op = "rnn", .hidden = 20, .activation = "relu"});
  check_in_steps({.op = "lstm", .hidden = 96, .batch = 1, .steps = 150}, true, 2e-4);
}

// States that are too large to be split, and that are no numbers.
TEST(CpuRecurrentPacked, WeightsInStepsAndOddStates) {
  for (Layer l : kLayers)
    for (const double special : {testing::kNan, testing::kInf, 1e4, 1e-38}) {
      l.hidden = l.width = 19;
      l.states = true;
      KernelCase test = in_steps(l, true);
      test.inputs[5]->put({0, 1, 3}, special);
      test.inputs[0]->put({2, 0, 5}, special);
      testing::expect_same(std::move(test), 2e-5);
    }
}

// In one step every byte is that of the reference. Later a state that lies half way between two
// bytes may become the other one.
TEST(CpuRecurrentPacked, DynamicBytes) {
  for (const bool in_bytes : {false, true})
    for (const int64_t steps : {1, 4})
      for (const int64_t hidden : {5, 8, 15, 16, 33, 67, 130})
        for (const int64_t batch : {1, 2, 3, 7, 14}) {
          Layer l{.op = "lstm", .hidden = hidden, .batch = batch, .steps = steps, .width = 19};
          l.direction = batch == 3 ? "bidirectional" : "forward";
          l.states = l.dynamic = true;
          l.lengths = batch == 7;
          l.batch_first = batch == 2;
          SCOPED_TRACE(
              fmt::format("hidden {} batch {} steps {} bytes {}", hidden, batch, steps, in_bytes));
          KernelCase test = in_bytes ? in_steps(l, hidden % 2 == 1) : make_case(l);
          test.inputs[5]->put({0, 0, 0}, 1.75);  // not what a state is
          const char* form =
              in_bytes && cpu::takes_byte_weights(hidden) ? "packed bytes" : "packed";
          EXPECT_EQ(testing::run_cpu_kernel(test).kernel->detail(), form);
          testing::expect_same(std::move(test), steps == 1 ? 2e-5 : 1e-2);
        }
}

TEST(CpuRecurrentPacked, DynamicBytesOfOddNumbers) {
  for (const double special : {testing::kNan, testing::kInf, 1e4, 1e-38, 0.0})
    for (const bool spread : {false, true}) {
      Layer l{.op = "lstm", .hidden = 19, .steps = 1, .width = 21};
      l.states = l.dynamic = true;
      KernelCase test = in_steps(l, true);
      if (special == 0) test.inputs[0]->fill(1, 0, 0);
      test.inputs[5]->put({0, 1, 3}, special);
      test.inputs[0]->put({0, 1, 5}, special);
      if (spread) test.inputs[0] = testing::spread(*test.inputs[0]);
      testing::expect_same(std::move(test), 2e-5);
    }
}

TEST(CpuRecurrentPacked, RefusesWrongLengths) {
  Layer l{"lstm"};
  l.lengths = true;
  KernelCase test = make_case(l);
  for (const double length : {-1.0, 5.0}) {
    test.inputs[4]->put({1}, length);
    EXPECT_THROW(testing::run_cpu_kernel(test), Error);
  }
}

TEST(CpuRecurrentPacked, SameBitsOnManyThreads) {
  ThreadPool::get().resize(8);
  std::vector<Layer> layers(std::begin(kLayers), std::end(kLayers));
  layers.push_back({.op = "lstm", .dynamic = true});
  for (Layer l : layers)
    for (const int64_t batch : {1, 21})
      for (const char* direction : {"forward", "bidirectional"}) {
        l.batch = batch;
        l.direction = direction;
        l.hidden = 250;  // a step is worth several threads
        l.steps = 6;
        KernelCase test = l.dynamic ? in_steps(l, true) : make_case(l);
        test.threads = 1;
        const auto one = testing::run_cpu_kernel(test);
        ASSERT_TRUE(one.kernel) << one.why;
        test.threads = 8;
        const auto many = testing::run_cpu_kernel(test);
        for (size_t i = 0; i < one.outputs.size(); ++i)
          EXPECT_EQ(std::memcmp(one.outputs[i].ptr(), many.outputs[i].ptr(),
                                one.outputs[i].desc().bytes()),
                    0)
              << l.op << " output " << i;
      }
}

}  // namespace
}  // namespace anymps
