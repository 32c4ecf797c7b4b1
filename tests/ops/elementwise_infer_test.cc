// SPDX-License-Identifier: Apache-2.0
// Records of the elementwise and reduction families: what is refused, and the shape arithmetic
// that inference does on known and symbolic elements.
#include "ops/infer.h"

#include <gtest/gtest.h>

#include <set>

#include "support/tensor.h"

namespace anymps::testing {
namespace {

ValueType type(DType dtype, Dims shape) { return {dtype, true, std::move(shape), std::nullopt}; }
ValueType vector_of(DType dtype, Dims content) {
  return {dtype, true, {static_cast<int64_t>(content.size())}, content};
}
ValueType i64s(Dims content) { return vector_of(DType::kI64, std::move(content)); }

ValueType infer(const char* name, const std::vector<ValueType>& inputs,
                const NamedAttrs& attrs = {}) {
  const Op& op = get_op(name);
  std::vector<const ValueType*> pointers;
  for (const ValueType& input : inputs) pointers.push_back(&input);
  return InferContext::run(op, Attrs(op, attrs), pointers, 1, "")[0];
}
std::string content(const char* name, const std::vector<ValueType>& inputs,
                    const NamedAttrs& attrs = {}) {
  const ValueType result = infer(name, inputs, attrs);
  return result.content ? to_string(*result.content) : "unknown";
}

const Dim N = Dim::symbol("N");

TEST(ElementwiseInfer, ShapesAndDtypes) {
  const ValueType f32 = type(DType::kF32, {N, 1, 3}), row = type(DType::kF32, {4, 1});
  EXPECT_EQ(to_string(infer("add", {f32, row})), "f32[N, 4, 3]");
  EXPECT_EQ(to_string(infer("less", {f32, row})), "bool[N, 4, 3]");
  EXPECT_EQ(to_string(infer("exp", {type(DType::kF16, {})})), "f16[]");
  EXPECT_EQ(to_string(infer("cast", {f32}, {{"dtype", DType::kI8}})), "i8[N, 1, 3]");
  EXPECT_EQ(to_string(infer("where", {type(DType::kBool, {5, 1}), type(DType::kI8, {1, 2}),
                                      type(DType::kI8, {})})),
            "i8[5, 2]");
  ValueType unranked = type(DType::kF32, {});
  unranked.ranked = false;
  EXPECT_EQ(to_string(infer("less", {unranked, row})), "bool[?]");
  EXPECT_EQ(to_string(infer("cast", {unranked}, {{"dtype", DType::kI8}})), "i8[?]");
  EXPECT_EQ(to_string(infer("fused_elementwise", {unranked, type(DType::kBool, {})},
                            {{"program", "y=where(x1,x0,0)"}, {"dtype", DType::kF32}})),
            "f32[?]");
}

TEST(ElementwiseInfer, Refusals) {
  const ValueType f32 = type(DType::kF32, {2, 3}), i32 = type(DType::kI32, {2, 3});
  const ValueType c64 = type(DType::kC64, {2});
  const std::vector<std::pair<std::string, std::string>> cases = {
      {error_of([&] { infer("add", {f32}); }), "[add] input 'b' is missing"},
      {error_of([&] {
         infer("add", {f32, f32, f32});
       }),
       "[add] takes at most 2 inputs, 3 given"},
      {error_of([&] {
         infer("add", {f32, i32});
       }),
       "[add] input 'b' is i32, but must have the same dtype as the inputs before it, f32"},
      {error_of([&] { infer("exp", {i32}); }),
       "[exp] input 'x' is i32, must be one of {f32, f16, bf16, f64, c64}"},
      {error_of([&] {
         infer("add", {f32, type(DType::kF32, {4})});
       }),
       "[add] shapes [2, 3] and [4] do not broadcast"},
      {error_of([&] {
         infer("logical_and", {f32, f32});
       }),
       "[logical_and] input 'a' is f32, must be one of {bool}"},
      {error_of([&] {
         infer("where", {f32, f32, f32});
       }),
       "[where] input 'cond' is f32, must be one of {bool}"},
      {error_of([&] {
         infer("div", {f32, f32}, {{"rounding", "up"}});
       }),
       "[div] attribute 'rounding' is 'up', must be one of none, trunc, floor"},
      {error_of([&] {
         infer("div", {c64, c64}, {{"rounding", "floor"}});
       }),
       "[div] rounding 'floor' needs real inputs, they are c64"},
      {error_of([&] {
         infer("elu", {f32}, {{"beta", 1.0}});
       }),
       "[elu] has no attribute 'beta'"},
      {error_of([&] {
         infer("elu", {f32}, {{"alpha", "1"}});
       }),
       "[elu] attribute 'alpha' must be of kind float"},
      {error_of([&] { infer("cast", {f32}); }), "[cast] attribute 'dtype' is required"},
      {error_of([&] {
         infer("cast", {f32}, {{"dtype", 99}});
       }),
       "[cast] attribute 'dtype': 99 is not a dtype"},
      {error_of([&] {
         infer("clamp", {f32}, {{"min", std::nan("")}});
       }),
       "[clamp] attribute 'min' must not be NaN"},
      {error_of([&] { infer("softmax", {type(DType::kF32, {})}); }),
       "[softmax] axis -1 is out of range for rank 0"},
      {error_of([&] {
         infer("cumsum", {f32}, {{"axis", -3}});
       }),
       "[cumsum] axis -3 is out of range for rank 2"},
  };
  for (const auto& [message, expected] : cases) EXPECT_EQ(message, expected);
}

TEST(ElementwiseInfer, KnownElements) {
  const ValueType a = i64s({7, -7, 9}), b = i64s({2, 2, -4});
  EXPECT_EQ(content("add", {a, b}), "[9, -5, 5]");
  EXPECT_EQ(content("sub", {a, b}), "[5, -9, 13]");
  EXPECT_EQ(content("mul", {a, b}), "[14, -14, -36]");
  EXPECT_EQ(content("div", {a, b}), "[3, -3, -2]");
  EXPECT_EQ(content("div", {a, b}, {{"rounding", "floor"}}), "[3, -4, -3]");
  EXPECT_EQ(content("mod", {a, b}), "[1, -1, 1]");
  EXPECT_EQ(content("floor_mod", {a, b}), "[1, 1, -3]");
  EXPECT_EQ(content("min", {a, b}), "[2, -7, -4]");
  EXPECT_EQ(content("max", {a, b}), "[7, 2, 9]");
  EXPECT_EQ(content("neg", {a}), "[-7, 7, -9]");
  EXPECT_EQ(content("identity", {a}), "[7, -7, 9]");
  EXPECT_EQ(content("equal", {a, i64s({7, 7, 9})}), "[1, 0, 1]");
  EXPECT_EQ(content("less", {a, b}), "[0, 1, 0]");
  EXPECT_EQ(content("greater_equal", {a, b}), "[1, 0, 1]");
  EXPECT_EQ(content("where", {vector_of(DType::kBool, {1, 0, 1}), a, b}), "[7, 2, 9]");
  EXPECT_EQ(content("cast", {a}, {{"dtype", DType::kI32}}), "[7, -7, 9]");
  EXPECT_EQ(content("cast", {i64s({0, 5})}, {{"dtype", DType::kBool}}), "[0, 1]");
  EXPECT_EQ(content("logical_not", {vector_of(DType::kBool, {1, 0})}), "[0, 1]");
  EXPECT_EQ(content("reduce_prod", {i64s({2, 3, 4})}), "[24]");
  EXPECT_EQ(content("reduce_sum", {i64s({2, N})}), "[2+N]");
}

TEST(ElementwiseInfer, SymbolicElements) {
  const ValueType shape = i64s({N, 12});
  EXPECT_EQ(content("mul", {shape, i64s({2})}), "[2*N, 24]");
  EXPECT_EQ(content("div", {shape, i64s({2})}), "[N//2, 6]");
  EXPECT_EQ(content("sub", {shape, shape}), "[0, 0]");
  EXPECT_EQ(content("equal", {shape, shape}), "[1, 1]");
  EXPECT_EQ(content("equal", {shape, i64s({-1, -1})}), "[0, 0]");
  EXPECT_EQ(content("greater", {shape, i64s({-1, 3})}), "[1, 1]");
  EXPECT_EQ(content("equal", {shape, i64s({4, 12})}), "unknown");
  EXPECT_EQ(content("div", {i64s({N - 5}), i64s({2})}), "unknown");
  EXPECT_EQ(content("where", {vector_of(DType::kBool, {0, 1}), i64s({1, 1}), shape}), "[N, 1]");
}

TEST(ElementwiseInfer, BroadcastsElements) {
  ValueType column = type(DType::kI64, {2, 1});
  column.content = Dims{10, 20};
  EXPECT_EQ(content("add", {column, i64s({1, 2, 3})}), "[11, 12, 13, 21, 22, 23]");
  ValueType scalar = type(DType::kI64, {});
  scalar.content = Dims{5};
  EXPECT_EQ(content("mul", {i64s({1, 2}), scalar}), "[5, 10]");
}

TEST(ElementwiseInfer, SaysNothingWhereItDoesNotKnow) {
  const ValueType unknown = type(DType::kI64, {2});
  EXPECT_EQ(content("add", {i64s({1, 2}), unknown}), "unknown");
  EXPECT_EQ(content("div", {i64s({1}), i64s({0})}), "unknown");
  EXPECT_EQ(content("add", {i64s({INT64_MAX}), i64s({1})}), "unknown");
  EXPECT_EQ(content("neg", {i64s({INT64_MIN})}), "unknown");
  EXPECT_EQ(content("div", {i64s({INT64_MIN}), i64s({-1})}), "unknown");
  EXPECT_EQ(content("mod", {i64s({INT64_MIN}), i64s({-1})}), "[0]");
  EXPECT_EQ(content("reduce_prod", {i64s({INT64_MAX, 2})}), "unknown");
  EXPECT_EQ(content("cast", {i64s({int64_t{1} << 40})}, {{"dtype", DType::kI32}}), "unknown");
  EXPECT_EQ(content("cast", {i64s({3})}, {{"dtype", DType::kF32}}), "unknown");
  const ValueType small = vector_of(DType::kI32, {INT32_MAX});
  EXPECT_EQ(content("add", {small, vector_of(DType::kI32, {1})}), "unknown");
}

TEST(ElementwiseInfer, Reductions) {
  const ValueType x = type(DType::kF32, {N, 3, 4});
  EXPECT_EQ(to_string(infer("reduce_sum", {x})), "f32[1, 1, 1]");
  EXPECT_EQ(to_string(infer("reduce_sum", {x}, {{"keep_dims", false}})), "f32[]");
  EXPECT_EQ(to_string(infer("reduce_max", {x}, {{"axes", std::vector<int64_t>{0, -1}}})),
            "f32[1, 3, 1]");
  EXPECT_EQ(to_string(infer("arg_max", {x}, {{"axis", 1}, {"keep_dims", false}})), "i64[N, 4]");
}

TEST(ElementwiseRecords, AreComplete) {
  const std::set<std::string> families = {"arithmetic",         "comparison", "logic",
                                          "activation",         "cast",       "reduction",
                                          "elementwise_program"};
  std::set<std::string> selectors;
  size_t count = 0;
  for (const Op* op : all_ops()) {
    if (!families.contains(op->family)) continue;
    ++count;
    EXPECT_FALSE(op->doc.empty()) << op->name;
    EXPECT_FALSE(op->formula.empty()) << op->name;
    EXPECT_TRUE(op->infer) << op->name;
    EXPECT_TRUE(has_reference(*op)) << op->name;
    for (const std::string& selector : op->mps)
      EXPECT_TRUE(selectors.insert(selector).second) << op->name << ": " << selector;
  }
  EXPECT_GE(count, 96u);
}

}  // namespace
}  // namespace anymps::testing
