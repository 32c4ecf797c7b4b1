// SPDX-License-Identifier: Apache-2.0
// softmax and log_softmax along any axis: line by line when the axis is innermost in memory, many
// lines side by side when another axis is.
#include <cmath>
#include <limits>

#include "drivers/cpu/common/loops.h"
#include "drivers/cpu/common/row_access.h"
#include "drivers/cpu/common/row_ops.h"
#include "drivers/cpu/common/short_rows.h"
#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"
#include "semantics/softmax.h"

namespace anymps::cpu {

namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr int64_t kColumns = 256;
constexpr int64_t kLeastColumns = 32;  // with fewer, calls take longer than to pick out each line

class Softmax final : public Kernel {
 public:
  Softmax(const KernelRequest& request, bool log) : log_(log) {
    const TensorDesc &x = request.in(0), &y = request.out();
    const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), request.op->name.c_str());
    dtype_ = x.dtype;
    element_ = size_of(x.dtype);
    length_ = x.shape[axis];
    x_step_ = x.strides[axis];
    y_step_ = y.strides[axis];
    Shape rest = x.shape;
    rest[axis] = 1;
    if (length_ == 0) rest[axis] = 0;
    lines_ = make_loops(rest, {y.strides, x.strides});
    if (dtype_ != DType::kF64) {
      x_ = RowAccess(dtype_, x_step_);
      y_ = RowAccess(dtype_, y_step_);
    }
    // Lines side by side: the innermost loop is dense in both tensors and the axis is not.
    if (dtype_ != DType::kF64 && !lines_.extents.empty() && length_ > 1 && x_step_ != 1 &&
        lines_.strides[0].back() == 1 && lines_.strides[1].back() == 1 &&
        lines_.extents.back() >= kLeastColumns) {
      columns_ = lines_.extents.back();
      lines_.extents.pop_back();
      for (Strides& strides : lines_.strides) strides.pop_back();
      x_ = y_ = RowAccess(dtype_, 1);
    }
    in_place_ = x == y;
  }

  void run(const KernelArgs& args) const override {
    const int64_t lines = length_ == 0 ? 0 : lines_.count();
    const bool direct = columns_ > 0 || (x_.direct() && y_.direct());
    const double ns = static_cast<double>(length_) * (dtype_ == DType::kF64 ? 15.0
                                                      : direct              ? 0.8
                                                                            : 2.0);
    if (columns_ == 0 && dtype_ == DType::kF32 && direct && length_ <= short_row_ops().most) {
      parallel_for(0, lines, 5 + 0.5 * ns,
                   [&](int64_t begin, int64_t end) { short_lines(args, begin, end); });
      return;
    }
    if (columns_ == 0) {
      parallel_for(0, lines, 10 + ns, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const void* x = at(args.inputs[0], lines_.offset(1, i));
          void* y = at(args.outputs[0], lines_.offset(0, i));
          if (dtype_ == DType::kF64)
            line_f64(static_cast<const double*>(x), static_cast<double*>(y));
          else if (x_.direct() && y_.direct())
            line(static_cast<const float*>(x), static_cast<float*>(y));
          else
            line_in_tiles(x, y);
        }
      });
      return;
    }
    const int64_t blocks = (columns_ + kColumns - 1) / kColumns;
    parallel_for(0, lines * blocks, ns * static_cast<double>(std::min(columns_, kColumns)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i % blocks * kColumns, line = i / blocks;
                     columns(at(args.inputs[0], lines_.offset(1, line) + first),
                             at(args.outputs[0], lines_.offset(0, line) + first),
                             std::min(kColumns, columns_ - first));
                   }
                 });
  }
  bool in_place(size_t input, size_t output) const override {
    return input == 0 && output == 0 && in_place_;
  }

 private:
  template <typename T>
  T* at(T* base, int64_t offset) const {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return static_cast<Byte*>(base) + offset * element_;
  }

  void short_lines(const KernelArgs& args, int64_t begin, int64_t end) const {
    const auto run = log_ ? short_row_ops().log_softmax : short_row_ops().softmax;
    lines_.for_lines(begin, end, [&](int64_t first, int64_t rows) {
      run({static_cast<const float*>(args.inputs[0]) + lines_.offset(1, first), lines_.last_step(1),
           static_cast<float*>(args.outputs[0]) + lines_.offset(0, first), lines_.last_step(0),
           rows, static_cast<size_t>(length_)});
    });
  }

  void line(const float* x, float* y) const {
    const RowOps& ops = row_ops();
    const size_t n = length_;
    const float highest = ops.max_number(x, n);
    double sum = 0;
    for_row_tiles(length_, [&](int64_t i, int64_t part) {
      sum += ops.exp_sum(x + i, highest, log_ ? nullptr : y + i, part);
    });
    if (log_)
      ops.affine(x, highest, 1, -static_cast<float>(std::log(sum)), y, n);
    else
      ops.affine(y, 0, static_cast<float>(1 / sum), 0, y, n);
  }

  // The same for halves and strided lines: of long ones, exponentials are computed twice instead of
  // being kept.
  void line_in_tiles(const void* x, void* y) const {
    const RowOps& ops = row_ops();
    alignas(64) float in[kRowTile], out[kRowTile];
    if (length_ <= kRowTile) {
      float* to = y_.target(y, 0, out);
      line(x_.read(x, 0, length_, in), to);
      return y_.write(y, 0, length_, to);
    }
    float highest = kLowest;
    for_row_tiles(length_, [&](int64_t i, int64_t n) {
      highest = std::max(highest, ops.max_number(x_.read(x, i, n, in), static_cast<size_t>(n)));
    });
    double sum = 0;
    for_row_tiles(length_, [&](int64_t i, int64_t n) {
      sum += ops.exp_sum(x_.read(x, i, n, in), highest, nullptr, n);
    });
    for_row_tiles(length_, [&](int64_t i, int64_t part) {
      const size_t n = part;
      const float* values = x_.read(x, i, part, in);
      if (log_) {
        ops.affine(values, highest, 1, -static_cast<float>(std::log(sum)), out, n);
      } else {
        ops.exp_sum(values, highest, out, n);
        ops.affine(out, 0, static_cast<float>(1 / sum), 0, out, n);
      }
      float* to = y_.target(y, i, out);
      if (to != out) std::copy_n(out, part, to);
      y_.write(y, i, part, out);
    });
  }

  void line_f64(const double* x, double* y) const {
    const SoftmaxLine line = softmax_line(x, x_step_, length_, [](int64_t, double) {});
    const double log_sum = std::log(line.sum);
    for (int64_t i = 0; i < length_; ++i) {
      const double shifted = x[i * x_step_] - line.highest;
      y[i * y_step_] = log_ ? shifted - log_sum : std::exp(shifted) / line.sum;
    }
  }

  void columns(const void* x, void* y, int64_t n) const {
    static const TileFn max = find_tile_op("max_number", DType::kF32)->run,
                        sub = find_tile_op("sub", DType::kF32)->run,
                        add = find_tile_op("add", DType::kF32)->run,
                        exp = find_tile_op("exp", DType::kF32)->run,
                        div = find_tile_op("div", DType::kF32)->run,
                        log = find_tile_op("log", DType::kF32)->run;
    const size_t count = n;
    alignas(64) float in[kColumns], out[kColumns], highest[kColumns], sum[kColumns];
    const auto call = [&](TileFn fn, const float* a, const float* b, float* to) {
      fn({{a, b, nullptr}, to, count, kNoParams});
    };
    const auto read = [&](int64_t i) { return x_.read(at(x, i * x_step_), 0, n, in); };
    std::fill_n(highest, n, kLowest);
    std::fill_n(sum, n, 0.0f);
    for (int64_t i = 0; i < length_; ++i) call(max, read(i), highest, highest);
    for (int64_t i = 0; i < length_; ++i) {
      call(sub, read(i), highest, out);
      call(exp, out, nullptr, out);
      call(add, sum, out, sum);
    }
    if (log_) call(log, sum, nullptr, sum);
    for (int64_t i = 0; i < length_; ++i) {
      void* row = at(y, i * y_step_);
      float* to = y_.target(row, 0, out);
      call(sub, read(i), highest, to);
      if (log_) {
        call(sub, to, sum, to);
      } else {
        call(exp, to, nullptr, to);
        call(div, to, sum, to);
      }
      y_.write(row, 0, n, to);
    }
  }

  static constexpr double kNoParams[kTileParams] = {};

  bool log_ = false, in_place_ = false;
  DType dtype_ = DType::kF32;
  int64_t element_ = 4;
  int64_t length_ = 0, x_step_ = 1, y_step_ = 1, columns_ = 0;
  Loops lines_;  // operands y, x
  RowAccess x_, y_;
};

const KernelRegistrar kSoftmax("cpu", "softmax", "simd", 10,
                               [](const KernelRequest& request, std::string&) -> KernelPtr {
                                 return std::make_shared<Softmax>(request, false);
                               });
const KernelRegistrar kLogSoftmax("cpu", "log_softmax", "simd", 10,
                                  [](const KernelRequest& request, std::string&) -> KernelPtr {
                                    return std::make_shared<Softmax>(request, true);
                                  });

}  // namespace

}  // namespace anymps::cpu
