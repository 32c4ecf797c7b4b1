// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/linear/packing/weight_packing.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

using dnnl::memory;

constexpr int64_t kQuad = 4;
using Quad = float __attribute__((vector_size(16)));

inline Quad load(const float* from) {
  Quad quad;
  std::memcpy(&quad, from, sizeof(quad));
  return quad;
}

inline void store(Quad quad, float* to) { std::memcpy(to, &quad, sizeof(quad)); }

constexpr int64_t kColumns = 64;    // of a tile: with a block of 64 lanes it fits the L1 cache
constexpr double kElementNs = 0.5;  // to pack one element
constexpr int64_t kMostColumns = 1 << 22;

// A packed tensor is blocks of lanes, the innermost axis, times columns, all other axes.
struct Packing {
  int64_t lanes = 0;        // extent of the blocked axis
  int64_t block = 0;        // lanes in a block
  int64_t lane_stride = 0;  // in the plain tensor
  int64_t block_stride = 0;
  std::vector<int64_t> from, to;  // offsets of the columns
  bool padded = false;            // columns that are not in the plain tensor
};

// Appends an axis to the columns' offsets.
void add_axis(Packing& p, int64_t extent, int64_t from_stride, int64_t to_stride,
              int64_t inner_block, int64_t inner_stride) {
  std::vector<int64_t> from, to;
  from.reserve(p.from.size() * static_cast<size_t>(extent));
  to.reserve(p.to.size() * static_cast<size_t>(extent));
  for (size_t c = 0; c < p.from.size(); ++c)
    for (int64_t i = 0; i < extent; ++i) {
      from.push_back(p.from[c] + i * from_stride);
      to.push_back(p.to[c] + i / inner_block * to_stride + i % inner_block * inner_stride);
    }
  p.from = std::move(from);
  p.to = std::move(to);
}

Packing packing(const memory::desc& from, const memory::desc& to) {
  const memory::dims dims = from.get_dims(), padded = to.get_padded_dims();
  const memory::dims from_strides = from.get_strides(), to_strides = to.get_strides();
  const memory::dims blocks = to.get_inner_blks(), axes = to.get_inner_idxs();
  const size_t lane_axis = axes.back();
  Packing p;
  p.lanes = dims[lane_axis];
  p.block = blocks.back();
  p.lane_stride = from_strides[lane_axis];
  p.block_stride = to_strides[lane_axis];
  p.from = p.to = {0};
  // The axis that is innermost in the plain tensor comes last: columns follow each other there.
  std::vector<size_t> order;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (axis == lane_axis) continue;
    order.push_back(axis);
    p.padded = p.padded || padded[axis] != dims[axis];
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return from_strides[a] > from_strides[b]; });
  for (const size_t axis : order) {
    const bool inner = axes.size() == 2 && static_cast<size_t>(axes[0]) == axis;
    add_axis(p, dims[axis], from_strides[axis], to_strides[axis], inner ? blocks[0] : 1,
             inner ? p.block : 0);
  }
  return p;
}

// Four lanes of four columns that follow each other in the plain tensor.
inline void transpose_quad(const float* from, int64_t stride, float* to, const int64_t* columns) {
  const Quad a = load(from), b = load(from + stride);
  const Quad c = load(from + 2 * stride), d = load(from + 3 * stride);
  const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), to + columns[0]);
  store(__builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7), to + columns[1]);
  store(__builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), to + columns[2]);
  store(__builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7), to + columns[3]);
}

// Columns [begin, end) of `lanes` lanes.
void pack_tile(const Packing& p, int64_t lanes, int64_t begin, int64_t end, const float* from,
               float* to) {
  const int64_t* source = p.from.data();
  const int64_t* target = p.to.data();
  if (p.lane_stride == 1) {
    for (int64_t c = begin; c < end; ++c)
      std::memcpy(to + target[c], from + source[c], static_cast<size_t>(lanes) * sizeof(float));
    return;
  }
  int64_t lane = 0;
  for (; lane + kQuad <= lanes; lane += kQuad) {
    const float* rows = from + lane * p.lane_stride;
    for (int64_t c = begin; c < end;) {
      if (c + kQuad <= end && source[c + kQuad - 1] == source[c] + kQuad - 1) {
        transpose_quad(rows + source[c], p.lane_stride, to + lane, target + c);
        c += kQuad;
        continue;
      }
      for (int64_t k = 0; k < kQuad; ++k)
        to[target[c] + lane + k] = rows[source[c] + k * p.lane_stride];
      ++c;
    }
  }
  for (; lane < lanes; ++lane)
    for (int64_t c = begin; c < end; ++c)
      to[target[c] + lane] = from[source[c] + lane * p.lane_stride];
}

// One block, of which `lanes` lanes are in the plain tensor.
void pack_block(const Packing& p, int64_t lanes, const float* from, float* to) {
  const auto columns = std::ssize(p.from);
  if (lanes < p.block && !p.padded)
    for (const int64_t column : p.to)
      std::memset(to + column + lanes, 0, static_cast<size_t>(p.block - lanes) * sizeof(float));
  for (int64_t c = 0; c < columns; c += kColumns)
    pack_tile(p, lanes, c, std::min(columns, c + kColumns), from, to);
}

}  // namespace

bool can_pack_weights(const memory::desc& from, const memory::desc& to) {
  const memory::dims axes = to.get_inner_idxs();
  if (from.get_data_type() != memory::data_type::f32 || to.get_data_type() != from.get_data_type())
    return false;
  if (from.get_inner_nblks() != 0 || axes.empty() || axes.size() > 2) return false;
  if (axes.size() == 2 && axes[0] == axes[1]) return false;
  int64_t columns = 1;
  for (const int64_t extent : from.get_dims()) columns *= extent;
  return columns > 0 && columns / from.get_dims()[axes.back()] <= kMostColumns;
}

void pack_weights(const memory::desc& from, const float* plain, const memory::desc& to,
                  float* packed) {
  const Packing p = packing(from, to);
  const int64_t blocks = (p.lanes + p.block - 1) / p.block;
  const auto columns = std::ssize(p.from);
  if (p.padded) std::memset(packed, 0, to.get_size());
  const auto work = static_cast<double>(p.block * columns) * kElementNs;
  parallel_for(0, blocks, work, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t lanes = std::min(p.block, p.lanes - block * p.block);
      const float* source = plain + block * p.block * p.lane_stride;
      float* target = packed + block * p.block_stride;
      pack_block(p, lanes, source, target);
    }
  });
}

}  // namespace anymps::cpu
