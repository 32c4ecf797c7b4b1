// SPDX-License-Identifier: Apache-2.0
// Converters of operators outside delegates: that none of torch's core set is forgotten, and calls
// that are put together by hand, with numbers from torch.
#include "importers/executorch/kernel_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <span>

#include "drivers/elements.h"
#include "importers/executorch/operator_names.h"
#include "importers/onnx/run.h"

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

// A call in the making: arguments in their order, tensors as inputs of a graph.
class Call {
 public:
  explicit Call(std::string op) { call_.op = std::move(op); }

  Call& value(EValue value) {
    call_.args.push_back(add(std::move(value)));
    return *this;
  }
  Call& none() { return value(None{}); }
  Call& i(int64_t number) { return value(number); }
  Call& f(double number) { return value(number); }
  Call& b(bool flag) { return value(flag); }
  Call& ints(const Ints& numbers) {
    IntList list;
    for (const int64_t number : numbers) list.items.push_back(add(number));
    return value(std::move(list));
  }
  Call& in(const HostTensor& tensor, Dims shape = {}) {
    feeds_.push_back(tensor);
    call_.args.push_back(input(tensor, std::move(shape)));
    return *this;
  }
  Call& list(const std::vector<HostTensor>& tensors) {
    TensorList items;
    for (const HostTensor& tensor : tensors) {
      feeds_.push_back(tensor);
      items.items.push_back(input(tensor, {}));
    }
    return value(std::move(items));
  }
  // A number that an instruction before this one computes: the extent of an input.
  Call& extent(int64_t size) {
    feeds_.push_back(HostTensor::of<float>({size}, std::vector<float>(static_cast<size_t>(size))));
    const std::string name = "N" + std::to_string(feeds_.size());
    const int32_t of = input(feeds_.back(), {Dim::symbol(name)}), size_id = add(int64_t{0});
    KernelCall sym{"aten::sym_size.int", {of, add(int64_t{0}), size_id}};
    convert_kernel(graph_, method_, sym, current_, "size");
    call_.args.push_back(size_id);
    return *this;
  }
  // The same, of the kind that the number has: an Int as an extent, a Double as its half.
  Call& computed(double number, bool is_double) {
    if (!is_double) return extent(static_cast<int64_t>(number));
    extent(static_cast<int64_t>(number * 2));
    const int32_t half = add(0.0);
    KernelCall divide{"executorch_prim::truediv.Scalar",
                      {call_.args.back(), add(int64_t{2}), half}};
    convert_kernel(graph_, method_, divide, current_, "half");
    call_.args.back() = half;
    return *this;
  }
  Call& number_out() {
    outs_.push_back(add(int64_t{0}));
    return *this;
  }
  // The size of an input along an axis, in a list with other numbers.
  Call& size_in_list(size_t of, int64_t axis, const Ints& others) {
    const int32_t size = add(int64_t{0});
    KernelCall sym{"aten::sym_size.int", {call_.args.at(of), add(axis), size}};
    convert_kernel(graph_, method_, sym, current_, "size");
    IntList list;
    list.items.push_back(size);
    for (const int64_t number : others) list.items.push_back(add(number));
    return value(std::move(list));
  }
  Call& out(DType dtype, Ints sizes, bool dynamic = false) {
    Tensor tensor;
    tensor.dtype = dtype;
    tensor.sizes = std::move(sizes);
    if (dynamic) tensor.dynamism = Tensor::Dynamism::kBound;
    outs_.push_back(add(tensor));
    call_.args.push_back(outs_.back());
    return *this;
  }

  std::vector<HostTensor> run() {
    if (outs_.size() == 1)
      call_.args.push_back(outs_[0]);
    else
      call_.args.push_back(add(TensorList{outs_}));
    convert_kernel(graph_, method_, call_, current_, "call");
    result_ = current_.at(static_cast<size_t>(outs_.at(0)));
    Values outputs;
    for (const int32_t out : outs_)
      outputs.push_back(graph_.add("identity", {current_.at(static_cast<size_t>(out))}));
    graph_.set_outputs(outputs);
    return run_graph(graph_, feeds_);
  }

  const Value* result() const { return result_; }

 private:
  int32_t add(EValue value) {
    method_.values.push_back(std::move(value));
    current_.push_back(nullptr);
    return static_cast<int32_t>(method_.values.size()) - 1;
  }
  int32_t input(const HostTensor& host, Dims shape) {
    Tensor tensor;
    tensor.dtype = host.dtype;
    tensor.sizes.assign(host.shape.begin(), host.shape.end());
    const int32_t id = add(tensor);
    if (shape.empty()) shape = to_dims(host.shape);
    current_.back() = graph_.input("x" + std::to_string(id), host.dtype, std::move(shape));
    return id;
  }

  Graph graph_;
  Method method_;
  KernelCall call_;
  Values current_;
  std::vector<HostTensor> feeds_;
  std::vector<int32_t> outs_;
  const Value* result_ = nullptr;
};

HostTensor floats(Shape shape, std::vector<float> values) {
  return HostTensor::of(std::move(shape), values);
}
HostTensor longs(Shape shape, std::vector<int64_t> values) {
  return HostTensor::of(std::move(shape), values);
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
