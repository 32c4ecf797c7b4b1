// SPDX-License-Identifier: Apache-2.0
// The ops that frameworks call most never fall to the scalar reference kernel on the CPU, whatever
// the dtypes, strides and offsets of the generated cases.
#include "op_table/eager_attrs.h"
#include "op_table/op_cases.h"
#include "runtime/device.h"
#include "runtime/eager/eager.h"

namespace anymps::testing {
namespace {

constexpr const char* kMostUsed[] = {
    "add",        "sub",         "mul",         "div",        "pow",         "min",
    "max",        "neg",         "abs",         "exp",        "log",         "sqrt",
    "rsqrt",      "square",      "reciprocal",  "tanh",       "sigmoid",     "relu",
    "gelu",       "silu",        "leaky_relu",  "elu",        "softplus",    "hard_swish",
    "clamp",      "where",       "cast",        "identity",   "equal",       "not_equal",
    "less",       "greater",     "logical_and", "logical_or", "logical_not", "sign",
    "floor",      "ceil",        "round",       "sin",        "cos",         "erf",
    "reduce_sum", "reduce_mean", "reduce_max",  "reduce_min", "softmax",     "log_softmax",
    "layer_norm", "batch_norm",  "group_norm",  "matmul",     "conv",        "max_pool",
    "avg_pool",   "concat",      "gather",      "scatter",    "transpose",   "reshape",
    "slice",      "pad",         "expand",      "stack",      "split",       "cumsum",
    "sort",       "top_k",       "arg_max",     "arg_min",    "sdpa",        "dropout",
};

// What frameworks do not ask for: a part of the op's name and the case's label, and why the
// reference serves it.
constexpr const char* kLeftOut[][2] = {
    {"string", "strings are compared one by one"},
    {" to_f8", "narrow types are for storage"},
    {" to_f4", "the same"},
    {" to_i4", "the same"},
    {" to_u4", "the same"},
    {" to_i2", "the same"},
    {" to_u2", "the same"},
    {"max_pool i", "whole numbers"},
    {"max_pool u", "the same"},
    {"max_pool f32 4d", "windows of four axes, with positions"},
    {"max_pool f16 4d", "the same"},
    {"max_pool bf16 4d", "the same"},
    {"max_pool f64 4d", "the same"},
    {"local", "positions within a window, or counted by MPSGraph's other rules"},
    {"sdpa f64", "attention in double has no kernel yet"},
    {"column_major", "positions in ONNX's other order"},
    {"axis_input", "an axis that is a tensor is not known when the kernel is made"},
    {"no inner", "a product over nothing is zeros and a bias"},
    {"no keys", "attention to nothing is zeros"},
    {"channels_last", "positions of maxima, and f64, in the attribute's channels-last layout"},
};

bool left_out(const std::string& label) {
  for (const auto& [part, why] : kLeftOut)
    if (label.find(part) != std::string::npos) return true;
  return false;
}

class MostUsed : public ::testing::TestWithParam<const char*> {};

TEST_P(MostUsed, HasAKernelForEveryCase) {
  const Op* op = &get_op(GetParam());
  const DevicePtr device = Device::get("cpu");
  device->eager().reset_counts();
  std::string first;
  size_t cases = 0, slow = 0;
  for_each_case(*op, [&](OpCase& item) {
    if (left_out(op->name + " " + item.label)) return;
    std::vector<TensorView> inputs;
    for (auto& input : item.inputs)
      inputs.push_back(input ? TensorView{input->ptr(), input->desc().shape.data(),
                                          input->desc().strides.data(), input->dtype(),
                                          static_cast<int32_t>(input->desc().rank())}
                             : TensorView());
    const BoundOp bound(*op, eager_attrs(item.attrs));
    std::vector<TestTensor> results;
    try {
      device->eager().infer(
          bound, inputs, item.outputs, device->queue(),
          [&](size_t, const TensorDesc& desc) { results.emplace_back(desc.dtype, desc.shape); });
      std::vector<TensorView> outputs;
      for (TestTensor& result : results)
        outputs.push_back({result.ptr(), result.desc().shape.data(), nullptr, result.dtype(),
                           static_cast<int32_t>(result.desc().rank())});
      device->eager().call(bound, inputs, outputs, device->queue());
    } catch (const Error&) {
      return;
    }
    ++cases;
    const uint64_t now = device->eager().counts()[op->name].reference;
    if (now == 0) return;
    device->eager().reset_counts();
    ++slow;
    if (first.empty()) first = item.label;
  });
  EXPECT_EQ(slow, 0u) << "of " << cases << " cases of " << op->name << "; the first: " << first;
}

INSTANTIATE_TEST_SUITE_P(Ops, MostUsed, ::testing::ValuesIn(kMostUsed),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace anymps::testing
