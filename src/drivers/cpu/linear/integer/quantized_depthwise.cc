// SPDX-License-Identifier: Apache-2.0
// Convolutions of bytes by channel, with the channels last (depthwise_bytes.h). Taps outside of the
// image read a row of zero points; a line of results is cut where the taps that do so change.
#include <cstring>
#include <limits>
#include <vector>

#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/linear/integer/depthwise_bytes.h"
#include "drivers/cpu/linear/integer/image_window.h"
#include "drivers/cpu/linear/integer/int_operands.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kPlaces = 128;  // so many results for which weights are read once, at least

class QuantizedDepthwise final : public Kernel {
 public:
  IntPacking packing_ = int_packing();
  DType x_type_ = DType::kU8, w_type_ = DType::kI8;
  ImageWindow window_;
  int64_t channels_ = 1, block_ = 16;
  bool has_x_zero_ = false, has_w_zero_ = false;
  int64_t w_zero_step_ = 0;
  BufferRef packed_;  // constant weights
  IntEnd end_;
  int64_t weights_at_ = 0, start_at_ = 0, scale_at_ = 0, bias_at_ = 0, border_at_ = 0, bytes_ = 0;

  int64_t count() const { return window_.count(); }
  int64_t words() const { return packing_.words(count()); }
  int64_t padded() const { return words() * packing_.per_word(); }
  // Windows of 3x3 lie in words by columns. Of a window's columns, those of its neighbour's.
  bool by_columns() const {
    return packing_.bytes && window_.taps[0] == 1 && window_.taps[1] == 3 && window_.taps[2] == 3;
  }
  int64_t columns_kept() const {
    if (!by_columns()) return -1;
    const int64_t step = window_.strides[2], apart = window_.dilations[2];
    return step % apart == 0 ? std::max<int64_t>(3 - step / apart, 0) : 0;
  }
  // Where a tap lies in the words.
  int64_t slot_of(int64_t tap) const { return by_columns() ? tap % 3 * 4 + tap / 3 : tap; }
  // The last block begins earlier where channels do not fill it.
  int64_t blocks() const { return (channels_ + block_ - 1) / block_; }
  int64_t first_of(int64_t block) const { return std::min(block * block_, channels_ - block_); }
  int64_t block_bytes() const { return words() * block_ * 4; }
  // Words of the blocks, then sums of each block's channels.
  int64_t weights_bytes() const { return aligned(blocks() * (block_bytes() + block_ * 4)); }

  // Zero points as far as the taps of a line go.
  int64_t border_bytes() const {
    return ((window_.out[2] - 1) * window_.strides[2] + 1) * channels_;
  }

  void plan() {
    const auto take = [&](int64_t bytes) {
      const int64_t at = bytes_;
      bytes_ += aligned(bytes);
      return at;
    };
    if (!packed_) weights_at_ = take(weights_bytes());
    start_at_ = take(blocks() * block_ * 4);
    scale_at_ = take(blocks() * block_ * 4);
    bias_at_ = take(blocks() * block_ * 4);
    border_at_ = take(border_bytes());
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(bytes_); }
  bool reads(size_t i) const override { return !(packed_ && (i == 1 || i == 3)); }
  std::string detail() const override {
    return fmt::format("{}{}", packing_.bytes ? "vnni" : "i16", packed_ ? " packed" : "");
  }

  void pack_weights(const void* w, const void* zeros, uint8_t* to) const {
    std::memset(to, 0, static_cast<size_t>(weights_bytes()));
    auto* sums = reinterpret_cast<int32_t*>(to + blocks() * block_bytes());
    for (int64_t block = 0; block < blocks(); ++block, sums += block_)
      for (int64_t c = 0; c < block_; ++c) {
        const int64_t channel = first_of(block) + c, place = place_in_block(block_, c);
        for (int64_t tap = 0; tap < count(); ++tap) {
          const int number = weight(w, zeros, channel, tap);
          const int64_t slot = slot_of(tap), part = slot % packing_.per_word();
          uint8_t* word =
              to + block * block_bytes() + (slot / packing_.per_word() * block_ + place) * 4;
          if (packing_.bytes)
            reinterpret_cast<int8_t*>(word)[part] = static_cast<int8_t>(number);
          else
            reinterpret_cast<int16_t*>(word)[part] = static_cast<int16_t>(number);
          sums[place] += number;
        }
      }
  }

  // Whether weights without their zero points are still bytes.
  bool fit_bytes(const void* w, const void* zeros) const {
    for (int64_t channel = 0; channel < channels_; ++channel)
      for (int64_t tap = 0; tap < count(); ++tap) {
        const int number = weight(w, zeros, channel, tap);
        if (number < -128 || number > 127) return false;
      }
    return true;
  }

  void run(const KernelArgs& args) const override {
    auto* scratch = static_cast<uint8_t*>(args.scratch);
    if (!packed_)
      pack_weights(args.inputs[1], has_w_zero_ ? args.inputs[3] : nullptr, scratch + weights_at_);
    const auto* weights =
        packed_ ? static_cast<const uint8_t*>(packed_->data()) : scratch + weights_at_;
    const int zero = has_x_zero_ ? load_byte(x_type_, args.inputs[2], 0) : 0;
    std::memset(scratch + border_at_, zero, static_cast<size_t>(border_bytes()));
    const IntTail tail = end_.tail(args);
    tell_channels(weights, zero, tail, scratch);
    const bool fits = fits_words(count(), reinterpret_cast<float*>(scratch + scale_at_),
                                 reinterpret_cast<float*>(scratch + bias_at_), blocks() * block_);
    const int64_t lines = window_.images * window_.out[0] * window_.out[1];
    const double ns = static_cast<double>(window_.out[2] * channels_ * (count() + 6)) * 0.05;
    const int64_t at_once = std::max<int64_t>(kPlaces / window_.out[2], 1);
    parallel_for(0, (lines + at_once - 1) / at_once, ns * static_cast<double>(at_once),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t unit = begin; unit < end; ++unit)
                     run_lines(args, weights, tail, fits, unit * at_once,
                               std::min(lines, (unit + 1) * at_once));
                 });
  }

 private:
  int weight(const void* w, const void* zeros, int64_t channel, int64_t tap) const {
    const int zero = zeros ? load_byte(w_type_, zeros, channel * w_zero_step_) : 0;
    return load_byte(w_type_, w, channel * count() + tap) - zero;
  }

  // What is said of channels, in the order of the blocks.
  void tell_channels(const uint8_t* weights, int zero, const IntTail& tail,
                     uint8_t* scratch) const {
    const auto* sums = reinterpret_cast<const int32_t*>(weights + blocks() * block_bytes());
    auto* start = reinterpret_cast<int32_t*>(scratch + start_at_);
    auto* scale = reinterpret_cast<float*>(scratch + scale_at_);
    auto* bias = reinterpret_cast<float*>(scratch + bias_at_);
    const int from_zero = zero + (x_type_ == DType::kI8 ? 128 : 0);
    for (int64_t block = 0; block < blocks(); ++block)
      for (int64_t c = 0; c < block_; ++c) {
        const int64_t channel = first_of(block) + c;
        const int64_t at = block * block_ + place_in_block(block_, c);
        start[at] = -from_zero * sums[at];
        scale[at] = tail.scale[channel * tail.scale_step];
        bias[at] = tail.bias ? tail.bias[channel] : 0;
      }
  }

  // The places [begin, end) of a line at which tap `w` of the window lies inside.
  void inside(int64_t w, int64_t& begin, int64_t& end) const {
    const int64_t first = window_.pads[2] - w * window_.dilations[2],
                  last = window_.in[2] - 1 + first;
    begin = first > 0
                ? std::min(window_.out[2], (first + window_.strides[2] - 1) / window_.strides[2])
                : 0;
    end = last < 0 ? 0 : std::min(window_.out[2], last / window_.strides[2] + 1);
    end = std::max(begin, end);
  }

  // Segments of lines, with pointers to their taps: those of a thread.
  struct Segments {
    std::vector<ByteSegment> segments;
    std::vector<const uint8_t*> taps;
  };
  static Segments& segments_of_thread() {
    thread_local Segments segments;  // NOLINT: kept, so that a run allocates nothing
    segments.segments.clear();
    segments.taps.clear();
    return segments;
  }

  void run_lines(const KernelArgs& args, const uint8_t* weights, const IntTail& tail, bool fits,
                 int64_t begin, int64_t end) const {
    Segments& found = segments_of_thread();
    for (int64_t line = begin; line < end; ++line)
      cut_line(args, line, (line - begin) * window_.out[2], found);
    const auto* scratch = static_cast<const uint8_t*>(args.scratch);
    ByteTaps p;
    p.packing = packing_;
    p.block = block_;
    p.flip = x_type_ == DType::kI8;
    p.segments = found.segments.data();
    p.segment_count = std::ssize(found.segments);
    p.x = found.taps.data();
    p.x_step = window_.strides[2] * channels_;
    p.words = words();
    p.columns_kept = columns_kept();
    p.tail = &tail;
    p.fits = fits;
    p.y_step = channels_;
    for (int64_t block = 0; block < blocks(); ++block) {
      const int64_t at = block * block_;
      p.channel = first_of(block);
      p.weights = weights + block * block_bytes();
      p.start = reinterpret_cast<const int32_t*>(scratch + start_at_) + at;
      p.scale = reinterpret_cast<const float*>(scratch + scale_at_) + at;
      if (tail.bias) p.bias = reinterpret_cast<const float*>(scratch + bias_at_) + at;
      p.y = static_cast<uint8_t*>(args.outputs[0]) +
            static_cast<size_t>(begin * window_.out[2] * channels_ + p.channel) * size_of(tail.out);
      sum_byte_taps(p);
    }
  }

  // A line of results, whose first is number `first`, into segments.
  void cut_line(const KernelArgs& args, int64_t line, int64_t first_place, Segments& to) const {
    const int64_t image = line / (window_.out[0] * window_.out[1]);
    const int64_t first[2] = {
        line / window_.out[1] % window_.out[0] * window_.strides[0] - window_.pads[0],
        line % window_.out[1] * window_.strides[1] - window_.pads[1]};
    const auto* x = static_cast<const uint8_t*>(args.inputs[0]);
    const uint8_t* border = static_cast<uint8_t*>(args.scratch) + border_at_;
    // Where the row of each tap begins, in front of the image's first pixel for some; null:
    // outside.
    const uint8_t* rows[kMostByteTaps] = {};
    for (int64_t d = 0, at = 0; d < window_.taps[0]; ++d)
      for (int64_t h = 0; h < window_.taps[1]; ++h, at += window_.taps[2]) {
        const int64_t z = first[0] + d * window_.dilations[0],
                      y = first[1] + h * window_.dilations[1];
        if (z < 0 || z >= window_.in[0] || y < 0 || y >= window_.in[1]) continue;
        std::fill_n(
            rows + at, window_.taps[2],
            x + ((image * window_.in[0] + z) * window_.in[1] + y) * window_.in[2] * channels_);
      }
    for (int64_t place = 0; place < window_.out[2];) {
      to.taps.resize(to.taps.size() + static_cast<size_t>(padded()), border);
      const uint8_t** const taps = &*(to.taps.end() - padded());
      int64_t until = window_.out[2];
      for (int64_t w = 0; w < window_.taps[2]; ++w) {
        int64_t begin, end;
        inside(w, begin, end);
        if (place < begin) until = std::min(until, begin);
        if (place < end) until = std::min(until, place < begin ? begin : end);
        if (place < begin || place >= end) continue;
        const int64_t at = place * window_.strides[2] + w * window_.dilations[2] - window_.pads[2];
        for (int64_t tap = w; tap < count(); tap += window_.taps[2])
          if (rows[tap]) taps[slot_of(tap)] = rows[tap] + at * channels_;
      }
      to.segments.push_back({first_place + place, until - place});
      place = until;
    }
  }
};

KernelPtr make_depthwise(const KernelRequest& request, std::string& why) {
  auto kernel = std::make_shared<QuantizedDepthwise>();
  if (!kernel->window_.init(request, why)) return nullptr;
  const TensorDesc& w = request.in(1);
  if (w.shape[1] != 1 || request.attrs.i("groups") != w.shape[0])
    return refuse(why, "not one channel a group");
  if (w.shape[0] < kLeastByteBlock) return refuse(why, "few channels");
  if (kernel->count() == 0 || kernel->count() > kMostByteTaps - 4) return refuse(why, "many taps");
  kernel->x_type_ = request.in(0).dtype;
  kernel->w_type_ = w.dtype;
  kernel->channels_ = w.shape[0];
  kernel->block_ = byte_block(w.shape[0]);
  if (!kernel->end_.init(request, w.shape[0], false, "alpha", "beta", why)) return nullptr;
  kernel->has_x_zero_ = request.has(2);
  kernel->has_w_zero_ = request.has(3);
  kernel->w_zero_step_ = request.has(3) && request.in(3).count() > 1 ? 1 : 0;
  const Constant *weights = request.constant(1), *zeros = request.constant(3);
  const bool known = weights && request.packed && (!request.has(3) || zeros);
  const Constant::Bytes zero_bytes = known && zeros ? zeros->data() : nullptr;
  // Words of bytes only where it is known that weights fit them.
  if (!known || !kernel->fit_bytes(weights->data().get(), zero_bytes.get()))
    kernel->packing_.bytes = false;
  if (known)
    kernel->packed_ = request.packed->get(
        *weights,
        fmt::format("byte taps {} {} {} less {}", kernel->packing_.bytes, kernel->block_,
                    kernel->by_columns(), zeros ? zeros->id() : 0),
        static_cast<size_t>(kernel->weights_bytes()), [&](const std::byte* plain, void* packed) {
          kernel->pack_weights(plain, zero_bytes.get(), static_cast<uint8_t*>(packed));
        });
  kernel->plan();
  return kernel;
}

const KernelRegistrar kQuantizedDepthwise("cpu", "quantized_conv", "depthwise", 8, make_depthwise);

}  // namespace

}  // namespace anymps::cpu
