// SPDX-License-Identifier: Apache-2.0
// Lines of a table, from their text to numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lowering/builder.h"
#include "lowering/functions.h"
#include "lowering/kernel.h"

namespace anymps::lowering {
namespace {

const amps_api& api() { return *amps_get_api(AMPS_ABI_VERSION); }

amps_device* device() {
  amps_device* device = nullptr;
  EXPECT_EQ(api().device_get("cpu", &device), AMPS_OK);
  return device;
}

struct Array {
  std::vector<float> numbers;
  std::vector<int64_t> dims, strides = {};
  amps_view view() {
    return {numbers.data(), dims.data(), strides.empty() ? nullptr : strides.data(), AMPS_F32,
            static_cast<int32_t>(dims.size())};
  }
};

Argument number(double value) { return {.kind = Argument::Kind::kFloat, .f = value}; }
Argument integer(int64_t value) { return {.kind = Argument::Kind::kInt, .i = value}; }

// Runs a row on arguments; its results one after the other.
std::vector<float> run(const Row& row, std::vector<Argument> arguments, size_t results = 1) {
  const Kernel kernel(row);
  const std::vector<Wanted> wanted(results, Wanted{true, AMPS_F32});
  const Prepared& prepared = kernel.prepare(api(), device(), arguments, wanted);
  std::vector<std::vector<float>> memory;
  std::vector<amps_view> views;
  for (const amps_type& type : prepared.results()) {
    int64_t count = 1;
    for (int32_t i = 0; i < type.rank; ++i) count *= type.dims[i];
    memory.emplace_back(count);
    views.push_back({memory.back().data(), type.dims, nullptr, type.dtype, type.rank});
  }
  prepared.run(arguments, views, nullptr);
  std::vector<float> all;
  for (const auto& part : memory) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(Lowering, OneOpAndComposition) {
  Array x{{1, 2, 3, 4}, {2, 2}};
  const amps_view view = x.view();
  EXPECT_EQ(run({"neg", "x", "neg(x)"}, {Argument::tensor(&view)}),
            (std::vector<float>{-1, -2, -3, -4}));
  EXPECT_EQ(run({"affine", "x ~a b", "x * a + b"}, {Argument::tensor(&view), number(2), number(1)}),
            (std::vector<float>{3, 5, 7, 9}));
  EXPECT_EQ(run({"two", "x", "s = reduce_sum(x, axes=[1], keep_dims=false); s, x - 1"},
                {Argument::tensor(&view)}, 2),
            (std::vector<float>{3, 7, 0, 1, 2, 3}));
}

TEST(Lowering, OperatorsBindAsUsual) {
  Array x{{3}, {1}};
  const amps_view view = x.view();
  const auto value = [&](const char* body) {
    return run({"row", "x", body}, {Argument::tensor(&view)})[0];
  };
  EXPECT_EQ(value("x + 2 * x - 1"), 8);
  EXPECT_EQ(value("-x * (x - 1) / 2"), -3);
  EXPECT_EQ(value("if(dim(x, 0) == 1, x + 1, x - 1)"), 4);
  EXPECT_EQ(value("like(x > 2, x) + like(x != 3, x)"), 1);
}

TEST(Lowering, Gradients) {
  Array x{{0.5f, -1}, {2}}, dy{{1, 2}, {2}};
  const amps_view views[] = {x.view(), dy.view()};
  const auto result = run({"tanh_grad", "x dy", "vjp(tanh(x), dy, x)"},
                          {Argument::tensor(&views[0]), Argument::tensor(&views[1])});
  for (size_t i = 0; i < 2; ++i) {
    const float t = std::tanh(x.numbers[i]);
    EXPECT_NEAR(result[i], dy.numbers[i] * (1 - t * t), 1e-6f);
  }
}

TEST(Lowering, ReshapesOfStridedInputs) {
  Array x{{1, 2, 3, 4, 5, 6}, {3, 2}, {1, 3}};  // columns first
  const amps_view view = x.view();
  EXPECT_EQ(run({"flat", "x", "neg(reshaped(x, [6]))"}, {Argument::tensor(&view)}),
            (std::vector<float>{-1, -4, -2, -5, -3, -6}));
  Array y{{1, 2, 3, 4}, {2, 2}};
  const amps_view plain = y.view();
  EXPECT_EQ(run({"flat", "x", "neg(reshaped(x, [4]))"}, {Argument::tensor(&plain)}),
            (std::vector<float>{-1, -2, -3, -4}));
}

TEST(Lowering, NumbersAtTheRunShareOneForm) {
  Array x{{1}, {1}};
  const amps_view view = x.view();
  const Row row{"scale", "x ~a", "x * a"};
  const Kernel kernel(row);
  const Wanted wanted;
  const auto prepared = [&](double a) {
    const Argument arguments[] = {Argument::tensor(&view), number(a)};
    return &kernel.prepare(api(), device(), arguments, {&wanted, 1});
  };
  EXPECT_EQ(prepared(2), prepared(3));
}

// Small kernels of several ops are called op by op. A result may lie where an argument does that a
// later op reads.
TEST(Lowering, ResultsOverArguments) {
  const Row row{"product_grad", "x y d", "d * y, d * x"};
  const Kernel kernel(row);
  const std::vector<Wanted> wanted(2);
  for (const int64_t count : {3, 100000}) {  // called, compiled
    for (int over = 0; over < 4; ++over) {
      Array x{std::vector<float>(count, 2), {count}}, y{std::vector<float>(count, 3), {count}},
          d{std::vector<float>(count, 5), {count}}, out{std::vector<float>(count), {count}};
      const amps_view views[] = {x.view(), y.view(), d.view()};
      const std::vector<Argument> arguments{
          Argument::tensor(&views[0]), Argument::tensor(&views[1]), Argument::tensor(&views[2])};
      const Prepared& prepared = kernel.prepare(api(), device(), arguments, wanted);
      const amps_view first = over < 3 ? views[over] : out.view();
      Array second{std::vector<float>(count), {count}};
      const amps_view outputs[] = {first, second.view()};
      prepared.run(arguments, outputs, nullptr);
      const auto* got = static_cast<const float*>(first.data);
      for (const int64_t i : {int64_t{0}, count - 1}) {
        EXPECT_EQ(got[i], 15) << count << " over " << over;
        EXPECT_EQ(second.numbers[i], 10) << count << " over " << over;
      }
    }
  }
}

TEST(Lowering, StepsWithMemoryBetweenThem) {
  Array x{{1, 2, 3, 4}, {2, 2}};
  const amps_view view = x.view();
  EXPECT_EQ(run({"steps", "x ~a", "s = reshaped(x * a, [4]); t = s + 1; reshaped(t * s, [2, 2])"},
                {Argument::tensor(&view), number(2)}),
            (std::vector<float>{6, 20, 42, 72}));
  // A value that is a result and is read again, and one that nobody wants.
  EXPECT_EQ(run({"again", "x", "s = x + 1; t = exp(x); s, s * 2"}, {Argument::tensor(&view)}, 2),
            (std::vector<float>{2, 3, 4, 5, 4, 6, 8, 10}));
}

// Whatever is forgotten is made again.
TEST(Lowering, ResultsOfAnyStrides) {
  const Row row{"neg", "x", "neg(x)"};
  const Kernel kernel(row);
  Array x{{1, 2, 3, 4}, {2, 2}}, plain{{0, 0, 0, 0}, {2, 2}}, columns{{0, 0, 0, 0}, {2, 2}, {1, 2}};
  const amps_view view = x.view();
  const Argument argument = Argument::tensor(&view);
  for (Array* y : {&plain, &columns, &plain}) {
    const amps_view to = y->view();
    const Wanted wanted;
    kernel.prepare(api(), device(), {&argument, 1}, {&wanted, 1})
        .run({&argument, 1}, {&to, 1}, nullptr);
  }
  EXPECT_EQ(plain.numbers, (std::vector<float>{-1, -2, -3, -4}));
  EXPECT_EQ(columns.numbers, (std::vector<float>{-1, -3, -2, -4}));
}

TEST(Lowering, MasksDoNotPassForIndices) {
  Array x{{1, 2, 3, 4}, {4}};
  const amps_view view = x.view();
  const bool flags[] = {true, false, false, true};
  const amps_view mask{const_cast<bool*>(flags), x.dims.data(), nullptr, AMPS_BOOL, 1};
  const Argument list{.kind = Argument::Kind::kTensors, .views = {&mask, 1}};
  const int64_t four[] = {4}, one[] = {1}, bytes[] = {4};
  const auto ints = [](std::span<const int64_t> numbers) {
    return Argument{.kind = Argument::Kind::kInts, .ints = numbers};
  };
  const std::vector<Argument> arguments{
      Argument::tensor(&view), list, ints(four), ints(one), ints(four), ints(bytes), integer(0)};
  EXPECT_EQ(
      run({"put", "x i extents strides index_dims index_strides offset",
           "put_elements_at(x, i, tensor(9.0, f32), extents, strides, index_dims, index_strides, "
           "offset)"},
          arguments),
      (std::vector<float>{9, 2, 3, 9}));
  EXPECT_THROW(run({"places", "x i extents strides index_dims index_strides offset",
                    "element_places(x, i, extents, strides, index_dims, index_strides, offset, "
                    "[4])"},
                   arguments),
               EngineError);
}

TEST(Lowering, MoreFormsThanAreKept) {
  const Row row{"shift", "x a", "x + a"};
  const Kernel kernel(row);
  const Wanted wanted;
  Array x{{1}, {1}}, y{{0}, {1}};
  const amps_view view = x.view(), to = y.view();
  for (int round = 0; round < 2; ++round) {
    for (int a = 0; a < 3000; ++a) {
      const Argument arguments[] = {Argument::tensor(&view), integer(a)};
      kernel.prepare(api(), device(), arguments, {&wanted, 1}).run(arguments, {&to, 1}, nullptr);
      ASSERT_EQ(y.numbers[0], static_cast<float>(a + 1));
    }
  }
}

std::string error_of(const Row& row, std::vector<Argument> arguments) {
  try {
    run(row, std::move(arguments));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Lowering, MistakesAreTold) {
  Array x{{1}, {1}};
  const amps_view view = x.view();
  const std::vector<Argument> given{Argument::tensor(&view)};
  EXPECT_NE(
      error_of({"k", "x", "nothing(x)"}, given).find("[k] there is no op or function 'nothing'"),
      std::string::npos);
  EXPECT_NE(error_of({"k", "x", "neg(y)"}, given).find("'y' is not known"), std::string::npos);
  EXPECT_NE(error_of({"k", "x", "neg(x"}, given).find("')' is expected"), std::string::npos);
  EXPECT_NE(error_of({"k", "x axis", "softmax(x, axis=x)"}, {given[0], integer(0)}).find("[k]"),
            std::string::npos);
  EXPECT_NE(error_of({"k", "x y", "add(x, y)"}, given).find("has 2 arguments, 1 given"),
            std::string::npos);
}

TEST(Lowering, NoFunctionHidesAnOp) {
  for (const auto& [name, function] : functions())
    EXPECT_EQ(api().op_find(name.c_str()), nullptr) << name;
}

}  // namespace
}  // namespace anymps::lowering
