// SPDX-License-Identifier: Apache-2.0
// Products of matrices of the dtypes that oneDNN does not multiply: f64, integers (which wrap) and
// complex numbers. Both operands are packed into scratch memory as the vector code reads them, so
// that it does not matter how they lie.
#pragma once

#include "drivers/cpu/common/loops.h"
#include "drivers/cpu/linear/typed_gemm_simd.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

// y[batch, rows, columns] = a[batch, rows, depth] * b[batch, depth, columns].
class TypedGemm {
 public:
  struct Matrix {  // strides of its rows and columns
    int64_t row = 0, column = 0;
  };
  using Pack = std::function<void(const void* from, int64_t entry, int64_t first, int64_t count,
                                  int64_t width, void* to)>;
  struct Problem {
    DType dtype = DType::kF64;
    int64_t rows = 0, depth = 0, columns = 0;
    Matrix a, b, y;
    Loops batch;  // operands: a, b, y
    // Where an operand is not a matrix in memory, what writes `count` rows of a, or columns of b,
    // from `first` on as to[depth, width], in lanes; zeros after the count.
    Pack pack_a, pack_b;
    // One b serves many products with up to `rows` rows, whose numbers do not depend on how many
    // go at a time: pack, then run_rows. Rows of a and y are dense; there is no batch.
    bool keeps_b = false;
  };

  static bool has(DType dtype);
  explicit TypedGemm(Problem problem);

  size_t scratch_bytes() const;
  // y's memory must not be that of a or b. Adds to what is in y, or writes it.
  void run(const void* a, const void* b, void* y, void* scratch, bool adds = false) const;
  // With keeps_b: what run_rows reads of b, which must stay where it is.
  void pack(const void* b, void* scratch) const;
  void run_rows(const void* a, const void* b, int64_t rows, void* y, void* scratch) const;

 private:
  struct Part;

  // Columns are cut into panels of nearly the same width, in whole vectors; this is the first
  // column of panel i.
  int64_t begin(int64_t panel) const;
  void pack_a(const Part& part, int64_t entry, int64_t tile) const;
  void pack_b(const Part& part, int64_t entry, int64_t panel) const;
  void multiply(const Part& part, int64_t entry, int64_t row, int64_t rows, int64_t panel) const;
  Part part_of(const void* a, const void* b, void* y, void* scratch) const;
  void pack_all(const Part& part) const;
  void multiply_all(const Part& part, int64_t rows) const;
  void run_dots(const Part& part) const;
  void run_part(const Part& part) const;
  void write(const Part& part, int64_t entry, int64_t row) const;

  Problem p_;
  TypedGemmCode code_;
  int64_t lane_ = 0;   // bytes of what is computed in: an element, or 16 bits of a byte
  int64_t parts_ = 1;  // real and imaginary
  int64_t vectors_ = 0, panels_ = 0, tiles_ = 0;
  bool swapped_ = false;  // the product of the transposed matrices, for a single column
  bool packs_a_ = false, writes_ = false, dots_ = false;
  int64_t packed_ = 0;                            // the first panel of b that is packed
  int64_t a_size_ = 0, b_size_ = 0, y_size_ = 0;  // of a packed matrix, in bytes
  int64_t group_ = 1;                             // entries of the batch that are packed at a time
};

}  // namespace anymps::cpu
