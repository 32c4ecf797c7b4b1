// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

constexpr int64_t kDepth = 128, kColumns = 160;

struct Stored {
  DType dtype = DType::kU4;
  bool rows = true;  // [columns, depth], for transpose_b
  int64_t block = 32;
  bool zeros = false;
  double zero_point = 0;
  int64_t depth = kDepth, columns = kColumns;
  DType number = DType::kF32;
};

Value* dequantized(Graph& graph, const Stored& s) {
  const auto turned = [&](int64_t columns, int64_t depth) {
    return s.rows ? Shape{columns, depth} : Shape{depth, columns};
  };
  const bool is_signed = s.dtype == DType::kI4 || s.dtype == DType::kI8;
  const bool four = s.dtype == DType::kI4 || s.dtype == DType::kU4;
  const double most = is_signed ? (four ? 7 : 127) : (four ? 15 : 255);
  const double least = is_signed ? -most - 1 : 0;
  const int64_t blocks = s.block == 0 ? 1 : (s.depth + s.block - 1) / s.block;
  const Shape of_scale = s.block == 0 ? Shape{s.columns} : turned(s.columns, blocks);
  Value* w = weights(graph, "w", turned(s.columns, s.depth), least, most, s.dtype);
  Value* scale = weights(graph, "scale", of_scale, 0.01 / most, 0.1 / most, s.number);
  Value* zero = s.zeros ? weights(graph, "zero", of_scale, least, most, s.dtype) : nullptr;
  const int64_t axis = (s.block == 0) == s.rows ? 0 : 1;
  return graph.add(
      "dequantize", {w, scale, zero},
      {{"dtype", s.number}, {"axis", axis}, {"block_size", s.block}, {"zero_point", s.zero_point}});
}

// How many products with weights in few bits there are.
int products(const Stored& s) {
  Graph graph;
  Value* x = graph.input("x", s.number, {kN, Dim(3), Dim(s.depth)});
  Value* bias = weights(graph, "bias", {s.columns}, -1, 1, s.number);
  graph.set_outputs(
      {graph.add("matmul", {x, dequantized(graph, s), bias}, {{"transpose_b", s.rows}})});
  const int changes =
      rewrite(graph, {"few_bits_products"}, fusing(), s.number == DType::kF32 ? 2e-5 : 1e-2);
  const int found = count(graph, "weight_only_matmul");
  EXPECT_EQ(changes, found);
  EXPECT_EQ(count(graph, "matmul"), 1 - found) << to_text(graph);
  return found;
}

TEST(FewBitsProducts, EveryFormOfWeights) {
  for (const DType dtype : {DType::kU4, DType::kI4, DType::kU8, DType::kI8})
    for (const bool rows : {true, false})
      for (const int64_t block : {0, 32, 128})
        for (const bool zeros : {true, false}) {
          SCOPED_TRACE(
              fmt::format("{} rows {} block {} zeros {}", name(dtype), rows, block, zeros));
          EXPECT_EQ(products({.dtype = dtype, .rows = rows, .block = block, .zeros = zeros}), 1);
        }
  EXPECT_EQ(products({.zero_point = 8}), 1);
  EXPECT_EQ(products({.dtype = DType::kI8, .zero_point = -3}), 1);
  EXPECT_EQ(products({.zeros = true, .number = DType::kF16}), 1);
}

TEST(FewBitsProducts, WhatTheFormDoesNotHave) {
  EXPECT_EQ(products({.block = 48}), 0);                // the last block is a part of one
  EXPECT_EQ(products({.depth = 64, .columns = 8}), 0);  // so few that floats are as well
  EXPECT_EQ(products({.dtype = DType::kU2}), 0);
  EXPECT_EQ(products({.block = 1}), 0);  // two of 4 bits are in a byte
}

// They are products of integers.
TEST(FewBitsProducts, BytesByBytesAreLeft) {
  Graph graph;
  Value* x = graph.input("x", DType::kU8, {kN, Dim(kDepth)});
  Value* numbers = graph.add("dequantize", {x, graph.scalar(DType::kF32, 0.02)});
  Value* w = dequantized(graph, {.dtype = DType::kI8, .block = 0});
  graph.set_outputs({graph.add("matmul", {numbers, w}, {{"transpose_b", true}})});
  EXPECT_EQ(rewrite(graph, {"few_bits_products"}), 0);
}

// As the whole pipeline has it: f16 is widened first, and constants are folded afterwards.
TEST(FewBitsProducts, InHalves) {
  Graph graph;
  const Stored s{.zeros = true, .number = DType::kF16};
  Value* x = graph.input("x", s.number, {kN, Dim(s.depth)});
  graph.set_outputs({graph.add("matmul", {x, dequantized(graph, s)}, {{"transpose_b", true}})});
  PassContext context = fusing();
  context.widened = bit(DType::kF16);
  rewrite(graph, {}, context, 1e-2);
  EXPECT_EQ(count(graph, "weight_only_matmul"), 1) << to_text(graph);
  EXPECT_EQ(count(graph, "dequantize"), 0);
}

}  // namespace

}  // namespace anymps::testing
