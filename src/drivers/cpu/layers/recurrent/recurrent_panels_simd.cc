// SPDX-License-Identifier: Apache-2.0
// A step of a few sequences reads each weight once or twice, so what counts is that the weights lie
// in the order in which they are read and that enough sums are under way at a time: tiles of up to
// 6 sequences and 12 vectors of columns. A sum adds its products in order, whatever the tile, so
// the numbers do not depend on how many sequences or panels go at a time.
#include <algorithm>

#include "drivers/cpu/isa.h"
#include "drivers/cpu/layers/recurrent/recurrent_bytes.h"
#include "drivers/cpu/layers/recurrent/recurrent_panels.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/layers/recurrent/recurrent_panels_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/math-inl.h"
#include "drivers/cpu/common/runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET <= HWY_AVX3
constexpr size_t kPanelSums = 24;  // of 32 registers
#else
constexpr size_t kPanelSums = 12;  // of 16
#endif
constexpr auto kPanelLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));

// Of 3 gates two panels are better than two more rows.
constexpr size_t most_rows(size_t gates) {
  return gates == 3 ? 4 : std::min<size_t>(6, kPanelSums / gates);
}
// Panels of a tile, a power of two: 8 to 12 sums hide the latency of a multiplication.
constexpr size_t most_panels(size_t gates, size_t rows) {
  size_t panels = 1;
  while (2 * panels * gates <= 12 && 2 * panels * gates * rows <= kPanelSums) panels *= 2;
  return panels;
}

template <size_t kGates, size_t kRows, size_t kPanels>
HWY_NOINLINE void panel_tile(const GateProduct& p, const PanelRow* rows, int64_t panel) {
  const Tag d;
  constexpr auto kWidth = static_cast<int64_t>(kGates) * kPanelLanes;
  const float* left[kRows];
  float* z[kRows];
  V sums[kRows][kPanels][kGates];
  for (size_t r = 0; r < kRows; ++r) {
    left[r] = p.scaled ? rows[r].scaled : rows[r].state;
    z[r] = rows[r].z + (panel * p.slots + p.first) * kPanelLanes;
    for (size_t n = 0; n < kPanels; ++n)
      for (size_t g = 0; g < kGates; ++g) {
        const auto column = static_cast<int64_t>(g) * kPanelLanes;
        const auto at = panel + static_cast<int64_t>(n);
        const float* from = z[r] + static_cast<int64_t>(n) * p.slots * kPanelLanes + column;
        if (p.bias) from = p.bias + at * kWidth + column;
        if (p.last_bias && g + 1 == kGates) from = p.last_bias + at * kPanelLanes;
        sums[r][n][g] = hn::LoadU(d, from);
      }
  }
  const float* right[kPanels];
  for (size_t n = 0; n < kPanels; ++n)
    right[n] = p.weights + (panel + static_cast<int64_t>(n)) * p.depth * kWidth;
  for (int64_t k = 0; k < p.depth; ++k) {
    V state[kRows];
    for (size_t r = 0; r < kRows; ++r) state[r] = hn::Set(d, left[r][k]);
    for (size_t n = 0; n < kPanels; ++n)
      for (size_t g = 0; g < kGates; ++g) {
        const V weight =
            hn::LoadU(d, right[n] + k * kWidth + static_cast<int64_t>(g) * kPanelLanes);
        for (size_t r = 0; r < kRows; ++r)
          sums[r][n][g] = hn::MulAdd(state[r], weight, sums[r][n][g]);
      }
  }
  for (size_t r = 0; r < kRows; ++r)
    for (size_t n = 0; n < kPanels; ++n)
      for (size_t g = 0; g < kGates; ++g)
        hn::StoreU(
            sums[r][n][g], d,
            z[r] + (static_cast<int64_t>(n) * p.slots + static_cast<int64_t>(g)) * kPanelLanes);
}

template <size_t kGates, size_t kRows, size_t kPanels = most_panels(kGates, kRows)>
HWY_INLINE void panel_tiles(const GateProduct& p, const PanelRow* rows, int64_t first,
                            int64_t last) {
  constexpr auto kStep = static_cast<int64_t>(kPanels);
  for (; first + kStep <= last; first += kStep) panel_tile<kGates, kRows, kPanels>(p, rows, first);
  if constexpr (kPanels > 1) panel_tiles<kGates, kRows, kPanels / 2>(p, rows, first, last);
}

template <size_t kGates, size_t kRows = most_rows(kGates)>
HWY_INLINE void panel_rows(const GateProduct& p, const PanelRow* rows, int64_t count, int64_t first,
                           int64_t last) {
  if (count == kRows) return panel_tiles<kGates, kRows>(p, rows, first, last);
  if constexpr (kRows > 1) panel_rows<kGates, kRows - 1>(p, rows, count, first, last);
}

// The weights of a few panels stay in the nearest cache while all sequences pass.
template <size_t kGates>
HWY_INLINE void multiply_gates(const GateProduct& p, const PanelRow* rows, int64_t count,
                               int64_t first, int64_t last) {
  constexpr auto kBlock = static_cast<int64_t>(most_panels(kGates, 1));
  constexpr auto kMostRows = static_cast<int64_t>(most_rows(kGates));
  for (; first < last; first += kBlock)
    for (int64_t row = 0, size = 0; row < count; row += size) {
      const int64_t left = count - row, tiles = (left + kMostRows - 1) / kMostRows;
      size = (left + tiles - 1) / tiles;
      panel_rows<kGates>(p, rows + row, size, first, std::min(first + kBlock, last));
    }
}

void multiply_panels_here(const GateProduct& p, const PanelRow* rows, int64_t count, int64_t first,
                          int64_t last) {
  switch (p.gates) {
    case 1:
      return multiply_gates<1>(p, rows, count, first, last);
    case 2:
      return multiply_gates<2>(p, rows, count, first, last);
    case 3:
      return multiply_gates<3>(p, rows, count, first, last);
    default:
      return multiply_gates<4>(p, rows, count, first, last);
  }
}

// The units of a panel that are there, of vectors that are not padded.
HWY_INLINE V load_units(const float* from, int64_t hidden, int64_t panel) {
  const Tag d;
  const int64_t at = panel * kPanelLanes;
  if (HWY_LIKELY(at + kPanelLanes <= hidden)) return hn::LoadU(d, from + at);
  return runs::load_some(d, from + at, static_cast<size_t>(hidden - at));
}
HWY_INLINE void store_units(V v, float* to, int64_t hidden, int64_t panel) {
  const Tag d;
  const int64_t at = panel * kPanelLanes;
  if (HWY_LIKELY(at + kPanelLanes <= hidden)) return hn::StoreU(v, d, to + at);
  runs::store_some(v, d, to + at, static_cast<size_t>(hidden - at));
}

// The activations, of what is clipped first. Max and Min give their second argument if one is NaN.
struct PanelActivations {
  explicit PanelActivations(const PanelGates& gates) : clip(gates.clip) {}
  HWY_INLINE V seen(V z) const {
    const Tag d;
    if (HWY_LIKELY(clip <= 0)) return z;
    return hn::Min(hn::Set(d, clip), hn::Max(hn::Set(d, -clip), z));
  }
  HWY_INLINE V sigmoid(V z) const { return math::sigmoid(Tag(), seen(z)); }
  HWY_INLINE V tanh(V z) const { return math::tanh(Tag(), seen(z)); }
  HWY_INLINE V relu(V z) const { return hn::Max(hn::Zero(Tag()), seen(z)); }
  float clip;
};

// (1 - z) n + z h
HWY_INLINE V gru_state(V update, V candidate, V h) {
  return hn::MulAdd(hn::Sub(hn::Set(Tag(), 1.0f), update), candidate, hn::Mul(update, h));
}

void lstm_panel(const PanelGates& g, const PanelRow& row, int64_t panel) {
  const Tag d;
  const PanelActivations act(g);
  const float* z = row.z + panel * 4 * kPanelLanes;
  float* cell = row.cell + panel * kPanelLanes;
  const V c = hn::LoadU(d, cell);
  V in = hn::LoadU(d, z), out = hn::LoadU(d, z + kPanelLanes);
  V forget = hn::LoadU(d, z + 2 * kPanelLanes);
  const int64_t padded = (g.hidden + kPanelLanes - 1) / kPanelLanes * kPanelLanes;
  const float* peephole = g.peephole ? g.peephole + panel * kPanelLanes : nullptr;
  if (peephole) {
    in = hn::MulAdd(hn::LoadU(d, peephole), c, in);
    forget = hn::MulAdd(hn::LoadU(d, peephole + 2 * padded), c, forget);
  }
  in = act.sigmoid(in);
  forget = g.input_forget ? hn::Sub(hn::Set(d, 1.0f), in) : act.sigmoid(forget);
  const V next = hn::MulAdd(forget, c, hn::Mul(in, act.tanh(hn::LoadU(d, z + 3 * kPanelLanes))));
  if (peephole) out = hn::MulAdd(hn::LoadU(d, peephole + padded), next, out);
  hn::StoreU(next, d, cell);
  store_units(hn::Mul(act.sigmoid(out), act.tanh(next)), row.next, g.hidden, panel);
}

void gru_linear_panel(const PanelGates& g, const PanelRow& row, int64_t panel) {
  const Tag d;
  const PanelActivations act(g);
  const float* z = row.z + panel * 4 * kPanelLanes;
  const V update = act.sigmoid(hn::LoadU(d, z + kPanelLanes));
  const V reset = act.sigmoid(hn::LoadU(d, z + 2 * kPanelLanes));
  const V candidate =
      act.tanh(hn::MulAdd(reset, hn::LoadU(d, z + 3 * kPanelLanes), hn::LoadU(d, z)));
  const V h = load_units(row.state, g.hidden, panel);
  store_units(gru_state(update, candidate, h), row.next, g.hidden, panel);
}

void gru_reset_panel(const PanelGates& g, const PanelRow& row, int64_t panel) {
  const Tag d;
  const PanelActivations act(g);
  float* z = row.z + panel * 3 * kPanelLanes;
  hn::StoreU(act.sigmoid(hn::LoadU(d, z)), d, z);
  const V reset = act.sigmoid(hn::LoadU(d, z + kPanelLanes));
  hn::StoreU(hn::Mul(reset, load_units(row.state, g.hidden, panel)), d,
             row.scaled + panel * kPanelLanes);
}

void gru_new_panel(const PanelGates& g, const PanelRow& row, int64_t panel) {
  const Tag d;
  const PanelActivations act(g);
  const float* z = row.z + panel * 3 * kPanelLanes;
  const V candidate = act.tanh(hn::LoadU(d, z + 2 * kPanelLanes));
  const V h = load_units(row.state, g.hidden, panel);
  store_units(gru_state(hn::LoadU(d, z), candidate, h), row.next, g.hidden, panel);
}

void rnn_panel(const PanelGates& g, const PanelRow& row, int64_t panel) {
  const PanelActivations act(g);
  const V z = hn::LoadU(Tag(), row.z + panel * kPanelLanes);
  const V next = g.activation == CellActivation::Kind::kRelu      ? act.relu(z)
                 : g.activation == CellActivation::Kind::kSigmoid ? act.sigmoid(z)
                                                                  : act.tanh(z);
  store_units(next, row.next, g.hidden, panel);
}

void apply_gates_here(const PanelGates& g, const PanelRow* rows, int64_t count, int64_t first,
                      int64_t last) {
  const auto each = [&](const auto& fn) HWY_ATTR {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t panel = first; panel < last; ++panel) fn(g, rows[i], panel);
  };
  switch (g.kind) {
    case PanelGates::kLstm:
      return each(lstm_panel);
    case PanelGates::kGruLinear:
      return each(gru_linear_panel);
    case PanelGates::kGruReset:
      return each(gru_reset_panel);
    case PanelGates::kGruNew:
      return each(gru_new_panel);
    case PanelGates::kRnn:
      return each(rnn_panel);
  }
}

int64_t panel_lanes_here() { return kPanelLanes; }

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(multiply_panels_here);
HWY_EXPORT(apply_gates_here);
HWY_EXPORT(panel_lanes_here);

void multiply_panels(const GateProduct& product, const PanelRow* rows, int64_t count, int64_t first,
                     int64_t last) {
  if (product.words || product.dynamic)
    return multiply_byte_panels(product, rows, count, first, last);
  HWY_DYNAMIC_DISPATCH(multiply_panels_here)(product, rows, count, first, last);
}
void apply_gates(const PanelGates& gates, const PanelRow* rows, int64_t count, int64_t first,
                 int64_t last) {
  HWY_DYNAMIC_DISPATCH(apply_gates_here)(gates, rows, count, first, last);
}
int64_t panel_lanes() {
  isa();  // decides first
  return HWY_DYNAMIC_DISPATCH(panel_lanes_here)();
}

}  // namespace anymps::cpu
#endif
