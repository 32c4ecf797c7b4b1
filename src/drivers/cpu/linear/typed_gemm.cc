// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/linear/typed_gemm.h"

#include <algorithm>
#include <cstring>

#include "drivers/cpu/linear/typed_gemm_pack.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kDepthBlock = 256;      // a panel of so many rows stays in the L2 cache
constexpr int64_t kMostTiles = 8;         // of a task
constexpr int64_t kFewRows = 12;          // for which packing b takes longer than it saves
constexpr int64_t kGroupBytes = 4 << 20;  // of packed matrices at a time, which caches hold
constexpr double kPackNs = 0.7;           // an element
constexpr int64_t kAlign = 64;

int64_t up_to(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

GemmLane lane_of(DType dtype) {
  switch (dtype) {
    case DType::kI8:
    case DType::kU8:
    case DType::kI16:
    case DType::kU16:
      return GemmLane::kI16;
    case DType::kI32:
    case DType::kU32:
      return GemmLane::kI32;
    case DType::kI64:
    case DType::kU64:
      return GemmLane::kI64;
    case DType::kC64:
      return GemmLane::kC64;
    case DType::kF32:
      return GemmLane::kF32;
    case DType::kC128:
      return GemmLane::kC128;
    default:
      return GemmLane::kF64;
  }
}

}  // namespace

// Some entries of the batch, and their packed forms.
struct TypedGemm::Part {
  const char *a, *b;
  char* y;
  char *packed_a, *packed_b, *product;
  int64_t first, count;
  bool adds;

  const char* at_a(const TypedGemm& g, int64_t entry) const {
    return a + g.p_.batch.offset(0, first + entry) * static_cast<int64_t>(size_of(g.p_.dtype));
  }
  const char* at_b(const TypedGemm& g, int64_t entry) const {
    return b + g.p_.batch.offset(1, first + entry) * static_cast<int64_t>(size_of(g.p_.dtype));
  }
  char* at_y(const TypedGemm& g, int64_t entry) const {
    return y + g.p_.batch.offset(2, first + entry) * static_cast<int64_t>(size_of(g.p_.dtype));
  }
};

bool TypedGemm::has(DType dtype) { return contains(kTypedGemm, dtype); }

TypedGemm::TypedGemm(Problem problem) : p_(std::move(problem)) {
  code_ = typed_gemm_code(lane_of(p_.dtype));
  const auto transposed = [](Matrix m) { return Matrix{m.column, m.row}; };
  if (p_.columns == 1 && p_.rows > 1 && !p_.pack_a && !p_.pack_b && !p_.keeps_b) {
    swapped_ = true;
    std::swap(p_.rows, p_.columns);
    const Matrix a = p_.a;
    p_.a = transposed(p_.b);
    p_.b = transposed(a);
    p_.y = transposed(p_.y);
    std::swap(p_.batch.strides[0], p_.batch.strides[1]);
  }
  const auto element = static_cast<int64_t>(size_of(p_.dtype));
  lane_ = std::max<int64_t>(element, 2);
  parts_ = contains(kComplex, p_.dtype) ? 2 : 1;
  vectors_ = (p_.columns + code_.lanes - 1) / code_.lanes;
  panels_ = std::max<int64_t>(1, (vectors_ + code_.vectors - 1) / code_.vectors);
  tiles_ = (p_.rows + code_.rows - 1) / code_.rows;
  const bool as_is = lane_ == element;
  writes_ = !as_is || (p_.y.column != 1 && p_.columns > 1);
  dots_ = p_.rows == 1 && as_is && code_.dots && p_.a.column == 1 && p_.b.row == 1 &&
          p_.depth > 1 && !p_.pack_a && !p_.pack_b;
  packs_a_ = p_.pack_a || !as_is || (p_.a.column != 1 && p_.depth > 1);
  const bool in_place =
      as_is && p_.b.column == 1 && p_.rows <= kFewRows && !p_.pack_b && !p_.keeps_b;
  // Vectors must be whole: of what is read in place, the last panel may have to be packed.
  packed_ = !in_place ? 0 : p_.columns % code_.lanes == 0 ? panels_ : panels_ - 1;
  if (dots_) {
    writes_ = packs_a_ = false;
    packed_ = panels_;
  }
  if (packs_a_) a_size_ = up_to(tiles_ * code_.rows * p_.depth * lane_, kAlign);
  b_size_ = up_to((vectors_ * code_.lanes - begin(packed_)) * p_.depth * lane_, kAlign);
  if (writes_) y_size_ = up_to(p_.rows * p_.columns * lane_, kAlign);
  const int64_t bytes = std::max<int64_t>(1, a_size_ + b_size_ + y_size_);
  group_ = std::clamp<int64_t>(kGroupBytes / bytes, 1, std::max<int64_t>(1, p_.batch.count()));
}

int64_t TypedGemm::begin(int64_t panel) const {
  return (panel * (vectors_ / panels_) + std::min(panel, vectors_ % panels_)) * code_.lanes;
}

size_t TypedGemm::scratch_bytes() const { return group_ * (a_size_ + b_size_ + y_size_); }

void TypedGemm::run(const void* a, const void* b, void* y, void* scratch, bool adds) const {
  require(!(adds && dots_), "[cpu] products of one row cannot be added");
  if (swapped_) std::swap(a, b);
  const int64_t batch = p_.batch.count();
  for (int64_t first = 0; first < batch; first += group_) {
    Part part = part_of(a, b, y, scratch);
    part.first = first;
    part.count = std::min(group_, batch - first);
    part.adds = adds;
    run_part(part);
  }
}

TypedGemm::Part TypedGemm::part_of(const void* a, const void* b, void* y, void* scratch) const {
  auto* const memory = static_cast<char*>(scratch);
  return {static_cast<const char*>(a),
          static_cast<const char*>(b),
          static_cast<char*>(y),
          memory,
          memory + group_ * a_size_,
          memory + group_ * (a_size_ + b_size_),
          0,
          1,
          false};
}

void TypedGemm::pack(const void* b, void* scratch) const {
  if (!dots_) pack_all(part_of(nullptr, b, nullptr, scratch));
}

void TypedGemm::run_rows(const void* a, const void* b, int64_t rows, void* y, void* scratch) const {
  const Part part = part_of(a, b, y, scratch);
  if (dots_) return run_dots(part);
  multiply_all(part, rows);
}

namespace {

// fn(entry, i) for `count` of each of the entries.
template <typename Fn>
void for_each_part(int64_t entries, int64_t count, double ns, const Fn& fn) {
  parallel_for(0, entries * count, ns, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) fn(i / count, i % count);
  });
}

}  // namespace

void TypedGemm::run_part(const Part& part) const {
  if (dots_) return run_dots(part);
  const auto depth = static_cast<double>(p_.depth);
  if (packs_a_)
    for_each_part(part.count, tiles_, depth * static_cast<double>(code_.rows) * kPackNs,
                  [&](int64_t entry, int64_t tile) { pack_a(part, entry, tile); });
  pack_all(part);
  multiply_all(part, p_.rows);
  if (writes_)
    for_each_part(part.count, p_.rows, static_cast<double>(p_.columns) * kPackNs,
                  [&](int64_t entry, int64_t row) { write(part, entry, row); });
}

void TypedGemm::pack_all(const Part& part) const {
  if (packed_ >= panels_) return;
  const double ns = static_cast<double>(p_.depth) * static_cast<double>(p_.columns) /
                    static_cast<double>(panels_) * kPackNs;
  for_each_part(part.count, panels_ - packed_, ns,
                [&](int64_t entry, int64_t i) { pack_b(part, entry, packed_ + i); });
}

void TypedGemm::multiply_all(const Part& part, int64_t all) const {
  const double width = static_cast<double>(p_.columns) / static_cast<double>(panels_);
  const int64_t count = (all + code_.rows - 1) / code_.rows;
  const int threads = current_threads();
  int64_t tiles = kMostTiles;
  while (tiles > 1 && (count + tiles - 1) / tiles * panels_ * part.count < 4 * threads) tiles /= 2;
  const int64_t chunks = (count + tiles - 1) / tiles, rows = tiles * code_.rows;
  const double flops =
      2 * static_cast<double>(p_.depth) * width * static_cast<double>(std::min(rows, all) * parts_);
  // What is smaller is read again and again: it stays in a core's cache.
  const bool by_panels = p_.columns > all;
  for_each_part(part.count, chunks * panels_, flops / (6 * static_cast<double>(code_.lanes)),
                [&](int64_t entry, int64_t task) {
                  const int64_t chunk = by_panels ? task % chunks : task / panels_;
                  multiply(part, entry, chunk * rows, std::min(rows, all - chunk * rows),
                           by_panels ? task / chunks : task % panels_);
                });
}

void TypedGemm::pack_a(const Part& part, int64_t entry, int64_t tile) const {
  const int64_t row = tile * code_.rows;
  const int64_t rows = std::min(code_.rows, p_.rows - row);
  if (p_.pack_a)
    return p_.pack_a(part.a, part.first + entry, row, rows, code_.rows,
                     part.packed_a + entry * a_size_ + row * p_.depth * lane_);
  with_lane(p_.dtype, [&]<typename T, typename Lane>() {
    auto* const to = reinterpret_cast<Lane*>(part.packed_a + entry * a_size_);
    pack_elements(reinterpret_cast<const T*>(part.at_a(*this, entry)) + row * p_.a.row, p_.a.column,
                  p_.a.row, p_.depth, rows, code_.rows, to + row * p_.depth);
  });
}

void TypedGemm::pack_b(const Part& part, int64_t entry, int64_t panel) const {
  const int64_t from = begin(panel), end = begin(panel + 1);
  const int64_t columns = std::min(end, p_.columns) - from;
  if (p_.pack_b)
    return p_.pack_b(part.b, part.first + entry, from, columns, end - from,
                     part.packed_b + entry * b_size_ + (from - begin(packed_)) * p_.depth * lane_);
  with_lane(p_.dtype, [&]<typename T, typename Lane>() {
    const auto pack = [&](auto* to) {
      pack_elements(reinterpret_cast<const T*>(part.at_b(*this, entry)) + from * p_.b.column,
                    p_.b.row, p_.b.column, p_.depth, columns, end - from,
                    to + (from - begin(packed_)) * p_.depth * parts_);
    };
    char* const to = part.packed_b + entry * b_size_;
    if constexpr (scalar::kIsComplex<T>)
      pack(reinterpret_cast<typename T::value_type*>(to));
    else
      pack(reinterpret_cast<Lane*>(to));
  });
}

void TypedGemm::multiply(const Part& part, int64_t entry, int64_t row, int64_t rows,
                         int64_t panel) const {
  const int64_t from = begin(panel), width = begin(panel + 1) - from;
  const bool packed = panel >= packed_;
  TypedPanel t;
  t.rows = rows;
  t.columns = std::min(width, p_.columns - from);
  t.a_tile = packs_a_ ? code_.rows * p_.depth : code_.rows * p_.a.row;
  t.a_row = packs_a_ ? 1 : p_.a.row;
  t.a_depth = packs_a_ ? code_.rows : p_.a.column;
  t.b_depth = (packed ? width : p_.b.row) * parts_;
  t.b_packed = packed;
  t.y_row = writes_ ? p_.columns : p_.y.row;
  const char* a = packs_a_ ? part.packed_a + entry * a_size_ + row * p_.depth * lane_
                           : part.at_a(*this, entry) + row * p_.a.row * lane_;
  const char* b = packed
                      ? part.packed_b + entry * b_size_ + (from - begin(packed_)) * p_.depth * lane_
                      : part.at_b(*this, entry) + from * lane_;
  t.y = (writes_ ? part.product + entry * y_size_ : part.at_y(*this, entry)) +
        (row * t.y_row + from) * lane_;
  int64_t k = 0;
  do {
    t.depth = std::min(kDepthBlock, p_.depth - k);
    t.adds = k > 0 || (part.adds && !writes_);
    t.a = a + k * t.a_depth * lane_;
    t.b = b + k * t.b_depth * (lane_ / parts_);
    code_.panel(t);
  } while ((k += kDepthBlock) < p_.depth);
}

void TypedGemm::run_dots(const Part& part) const {
  constexpr int64_t kColumns = 16;  // of a task
  const int64_t tasks = (p_.columns + kColumns - 1) / kColumns;
  const double ns =
      static_cast<double>(kColumns * p_.depth) / (2 * static_cast<double>(code_.lanes));
  parallel_for(0, part.count * tasks, ns, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t entry = i / tasks, column = i % tasks * kColumns;
      TypedDots d;
      d.count = std::min(kColumns, p_.columns - column);
      d.depth = p_.depth;
      d.x = part.at_a(*this, entry);
      d.w = part.at_b(*this, entry) + column * p_.b.column * lane_;
      d.w_row = p_.b.column;
      d.y = part.at_y(*this, entry) + column * p_.y.column * lane_;
      d.y_step = p_.y.column;
      code_.dots(d);
    }
  });
}

// A row of the product, to where it belongs.
void TypedGemm::write(const Part& part, int64_t entry, int64_t row) const {
  with_lane(p_.dtype, [&]<typename T, typename Lane>() {
    const auto* from =
        reinterpret_cast<const Lane*>(part.product + entry * y_size_) + row * p_.columns;
    auto* to = reinterpret_cast<T*>(part.at_y(*this, entry)) + row * p_.y.row;
    for (int64_t j = 0; j < p_.columns; ++j) {
      T& y = to[j * p_.y.column];
      y = part.adds ? scalar::add(y, static_cast<T>(from[j])) : static_cast<T>(from[j]);
    }
  });
}

}  // namespace anymps::cpu
