// SPDX-License-Identifier: Apache-2.0
// Products of matrices of bytes, exact on every processor. Zero points are not taken from the
// operands but, as multiples of the sums of rows and columns, from the result; constant right
// operands are packed once, with the sums of their columns.
#include <cstring>
#include <vector>

#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/linear/integer/int_operands.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kMostTaskRows = 96;  // whole tiles
constexpr int64_t kMostDepth = int64_t{1} << 24;

class IntegerMatmul final : public Kernel {
 public:
  IntRight right_;
  IntPacking packing_ = right_.packing;
  int64_t rows_ = 1, batches_ = 1;
  int64_t rights_ = 1;  // how many right operands there are: 1 or batches_
  IntMatrix a_, b_;
  std::vector<int64_t> a_offsets_, b_offsets_;  // of each product of a batch
  bool has_a_zero_ = false, has_b_zero_ = false;
  DType b_zero_type_ = DType::kU8;
  IntEnd end_;
  BufferRef packed_;      // a constant right operand
  bool plain_b_ = false;  // it is known that those zero points are zero

  // Places in scratch, in bytes; a region that is not needed is empty.
  int64_t a_at_ = 0, sums_at_ = 0, zeros_at_ = 0, ends_at_ = 0, b_at_ = 0, ones_at_ = 0, bytes_ = 0;

  int64_t depth() const { return right_.depth; }
  int64_t row_bytes() const { return right_.words() * 4; }
  int64_t right_bytes() const { return aligned(right_.bytes()); }
  // Rows of a that can be read where they lie.
  bool reads_a() const {
    return packing_.bytes && a_.dtype == DType::kU8 && (a_.column == 1 || depth() == 1) &&
           depth() % 4 == 0;
  }

  void plan() {
    const auto take = [&](int64_t bytes) {
      const int64_t at = bytes_;
      bytes_ += aligned(bytes);
      return at;
    };
    if (!reads_a()) a_at_ = take(batches_ * rows_ * row_bytes());
    if (!plain_b_) sums_at_ = take(batches_ * rows_ * 4);
    if (a_.zero_step != 0) zeros_at_ = take(rows_ * 4);
    ends_at_ = take(rights_ * right_.ends_bytes());
    if (packed_) return;
    b_at_ = take(rights_ * right_bytes());
    ones_at_ = take(row_bytes());
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(bytes_); }
  bool reads(size_t i) const override { return !(packed_ && (i == 1 || i == 3)); }
  std::string detail() const override {
    return fmt::format("{}{}", packing_.bytes ? "vnni" : "i16", packed_ ? " packed" : "");
  }

  void run(const KernelArgs& args) const override {
    auto* scratch = static_cast<uint8_t*>(args.scratch);
    const auto* right = packed_ ? static_cast<const uint8_t*>(packed_->data()) : scratch + b_at_;
    if (!packed_) {
      fill_ones(packing_, depth(), scratch + ones_at_);
      const double ns = static_cast<double>(depth() * right_.full()) * 0.3;
      parallel_for(0, rights_ * right_.panels(), ns, [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t which = unit / right_.panels();
          const auto* from = static_cast<const uint8_t*>(args.inputs[1]) + b_offsets_[which];
          right_.pack(b_, from, has_b_zero_ ? args.inputs[3] : nullptr, scratch + ones_at_,
                      unit % right_.panels(), scratch + b_at_ + which * right_bytes());
        }
      });
    }
    bool sums = false;
    for (int64_t which = 0; which < rights_ && !plain_b_; ++which)
      sums = sums || !right_.plain(right + which * right_bytes());
    if (!reads_a() || sums) pack_rows(args, scratch, sums);
    if (a_.zero_step != 0) {
      auto* zeros = reinterpret_cast<int32_t*>(scratch + zeros_at_);
      for (int64_t i = 0; i < rows_; ++i) zeros[i] = a_zero(args, i);
    }
    multiply(args, scratch, right, sums);
  }

 private:
  int32_t a_zero(const KernelArgs& args, int64_t row) const {
    const int zero = has_a_zero_ ? load_byte(a_.dtype, args.inputs[2], row * a_.zero_step) : 0;
    return zero + (flips_to_unsigned(packing_, a_.dtype) ? 128 : 0);
  }

  // Rows of a as words, and what their sums are without the zero point.
  void pack_rows(const KernelArgs& args, uint8_t* scratch, bool sums) const {
    const bool flip = flips_to_unsigned(packing_, a_.dtype);
    auto* to_sums = reinterpret_cast<int32_t*>(scratch + sums_at_);
    parallel_for(0, batches_ * rows_, static_cast<double>(depth()) * 0.3,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t unit = begin; unit < end; ++unit) {
                     const int64_t row = unit % rows_;
                     const auto* from = static_cast<const uint8_t*>(args.inputs[0]) +
                                        a_offsets_[unit / rows_] + row * a_.row;
                     if (!reads_a())
                       pack_int_row(packing_, a_.dtype, flip, from, depth(), a_.column,
                                    scratch + a_at_ + unit * row_bytes());
                     if (!sums) continue;
                     const int64_t zero = a_zero(args, row) - (flip ? 128 : 0);
                     const int64_t sum = sum_bytes(a_.dtype, from, depth(), a_.column);
                     to_sums[unit] = static_cast<int32_t>(sum - depth() * zero);
                   }
                 });
  }

  void multiply(const KernelArgs& args, uint8_t* scratch, const uint8_t* right, bool sums) const {
    const IntTail tail = end_.tail(args);
    const int64_t panel_count = right_.panels(), threads = current_threads();
    int64_t rows = kMostTaskRows;
    while (rows > 6 && (rows_ + rows - 1) / rows * panel_count * batches_ < 4 * threads) rows /= 2;
    const int64_t chunks = (rows_ + rows - 1) / rows, tasks = chunks * panel_count;
    const double ns =
        30 + static_cast<double>(std::min(rows, rows_) * depth() * right_.full()) * 0.004;
    const bool by_panels = right_.columns > rows_;  // which operand is read again and again
    const int32_t common = a_.zero_step == 0 ? a_zero(args, 0) : 0;
    const auto ends_of = [&](int64_t which) {
      return scratch + ends_at_ + which * right_.ends_bytes();
    };
    IntColumns ends;  // of one right operand; they differ in what sums begin with
    for (int64_t which = 0; which < rights_; ++which)
      ends = right_.ends(right + which * right_bytes(), common, tail, ends_of(which));
    parallel_for(0, batches_ * tasks, ns, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t batch = unit / tasks, task = unit % tasks;
        const int64_t chunk = by_panels ? task % chunks : task / panel_count;
        const int64_t panel = by_panels ? task / chunks : task % panel_count;
        const int64_t row = chunk * rows, first = panel * right_.full();
        const int64_t which = rights_ == 1 ? 0 : batch;
        const uint8_t* const packed = right + which * right_bytes();
        IntProduct p;
        p.rows = std::min(rows, rows_ - row);
        p.words = right_.words();
        p.columns = right_.columns_of(panel);
        IntColumns columns = ends;
        columns.memory = ends_of(which);
        columns.set(p, tail, first);
        p.direct = p.direct && a_.zero_step == 0;
        if (reads_a()) {
          p.a = static_cast<const uint8_t*>(args.inputs[0]) + a_offsets_[batch] + row * a_.row;
          p.a_row = a_.row;
        } else {
          p.a = scratch + a_at_ + (batch * rows_ + row) * row_bytes();
          p.a_row = row_bytes();
        }
        p.b = packed + panel * right_.panel_bytes();
        if (sums)
          p.corrections[0] = {
              reinterpret_cast<const int32_t*>(scratch + sums_at_) + batch * rows_ + row,
              right_.zeros(packed) + first};
        if (a_.zero_step != 0)
          p.corrections[1] = {reinterpret_cast<const int32_t*>(scratch + zeros_at_) + row,
                              right_.sums(packed) + first};
        p.y =
            static_cast<uint8_t*>(args.outputs[0]) +
            static_cast<size_t>((batch * rows_ + row) * right_.columns + first) * size_of(tail.out);
        p.y_row = right_.columns;
        multiply_int(packing_, p);
      }
    });
  }
};

// Zero points that are one, or a dense vector along the free axis.
bool simple_zero(const KernelRequest& request, size_t i, IntMatrix& operand, std::string& why) {
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

void pack_constant(const KernelRequest& request, IntegerMatmul& kernel) {
  const Constant *weights = request.constant(1), *zeros = request.constant(3);
  if (!weights || !request.packed || !request.in(1).contiguous()) return;
  if (request.has(3) && !zeros) return;
  const Constant::Bytes zero_bytes = zeros ? zeros->data() : nullptr;
  const IntRight& right = kernel.right_;
  const std::string layout =
      fmt::format("int panels {} {} less {} {}", right.packing.bytes, right.full(),
                  zeros ? zeros->id() : 0, kernel.b_.zero_step);
  kernel.packed_ = request.packed->get(
      *weights, layout, static_cast<size_t>(std::max<int64_t>(kernel.right_bytes(), 1)),
      [&](const std::byte* plain, void* packed) {
        std::vector<int32_t> ones(static_cast<size_t>(right.words()));
        fill_ones(right.packing, right.depth, ones.data());
        const double ns = static_cast<double>(right.depth * right.full());
        parallel_for(0, right.panels(), ns, [&](int64_t begin, int64_t end) {
          for (int64_t panel = begin; panel < end; ++panel)
            right.pack(kernel.b_, reinterpret_cast<const uint8_t*>(plain), zero_bytes.get(),
                       ones.data(), panel, static_cast<uint8_t*>(packed));
        });
      });
  kernel.plain_b_ = right.plain(static_cast<const uint8_t*>(kernel.packed_->data()));
}

KernelPtr make_integer_matmul(const KernelRequest& request, std::string& why) {
  const TensorDesc &a = request.in(0), &b = request.in(1), &y = request.out();
  auto kernel = std::make_shared<IntegerMatmul>();
  const size_t a_rank = a.shape.size(), b_rank = b.shape.size();
  kernel->right_.depth = a.shape.back();
  kernel->rows_ = a_rank > 1 ? a.shape[a_rank - 2] : 1;
  kernel->right_.columns = b_rank > 1 ? b.shape.back() : 1;
  if (kernel->right_.depth > kMostDepth) return refuse(why, "too many columns");
  if (!kernel->end_.init(request, kernel->right_.columns, false, "act_alpha", "act_beta", why))
    return nullptr;
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
  // Batches of a times one matrix are one tall matrix, if they lie one after the other.
  if (b_rank <= 2 && kernel->batches_ > 1 && a.contiguous() && kernel->a_.zero_step == 0) {
    kernel->rows_ *= kernel->batches_;
    kernel->batches_ = 1;
  }
  kernel->rights_ = b_rank <= 2 ? 1 : kernel->batches_;
  if (b_rank <= 2) pack_constant(request, *kernel);
  kernel->plan();
  if (kernel->bytes_ > int64_t{1} << 30) return refuse(why, "its panels need over 1 GiB");
  return kernel;
}

const KernelRegistrar kMatmulInteger("cpu", "matmul_integer", "panels", 10, make_integer_matmul);
const KernelRegistrar kQuantizedMatmul("cpu", "quantized_matmul", "panels", 10,
                                       make_integer_matmul);

}  // namespace

}  // namespace anymps::cpu
