// SPDX-License-Identifier: Apache-2.0
// Converters of operators outside delegates: that none of torch's core set is forgotten, and calls
// that are put together by hand, with numbers from torch.
#include "formats/executorch/operators/kernel_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "formats/executorch/call.h"
#include "formats/executorch/operator_names.h"
#include "semantics/elements.h"

namespace anymps::executorch {
namespace {

bool is_refused(std::string_view op) {
  const auto refused = refused_kernels();
  return std::any_of(refused.begin(), refused.end(), [&](const KernelRefusal& refusal) {
    return refusal.op == op && !refusal.reason.empty();
  });
}

TEST(KernelTable, HasEveryCoreOperator) {
  size_t converted = 0;
  for (const auto& [name, kernel] : kCoreAten) {
    EXPECT_TRUE(find_kernel(kernel) || is_refused(kernel)) << name << " as " << kernel;
    converted += find_kernel(kernel) != nullptr;
  }
  EXPECT_EQ(std::size(kCoreAten), 193u);
  EXPECT_EQ(converted, 189u);
}

TEST(KernelTable, HasEveryKernelOfTheLibraries) {
  for (const std::string_view kernel : kLibraryKernels)
    EXPECT_TRUE(find_kernel(kernel) || is_refused(kernel)) << kernel;
}

TEST(KernelTable, RefusesNothingThatItConverts) {
  for (const KernelRefusal& refusal : refused_kernels())
    EXPECT_FALSE(find_kernel(refusal.op)) << refusal.op;
}

TEST(KernelTable, NamesAreSortedAndUnique) {
  const std::vector<std::string> names = supported_kernels();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

// What torch's schemas say of every operator; a name that is not in the list changes nothing.
TEST(KernelTable, ChangesTheArgumentsThatTheSchemasMark) {
  std::map<std::string, std::vector<size_t>> marked;
  std::ifstream file("tests/data/executorch/changed_arguments.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string op;
    words >> op;
    for (size_t i = 0; words >> i;) marked[op].push_back(i);
  }
  ASSERT_GT(marked.size(), 200u);
  for (const std::string& op : supported_kernels())
    EXPECT_EQ(find_kernel(op)->changes, marked[op]) << op;
}

void expect_near(const HostTensor& got, const std::vector<float>& want) {
  const std::vector<float> values = got.values<float>();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(values[i], want[i], 2e-6f * std::abs(want[i])) << "element " << i;
}

TEST(KernelCall, AddsWithAlpha) {
  const auto y = Call("aten::add.out")
                     .in(floats({3}, {1, 2, 3}))
                     .in(floats({1}, {10}))
                     .f(0.5)
                     .out(DType::kF32, {3})
                     .run();
  EXPECT_EQ(y[0].values<float>(), (std::vector<float>{6, 7, 8}));
}

TEST(KernelCall, PromotesAsTorchDoes) {
  // i64 with axes and a fraction: f32, as torch's default
  const auto y =
      Call("aten::mul.Scalar_out").in(longs({2}, {3, -4})).f(0.5).out(DType::kF32, {2}).run();
  EXPECT_EQ(y[0].values<float>(), (std::vector<float>{1.5, -2}));
}

TEST(KernelCall, DividesIntegersAsFractions) {
  const auto y = Call("aten::div.out")
                     .in(longs({2}, {3, -4}))
                     .in(longs({2}, {2, 8}))
                     .out(DType::kF32, {2})
                     .run();
  EXPECT_EQ(y[0].values<float>(), (std::vector<float>{1.5, -0.5}));
}

TEST(KernelCall, GivesSeveralResults) {
  const auto y = Call("aten::max.dim_max")
                     .in(floats({2, 3}, {1, 5, 5, -1, -3, -2}))
                     .i(-1)
                     .b(false)
                     .out(DType::kF32, {2})
                     .out(DType::kI64, {2})
                     .run();
  EXPECT_EQ(y[0].values<float>(), (std::vector<float>{5, -1}));
  EXPECT_EQ(y[1].values<int64_t>(), (std::vector<int64_t>{1, 0}));
}

TEST(KernelCall, ReshapesByASizeThatIsComputed) {
  const auto y =
      Call("aten::view_copy.out")
          .in(floats({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), {Dim::symbol("N"), 3, 2})
          .size_in_list(0, 0, {6})
          .out(DType::kF32, {9, 6}, true)
          .run();
  EXPECT_EQ(y[0].shape, (Shape{2, 6}));
}

struct Arithmetic {
  const char* op;
  std::vector<double> numbers;
  std::vector<bool> doubles;  // which of them are Doubles
  double result;
  DType dtype;
};

TEST(Numbers, AreComputed) {
  constexpr DType i64 = DType::kI64, f64 = DType::kF64, boolean = DType::kBool;
  const Arithmetic cases[] = {
      {"add", {3, 4}, {false, false}, 7, i64},
      {"add", {3, 4.5}, {false, true}, 7.5, f64},
      {"sub", {3, 4}, {false, false}, -1, i64},
      {"mul", {3, 4}, {false, false}, 12, i64},
      {"mul", {3, 1.5}, {false, true}, 4.5, f64},
      {"floordiv", {7, 2}, {false, false}, 3, i64},
      {"floordiv", {7, 1.5}, {false, true}, 4, f64},
      {"truediv", {7, 2}, {false, false}, 3.5, f64},
      {"mod", {7, 4}, {false, false}, 3, i64},
      {"neg", {7}, {false}, -7, i64},
      {"neg", {1.5}, {true}, -1.5, f64},
      {"ceil", {3.5}, {true}, 4, i64},
      {"round", {2.5}, {true}, 2, i64},
      {"round", {3.5}, {true}, 4, i64},
      {"trunc", {3.5}, {true}, 3, i64},
      {"sym_int", {3.5}, {true}, 3, i64},
      {"sym_int", {3}, {false}, 3, i64},
      {"sym_float", {3}, {false}, 3, f64},
      {"sym_max", {3, 4}, {false, false}, 4, i64},
      {"sym_min", {3, 4.5}, {false, true}, 3, f64},
      {"sym_not", {3}, {false}, 0, boolean},
      {"sym_ite", {1, 3, 4}, {false, false, false}, 3, i64},
      {"eq", {3, 4}, {false, false}, 0, boolean},
      {"ge", {4, 4}, {false, false}, 1, boolean},
      {"gt", {4, 4}, {false, false}, 0, boolean},
      {"le", {4, 4.5}, {false, true}, 1, boolean},
      {"lt", {4, 4}, {false, false}, 0, boolean},
  };
  for (const Arithmetic& one : cases)
    for (const bool known : {true, false}) {
      Call call(fmt::format("executorch_prim::{}.Scalar", one.op));
      for (size_t i = 0; i < one.numbers.size(); ++i) {
        if (!known)
          call.computed(one.numbers[i], one.doubles[i]);
        else if (one.doubles[i])
          call.f(one.numbers[i]);
        else
          call.i(static_cast<int64_t>(one.numbers[i]));
      }
      const HostTensor result = call.number_out().run()[0];
      EXPECT_EQ(result.dtype, one.dtype) << one.op;
      EXPECT_EQ(result.shape, Shape{}) << one.op;
      EXPECT_EQ(load_number(result.dtype, result.bytes.data()), one.result)
          << one.op << (known ? "" : " of what is computed");
      // What is known stays known, so that it can be a size.
      const bool told = call.result()->is_constant() || call.result()->type.content;
      EXPECT_TRUE(told || !known || one.dtype == f64) << one.op;
    }
}

TEST(Numbers, OfTensors) {
  EXPECT_EQ(Call("aten::sym_numel")
                .in(floats({2, 3}, {1, 2, 3, 4, 5, 6}))
                .number_out()
                .run()[0]
                .values<int64_t>(),
            std::vector<int64_t>{6});
  EXPECT_EQ(Call("aten::_local_scalar_dense")
                .in(floats({1, 1}, {2.5}))
                .number_out()
                .run()[0]
                .values<double>(),
            std::vector<double>{2.5});
  EXPECT_EQ(
      Call("aten::_local_scalar_dense").in(longs({}, {7})).number_out().run()[0].values<int64_t>(),
      std::vector<int64_t>{7});
}

TEST(KernelCall, ShapesThatDependOnElements) {
  const HostTensor x = floats({2, 3}, {0, 5, 0, -1, 0, 2});
  const HostTensor mask = HostTensor::of<uint8_t>({2, 3}, {0, 1, 0, 1, 0, 1});
  auto y = Call("aten::nonzero.out").in(x).out(DType::kI64, {6, 2}, true).run();
  EXPECT_EQ(y[0].shape, (Shape{3, 2}));
  EXPECT_EQ(y[0].values<int64_t>(), (std::vector<int64_t>{0, 1, 1, 0, 1, 2}));
  y = Call("aten::masked_select.out").in(x).in(mask).out(DType::kF32, {6}, true).run();
  EXPECT_EQ(y[0].values<float>(), (std::vector<float>{5, -1, 2}));
  y = Call("aten::index.Tensor_out").in(x).list({mask}).out(DType::kF32, {6}, true).run();
  EXPECT_EQ(y[0].values<float>(), (std::vector<float>{5, -1, 2}));
}

TEST(KernelCall, WritesInPlace) {
  const auto y = Call("aten::index_put_")
                     .in(floats({4}, {1, 2, 3, 4}))
                     .list({longs({2}, {3, 0})})
                     .in(floats({2}, {10, 20}))
                     .b(true)
                     .out(DType::kF32, {4})
                     .run();
  EXPECT_EQ(y[0].values<float>(), (std::vector<float>{21, 2, 3, 14}));
}

TEST(KernelCall, QuantizedProducts) {
  const HostTensor x = floats({1, 4}, {1, 2, 3, 4});
  const HostTensor rows = HostTensor::of<int8_t>({2, 4}, {1, 1, 2, 2, -1, 0, 3, 1});
  // Two groups in a row, each with a scale of its own.
  auto y = Call("quantized_decomposed::mixed_linear.out")
               .in(x)
               .in(rows)
               .in(floats({2, 2}, {0.5, 2, 1, 10}))
               .none()
               .none()
               .out(DType::kF32, {1, 2})
               .run();
  EXPECT_EQ(y[0].values<float>(), (std::vector<float>{29.5, 129}));
  y = Call("quantized_decomposed::mixed_mm.out")
          .in(floats({1, 2}, {3, 4}))
          .in(rows)
          .in(floats({2}, {0.5, 2}))
          .none()
          .out(DType::kF32, {1, 4})
          .run();
  EXPECT_EQ(y[0].values<float>(), (std::vector<float>{-6.5, 1.5, 27, 11}));
  const HostTensor bytes = HostTensor::of<int8_t>({3}, {10, -20, 127});
  y = Call("quantized_decomposed::add.out")
          .in(bytes)
          .f(0.5)
          .i(2)
          .i(-128)
          .i(127)
          .in(bytes)
          .f(0.25)
          .i(0)
          .i(-128)
          .i(127)
          .f(0.5)
          .i(1)
          .i(-128)
          .i(127)
          .out(DType::kI8, {3})
          .run();
  EXPECT_EQ(y[0].values<int8_t>(), (std::vector<int8_t>{14, -31, 127}));
}

TEST(KernelCall, AllClose) {
  const auto close = [](const HostTensor& a, const HostTensor& b, bool equal_nan) {
    return Call("aten::allclose.out")
        .in(a)
        .in(b)
        .f(1e-3)
        .f(1e-6)
        .b(equal_nan)
        .b(false)
        .out(DType::kBool, {})
        .run()[0]
        .values<uint8_t>()[0];
  };
  const float nan = std::nanf(""), inf = INFINITY;
  EXPECT_TRUE(close(floats({2}, {1, inf}), floats({2}, {1.0005f, inf}), false));
  EXPECT_FALSE(close(floats({2}, {1, inf}), floats({2}, {1, -inf}), false));
  EXPECT_FALSE(close(floats({1}, {1}), floats({1}, {1.01f}), false));
  EXPECT_FALSE(close(floats({1}, {nan}), floats({1}, {nan}), false));
  EXPECT_TRUE(close(floats({1}, {nan}), floats({1}, {nan}), true));
}

TEST(KernelCall, RandomNumbers) {
  const auto y = Call("aten::rand.out").ints({1000}).out(DType::kF32, {1000}).run()[0];
  double sum = 0;
  for (const float x : y.values<float>()) {
    EXPECT_TRUE(x >= 0 && x < 1) << x;
    sum += x;
  }
  EXPECT_NEAR(sum / 1000, 0.5, 0.06);
  auto order = Call("aten::randperm.out").i(50).out(DType::kI64, {50}).run()[0].values<int64_t>();
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(KernelCall, TakesListsThatAreComputed) {
  const HostTensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Dims open = {Dim::symbol("N"), 3};
  const auto y = Call("aten::repeat.out")
                     .in(x, open)
                     .size_in_list(0, 0, {1})
                     .out(DType::kF32, {9, 9}, true)
                     .run();
  EXPECT_EQ(y[0].shape, (Shape{4, 3}));
}

TEST(KernelCall, CountsToANumberThatIsComputed) {
  const auto y =
      Call("aten::arange.start_out").i(1).extent(5).i(2).out(DType::kF32, {9}, true).run()[0];
  EXPECT_EQ(y.values<float>(), (std::vector<float>{1, 3}));
}

TEST(KernelCall, RefusesAListThatMustBeKnown) {
  Call call("aten::roll.out");
  call.in(floats({2}, {1, 2}), {Dim::symbol("N")})
      .size_in_list(0, 0, {})
      .ints({0})
      .out(DType::kF32, {9}, true);
  try {
    call.run();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("of argument 1 is computed while the program runs"),
              std::string::npos)
        << error.what();
  }
}

// Numbers of ExecuTorch's own library. Two queries of two heads over a cache of six keys of one.
TEST(KernelCall, AttentionOverACache) {
  const HostTensor q = floats({1, 2, 2, 2}, {0, .125f, .25f, .375f, .5f, .625f, .75f, .875f});
  const HostTensor k =
      floats({1, 6, 1, 2}, {0, .2f, .4f, .6f, .8f, 1, 1.2f, 1.4f, 1.6f, 1.8f, 2, 2.2f});
  std::vector<float> falling;
  for (int i = 12; i > 0; --i) falling.push_back(static_cast<float>(i) / 3);
  const HostTensor v = floats({1, 6, 1, 2}, falling);
  const float never = -1e30f;
  const HostTensor mask = floats({2, 6}, {0, 1, never, 0, never, 2, 0, 0, 0, 0, 0, -1});
  const auto run = [&](int64_t start, bool computed, bool masked, bool causal, bool scaled) {
    Call call("llama::custom_sdpa.out");
    call.in(q).in(k).in(v);
    computed ? call.extent(start) : call.i(start);
    masked ? call.in(mask) : call.none();
    call.f(0).b(causal);
    scaled ? call.f(0.3) : call.none();
    return call.out(DType::kF32, {1, 2, 2, 2}).run()[0];
  };
  for (const bool computed : {false, true}) {
    expect_near(run(1, computed, false, true, false),
                {3.66077447f, 3.32744098f, 3.63728023f, 3.30394673f, 3.19424748f, 2.86091423f,
                 3.13593626f, 2.80260277f});
    expect_near(run(1, computed, false, false, false),
                {3.31762338f, 2.98428988f, 3.25517249f, 2.92183924f, 3.19424748f, 2.86091423f,
                 3.13593626f, 2.80260277f});
    expect_near(run(1, computed, true, false, false),
                {1.56333637f, 1.230003f, 1.26471674f, .93138343f, 2.02487206f, 1.69153857f,
                 1.82685769f, 1.49352431f});
    expect_near(run(2, computed, false, true, true),
                {3.32666683f, 2.99333358f, 3.30003095f, 2.96669769f, 2.88807702f, 2.55474353f,
                 2.83922553f, 2.50589204f});
  }
}

}  // namespace
}  // namespace anymps::executorch
