// SPDX-License-Identifier: Apache-2.0
// Elementwise functions over tiles: short contiguous runs of elements that fit the L1 cache. Each
// is written once, compiled for every instruction set, and found by name and dtype. tile_kernel.h
// strings them together over whole tensors. An elementwise op that has a function of its name has a
// kernel (elementwise.cc).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace anymps::cpu {

inline constexpr size_t kTileParams = 6;

struct TileArgs {
  const void* in[3];
  void* out;  // may be one of `in` when the elements have the same size
  size_t n;
  const double* params;  // kTileParams attributes
};
using TileFn = void (*)(const TileArgs& args);

struct TileOp {
  std::string name;
  DType in;  // of the last input; `where` takes a bool before
  DType out;
  int arity;
  TileFn run;
  TileFn scalar_second = nullptr;  // the second of two inputs is a single element
  TileFn scalar_first = nullptr;   // the first of two inputs is a single element
  float ns = 0.1f;                 // an element takes, data in L1
  const char* kernel = "simd";     // what profiles call it; "plain": no vector code
};

// Null when there is none. Halves have no functions of their own but the conversions "load" (to
// f32) and "store" (from f32), "round" (both, one after the other), and what moves elements without
// looking at them: "identity", "where".
const TileOp* find_tile_op(std::string_view name, DType dtype);

// What profiles call the kernel of an op: "simd" if a function of its name has vector code, "plain"
// if none has, null if there is none.
const char* tile_kernel_name(std::string_view op);

// A conversion between any two dtypes without halves.
const TileOp* find_cast(DType from, DType to);

// The tables of the two source files, for the instruction set in use.
void append_float_ops(std::vector<TileOp>& ops);  // f32 with vector instructions
void append_plain_ops(std::vector<TileOp>& ops);  // loops that the compiler vectorizes
TileFn plain_cast(DType from, DType to);          // null: none

}  // namespace anymps::cpu
