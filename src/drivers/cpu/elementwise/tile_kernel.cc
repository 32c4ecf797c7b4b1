// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/elementwise/tile_kernel.h"

#include <array>
#include <cstring>

#include "drivers/cpu/elementwise/strided_tile.h"
#include "drivers/cpu/threads.h"
#include "semantics/scalar_functions.h"

namespace anymps::cpu {

namespace {

constexpr size_t kScratch = 40 * 1024;       // of a thread, on its stack: most of the L1 cache
constexpr int64_t kLargestTile = 16 * 1024;  // elements, when nothing needs scratch memory
constexpr int64_t kNarrow = 256;             // rows shorter than this are taken several at once
constexpr size_t kMaxSlots = TileKernelBuilder::kMaxValues + 4;  // some for copies to outputs

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Asks for part `i` of `parts` of the memory behind a tile, where the next one mostly lies. While a
// program works on a tile the processor sees nobody read on, and fetches nothing by itself.
template <bool writes>
void prefetch_part(const void* tile, size_t bytes, size_t i, size_t parts) {
  const char* const next = static_cast<const char*>(tile) + bytes;
  for (size_t at = bytes * i / parts / 64 * 64; at < bytes * (i + 1) / parts; at += 64)
    __builtin_prefetch(next + at, writes ? 1 : 0, 2);
}

// Writes the parameter as an element of dtype `to`, a half as the f32 it is.
void read_parameter(const TileParameter& parameter, const KernelArgs& args, DType to,
                    void* element) {
  const void* numbers = parameter.arg == TileParameter::kOfTheRun
                            ? static_cast<const void*>(args.parameters)
                            : args.inputs[parameter.arg];
  const char* at = static_cast<const char*>(numbers) + parameter.offset * 8;
  const auto convert = [&]<typename From>(From from) {
    std::memcpy(&from, at, sizeof from);
    dispatch<kReal | kBoolean>(to, [&]<typename To>() {
      const Compute<To> value = scalar::convert<To>(from);
      std::memcpy(element, &value, sizeof value);
    });
  };
  if (parameter.from == DType::kI64)
    convert(int64_t{0});
  else
    convert(0.0);
}

}  // namespace

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
    size_t scratch = kNone;  // kNone: the slot points into an output
    std::array<double, kTileParams> params = {};
    std::vector<std::pair<size_t, TileParameter>> run_params = {};
  };
  // What is the same for all tiles of a run.
  struct Call {
    void* inputs[kMaxSlots];  // of each operand
    void* const* outputs;
    uint64_t numbers[kMaxSlots];  // the elements of operands that are parameters
    std::array<double, kTileParams> params[kMaxSlots];  // of each step, if any reads them
  };
  struct Constant {
    size_t slot = 0;
    std::vector<std::byte> tile;
  };

  void plan_access(const TileKernelBuilder& program);
  void plan_steps(const TileKernelBuilder& program);
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
  bool reads_params_ = false;  // some step has parameters that a run brings
  size_t slots_ = 0;
  int64_t rows_ = 1, columns_ = 1;            // extents of the two innermost loops
  int64_t tile_rows_ = 1, tile_columns_ = 1;  // of a tile
  int64_t row_tiles_ = 1, column_tiles_ = 1, units_ = 1;
  double unit_ns_ = 0;
  std::vector<uint64_t> in_place_;  // of each output: the arguments it may take the place of
  bool takes_parameters_ = false;
  std::string detail_;
};

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
  std::vector<bool> scalar(slots_, false), fill(slots_, false);
  for (const Operand& in : inputs_) scalar[in.slot] = in.access == Access::kScalar;
  for (const auto& constant : program.constants_) scalar[constant.value] = true;

  for (const auto& instruction : program.instructions_) {
    const TileOp& op = *instruction.op;
    Step step;
    step.fn = op.run;
    step.out = instruction.value;
    for (size_t i = 0; i < step.in.size(); ++i)  // the functions ignore what is beyond their arity
      step.in[i] = instruction.args[i < instruction.args.size() ? i : 0];
    for (size_t i = 0; i < instruction.params.size(); ++i) step.params[i] = instruction.params[i];
    step.run_params = instruction.run_params;
    reads_params_ = reads_params_ || !step.run_params.empty();
    if (op.arity == 2 && scalar[step.in[1]] && !scalar[step.in[0]] && op.scalar_second) {
      step.fn = op.scalar_second;
    } else if (op.arity == 2 && scalar[step.in[0]] && !scalar[step.in[1]] && op.scalar_first) {
      step.fn = op.scalar_first;
    } else {
      for (size_t i = 0; i < instruction.args.size(); ++i)
        if (scalar[step.in[i]]) fill[step.in[i]] = true;
    }
    steps_.push_back(step);
  }
  for (Operand& in : inputs_) in.fill = fill[in.slot];
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
  // Where an output may lie in place of an input that a later step reads, it is written at the end.
  std::vector<size_t> last_use(slots_, 0);
  for (size_t i = 0; i < steps_.size(); ++i)
    for (size_t slot : steps_[i].in) last_use[slot] = std::max(last_use[slot], i);
  std::vector<size_t> made(slots_, 0);
  for (size_t i = 0; i < steps_.size(); ++i) made[steps_[i].out] = i;
  std::vector<bool> direct(slots_, false);
  for (size_t k = 0; k < outputs_.size(); ++k) {
    Operand& out = outputs_[k];
    out.direct = !direct[out.slot] && out.access == Access::kDirect && !out.convert;
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (borrowed[i] && last_use[inputs_[i].slot] > made[out.slot] &&
          program.inputs_[i].desc == program.outputs_[k].desc)
        out.direct = false;
    direct[out.slot] = direct[out.slot] || out.direct;
  }
  for (const Operand& out : outputs_) last_use[out.slot] = steps_.size();
  struct Shared {
    size_t offset = 0, free_at = 0;
    size_t size = 0;  // of an element of what it holds
  };
  std::vector<Shared> shared;
  std::vector<std::pair<size_t, size_t>> uses;  // step, index into shared
  size_t widest = 1;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (direct[steps_[i].out]) continue;
    // A function may write over what it reads last, if the elements have the same size.
    const size_t size = size_of(program.values_[steps_[i].out].dtype);
    widest = std::max(widest, size);
    const auto free = [&](const Shared& s) {
      return s.free_at < i || (s.free_at == i && s.size == size);
    };
    size_t use = 0;
    while (use < shared.size() && !free(shared[use])) ++use;
    if (use == shared.size()) shared.push_back({});
    shared[use].free_at = last_use[steps_[i].out];
    shared[use].size = size;
    uses.push_back({i, use});
  }
  for (Shared& s : shared) pieces.push_back({&s.offset, widest});
  for (Operand& out : outputs_)
    if (out.convert && out.access == Access::kGeneral) pieces.push_back({&out.raw, out.element});

  size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.second;
  int64_t tile = kLargestTile;
  if (bytes) tile = static_cast<int64_t>((kScratch - 64 * pieces.size()) / bytes / 16 * 16);
  tile = std::min<int64_t>(tile, bytes ? 2048 : kLargestTile);
  tile_columns_ = std::max<int64_t>(1, std::min(tile_columns_, tile));
  tile_rows_ = std::max<int64_t>(1, std::min(tile_rows_, tile / tile_columns_));
  size_t offset = 0;
  const size_t elements = tile_rows_ * tile_columns_;
  for (const auto& piece : pieces) {
    *piece.first = offset;
    offset = aligned(offset + piece.second * elements);
  }
  require(offset <= kScratch, "[cpu] an elementwise program needs {} bytes a tile", offset);
  for (const auto& [step, use] : uses) steps_[step].scratch = shared[use].offset;

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
  double ns = 5.0 * static_cast<double>(1 + steps_.size());
  for (const Operand& in : inputs_)
    if (in.access != Access::kScalar) ns += 0.06 * static_cast<double>(in.element * elements);
  for (const Operand& out : outputs_) ns += 0.06 * static_cast<double>(out.element * elements);
  for (const auto& instruction : program.instructions_)
    ns += static_cast<double>(instruction.op->ns) * static_cast<double>(elements);
  unit_ns_ = ns;
}

inline void TileKernel::load(const Operand& in, const char* from, int64_t rows, int64_t columns,
                             std::byte* scratch, const void*& slot, const void*& loaded_from,
                             int64_t& loaded_rows) const {
  const size_t n = rows * columns;
  std::byte* const tile = in.scratch == kNone ? nullptr : scratch + in.scratch;
  switch (in.access) {
    case Access::kDirect:
      slot = from;
      if (in.convert) {
        in.convert({{from, nullptr, nullptr}, tile, n, nullptr});
        slot = tile;
      }
      return;
    case Access::kScalar:
      if (!tile) {
        slot = from;
        return;
      }
      slot = tile;
      // What is there serves until the element or the tile's size changes.
      if (loaded_from == from && loaded_rows >= static_cast<int64_t>(n)) return;
      loaded_from = from;
      loaded_rows = static_cast<int64_t>(n);
      if (in.convert) in.convert({{from, nullptr, nullptr}, tile, 1, nullptr});
      if (in.fill && n > 1)
        fill_tile(tile, in.convert ? static_cast<const void*>(tile) : from, in.converted,
                  static_cast<int64_t>(n));
      else if (!in.convert)
        std::memcpy(tile, from, in.element);
      return;
    case Access::kRepeat:
      slot = tile;
      if (loaded_from == from && loaded_rows >= rows) return;
      loaded_from = from;
      loaded_rows = rows;
      break;
    case Access::kGeneral:
      slot = tile;
      break;
  }
  std::byte* const raw = in.convert ? scratch + in.raw : tile;
  gather_tile(raw, from, in.element, rows, columns, in.row, in.column);
  if (in.convert) in.convert({{raw, nullptr, nullptr}, tile, n, nullptr});
}

inline void TileKernel::store(const Operand& out, const void* tile, char* to, int64_t rows,
                              int64_t columns, std::byte* scratch) const {
  if (tile == to) return;
  const size_t n = rows * columns;
  if (out.access == Access::kDirect) {
    if (out.convert)
      out.convert({{tile, nullptr, nullptr}, to, n, nullptr});
    else
      std::memcpy(to, tile, n * out.element);
    return;
  }
  if (out.convert) {
    out.convert({{tile, nullptr, nullptr}, scratch + out.raw, n, nullptr});
    tile = scratch + out.raw;
  }
  scatter_tile(to, tile, out.element, rows, columns, out.row, out.column);
}

void TileKernel::start(const KernelArgs& args, Call& call) const {
  call.outputs = args.outputs;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    const Operand& in = inputs_[k];
    if (in.parameter) read_parameter(*in.parameter, args, in.rounding, &call.numbers[k]);
    call.inputs[k] = in.parameter ? &call.numbers[k] : args.inputs[in.arg];
  }
  if (!reads_params_) return;
  for (size_t i = 0; i < steps_.size(); ++i) {
    call.params[i] = steps_[i].params;
    for (const auto& [place, parameter] : steps_[i].run_params)
      read_parameter(parameter, args, DType::kF64, &call.params[i][place]);
  }
}

void TileKernel::run_units(const Call& call, int64_t begin, int64_t end) const {
  alignas(64) std::byte scratch[kScratch];
  const void* slots[kMaxSlots];
  const void* loaded_from[kMaxSlots];
  int64_t loaded_rows[kMaxSlots];
  for (size_t k = 0; k < inputs_.size(); ++k) loaded_from[k] = nullptr;
  for (const Constant& constant : constants_) slots[constant.slot] = constant.tile.data();

  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t row = 0, column = 0, outer = 0;
    if (unit > 0) {
      column = unit % column_tiles_ * tile_columns_;
      const int64_t rest = unit / column_tiles_;
      row = rest % row_tiles_ * tile_rows_;
      outer = rest / row_tiles_;
    }
    const int64_t rows = std::min(tile_rows_, rows_ - row);
    const int64_t columns = std::min(tile_columns_, columns_ - column);
    const auto at = [&](const Operand& x, void* base) {
      int64_t offset = row * x.row + column * x.column, index = outer;
      for (size_t i = x.outer.size(); index != 0 && i-- > 0;) {
        offset += index % loops_.extents[i] * x.outer[i];
        index /= loops_.extents[i];
      }
      return static_cast<char*>(base) + offset * static_cast<int64_t>(x.element);
    };
    const char* sources[kMaxSlots];
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const Operand& in = inputs_[k];
      sources[k] = at(in, call.inputs[k]);
      load(in, sources[k], rows, columns, scratch, slots[in.slot], loaded_from[k], loaded_rows[k]);
    }
    void* results[kMaxSlots];
    for (const Step& step : steps_)
      results[step.out] = step.scratch == kNone ? nullptr : scratch + step.scratch;
    char* targets[kMaxSlots];
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const Operand& out = outputs_[k];
      targets[k] = at(out, call.outputs[out.arg]);
      if (out.direct) results[out.slot] = targets[k];
    }
    const size_t n = rows * columns;
    const bool ahead = steps_.size() > 1 && unit + 1 < end;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      if (ahead) {
        for (size_t k = 0; k < inputs_.size(); ++k)
          if (inputs_[k].access == Access::kDirect)
            prefetch_part<false>(sources[k], n * inputs_[k].element, i, steps_.size());
        for (size_t k = 0; k < outputs_.size(); ++k)
          if (outputs_[k].access == Access::kDirect)
            prefetch_part<true>(targets[k], n * outputs_[k].element, i, steps_.size());
      }
      step.fn({{slots[step.in[0]], slots[step.in[1]], slots[step.in[2]]},
               results[step.out],
               n,
               (reads_params_ ? call.params[i] : step.params).data()});
      slots[step.out] = results[step.out];
    }
    for (size_t k = 0; k < outputs_.size(); ++k)
      store(outputs_[k], slots[outputs_[k].slot], targets[k], rows, columns, scratch);
  }
}

KernelPtr TileKernelBuilder::build() { return std::make_shared<TileKernel>(std::move(*this)); }

}  // namespace anymps::cpu
