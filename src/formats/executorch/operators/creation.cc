// SPDX-License-Identifier: Apache-2.0
// Operators of torch that make tensors of numbers, and random ones. Their dtype is the one that the
// program declares for the result.
#include <cmath>

#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

Value* filled(KernelArguments& c, Value* shape, Value* value) {
  return c.add("fill", {shape, value});
}

Values full(KernelArguments& c) { return {filled(c, c.shape(0), c.number(1, c.out()))}; }
Values zeros(KernelArguments& c) { return {filled(c, c.shape(0), c.graph.scalar(c.out(), 0))}; }
Values ones(KernelArguments& c) { return {filled(c, c.shape(0), c.graph.scalar(c.out(), 1))}; }

Values full_like(KernelArguments& c) {
  return {filled(c, c.add("shape", {c.tensor(0)}), c.number(1, c.out()))};
}

Values fill(KernelArguments& c) {
  Value* value = reshape(c, operand(c, 1, c.tensor(0)->dtype()), {});
  return {filled(c, c.add("shape", {c.tensor(0)}), value)};
}

Values scalar_tensor(KernelArguments& c) { return {c.number(0, c.out())}; }

// start + i * step, of fractions in double as torch does, so that no error adds up. Start and step
// may be left out.
Value* arange(KernelArguments& c, std::optional<size_t> start, size_t end,
              std::optional<size_t> step) {
  const auto number = [&](std::optional<size_t> i, double otherwise, DType dtype) {
    return i ? c.number(*i, dtype) : c.graph.scalar(dtype, otherwise);
  };
  const auto is_double = [&](std::optional<size_t> i) { return i && is_float(c.number_dtype(*i)); };
  if (!is_double(start) && !is_double(end) && !is_double(step)) {
    const DType i64 = DType::kI64;
    return c.cast(
        c.add("range", {number(start, 0, i64), number(end, 0, i64), number(step, 1, i64)}),
        c.out());
  }
  const double first = start ? c.f(*start) : 0, by = step ? c.f(*step) : 1;
  c.check(by != 0, "the step is 0");
  const double count = std::ceil((c.f(end) - first) / by);
  c.check(count >= 0 && count < 9e15, "{} numbers from {} to {}", count, first, c.f(end));
  if (!is_float(c.out())) {
    // Integers are cut off before they are added.
    c.check(std::trunc(by) == by && std::trunc(first) == first,
            "integers from {} in steps of {} are not supported", first, by);
  }
  Value* places = numbers_to(c, c.integer(static_cast<int64_t>(count), DType::kI64));
  places = c.cast(places, DType::kF64);
  Value* numbers = with_scalar(c, "add", with_scalar(c, "mul", places, by), first);
  return c.cast(numbers, c.out());
}

Values arange_end(KernelArguments& c) { return {arange(c, std::nullopt, 0, std::nullopt)}; }
Values arange_start(KernelArguments& c) { return {arange(c, 0, 1, 2)}; }

// Other numbers in every run.
Value* random(KernelArguments& c, Value* shape, DType dtype, const char* distribution) {
  return c.add("random", {c.add("random_state", {}), shape},
               {{"dtype", dtype}, {"distribution", distribution}});
}

Values rand(KernelArguments& c) { return {random(c, c.shape(0), c.out(), "uniform")}; }
Values randn(KernelArguments& c) { return {random(c, c.shape(0), c.out(), "normal")}; }

Values randperm(KernelArguments& c) {
  Value* count = reshape(c, c.number(0, DType::kI64), {1});
  Value* keys = random(c, count, DType::kF64, "uniform");
  return {c.cast(c.add("argsort", {keys}, {{"axis", 0}}), c.out())};
}

// p is the share that is dropped; without training nothing is.
Values native_dropout(KernelArguments& c) {
  Value* x = c.tensor(0);
  const double rate = c.f(1);
  c.check(rate >= 0 && rate <= 1, "p is {}", rate);
  Value* all = filled(c, c.add("shape", {x}), c.graph.scalar(DType::kBool, 1));
  if ((!c.is_none(2) && !c.b(2)) || rate == 0) return {x, all};
  if (rate == 1) return {with_scalar(c, "mul", x, 0), c.add("logical_not", {all})};
  return c.add_all("dropout", {x, c.add("random_state", {})}, {{"rate", rate}}, 2);
}

const KernelConverters kAtenCreate{
    {"aten::arange.out", arange_end},
    {"aten::arange.start_out", arange_start},
    {{"aten::empty.out", "aten::empty_strided.out", "aten::zeros.out",
      "dim_order_ops::_empty_dim_order.out"},
     zeros},
    {{"aten::fill.Scalar_out", "aten::fill.Tensor_out"}, fill},
    {"aten::full.out", full},
    {"aten::full_like.out", full_like},
    {"aten::native_dropout.out", native_dropout},
    {"aten::ones.out", ones},
    {"aten::rand.out", rand},
    {"aten::randn.out", randn},
    {"aten::randperm.out", randperm},
    {"aten::scalar_tensor.out", scalar_tensor},
};

}  // namespace

}  // namespace anymps::executorch
