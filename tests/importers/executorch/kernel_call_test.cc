// SPDX-License-Identifier: Apache-2.0
// Converters of operators outside delegates: that none of torch's core set is forgotten, and calls
// that are put together by hand, with numbers from torch.
#include "importers/executorch/kernel_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

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
  // The size of an input along an axis, as an instruction of its own would compute it.
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
    Values outputs;
    for (const int32_t out : outs_)
      outputs.push_back(graph_.add("identity", {current_.at(static_cast<size_t>(out))}));
    graph_.set_outputs(outputs);
    return run_graph(graph_, feeds_);
  }

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
};

HostTensor floats(Shape shape, std::vector<float> values) {
  return HostTensor::of(std::move(shape), values);
}
HostTensor longs(Shape shape, std::vector<int64_t> values) {
  return HostTensor::of(std::move(shape), values);
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

TEST(KernelCall, RefusesAListThatMustBeKnown) {
  Call call("aten::repeat.out");
  call.in(floats({2}, {1, 2}), {Dim::symbol("N")})
      .size_in_list(0, 0, {})
      .out(DType::kF32, {9}, true);
  try {
    call.run();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("argument 1 is computed while the program runs"),
              std::string::npos)
        << error.what();
  }
}

struct Bad {
  Code code;
  const char* says;
  std::function<void()> run;
};

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

}  // namespace
}  // namespace anymps::executorch
