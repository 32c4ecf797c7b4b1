// SPDX-License-Identifier: Apache-2.0
// Steps of f32 whose results stay in registers: threaded code over blocks of four vectors. A step
// takes its first or its second operand from the registers, the other from memory, leaves the
// result in the registers and jumps to the next. chain.h makes such code of a program's steps.
#pragma once

#include <cstddef>

#include "drivers/cpu/elementwise/tile_ops.h"

namespace anymps::cpu {

using ChainCode = void (*)();  // of a type that chain_simd.cc alone knows

struct ChainStep {
  ChainCode code = nullptr;
  const void* at = nullptr;  // the operand
  size_t moves = 0;          // all bits: it moves along with the blocks; 0: the same for all
  const double* params = nullptr;
  TileFn fn = nullptr;  // what a step without code of its own calls, for `count` elements
  size_t count = 0;
};

// Where a step's operands are.
enum class ChainForm {
  kRegister,      // f(r) or f(r, r)
  kMemorySecond,  // f(r, m)
  kNumberSecond,  // f(r, n), n a single element
  kMemoryFirst,   // f(m, r)
  kNumberFirst,   // f(n, r)
};
inline constexpr size_t kChainForms = 5;

constexpr size_t kLargestChainBlock = 64;  // elements

struct ChainEngine {
  size_t block = 0;                  // elements
  ChainCode load, load_number, end;  // the last step is `end`
  ChainCode save;
  ChainCode call[kChainForms];  // of a tile function
  // The code of a tile function in a form; null if it has none of its own.
  ChainCode (*code)(const TileOp& op, ChainForm form) = nullptr;
  // `count` elements, a multiple of the block.
  void (*run)(const ChainStep* steps, size_t count) = nullptr;
};

// For the instruction set in use.
const ChainEngine& chain_engine();

}  // namespace anymps::cpu
