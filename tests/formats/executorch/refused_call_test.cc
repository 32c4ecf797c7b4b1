// SPDX-License-Identifier: Apache-2.0
// Calls of operators that are refused, and what is said of them.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>

#include "formats/executorch/call.h"

namespace anymps::executorch {
namespace {

struct Bad {
  Code code;
  const char* says;
  std::function<void()> run;
};

void expect_refused(std::span<const Bad> cases) {
  for (const Bad& bad : cases) {
    try {
      bad.run();
      ADD_FAILURE() << bad.says;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), bad.code) << error.what();
      EXPECT_NE(std::string(error.what()).find(bad.says), std::string::npos) << error.what();
    }
  }
}

TEST(KernelCall, SaysWhatIsWrong) {
  const HostTensor one = floats({1}, {1});
  const Bad cases[] = {
      {Code::kUnsupported, "operator my::op.out is not known",
       [&] { Call("my::op.out").in(one).out(DType::kF32, {1}).run(); }},
      {Code::kUnsupported, "aten::resize_ is not supported: a tensor",
       [&] { Call("aten::resize_").in(one).out(DType::kF32, {1}).run(); }},
      {Code::kInvalidArgument, "has the shape [1], the program declares [2]",
       [&] { Call("aten::abs.out").in(one).out(DType::kF32, {2}).run(); }},
      {Code::kInvalidArgument, "is f32, the program declares i64",
       [&] { Call("aten::abs.out").in(one).out(DType::kI64, {1}).run(); }},
      {Code::kInvalidArgument, "argument 0 must be a Tensor, it is Int",
       [&] { Call("aten::abs.out").i(3).out(DType::kF32, {1}).run(); }},
      {Code::kInvalidArgument, "argument 4 is missing, there are 4",
       [&] { Call("aten::slice_copy.Tensor_out").in(one).i(0).out(DType::kF32, {1}).run(); }},
  };
  expect_refused(cases);
}

// What fuzzing found: scalars without the axis that is named, None among tensors, and sums that
// overflow.
TEST(KernelCall, OddArgumentsAreRefused) {
  const HostTensor scalar = floats({}, {1}), x = floats({2, 2}, {1, 2, 3, 4});
  const int64_t least = INT64_MIN, most = INT64_MAX;
  const Bad cases[] = {
      {Code::kInvalidArgument, "axis 0 is out of range for rank 0",
       [&] { Call("aten::select_copy.int_out").in(scalar).i(0).i(0).out(DType::kF32, {}).run(); }},
      {Code::kInvalidArgument, "the input is a scalar and has no channels",
       [&] {
         Call("quantized_decomposed::quantize_per_channel.out")
             .in(scalar)
             .in(floats({1}, {1}))
             .in(longs({1}, {0}))
             .i(0)
             .i(-128)
             .i(127)
             .i(1)
             .out(DType::kI8, {})
             .run();
       }},
      {Code::kInvalidArgument, "a tensor of the list is None",
       [&] {
         Call("aten::stack.out").value(TensorList{{-1}}).i(0).out(DType::kF32, {1, 2}).run();
       }},
      {Code::kInvalidArgument, "elements from 1 on",
       [&] {
         Call("aten::narrow_copy.out").in(x).i(0).i(1).i(most).out(DType::kF32, {2, 2}).run();
       }},
      {Code::kInvalidArgument, "the window has the number 9223372036854775807",
       [&] {
         Call("aten::avg_pool2d.out")
             .in(floats({1, 1, 2, 2}, {1, 2, 3, 4}))
             .ints({1, 1})
             .ints({1, 1})
             .ints({most, 0})
             .b(false)
             .b(true)
             .i(1)
             .out(DType::kF32, {1, 1, 2, 2})
             .run();
       }},
      {Code::kInvalidArgument, "the diagonal -9223372036854775808",
       [&] {
         Call("aten::diagonal_copy.out").in(x).i(least).i(0).i(1).out(DType::kF32, {0}).run();
       }},
  };
  expect_refused(cases);
  // -2^63 is even.
  const auto rolled =
      Call("aten::roll.out").in(x).ints({least}).ints({1}).out(DType::kF32, {2, 2}).run();
  EXPECT_EQ(rolled[0].values<float>(), x.values<float>());
}

// A few bytes of a file must not stand for minutes of work or gigabytes.
TEST(KernelCall, HugeNumbersAreRefused) {
  const HostTensor x = floats({1, 1, 3}, {1, 2, 3}), square = floats({1, 1, 1, 3}, {1, 2, 3});
  const int64_t many = int64_t{1} << 30;
  const auto upsample = [&](const char* op, int64_t size, double scale, const char* says) {
    return Bad{size < many ? Code::kInvalidArgument : Code::kUnsupported, says, [=] {
                 Call(op).in(x).ints({size}).f(scale).out(DType::kF32, {1, 1, size}).run();
               }};
  };
  const Bad cases[] = {
      {Code::kUnsupported, "1073741824 parts of an axis are more than 1024",
       [&] {
         Call("aten::_adaptive_avg_pool2d.out")
             .in(square)
             .ints({1, many})
             .out(DType::kF32, {1, 1, 1, many})
             .run();
       }},
      {Code::kUnsupported, "1073741824 points are more than 2048",
       [&] {
         Call("aten::_pdist_forward.out")
             .in(floats({1, 1}, {1}), {many, 1})
             .f(2)
             .out(DType::kF32, {many})
             .run();
       }},
      upsample("aten::upsample_nearest1d.out", many, 1.0, "an axis of 1073741824 elements, more"),
      upsample("aten::upsample_nearest1d.out", 6, 1e-320, "the factor of an axis is"),
  };
  expect_refused(cases);
}

}  // namespace
}  // namespace anymps::executorch
