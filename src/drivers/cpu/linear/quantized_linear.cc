// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of bytes, exact on every processor: operands less their zero points fit
// 16 bits, and sums of products of those are what the vector units compute without loss. (The
// instructions for bytes proper saturate on processors without VNNI.)
#include <cstring>
#include <limits>
#include <vector>

#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/linear/int_gemm.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"
#include "ops/layers/window.h"

namespace anymps::cpu {

namespace {

int load_byte(DType dtype, const void* data, int64_t at) {
  return dtype == DType::kI8 ? static_cast<const int8_t*>(data)[at]
                             : static_cast<const uint8_t*>(data)[at];
}

// A strided matrix of bytes, with a zero point for each place along one of its axes.
struct Bytes {
  DType dtype = DType::kU8;
  int64_t row = 0, column = 0;  // strides
  int64_t zero_step = 0;        // between the zero points of neighbours; 0: one for all
};

constexpr int64_t kOutside = std::numeric_limits<int64_t>::min();  // of the tensor: the border

double product_ns(int64_t rows, int64_t depth) {
  return 2 + static_cast<double>(rows * depth * kIntPanel) * 0.015;
}

class MatmulInteger final : public Kernel {
 public:
  int64_t rows_ = 1, columns_ = 1, depth_ = 0, batches_ = 1;
  Bytes a_, b_;
  std::vector<int64_t> a_offsets_, b_offsets_;  // of each product of a batch
  int64_t y_row_ = 0, y_step_ = 0;
  bool has_a_zero_ = false, has_b_zero_ = false;
  DType b_zero_type_ = DType::kU8;
  BufferRef packed_;  // b, where it is constant

  int64_t panels() const { return (columns_ + kIntPanel - 1) / kIntPanel; }
  size_t a_elements() const { return rows_ * even(depth_); }

  size_t scratch_bytes() const override {
    const size_t b = packed_ ? 0 : static_cast<size_t>(panels()) * panel_elements(depth_);
    return (a_elements() + b) * sizeof(int16_t) + 64;
  }
  bool reads(size_t i) const override { return !(packed_ && (i == 1 || i == 3)); }
  std::string detail() const override { return packed_ ? "i16 packed" : "i16"; }

  void run(const KernelArgs& args) const override {
    auto* a = static_cast<int16_t*>(args.scratch);
    int16_t* b =
        packed_ ? static_cast<int16_t*>(packed_->data()) : a + (a_elements() + 31) / 32 * 32;
    for (int64_t batch = 0; batch < batches_; ++batch) {
      pack_a(args, batch, a);
      const void* source = args.inputs[1];
      auto* y = static_cast<int32_t*>(args.outputs[0]) + batch * y_step_;
      parallel_for(0, panels(), product_ns(rows_, depth_), [&](int64_t begin, int64_t end) {
        for (int64_t panel = begin; panel < end; ++panel) {
          int16_t* to = b + panel * static_cast<int64_t>(panel_elements(depth_));
          if (!packed_)
            pack_panel(source, b_offsets_[batch], has_b_zero_ ? args.inputs[3] : nullptr, panel,
                       to);
          const int64_t first = panel * kIntPanel;
          multiply_panel({a, to, y + first, rows_, even(depth_),
                          std::min(kIntPanel, columns_ - first), y_row_});
        }
      });
    }
  }

  void pack_a(const KernelArgs& args, int64_t batch, int16_t* to) const {
    const int64_t from = a_offsets_[batch], step = even(depth_);
    parallel_for(0, rows_, static_cast<double>(step), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int zero = has_a_zero_ ? load_byte(a_.dtype, args.inputs[2], i * a_.zero_step) : 0;
        int16_t* row = to + i * step;
        for (int64_t k = 0; k < depth_; ++k)
          row[k] = static_cast<int16_t>(
              load_byte(a_.dtype, args.inputs[0], from + i * a_.row + k * a_.column) - zero);
        if (depth_ % 2) row[depth_] = 0;
      }
    });
  }

  void pack_panel(const void* data, int64_t from, const void* zeros, int64_t panel,
                  int16_t* to) const {
    const int64_t first = panel * kIntPanel, columns = std::min(kIntPanel, columns_ - first);
    if (columns < kIntPanel || depth_ % 2)
      std::memset(to, 0, panel_elements(depth_) * sizeof(int16_t));
    int16_t zero[kIntPanel] = {};
    for (int64_t j = 0; zeros && j < columns; ++j)
      zero[j] = static_cast<int16_t>(load_byte(b_.dtype, zeros, (first + j) * b_.zero_step));
    for (int64_t k = 0; k < depth_; ++k)
      for (int64_t j = 0; j < columns; ++j)
        to[panel_place(k, j)] = static_cast<int16_t>(
            load_byte(b_.dtype, data, from + k * b_.row + (first + j) * b_.column) - zero[j]);
  }
};

// Zero points that are one, or a dense vector along the free axis.
bool simple_zero(const KernelRequest& request, size_t i, Bytes& operand, std::string& why) {
  if (!request.has(i)) return true;
  const TensorDesc& zero = request.in(i);
  if (zero.count() == 1) return true;
  if (zero.shape.size() != 1) return refuse<bool>(why, "zero points of a batch");
  operand.zero_step = zero.strides[0];
  return true;
}

// Element offsets of the matrices of an operand, for each batch of y.
std::vector<int64_t> batch_offsets(const TensorDesc& desc, const Shape& batch) {
  std::vector<int64_t> offsets;
  const size_t own = desc.shape.size() > 2 ? desc.shape.size() - 2 : 0;
  const int64_t count = element_count(batch);
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t rest = flat, offset = 0;
    for (size_t i = batch.size(); i-- > 0; rest /= batch[i]) {
      const size_t from_end = batch.size() - 1 - i;
      if (from_end >= own) continue;
      const size_t axis = own - 1 - from_end;
      if (desc.shape[axis] != 1) offset += rest % batch[i] * desc.strides[axis];
    }
    offsets.push_back(offset);
  }
  return offsets;
}

CPU_KERNEL(matmul_integer, "panels") {
  const TensorDesc &a = request.in(0), &b = request.in(1), &y = request.out();
  if (!y.contiguous()) return refuse(why, "y is not contiguous");
  auto kernel = std::make_shared<MatmulInteger>();
  const size_t a_rank = a.shape.size(), b_rank = b.shape.size();
  kernel->depth_ = a.shape.back();
  kernel->rows_ = a_rank > 1 ? a.shape[a_rank - 2] : 1;
  kernel->columns_ = b_rank > 1 ? b.shape.back() : 1;
  if (kernel->depth_ > (int64_t{1} << 24)) return refuse(why, "too many columns");
  kernel->a_ = {a.dtype, a_rank > 1 ? a.strides[a_rank - 2] : 0, a.strides.back()};
  kernel->b_ = {b.dtype, b_rank > 1 ? b.strides[b_rank - 2] : b.strides[0],
                b_rank > 1 ? b.strides.back() : 0};
  if (!simple_zero(request, 2, kernel->a_, why) || !simple_zero(request, 3, kernel->b_, why))
    return nullptr;
  kernel->has_a_zero_ = request.has(2);
  kernel->has_b_zero_ = request.has(3);
  const size_t batch_rank = y.shape.size() - (a_rank > 1) - (b_rank > 1);
  const Shape batch(y.shape.begin(), y.shape.begin() + batch_rank);
  kernel->batches_ = element_count(batch);
  kernel->a_offsets_ = batch_offsets(a, batch);
  kernel->b_offsets_ = batch_offsets(b, batch);
  kernel->y_row_ = kernel->columns_;
  kernel->y_step_ = kernel->rows_ * kernel->columns_;
  // Batches of a times one matrix are one tall matrix, if they lie one after the other.
  if (b_rank <= 2 && kernel->batches_ > 1 && a.contiguous() && kernel->a_.zero_step == 0) {
    kernel->rows_ *= kernel->batches_;
    kernel->batches_ = 1;
  }
  const Constant* weights = request.constant(1);
  const Constant* zeros = request.constant(3);
  if (weights && request.packed && b_rank <= 2 && b.contiguous() && (!request.has(3) || zeros)) {
    const Constant::Bytes zero_bytes = zeros ? zeros->data() : nullptr;
    const size_t bytes =
        static_cast<size_t>(kernel->panels()) * panel_elements(kernel->depth_) * sizeof(int16_t);
    const std::string layout = fmt::format("i16 panels less {}", zeros ? zeros->id() : 0);
    kernel->packed_ = request.packed->get(
        *weights, layout, std::max<size_t>(bytes, 1), [&](const std::byte* plain, void* packed) {
          for (int64_t panel = 0; panel < kernel->panels(); ++panel)
            kernel->pack_panel(plain, 0, zero_bytes.get(), panel,
                               static_cast<int16_t*>(packed) +
                                   panel * static_cast<int64_t>(panel_elements(kernel->depth_)));
        });
  }
  return kernel;
}

// Weights are the left operand, the taps of each output place a column of the right one.
class ConvInteger final : public Kernel {
 public:
  TensorDesc x_, w_, y_;
  Window window_;
  int64_t groups_ = 1, outputs_ = 1, channels_ = 1;  // of a group
  int64_t places_ = 1, taps_ = 1, depth_ = 0;
  bool has_x_zero_ = false, has_w_zero_ = false, one_w_zero_ = true;
  BufferRef packed_;                  // w, where it is constant
  std::vector<int64_t> tap_offsets_;  // for each tap and spatial axis: dilation * place - pad

  int64_t panels() const { return (places_ + kIntPanel - 1) / kIntPanel; }
  size_t w_elements() const { return (groups_ * outputs_ * even(depth_) + 31) / 32 * 32; }
  size_t scratch_bytes() const override {
    const size_t panel_count = groups_ * panels();
    return ((packed_ ? 0 : w_elements()) + panel_count * panel_elements(depth_)) * sizeof(int16_t) +
           64;
  }
  bool reads(size_t i) const override { return !(packed_ && (i == 1 || i == 3)); }
  std::string detail() const override { return packed_ ? "i16 packed" : "i16"; }

  void run(const KernelArgs& args) const override {
    auto* scratch = static_cast<int16_t*>(args.scratch);
    const int16_t* w = packed_ ? static_cast<const int16_t*>(packed_->data()) : scratch;
    if (!packed_) pack_weights(args.inputs[1], has_w_zero_ ? args.inputs[3] : nullptr, scratch);
    int16_t* panels_at = scratch + (packed_ ? 0 : w_elements());
    const int zero = has_x_zero_ ? load_byte(x_.dtype, args.inputs[2], 0) : 0;
    for (int64_t n = 0; n < y_.shape[0]; ++n) {
      const double ns = product_ns(outputs_, depth_) + static_cast<double>(depth_ * kIntPanel);
      parallel_for(0, groups_ * panels(), ns, [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t group = unit / panels(), first = unit % panels() * kIntPanel;
          const int64_t columns = std::min(kIntPanel, places_ - first);
          int16_t* panel = panels_at + unit * static_cast<int64_t>(panel_elements(depth_));
          pack_taps(args.inputs[0], zero, n, group, first, columns, panel);
          auto* y = static_cast<int32_t*>(args.outputs[0]) +
                    (n * groups_ + group) * outputs_ * places_ + first;
          multiply_panel({w + group * outputs_ * even(depth_), panel, y, outputs_, even(depth_),
                          columns, places_});
        }
      });
    }
  }

  void pack_weights(const void* w, const void* zeros, int16_t* to) const {
    const int64_t step = even(depth_);
    for (int64_t o = 0; o < groups_ * outputs_; ++o) {
      const int zero = zeros ? load_byte(w_.dtype, zeros, one_w_zero_ ? 0 : o) : 0;
      for (int64_t k = 0; k < depth_; ++k)
        to[o * step + k] = static_cast<int16_t>(load_byte(w_.dtype, w, o * depth_ + k) - zero);
      if (depth_ % 2) to[o * step + depth_] = 0;
    }
  }

 private:
  void pack_taps(const void* x, int zero, int64_t n, int64_t group, int64_t first, int64_t columns,
                 int16_t* to) const {
    std::memset(to, 0, panel_elements(depth_) * sizeof(int16_t));
    const size_t spatial = window_.rank();
    int64_t at[kIntPanel][3];
    for (int64_t j = 0; j < columns; ++j) {
      int64_t rest = first + j;
      for (size_t i = spatial; i-- > 0; rest /= y_.shape[2 + i])
        at[j][i] = rest % y_.shape[2 + i] * window_.strides[i];
    }
    const int64_t base = n * x_.strides[0] + group * channels_ * x_.strides[1];
    int64_t from[kIntPanel];
    for (int64_t tap = 0; tap < taps_; ++tap) {
      const int64_t* shift = tap_offsets_.data() + tap * static_cast<int64_t>(spatial);
      for (int64_t j = 0; j < columns; ++j) {
        from[j] = base;
        for (size_t i = 0; i < spatial && from[j] != kOutside; ++i) {
          const int64_t place = at[j][i] + shift[i];
          const bool inside = place >= 0 && place < x_.shape[2 + i];
          from[j] = inside ? from[j] + place * x_.strides[2 + i] : kOutside;
        }
      }
      if (x_.dtype == DType::kI8)
        pack_tap(static_cast<const int8_t*>(x), zero, tap, from, columns, to);
      else
        pack_tap(static_cast<const uint8_t*>(x), zero, tap, from, columns, to);
    }
  }

  // One tap of all channels; what lies outside stays 0.
  template <typename T>
  void pack_tap(const T* x, int zero, int64_t tap, const int64_t* from, int64_t columns,
                int16_t* to) const {
    for (int64_t c = 0; c < channels_; ++c) {
      const T* channel = x + c * x_.strides[1];
      int16_t* row = to + panel_place(c * taps_ + tap, 0);
      for (int64_t j = 0; j < columns; ++j)
        if (from[j] != kOutside) row[2 * j] = static_cast<int16_t>(channel[from[j]] - zero);
    }
  }
};

CPU_KERNEL(conv_integer, "panels") {
  const TensorDesc &x = request.in(0), &w = request.in(1), &y = request.out();
  if (!y.contiguous() || !w.contiguous()) return refuse(why, "w or y is not contiguous");
  if (request.has(3) && !request.in(3).contiguous())
    return refuse(why, "the zero points are not contiguous");
  auto kernel = std::make_shared<ConvInteger>();
  kernel->x_ = x;
  kernel->w_ = w;
  kernel->y_ = y;
  const Shape kernel_shape(w.shape.begin() + 2, w.shape.end());
  kernel->window_ =
      resolve_window(request.attrs, Shape(x.shape.begin() + 2, x.shape.end()), kernel_shape);
  kernel->groups_ = request.attrs.i("groups");
  kernel->outputs_ = w.shape[0] / kernel->groups_;
  kernel->channels_ = w.shape[1];
  kernel->taps_ = element_count(kernel_shape);
  kernel->depth_ = kernel->taps_ * kernel->channels_;
  kernel->places_ = element_count(Shape(y.shape.begin() + 2, y.shape.end()));
  kernel->has_x_zero_ = request.has(2);
  kernel->has_w_zero_ = request.has(3);
  kernel->one_w_zero_ = !request.has(3) || request.in(3).count() == 1;
  const Window& window = kernel->window_;
  for (int64_t tap = 0; tap < kernel->taps_; ++tap) {
    std::vector<int64_t> shift(window.rank());
    int64_t rest = tap;
    for (size_t i = window.rank(); i-- > 0; rest /= kernel_shape[i])
      shift[i] = rest % kernel_shape[i] * window.dilations[i] - window.pads_begin[i];
    kernel->tap_offsets_.insert(kernel->tap_offsets_.end(), shift.begin(), shift.end());
  }
  const Constant *weights = request.constant(1), *zeros = request.constant(3);
  if (weights && request.packed && (!request.has(3) || zeros)) {
    const Constant::Bytes zero_bytes = zeros ? zeros->data() : nullptr;
    kernel->packed_ = request.packed->get(
        *weights, fmt::format("i16 rows less {}", zeros ? zeros->id() : 0),
        std::max<size_t>(kernel->w_elements() * sizeof(int16_t), 1),
        [&](const std::byte* plain, void* packed) {
          kernel->pack_weights(plain, zero_bytes.get(), static_cast<int16_t*>(packed));
        });
  }
  if (kernel->scratch_bytes() > (size_t{1} << 30)) return refuse(why, "its taps need over 1 GiB");
  return kernel;
}

}  // namespace

}  // namespace anymps::cpu
