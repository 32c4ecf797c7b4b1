// SPDX-License-Identifier: Apache-2.0
// What a tile program is as a kernel: how its operands meet tiles (tile_plan.cc decides) and how
// the tiles are run (tile_kernel.cc).
#pragma once

#include <array>
#include <memory>

#include "drivers/cpu/elementwise/chain.h"
#include "drivers/cpu/elementwise/tile_kernel.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

constexpr size_t kTileScratch = 40 * 1024;  // of a thread, on its stack: most of the L1 cache
constexpr size_t kMaxSlots = TileKernelBuilder::kMaxValues + 4;  // some for copies to outputs

// How an operand meets a tile of rows x columns.
enum class Access {
  kDirect,   // the tile lies densely in the tensor
  kScalar,   // one element for the whole tile
  kRepeat,   // the same row again and again: kept between tiles
  kGeneral,  // gathered or scattered
};

class TileKernel final : public Kernel {
 public:
  explicit TileKernel(TileKernelBuilder&& program);

  void run(const KernelArgs& args) const override {
    if (units_ == 0) return;
    Call call;
    start(args, call);
    if (units_ == 1) {
      run_units(call, 0, 1);
      return;
    }
    parallel_for(0, units_, unit_ns_, [&](int64_t b, int64_t e) { run_units(call, b, e); });
  }
  bool takes_parameters() const override { return takes_parameters_; }
  bool in_place(size_t input, size_t output) const override {
    return output < in_place_.size() && input < 64 && (in_place_[output] >> input & 1);
  }
  std::string detail() const override { return detail_; }

 private:
  static constexpr size_t kNone = ~size_t{0};

  struct Operand {  // an input or an output
    size_t arg = 0, element = 4;
    size_t slot = 0;
    Access access = Access::kDirect;
    TileFn convert = nullptr;  // to or from f32
    size_t converted = 4;      // bytes of an element after the conversion of an input
    bool fill = false;         // a scalar that some function wants as a tile
    bool direct = false;       // an output that its step writes itself
    size_t raw = kNone;        // scratch offset for unconverted elements
    size_t scratch = kNone;    // scratch offset of the tile
    int64_t row = 0, column = 0;
    Strides outer;
    std::optional<TileParameter> parameter;  // an input that is no tensor
    DType rounding = DType::kF32;
  };
  struct Step {
    TileFn fn = nullptr;
    std::array<size_t, 3> in = {0, 0, 0};
    size_t out = 0;
    size_t number = 0;                   // of the instruction
    std::shared_ptr<const Chain> chain;  // then the step is several instructions
  };
  struct RunParam {
    size_t instruction, place;
    TileParameter parameter;
  };
  // What is the same for all tiles of a run.
  struct Call {
    void* inputs[kMaxSlots];  // of each operand
    void* const* outputs;
    uint64_t numbers[kMaxSlots];      // the elements of operands that are parameters
    Chain::Params params[kMaxSlots];  // of each instruction, if any reads them
  };
  struct Constant {
    size_t slot = 0;
    std::vector<std::byte> tile;
  };

  void plan_access(const TileKernelBuilder& program);
  void plan_steps(const TileKernelBuilder& program);
  void join_chains(const TileKernelBuilder& program, const std::vector<bool>& scalar);
  static std::span<const size_t> reads(const Step& step);
  static std::span<const size_t> writes(const Step& step);
  void plan_scratch(const TileKernelBuilder& program);
  void start(const KernelArgs& args, Call& call) const;
  void run_units(const Call& call, int64_t begin, int64_t end) const;
  void load(const Operand& in, const char* from, int64_t rows, int64_t columns, std::byte* scratch,
            const void*& slot, const void*& loaded_from, int64_t& loaded_rows) const;
  void store(const Operand& out, const void* tile, char* to, int64_t rows, int64_t columns,
             std::byte* scratch) const;

  Loops loops_;
  std::vector<Operand> inputs_, outputs_;
  std::vector<Constant> constants_;
  std::vector<Step> steps_;
  std::vector<Chain::Params> params_;               // of each instruction
  std::vector<RunParam> run_params_;                // those that a run brings
  std::vector<std::pair<size_t, size_t>> results_;  // slots of tiles in scratch memory, offsets
  size_t chain_scratch_ = 0;                        // offset of what chains need
  size_t slots_ = 0;
  int64_t rows_ = 1, columns_ = 1;            // extents of the two innermost loops
  int64_t tile_rows_ = 1, tile_columns_ = 1;  // of a tile
  int64_t row_tiles_ = 1, column_tiles_ = 1, units_ = 1;
  double unit_ns_ = 0;
  std::vector<uint64_t> in_place_;  // of each output: the arguments it may take the place of
  bool takes_parameters_ = false;
  std::string detail_;
};

}  // namespace anymps::cpu
