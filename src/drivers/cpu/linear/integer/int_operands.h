// SPDX-License-Identifier: Apache-2.0
// What products of bytes need to know of their operands: zero points, strides, packed panels, and
// how a result is scaled.
#pragma once

#include <string>

#include "drivers/cpu/linear/int_gemm.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

int load_byte(DType dtype, const void* data, int64_t at);
// What lies behind so many bytes begins with a cache line.
inline int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// A strided matrix of bytes, with a zero point for each place along one of its axes.
struct IntMatrix {
  DType dtype = DType::kU8;
  int64_t row = 0, column = 0;  // strides
  int64_t zero_step = 0;        // between the zero points of neighbours; 0: one for all
};

// With VNNI one operand is i8 and the other u8: elements of the other kind move by 128, and their
// zero points with them.
inline bool flips_to_signed(const IntPacking& packing, DType dtype) {
  return packing.bytes && dtype == DType::kU8;
}
inline bool flips_to_unsigned(const IntPacking& packing, DType dtype) {
  return packing.bytes && dtype == DType::kI8;
}

// A panel of columns [0, columns) of a matrix at `from`.
void pack_int_panel(const IntPacking& packing, const IntMatrix& b, bool flip, const uint8_t* from,
                    int64_t depth, int64_t columns, void* to);
// Sums of the columns of a packed panel, of i8 or, with `is_unsigned`, of u8. `ones` holds words as
// fill_ones wrote them: ones, and zeros behind them, for what fills up a panel may be flipped.
void fill_ones(const IntPacking& packing, int64_t depth, void* to);
void sum_int_panel(const IntPacking& packing, const void* panel, int64_t words, int64_t columns,
                   bool is_unsigned, const void* ones, int32_t* sums);

// What becomes of the sums of a product's columns, filled up to whole panels: what each begins
// with, its scale, its bias.
struct IntColumns {
  const uint8_t* memory = nullptr;
  int64_t padded = 0;
  bool direct = false;  // IntProduct::direct

  // For a product that begins with column `first`.
  void set(IntProduct& p, const IntTail& tail, int64_t first) const;
};

// A right operand as products want it: its panels, then of each column the sum and the zero point.
struct IntRight {
  IntPacking packing = int_packing();
  int64_t depth = 0, columns = 0;

  int64_t words() const { return packing.words(depth); }
  int64_t full() const { return packing.vectors * packing.lanes; }  // columns of a panel
  int64_t panels() const { return (columns + full() - 1) / full(); }
  int64_t columns_of(int64_t panel) const { return std::min(full(), columns - panel * full()); }
  int64_t panel_bytes() const { return words() * full() * 4; }
  int64_t bytes() const { return tails_at() + 2 * panels() * full() * 4; }

  // Panel `panel` of a matrix at `from`, with its sums and its zero points (null: 0).
  void pack(const IntMatrix& b, const uint8_t* from, const void* zeros, const void* ones,
            int64_t panel, uint8_t* to) const;
  const int32_t* sums(const uint8_t* packed) const {
    return reinterpret_cast<const int32_t*>(packed + tails_at());
  }
  const int32_t* zeros(const uint8_t* packed) const { return sums(packed) + panels() * full(); }
  // Whether they are zero all, so that the sums of the other operand's rows do not matter.
  bool plain(const uint8_t* packed) const;
  // For products whose left operand has this zero point. `tail`: of the first column.
  IntColumns ends(const uint8_t* packed, int32_t left_zero, const IntTail& tail,
                  uint8_t* memory) const;
  int64_t ends_bytes() const { return aligned(3 * padded() * 4); }

 private:
  int64_t padded() const { return panels() * full(); }
  int64_t tails_at() const { return aligned(panels() * panel_bytes()); }
};

// The tail of an op whose inputs 4, 5 and 6 are scale, bias and y_zero_point, if it has any.
class IntEnd {
 public:
  // False, with the reason, if it cannot be done. `count`: of the rows or columns that are scaled.
  bool init(const KernelRequest& request, int64_t count, bool by_rows, const char* alpha,
            const char* beta, std::string& why);
  IntTail tail(const KernelArgs& args) const;

 private:
  IntTail tail_;
  bool scales_ = false, has_scale_ = false, has_bias_ = false, has_zero_ = false;
};

}  // namespace anymps::cpu
