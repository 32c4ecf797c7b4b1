// SPDX-License-Identifier: Apache-2.0
// A chain: consecutive steps of a tile program that take and give f32. Its values stay in registers
// from step to step; what is read again later lies in a block of the L1 cache, and only what the
// rest of the program reads goes to a tile. Each step is the same function of vectors as a loop
// over tiles would call, so the numbers are the same.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "drivers/cpu/elementwise/chain_code.h"

namespace anymps::cpu {

class Chain {
 public:
  struct Link {  // a step of the program
    const TileOp* op = nullptr;
    std::array<size_t, 2> in = {0, 0};  // slots; of a function of one, the first counts
    size_t out = 0;
    size_t step = 0;  // whose parameters it takes
  };
  using Params = std::array<double, kTileParams>;

  // Whether a step can be part of one; `numbers`: it reads single elements.
  static bool takes(const TileOp& op, bool numbers);

  // By slot: what is a single element, and which results the rest of the program reads.
  Chain(std::span<const Link> links, const std::vector<bool>& number,
        const std::vector<bool>& kept);

  const std::vector<size_t>& reads() const { return reads_; }    // slots of tiles
  const std::vector<size_t>& writes() const { return writes_; }  // slots of kept results
  size_t scratch_bytes() const;

  // n elements. `slots`: tiles and numbers that are read; `results`: tiles that are written.
  void run(const void* const* slots, void* const* results, const Params* params, size_t n,
           std::byte* scratch) const;

 private:
  enum class Place { kNowhere, kNumber, kRead, kWritten, kTemporary };
  struct Operand {
    Place place = Place::kNowhere;
    size_t index = 0;  // of the number's slot, or into reads_, writes_ or the temporaries
  };
  struct Code {
    ChainCode code = nullptr;
    TileFn fn = nullptr;
    Operand operand = {};
    size_t step = 0;
  };

  void add(const Link& link, size_t held, const std::vector<Operand>& at);

  std::vector<Code> codes_;
  std::vector<size_t> reads_, writes_;
  size_t temporaries_ = 0;
};

}  // namespace anymps::cpu
