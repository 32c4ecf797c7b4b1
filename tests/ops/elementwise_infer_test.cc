// SPDX-License-Identifier: Apache-2.0
// Records of the elementwise and reduction families: what is refused, and the shape arithmetic
// that inference does on known and symbolic elements.
#include "ops/infer.h"

#include <gtest/gtest.h>

#include <set>

#include "support/program.h"
#include "support/tensor.h"
#include "support/typed_infer.h"

namespace anymps::testing {
namespace {

ValueType type(DType dtype, Dims shape) { return {dtype, true, std::move(shape), std::nullopt}; }
ValueType vector_of(DType dtype, Dims content) {
  return {dtype, true, {static_cast<int64_t>(content.size())}, content};
}

// Messages do not name a node.
ValueType infer_unnamed(const char* name, const std::vector<ValueType>& inputs,
                        const NamedAttrs& attrs = {}) {
  const Op& op = get_op(name);
  std::vector<const ValueType*> pointers;
  for (const ValueType& input : inputs) pointers.push_back(&input);
  return InferContext::run(op, Attrs(op, attrs), pointers, 1, "")[0];
}
// The elements that inference knows.
std::string known(const char* name, const std::vector<ValueType>& inputs,
                  const NamedAttrs& attrs = {}) {
  const ValueType result = infer_unnamed(name, inputs, attrs);
  return result.content ? to_string(*result.content) : "unknown";
}

TEST(ElementwiseInfer, ShapesAndDtypes) {
  const ValueType f32 = type(DType::kF32, {N, 1, 3}), row = type(DType::kF32, {4, 1});
  EXPECT_EQ(to_string(infer_unnamed("add", {f32, row})), "f32[N, 4, 3]");
  EXPECT_EQ(to_string(infer_unnamed("less", {f32, row})), "bool[N, 4, 3]");
  EXPECT_EQ(to_string(infer_unnamed("exp", {type(DType::kF16, {})})), "f16[]");
  EXPECT_EQ(to_string(infer_unnamed("cast", {f32}, {{"dtype", DType::kI8}})), "i8[N, 1, 3]");
  EXPECT_EQ(to_string(infer_unnamed("where", {type(DType::kBool, {5, 1}), type(DType::kI8, {1, 2}),
                                              type(DType::kI8, {})})),
            "i8[5, 2]");
  ValueType unranked = type(DType::kF32, {});
  unranked.ranked = false;
  EXPECT_EQ(to_string(infer_unnamed("less", {unranked, row})), "bool[?]");
  EXPECT_EQ(to_string(infer_unnamed("cast", {unranked}, {{"dtype", DType::kI8}})), "i8[?]");
  EXPECT_EQ(to_string(infer_unnamed("make_complex", {unranked, unranked})), "c64[?]");
  EXPECT_EQ(to_string(infer_unnamed("complex_abs", {type(DType::kC128, {2})})), "f64[2]");
  EXPECT_EQ(to_string(infer_unnamed("fused_elementwise", {unranked, type(DType::kBool, {})},
                                    {{"program", program({{"where", {x(1), x(0), number(0)}}})}})),
            "f32[?]");
}

TEST(ElementwiseInfer, Refusals) {
  const ValueType f32 = type(DType::kF32, {2, 3}), i32 = type(DType::kI32, {2, 3});
  const ValueType c64 = type(DType::kC64, {2});
  const std::vector<std::pair<std::string, std::string>> cases = {
      {error_of([&] { infer_unnamed("add", {f32}); }), "[add] input 'b' is missing"},
      {error_of([&] {
         infer_unnamed("add", {f32, f32, f32});
       }),
       "[add] takes at most 2 inputs, 3 given"},
      {error_of([&] {
         infer_unnamed("add", {f32, i32});
       }),
       "[add] input 'b' is i32, but must have the same dtype as the inputs before it, f32"},
      {error_of([&] { infer_unnamed("exp", {i32}); }),
       "[exp] input 'x' is i32, must be one of {f32, f16, bf16, f64, c64, c128}"},
      {error_of([&] {
         infer_unnamed("add", {f32, type(DType::kF32, {4})});
       }),
       "[add] shapes [2, 3] and [4] do not broadcast"},
      {error_of([&] {
         infer_unnamed("logical_and", {f32, f32});
       }),
       "[logical_and] input 'a' is f32, must be one of {bool}"},
      {error_of([&] {
         infer_unnamed("where", {f32, f32, f32});
       }),
       "[where] input 'cond' is f32, must be one of {bool}"},
      {error_of([&] {
         infer_unnamed("div", {f32, f32}, {{"rounding", "up"}});
       }),
       "[div] attribute 'rounding' is 'up', must be one of none, trunc, floor"},
      {error_of([&] {
         infer_unnamed("div", {c64, c64}, {{"rounding", "floor"}});
       }),
       "[div] rounding 'floor' needs real inputs, they are c64"},
      {error_of([&] {
         infer_unnamed("elu", {f32}, {{"beta", 1.0}});
       }),
       "[elu] has no attribute 'beta'"},
      {error_of([&] {
         infer_unnamed("elu", {f32}, {{"alpha", "1"}});
       }),
       "[elu] attribute 'alpha' must be of kind float"},
      {error_of([&] { infer_unnamed("cast", {f32}); }), "[cast] attribute 'dtype' is required"},
      {error_of([&] {
         infer_unnamed("cast", {f32}, {{"dtype", 99}});
       }),
       "[cast] attribute 'dtype': 99 is not a dtype"},
      {error_of([&] {
         infer_unnamed("clamp", {f32}, {{"min", std::nan("")}});
       }),
       "[clamp] attribute 'min' must not be NaN"},
      {error_of([&] { infer_unnamed("softmax", {type(DType::kF32, {})}); }),
       "[softmax] axis -1 is out of range for rank 0"},
      {error_of([&] {
         infer_unnamed("cumsum", {f32}, {{"axis", -3}});
       }),
       "[cumsum] axis -3 is out of range for rank 2"},
  };
  for (const auto& [message, expected] : cases) EXPECT_EQ(message, expected);
}

TEST(ElementwiseInfer, KnownElements) {
  const ValueType a = vec({7, -7, 9}), b = vec({2, 2, -4});
  EXPECT_EQ(known("add", {a, b}), "[9, -5, 5]");
  EXPECT_EQ(known("sub", {a, b}), "[5, -9, 13]");
  EXPECT_EQ(known("mul", {a, b}), "[14, -14, -36]");
  EXPECT_EQ(known("div", {a, b}), "[3, -3, -2]");
  EXPECT_EQ(known("div", {a, b}, {{"rounding", "floor"}}), "[3, -4, -3]");
  EXPECT_EQ(known("mod", {a, b}), "[1, -1, 1]");
  EXPECT_EQ(known("floor_mod", {a, b}), "[1, 1, -3]");
  EXPECT_EQ(known("min", {a, b}), "[2, -7, -4]");
  EXPECT_EQ(known("max", {a, b}), "[7, 2, 9]");
  EXPECT_EQ(known("neg", {a}), "[-7, 7, -9]");
  EXPECT_EQ(known("identity", {a}), "[7, -7, 9]");
  EXPECT_EQ(known("equal", {a, vec({7, 7, 9})}), "[1, 0, 1]");
  EXPECT_EQ(known("less", {a, b}), "[0, 1, 0]");
  EXPECT_EQ(known("greater_equal", {a, b}), "[1, 0, 1]");
  EXPECT_EQ(known("where", {vector_of(DType::kBool, {1, 0, 1}), a, b}), "[7, 2, 9]");
  EXPECT_EQ(known("cast", {a}, {{"dtype", DType::kI32}}), "[7, -7, 9]");
  EXPECT_EQ(known("cast", {vec({0, 5})}, {{"dtype", DType::kBool}}), "[0, 1]");
  EXPECT_EQ(known("logical_not", {vector_of(DType::kBool, {1, 0})}), "[0, 1]");
  EXPECT_EQ(known("reduce_prod", {vec({2, 3, 4})}), "[24]");
  EXPECT_EQ(known("reduce_sum", {vec({2, N})}), "[2+N]");
}

TEST(ElementwiseInfer, SymbolicElements) {
  const ValueType shape = vec({N, 12});
  EXPECT_EQ(known("mul", {shape, vec({2})}), "[2*N, 24]");
  EXPECT_EQ(known("div", {shape, vec({2})}), "[N//2, 6]");
  EXPECT_EQ(known("sub", {shape, shape}), "[0, 0]");
  EXPECT_EQ(known("equal", {shape, shape}), "[1, 1]");
  EXPECT_EQ(known("equal", {shape, vec({-1, -1})}), "[0, 0]");
  EXPECT_EQ(known("greater", {shape, vec({-1, 3})}), "[1, 1]");
  EXPECT_EQ(known("equal", {shape, vec({4, 12})}), "unknown");
  EXPECT_EQ(known("div", {vec({N - 5}), vec({2})}), "unknown");
  EXPECT_EQ(known("where", {vector_of(DType::kBool, {0, 1}), vec({1, 1}), shape}), "[N, 1]");
}

TEST(ElementwiseInfer, BroadcastsElements) {
  ValueType column = type(DType::kI64, {2, 1});
  column.content = Dims{10, 20};
  EXPECT_EQ(known("add", {column, vec({1, 2, 3})}), "[11, 12, 13, 21, 22, 23]");
  ValueType scalar = type(DType::kI64, {});
  scalar.content = Dims{5};
  EXPECT_EQ(known("mul", {vec({1, 2}), scalar}), "[5, 10]");
}

TEST(ElementwiseInfer, SaysNothingWhereItDoesNotKnow) {
  const ValueType unknown = type(DType::kI64, {2});
  EXPECT_EQ(known("add", {vec({1, 2}), unknown}), "unknown");
  EXPECT_EQ(known("div", {vec({1}), vec({0})}), "unknown");
  EXPECT_EQ(known("add", {vec({INT64_MAX}), vec({1})}), "unknown");
  EXPECT_EQ(known("neg", {vec({INT64_MIN})}), "unknown");
  EXPECT_EQ(known("div", {vec({INT64_MIN}), vec({-1})}), "unknown");
  EXPECT_EQ(known("mod", {vec({INT64_MIN}), vec({-1})}), "[0]");
  EXPECT_EQ(known("reduce_prod", {vec({INT64_MAX, 2})}), "unknown");
  EXPECT_EQ(known("cast", {vec({int64_t{1} << 40})}, {{"dtype", DType::kI32}}), "unknown");
  EXPECT_EQ(known("cast", {vec({3})}, {{"dtype", DType::kF32}}), "unknown");
  const ValueType small = vector_of(DType::kI32, {INT32_MAX});
  EXPECT_EQ(known("add", {small, vector_of(DType::kI32, {1})}), "unknown");
}

TEST(ElementwiseInfer, Reductions) {
  const ValueType x = type(DType::kF32, {N, 3, 4});
  EXPECT_EQ(to_string(infer_unnamed("reduce_sum", {x})), "f32[1, 1, 1]");
  EXPECT_EQ(to_string(infer_unnamed("reduce_sum", {x}, {{"keep_dims", false}})), "f32[]");
  EXPECT_EQ(to_string(infer_unnamed("reduce_max", {x}, {{"axes", std::vector<int64_t>{0, -1}}})),
            "f32[1, 3, 1]");
  EXPECT_EQ(to_string(infer_unnamed("arg_max", {x}, {{"axis", 1}, {"keep_dims", false}})),
            "i64[N, 4]");
}

TEST(ElementwiseRecords, AreComplete) {
  const std::set<std::string> families = {"elementwise", "reduction"};
  std::set<std::string> selectors;
  size_t count = 0;
  for (const Op* op : all_ops()) {
    // Those of complex numbers cover selectors of the real ones once more.
    if (!families.contains(op->family) || op->file == "complex") continue;
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
