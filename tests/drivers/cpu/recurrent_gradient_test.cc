// SPDX-License-Identifier: Apache-2.0
// Gradients of recurrent layers and normalizations of odd layouts on the CPU against the reference:
// several threads, lengths, clipping, both directions, and what lies behind the end of a sequence.
#include <cmath>

#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

TestTensor unit_f32(Shape shape, uint64_t seed) {
  return random_f32(std::move(shape), seed, -1, 1);
}

constexpr int64_t kSteps = 7, kBatch = 5, kInput = 20, kHidden = 18;

struct Options {
  bool batch_first = false;
  const char* direction = "forward";
  double clip = 0;
};

// The layer's inputs, `states` states and `gradients` gradients of states behind that of y.
TestInputs layer(int64_t gates, size_t states, size_t gradients, const Options& o) {
  const int64_t d = o.direction == std::string("bidirectional") ? 2 : 1, rows = gates * kHidden;
  const Shape x = o.batch_first ? Shape{kBatch, kSteps, kInput} : Shape{kSteps, kBatch, kInput},
              state = o.batch_first ? Shape{kBatch, d, kHidden} : Shape{d, kBatch, kHidden},
              y = o.batch_first ? Shape{kBatch, kSteps, d, kHidden}
                                : Shape{kSteps, d, kBatch, kHidden};
  TestInputs inputs = {unit_f32(x, 1), random_f32({d, rows, kInput}, 2, -0.3, 0.3),
                       random_f32({d, rows, kHidden}, 3, -0.3, 0.3), unit_f32({d, 2 * rows}, 4),
                       TestTensor(DType::kI32, {kBatch}, {7, 0, 3, 6, 1})};
  for (size_t i = 0; i < states; ++i) inputs.emplace_back(unit_f32(state, 10 + i));
  if (gates == 4) inputs.emplace_back(random_f32({d, 3 * kHidden}, 5, -0.3, 0.3));
  inputs.emplace_back(unit_f32(y, 6));
  for (size_t i = 0; i < gradients; ++i) inputs.emplace_back(unit_f32(state, 20 + i));
  return inputs;
}

NamedAttrs layer_attrs(const Options& o) {
  return {{"hidden_size", kHidden},
          {"layout", o.batch_first ? 1 : 0},
          {"direction", o.direction},
          {"clip", o.clip}};
}

const Options kOptions[] = {
    {}, {true, "reverse", 0.4}, {false, "bidirectional", 0}, {true, "bidirectional", 0.4}};

TEST(CpuRecurrentGradient, Lstm) {
  for (const Options& o : kOptions)
    for (size_t outputs : {1, 7})
      expect_as_reference("lstm_gradient", layer(4, 2, 2, o), layer_attrs(o), 5e-5, outputs);
}

TEST(CpuRecurrentGradient, Gru) {
  for (const Options& o : kOptions)
    for (bool linear : {false, true}) {
      NamedAttrs attrs = layer_attrs(o);
      attrs.push_back({"linear_before_reset", linear});
      expect_as_reference("gru_gradient", layer(3, 1, 1, o), attrs, 5e-5, 5);
    }
}

TEST(CpuRecurrentGradient, Rnn) {
  for (const Options& o : kOptions)
    for (const char* activation : {"tanh", "relu", "sigmoid"}) {
      NamedAttrs attrs = layer_attrs(o);
      attrs.push_back({"activation", activation});
      expect_as_reference("rnn_gradient", layer(1, 1, 1, o), attrs, 5e-5, 5);
    }
}

TEST(CpuRecurrentGradient, NanBehindTheEndOfASequenceIsNotSeen) {
  TestInputs inputs = layer(3, 1, 1, {});
  float* x = static_cast<float*>(inputs[0]->ptr());
  for (int64_t i = 0; i < kInput; ++i) x[(kSteps - 1) * kBatch * kInput + kInput + i] = NAN;
  const Prepared prepared = prepare_cpu("gru_gradient", inputs, layer_attrs({}), 5);
  ASSERT_TRUE(prepared.kernel) << prepared.refusals;
  for (TestTensor& result : run(prepared, inputs)) {
    const float* values = static_cast<const float*>(result.ptr());
    for (int64_t i = 0; i < result.desc().count(); ++i) ASSERT_TRUE(std::isfinite(values[i]));
  }
}

// The layer's inputs alone.
TestInputs forward(int64_t gates, size_t states, const Options& o) {
  TestInputs inputs = layer(gates, states, 0, o);
  inputs.pop_back();
  return inputs;
}

TEST(CpuRecurrentPlain, LengthsClippingPeepholesAndWeightsOfTheRun) {
  for (const Options& o : kOptions) {
    NamedAttrs attrs = layer_attrs(o);
    attrs.push_back({"input_forget", o.batch_first});
    expect_as_reference("lstm", forward(4, 2, o), attrs, 1e-5, 3);
    attrs.back() = {"linear_before_reset", o.batch_first};
    expect_as_reference("gru", forward(3, 1, o), attrs, 1e-5, 2);
    attrs.back() = {"activation", "relu"};
    expect_as_reference("rnn", forward(1, 1, o), attrs, 1e-5, 2);
  }
  TestInputs inputs = forward(1, 1, {});
  *static_cast<int32_t*>(inputs[4]->ptr()) = 8;
  const Prepared prepared = prepare_cpu("rnn", inputs, layer_attrs({}));
  EXPECT_EQ(error_of([&] { run(prepared, inputs); }),
            "[rnn] seq_lens has the entry 8, must be 0 to 7");
}

// What the layer keeps, and the gradients from it: more sequences than a task has, several lengths.
TEST(CpuRecurrentReserve, ServesTheGradient) {
  const struct {
    const char* op;
    int64_t gates;
    size_t states, outputs;
    bool linear;
  } kLayers[] = {{"lstm", 4, 2, 3, false},
                 {"gru", 3, 1, 2, false},
                 {"gru", 3, 1, 2, true},
                 {"rnn", 1, 1, 2, false}};
  for (const auto& l : kLayers)
    for (const Options& o : kOptions) {
      SCOPED_TRACE(fmt::format("{} {} {}", l.op, o.direction, l.linear));
      NamedAttrs attrs = layer_attrs(o);
      if (l.gates > 1) attrs.push_back({"gate_order", "torch"});
      if (l.gates == 3) attrs.push_back({"linear_before_reset", l.linear});
      TestInputs inputs = forward(l.gates, l.states, o);
      if (l.gates == 4) inputs.pop_back();  // without peepholes
      expect_as_reference(l.op, inputs, attrs, 1e-5, l.outputs + 1);
      const TestTensor reserve = run_reference_all(l.op, inputs, attrs).back();
      TestInputs gradients = layer(l.gates, l.states, l.states, o);
      if (l.gates == 4) gradients[7] = std::nullopt;
      gradients.emplace_back(reserve);
      expect_as_reference((std::string(l.op) + "_gradient").c_str(), gradients, attrs, 5e-5, 5);
    }
}

TEST(CpuRandom, Bernoulli) {
  const TestTensor state = TestTensor(DType::kI32, {7}).fill(1, 0, 1000);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBool, DType::kI8})
    expect_as_reference("bernoulli", {random_f32({70, 91}, 2, 0, 1), state}, {{"dtype", dtype}});
}

TEST(CpuNormalizationPlain, ChannelsLastAndF64) {
  const std::vector<std::pair<const char*, NamedAttrs>> ops = {{"group_norm", {{"groups", 4}}},
                                                               {"instance_norm", {}}};
  for (const auto& [op, attrs] : ops)
    for (DType dtype : {DType::kF32, DType::kF16, DType::kF64}) {
      const TestTensor x = TestTensor(dtype, {3, 72, 9, 8}).fill(1, -3, 5);
      const Strides channels_last = {72 * 72, 1, 8 * 72, 72};
      const TestTensor gamma = TestTensor(dtype, {72}).fill(2),
                       beta = TestTensor(dtype, {72}).fill(3);
      const double tolerance = dtype == DType::kF16 ? 4e-3 : 1e-5;
      expect_as_reference(op, {x.with_strides(channels_last), gamma, beta}, attrs, tolerance);
      expect_as_reference(op, {x}, attrs, tolerance);
    }
  for (DType dtype : {DType::kF32, DType::kF64}) {
    const TestTensor x = TestTensor(dtype, {30, 20, 40}).fill(1, -3, 5).scrambled();
    const TestTensor gamma = TestTensor(dtype, {20, 40}).fill(2);
    expect_as_reference("layer_norm", {x, gamma, gamma}, {{"axis", 1}}, 1e-5, 3);
    expect_as_reference("rms_norm", {x, gamma}, {{"axis", 1}}, 1e-5);
  }
}

}  // namespace
}  // namespace anymps::testing
