// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/elementwise/chain.h"

#include <algorithm>
#include <cstring>

namespace anymps::cpu {

namespace {

constexpr size_t kNothing = ~size_t{0};
constexpr size_t kBlockBytes = kLargestChainBlock * sizeof(float);
constexpr size_t kMostCodes = 256;

size_t index_in(std::vector<size_t>& slots, size_t slot) {
  const auto found = std::find(slots.begin(), slots.end(), slot);
  if (found == slots.end()) return slots.push_back(slot), slots.size() - 1;
  return static_cast<size_t>(found - slots.begin());
}

// What a step calls that has no code for this form.
TileFn function_of(const TileOp& op, ChainForm form) {
  if (form == ChainForm::kNumberSecond) return op.scalar_second;
  if (form == ChainForm::kNumberFirst) return op.scalar_first;
  return op.run;
}

}  // namespace

bool Chain::takes(const TileOp& op, bool numbers) {
  const bool rounds = op.name == "round" && is_half(op.in);
  if (op.out != DType::kF32 || (op.in != DType::kF32 && !rounds)) return false;
  if (op.arity == 1) return true;
  return op.arity == 2 && (!numbers || (op.scalar_second && op.scalar_first));
}

Chain::Chain(std::span<const Link> links, const std::vector<bool>& number,
             const std::vector<bool>& kept) {
  // The last link that reads a slot, and the link that makes it.
  std::vector<size_t> last(number.size(), 0), made(number.size(), kNothing);
  for (size_t k = 0; k < links.size(); ++k) {
    for (size_t i = 0; i < static_cast<size_t>(links[k].op->arity); ++i) last[links[k].in[i]] = k;
    made[links[k].out] = k;
  }
  std::vector<Operand> at(number.size());
  for (const Link& link : links)
    for (size_t i = 0; i < static_cast<size_t>(link.op->arity); ++i) {
      const size_t slot = link.in[i];
      if (made[slot] != kNothing) continue;
      at[slot] = number[slot] ? Operand{Place::kNumber, slot}
                              : Operand{Place::kRead, index_in(reads_, slot)};
    }
  std::vector<size_t> busy;  // of each temporary: the last link that reads it
  size_t held = kNothing;    // the slot whose value is in the registers
  for (size_t k = 0; k < links.size(); ++k) {
    const Link& link = links[k];
    add(link, held, at);
    held = link.out;
    if (kept[held]) {
      at[held] = {Place::kWritten, index_in(writes_, held)};
    } else if (last[held] > k + 1) {
      const auto free = std::find_if(busy.begin(), busy.end(), [&](size_t b) { return b <= k; });
      at[held] = {Place::kTemporary, static_cast<size_t>(free - busy.begin())};
      if (free == busy.end())
        busy.push_back(last[held]);
      else
        *free = last[held];
    } else {
      continue;
    }
    codes_.push_back({chain_engine().save, nullptr, at[held]});
  }
  temporaries_ = busy.size();
  codes_.push_back({chain_engine().end});
  require(codes_.size() <= kMostCodes, "[cpu] a chain of {} steps is too long", codes_.size());
}

void Chain::add(const Link& link, size_t held, const std::vector<Operand>& at) {
  const ChainEngine& engine = chain_engine();
  const auto load = [&](size_t slot) {
    const bool number = at[slot].place == Place::kNumber;
    codes_.push_back({number ? engine.load_number : engine.load, nullptr, at[slot]});
  };
  const size_t first = link.in[0], second = link.op->arity == 2 ? link.in[1] : first;
  if (first != held && second != held) load(held = first);
  ChainForm form = ChainForm::kRegister;
  Operand operand;
  if (first != second) {
    operand = at[first == held ? second : first];
    const bool number = operand.place == Place::kNumber;
    if (first == held)
      form = number ? ChainForm::kNumberSecond : ChainForm::kMemorySecond;
    else
      form = number ? ChainForm::kNumberFirst : ChainForm::kMemoryFirst;
  }
  if (const ChainCode code = engine.code(*link.op, form))
    codes_.push_back({code, nullptr, operand, link.step});
  else
    codes_.push_back(
        {engine.call[static_cast<size_t>(form)], function_of(*link.op, form), operand, link.step});
}

size_t Chain::scratch_bytes() const {
  return (temporaries_ + reads_.size() + writes_.size()) * kBlockBytes;
}

void Chain::run(const void* const* slots, void* const* results, const Params* params, size_t n,
                std::byte* scratch) const {
  const ChainEngine& engine = chain_engine();
  const size_t whole = n / engine.block * engine.block, rest = n - whole;
  std::byte* const read = scratch + temporaries_ * kBlockBytes;
  std::byte* const written = read + reads_.size() * kBlockBytes;
  ChainStep steps[kMostCodes];
  const auto prepare = [&](bool tiles, size_t count) {
    for (size_t k = 0; k < codes_.size(); ++k) {
      const Code& code = codes_[k];
      const size_t index = code.operand.index;
      ChainStep& step = steps[k];
      step = {code.code, nullptr, 0, params[code.step].data(), code.fn, count};
      switch (code.operand.place) {
        case Place::kNowhere:
          break;
        case Place::kNumber:
          step.at = slots[index];
          break;
        case Place::kTemporary:
          step.at = scratch + index * kBlockBytes;
          break;
        case Place::kRead:
          step.at = tiles ? slots[reads_[index]] : read + index * kBlockBytes;
          step.moves = tiles ? ~size_t{0} : 0;
          break;
        case Place::kWritten:
          step.at = tiles ? results[writes_[index]] : written + index * kBlockBytes;
          step.moves = tiles ? ~size_t{0} : 0;
          break;
      }
    }
  };
  if (whole > 0) {
    prepare(true, engine.block);
    engine.run(steps, whole);
  }
  if (rest == 0) return;
  // What does not fill a block goes through one that is filled with its first element: that takes
  // no path that the elements themselves do not take.
  for (size_t i = 0; i < reads_.size(); ++i) {
    float* const block = reinterpret_cast<float*>(read + i * kBlockBytes);
    const float* const from = static_cast<const float*>(slots[reads_[i]]) + whole;
    std::memcpy(block, from, rest * sizeof(float));
    std::fill(block + rest, block + engine.block, *from);
  }
  prepare(false, rest);
  engine.run(steps, engine.block);
  for (size_t i = 0; i < writes_.size(); ++i)
    std::memcpy(static_cast<float*>(results[writes_[i]]) + whole, written + i * kBlockBytes,
                rest * sizeof(float));
}

}  // namespace anymps::cpu
