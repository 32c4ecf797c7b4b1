// SPDX-License-Identifier: Apache-2.0
// How a tile program runs over its tensors: the extents of a tile, what lies in scratch memory, and
// which steps are joined to chains.
#include <algorithm>

#include "drivers/cpu/elementwise/strided_tile.h"
#include "drivers/cpu/elementwise/tile_program.h"
#include "semantics/scalar_functions.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kLargestTile = 16 * 1024;  // elements, when nothing needs scratch memory
constexpr int64_t kChainTile = 4096;         // the same of chains, which take longer
constexpr int64_t kNarrow = 256;             // rows shorter than this are taken several at once

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

TileKernel::TileKernel(TileKernelBuilder&& program) {
  require(program.values_.size() <= kMaxSlots && program.outputs_.size() <= kMaxSlots,
          "[cpu] an elementwise program of {} values is too long", program.values_.size());
  slots_ = program.values_.size();
  takes_parameters_ = program.takes_parameters_;
  plan_access(program);
  plan_steps(program);
  plan_scratch(program);
  for (const auto& instruction : program.instructions_)
    detail_ += (detail_.empty() ? "" : "+") + instruction.op->name;
}

void TileKernel::plan_access(const TileKernelBuilder& program) {
  std::vector<Strides> strides;
  for (const auto& output : program.outputs_) strides.push_back(output.desc.strides);
  for (const auto& input : program.inputs_)
    strides.push_back(broadcast_strides(input.desc, program.shape_));
  loops_ = make_loops(program.shape_, std::move(strides));
  const size_t depth = loops_.extents.size();
  columns_ = depth > 0 ? loops_.extents[depth - 1] : 1;
  rows_ = depth > 1 ? loops_.extents[depth - 2] : 1;

  const auto operand = [&](size_t k, size_t arg, DType dtype, TileFn convert, size_t slot) {
    Operand operand;
    operand.arg = arg;
    operand.element = size_of(dtype);
    operand.convert = convert;
    operand.converted = convert ? sizeof(float) : operand.element;
    operand.slot = slot;
    const Strides& s = loops_.strides[k];
    operand.column = depth > 0 ? s[depth - 1] : 0;
    operand.row = depth > 1 ? s[depth - 2] : 0;
    for (size_t i = 0; i + 2 < depth; ++i) operand.outer.push_back(s[i]);
    return operand;
  };
  size_t k = 0;
  for (const auto& o : program.outputs_)
    outputs_.push_back(operand(k++, o.out, o.desc.dtype, o.convert, o.value));
  for (const auto& i : program.inputs_)
    inputs_.push_back(operand(k++, i.arg, i.desc.dtype, i.convert, i.value));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    inputs_[i].parameter = program.inputs_[i].parameter;
    inputs_[i].rounding = program.inputs_[i].rounding;
  }

  // A tile is a part of one row; several whole rows when rows are short; or a small block, when an
  // operand runs along the rows and going line by line would waste most of each cache line.
  const bool narrow = rows_ > 1 && columns_ < kNarrow;
  bool blocked = false;
  for (const auto* operands : {&inputs_, &outputs_})
    for (const Operand& x : *operands)
      blocked = blocked || (!narrow && rows_ > 1 && std::abs(x.row) == 1 && std::abs(x.column) > 1);
  tile_rows_ = narrow ? rows_ : blocked ? std::min<int64_t>(rows_, 16) : 1;
  tile_columns_ = blocked ? std::min<int64_t>(columns_, 64) : columns_;

  const auto classify = [&](Operand& x) {
    const bool one_row = tile_rows_ == 1, one_column = tile_columns_ == 1;
    if ((one_row || x.row == 0) && (one_column || x.column == 0)) {
      x.access = Access::kScalar;
    } else if ((one_column || x.column == 1) && (one_row || x.row == tile_columns_) && !blocked) {
      x.access = Access::kDirect;
    } else if (!one_row && x.row == 0 && x.column == 1 && !blocked) {
      x.access = Access::kRepeat;
    } else {
      x.access = Access::kGeneral;
    }
  };
  for (Operand& in : inputs_) classify(in);
  for (Operand& out : outputs_) {
    classify(out);
    // A tile of one element is written directly.
    if (out.access != Access::kDirect)
      out.access = tile_rows_ * tile_columns_ == 1 ? Access::kDirect : Access::kGeneral;
  }
  in_place_.resize(program.outputs_.size());
  for (const auto& out : program.outputs_)
    for (const auto& in : program.inputs_)
      if (in.arg < 64 && !in.parameter && in.desc == out.desc)
        in_place_[out.out] |= uint64_t{1} << in.arg;
}

void TileKernel::plan_steps(const TileKernelBuilder& program) {
  // Which values are one element: inputs that are scalar, and constants.
  std::vector<bool> scalar(slots_, false);
  for (const Operand& in : inputs_) scalar[in.slot] = in.access == Access::kScalar;
  for (const auto& constant : program.constants_) scalar[constant.value] = true;

  for (size_t i = 0; i < program.instructions_.size(); ++i) {
    const auto& instruction = program.instructions_[i];
    Step step;
    step.number = i;
    step.out = instruction.value;
    for (size_t k = 0; k < step.in.size(); ++k)  // the functions ignore what is beyond their arity
      step.in[k] = instruction.args[k < instruction.args.size() ? k : 0];
    params_.emplace_back();
    std::copy(instruction.params.begin(), instruction.params.end(), params_.back().begin());
    for (const auto& [place, parameter] : instruction.run_params)
      run_params_.push_back({i, place, parameter});
    steps_.push_back(step);
  }
  join_chains(program, scalar);

  std::vector<bool> fill(slots_, false);
  for (Step& step : steps_) {
    if (step.chain) continue;
    const auto& instruction = program.instructions_[step.number];
    const TileOp& op = *instruction.op;
    step.fn = op.run;
    if (op.arity == 2 && scalar[step.in[1]] && !scalar[step.in[0]] && op.scalar_second) {
      step.fn = op.scalar_second;
    } else if (op.arity == 2 && scalar[step.in[0]] && !scalar[step.in[1]] && op.scalar_first) {
      step.fn = op.scalar_first;
    } else {
      for (const auto arg : instruction.args)
        if (scalar[arg]) fill[arg] = true;
    }
  }
  for (Operand& in : inputs_) in.fill = fill[in.slot];
}

// Consecutive steps that can be a chain become one.
void TileKernel::join_chains(const TileKernelBuilder& program, const std::vector<bool>& scalar) {
  const auto& instructions = program.instructions_;
  std::vector<bool> output(slots_, false);
  for (const auto& out : program.outputs_) output[out.value] = true;
  const auto fits = [&](size_t i) {
    const auto& args = instructions[i].args;
    const bool numbers =
        std::any_of(args.begin(), args.end(), [&](auto arg) { return scalar[arg]; });
    return Chain::takes(*instructions[i].op, numbers);
  };
  std::vector<Step> joined;
  for (size_t begin = 0, end = 0; begin < steps_.size(); begin = end) {
    for (end = begin; end < steps_.size() && fits(end);) ++end;
    if (end - begin < 2) {
      end = begin + 1;
      joined.push_back(steps_[begin]);
      continue;
    }
    std::vector<bool> kept = output;
    for (size_t i = end; i < steps_.size(); ++i)
      for (const auto arg : instructions[i].args) kept[arg] = true;
    std::vector<Chain::Link> links;
    for (size_t i = begin; i < end; ++i)
      links.push_back({instructions[i].op, {steps_[i].in[0], steps_[i].in[1]}, steps_[i].out, i});
    Step step;
    step.chain = std::make_shared<Chain>(links, scalar, kept);
    joined.push_back(step);
  }
  steps_ = std::move(joined);
}

std::span<const size_t> TileKernel::reads(const Step& step) {
  return step.chain ? std::span(step.chain->reads()) : std::span(step.in);
}

std::span<const size_t> TileKernel::writes(const Step& step) {
  return step.chain ? std::span(step.chain->writes()) : std::span(&step.out, 1);
}

void TileKernel::plan_scratch(const TileKernelBuilder& program) {
  // Bytes of scratch memory for one element of a tile, and the order of the pieces in it.
  std::vector<std::pair<size_t*, size_t>> pieces;
  const bool single = tile_rows_ * tile_columns_ == 1;
  std::vector<bool> borrowed;  // of each input: steps read it where the caller has it
  for (Operand& in : inputs_) {
    const bool gathered = in.access == Access::kRepeat || in.access == Access::kGeneral ||
                          (in.access == Access::kScalar && in.fill && !single);
    if (in.convert && gathered) pieces.push_back({&in.raw, in.element});
    if (in.convert || gathered) pieces.push_back({&in.scratch, in.converted});
    borrowed.push_back(!in.convert && !gathered);
  }
  // Results: an output's own memory where that is dense, else scratch, reused after the last use.
  // Where an output may lie in place of an input that is read later, it is written at the end.
  const auto& instructions = program.instructions_;
  std::vector<size_t> made(slots_, 0), read(slots_, 0);  // by which instruction, at last
  for (size_t i = 0; i < instructions.size(); ++i) {
    made[instructions[i].value] = i;
    for (const auto arg : instructions[i].args) read[arg] = i;
  }
  std::vector<bool> direct(slots_, false);
  for (size_t k = 0; k < outputs_.size(); ++k) {
    Operand& out = outputs_[k];
    out.direct = !direct[out.slot] && out.access == Access::kDirect && !out.convert;
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (borrowed[i] && read[inputs_[i].slot] > made[out.slot] &&
          program.inputs_[i].desc == program.outputs_[k].desc)
        out.direct = false;
    direct[out.slot] = direct[out.slot] || out.direct;
  }
  std::vector<size_t> last_use(slots_, 0);
  for (size_t i = 0; i < steps_.size(); ++i)
    for (const size_t slot : reads(steps_[i])) last_use[slot] = i;
  for (const Operand& out : outputs_) last_use[out.slot] = steps_.size();
  struct Shared {
    size_t offset = 0, free_at = 0;
    size_t size = 0;  // of an element of what it holds
  };
  std::vector<Shared> shared;
  std::vector<std::pair<size_t, size_t>> uses;  // slot, index into shared
  size_t widest = 1;
  for (size_t i = 0; i < steps_.size(); ++i)
    for (const size_t slot : writes(steps_[i])) {
      if (direct[slot]) continue;
      // A function may write over what it reads last, if the elements have the same size.
      const size_t size = size_of(program.values_[slot].dtype);
      widest = std::max(widest, size);
      const auto free = [&](const Shared& s) {
        return s.free_at < i || (s.free_at == i && s.size == size && !steps_[i].chain);
      };
      size_t use = 0;
      while (use < shared.size() && !free(shared[use])) ++use;
      if (use == shared.size()) shared.push_back({});
      shared[use].free_at = last_use[slot];
      shared[use].size = size;
      uses.push_back({slot, use});
    }
  for (Shared& s : shared) pieces.push_back({&s.offset, widest});
  for (Operand& out : outputs_)
    if (out.convert && out.access == Access::kGeneral) pieces.push_back({&out.raw, out.element});

  size_t bytes = 0, chains = 0;
  for (const auto& piece : pieces) bytes += piece.second;
  for (const Step& step : steps_)
    if (step.chain) chains = std::max(chains, step.chain->scratch_bytes());
  const size_t room = kTileScratch - chains;
  int64_t tile = chains ? kChainTile : kLargestTile;
  if (bytes) tile = std::min<int64_t>(2048, (room - 64 * pieces.size()) / bytes / 16 * 16);
  tile_columns_ = std::max<int64_t>(1, std::min(tile_columns_, tile));
  tile_rows_ = std::max<int64_t>(1, std::min(tile_rows_, tile / tile_columns_));
  size_t offset = 0;
  const size_t elements = tile_rows_ * tile_columns_;
  for (const auto& piece : pieces) {
    *piece.first = offset;
    offset = aligned(offset + piece.second * elements);
  }
  require(offset <= room, "[cpu] an elementwise program needs {} bytes a tile", offset);
  chain_scratch_ = room;
  for (const auto& [slot, use] : uses) results_.emplace_back(slot, shared[use].offset);

  for (const auto& constant : program.constants_) {
    const size_t element = size_of(constant.dtype);
    Constant made;
    made.slot = constant.value;
    made.tile.resize(elements * element);
    dispatch<kReal | kBoolean>(constant.dtype, [&]<typename T>() {
      T value;
      if constexpr (std::is_integral_v<T>)
        value = scalar::saturate<T>(constant.number);
      else
        value = static_cast<T>(static_cast<Compute<T>>(constant.number));
      fill_tile(made.tile.data(), &value, element, static_cast<int64_t>(elements));
    });
    constants_.push_back(std::move(made));
  }

  row_tiles_ = (rows_ + tile_rows_ - 1) / tile_rows_;
  column_tiles_ = (columns_ + tile_columns_ - 1) / tile_columns_;
  int64_t outer = 1;
  for (size_t i = 0; i + 2 < loops_.extents.size(); ++i) outer *= loops_.extents[i];
  units_ = outer * row_tiles_ * column_tiles_;
  double ns = 5.0 * static_cast<double>(1 + program.instructions_.size());
  for (const Operand& in : inputs_)
    if (in.access != Access::kScalar) ns += 0.06 * static_cast<double>(in.element * elements);
  for (const Operand& out : outputs_) ns += 0.06 * static_cast<double>(out.element * elements);
  for (const auto& instruction : program.instructions_)
    ns += static_cast<double>(instruction.op->ns) * static_cast<double>(elements);
  unit_ns_ = ns;
}

KernelPtr TileKernelBuilder::build() { return std::make_shared<TileKernel>(std::move(*this)); }

}  // namespace anymps::cpu
