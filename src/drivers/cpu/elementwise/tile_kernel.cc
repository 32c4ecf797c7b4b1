// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/elementwise/tile_kernel.h"

#include <algorithm>
#include <cstring>

#include "drivers/cpu/elementwise/strided_tile.h"
#include "drivers/cpu/elementwise/tile_program.h"
#include "semantics/scalar_functions.h"

namespace anymps::cpu {

namespace {

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
  if (run_params_.empty()) return;
  std::copy(params_.begin(), params_.end(), call.params);
  for (const RunParam& param : run_params_)
    read_parameter(param.parameter, args, DType::kF64,
                   &call.params[param.instruction][param.place]);
}

void TileKernel::run_units(const Call& call, int64_t begin, int64_t end) const {
  alignas(64) std::byte scratch[kTileScratch];
  const void* slots[kMaxSlots];
  const void* loaded_from[kMaxSlots];
  int64_t loaded_rows[kMaxSlots];
  for (size_t k = 0; k < inputs_.size(); ++k) loaded_from[k] = nullptr;
  for (const Constant& constant : constants_) slots[constant.slot] = constant.tile.data();
  const Chain::Params* const params = run_params_.empty() ? params_.data() : call.params;

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
    for (const auto& [slot, offset] : results_) results[slot] = scratch + offset;
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
      if (step.chain) {
        step.chain->run(slots, results, params, n, scratch + chain_scratch_);
        for (const size_t slot : step.chain->writes()) slots[slot] = results[slot];
        continue;
      }
      step.fn({{slots[step.in[0]], slots[step.in[1]], slots[step.in[2]]},
               results[step.out],
               n,
               params[step.number].data()});
      slots[step.out] = results[step.out];
    }
    for (size_t k = 0; k < outputs_.size(); ++k)
      store(outputs_[k], slots[outputs_[k].slot], targets[k], rows, columns, scratch);
  }
}

}  // namespace anymps::cpu
