// SPDX-License-Identifier: Apache-2.0
// Convolutions of bytes, exact on every processor. The image gets its border, and every stride-th
// element of a line goes to a line of its own: then each tap of a line of results is a run of
// adjacent bytes. Lines follow each other, so panels go over their ends; what is computed between
// two lines is dropped. Weights are the left operand.
#include <array>
#include <cstring>
#include <vector>

#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/linear/integer/int_operands.h"
#include "drivers/cpu/linear/integer/int_taps.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"
#include "ops/layers/window.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kSlack = 64;  // bytes that may be read after an image
constexpr size_t kImageAxes = 3;

// A panel that a task packs: it stays in the cache of the thread, which packs many.
uint8_t* panel_memory(int64_t bytes) {
  thread_local std::vector<uint8_t> memory;  // NOLINT: kept, so that a run allocates nothing
  if (std::ssize(memory) < bytes + kSlack) memory.resize(bytes + kSlack);
  return memory.data() + (kSlack - reinterpret_cast<uintptr_t>(memory.data()) % kSlack) % kSlack;
}

// One axis of the image: what lies at `phase` of a step of `stride` is a line of `extent`.
struct Axis {
  int64_t in = 1, out = 1, taps = 1, stride = 1, dilation = 1, pad = 0;
  int64_t phases = 1, extent = 1;

  void split() {
    int64_t shift = 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      phases = std::max(phases, tap * dilation % stride + 1);
      shift = std::max(shift, tap * dilation / stride);
    }
    extent = out + shift;
  }
  bool plain() const { return taps == 1 && stride == 1 && pad == 0 && in == out; }
  // Which places of a line of `phase` lie in the image, and where the first of them comes from.
  void inside(int64_t phase, int64_t& begin, int64_t& end) const {
    const int64_t first = pad - phase;  // the least place * stride that is inside
    begin = first > 0 ? std::min(extent, (first + stride - 1) / stride) : 0;
    const int64_t last = in - 1 + pad - phase;
    end = last < 0 ? 0 : std::min(extent, last / stride + 1);
    end = std::max(begin, end);
  }
};

class IntegerConv final : public Kernel {
 public:
  IntPacking packing_ = int_packing();
  TensorDesc x_, w_;
  Axis axes_[kImageAxes];
  int64_t images_ = 1, groups_ = 1, outputs_ = 1, channels_ = 1;  // of a group
  int64_t depth_ = 0;
  bool has_x_zero_ = false, has_w_zero_ = false, one_w_zero_ = true, in_place_ = false;
  BufferRef packed_;              // w, where it is constant, as weights_bytes() says
  std::vector<int64_t> offsets_;  // of each tap of the channels of a group
  IntEnd end_;
  int64_t weights_at_ = 0, start_at_ = 0, ones_at_ = 0, image_at_ = 0, bytes_ = 0;

  int64_t words() const { return packing_.words(depth_); }
  int64_t full() const { return packing_.vectors * packing_.lanes; }
  int64_t rows() const { return groups_ * outputs_; }
  // Rows of words, then for each row what its sum is without the zero point, and that.
  int64_t weights_bytes() const { return rows() * (words() * 4 + 8); }
  int64_t line() const { return axes_[2].extent; }
  int64_t plane() const { return axes_[1].extent * line(); }
  int64_t volume() const { return axes_[0].extent * plane(); }
  int64_t phases() const { return axes_[0].phases * axes_[1].phases * axes_[2].phases; }
  int64_t places() const { return (axes_[1].out - 1) * line() + axes_[2].out; }
  int64_t panels() const { return (places() + full() - 1) / full(); }
  int64_t kept() const { return axes_[1].out * axes_[2].out; }  // results of a plane

  int64_t channel_bytes() const { return phases() * volume(); }

  void plan() {
    const auto take = [&](int64_t bytes) {
      const int64_t at = bytes_;
      bytes_ += (bytes + 63) / 64 * 64;
      return at;
    };
    if (!packed_) weights_at_ = take(weights_bytes());
    start_at_ = take(rows() * 4);
    ones_at_ = take(words() * 4);
    if (!in_place_) image_at_ = take(groups_ * channels_ * channel_bytes() + kSlack);
    for (int64_t c = 0; c < channels_; ++c)
      for (int64_t tap = 0; tap < depth_ / std::max<int64_t>(channels_, 1); ++tap)
        offsets_.push_back(c * (channel_bytes()) + place_of(tap));
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(bytes_); }
  bool reads(size_t i) const override { return !(packed_ && (i == 1 || i == 3)); }
  std::string detail() const override {
    return fmt::format("{}{}", packing_.bytes ? "vnni" : "i16", packed_ ? " packed" : "");
  }

  void run(const KernelArgs& args) const override {
    auto* scratch = static_cast<uint8_t*>(args.scratch);
    if (!packed_)
      pack_weights(args.inputs[1], has_w_zero_ ? args.inputs[3] : nullptr, scratch + weights_at_);
    const uint8_t* w =
        packed_ ? static_cast<const uint8_t*>(packed_->data()) : scratch + weights_at_;
    const int zero = has_x_zero_ ? load_byte(x_.dtype, args.inputs[2], 0) : 0;
    const bool flip = flips_to_unsigned(packing_, x_.dtype);
    const auto* sums = reinterpret_cast<const int32_t*>(w + rows() * words() * 4);
    auto* start = reinterpret_cast<int32_t*>(scratch + start_at_);
    bool any_zero = false;
    for (int64_t i = 0; i < rows(); ++i) {
      start[i] = static_cast<int32_t>(-static_cast<uint32_t>(zero + (flip ? 128 : 0)) *
                                      static_cast<uint32_t>(sums[i]));
      any_zero = any_zero || sums[rows() + i] != 0;
    }
    if (any_zero) fill_ones(packing_, depth_, scratch + ones_at_);
    for (int64_t n = 0; n < images_; ++n) {
      const auto* x = static_cast<const uint8_t*>(args.inputs[0]) + n * x_.strides[0];
      if (!in_place_) {
        spread(x, static_cast<uint8_t>(zero), scratch + image_at_);
        x = scratch + image_at_;
      }
      multiply(args, n, x, w, start, any_zero ? scratch + ones_at_ : nullptr);
    }
  }

  void pack_weights(const void* w, const void* zeros, uint8_t* to) const {
    const bool flip = flips_to_signed(packing_, w_.dtype);
    auto* sums = reinterpret_cast<int32_t*>(to + rows() * words() * 4);
    for (int64_t i = 0; i < rows(); ++i) {
      const auto* from = static_cast<const uint8_t*>(w) + i * depth_;
      pack_int_row(packing_, w_.dtype, flip, from, depth_, 1, to + i * words() * 4);
      const int zero = zeros ? load_byte(w_.dtype, zeros, one_w_zero_ ? 0 : i) : 0;
      sums[i] = static_cast<int32_t>(int64_t{sum_bytes(w_.dtype, from, depth_, 1)} - depth_ * zero);
      sums[rows() + i] = zero - (flip ? 128 : 0);
    }
  }

 private:
  // One channel a group: a panel would serve one row alone, so nothing is packed.
  bool by_taps() const { return channels_ == 1 && !in_place_ && depth_ <= kMostTaps; }

  void run_taps(const uint8_t* w, int64_t group, const IntRows& rows_of_x, IntProduct& p) const {
    const auto* zeros = reinterpret_cast<const int32_t*>(w + rows() * words() * 4) + rows();
    IntTaps taps;
    taps.dtype = packing_.bytes ? DType::kU8 : x_.dtype;
    taps.flip = rows_of_x.flip;
    taps.from = rows_of_x.from;
    taps.offsets = offsets_.data();
    taps.count = depth_;
    taps.columns = rows_of_x.columns;
    const int32_t* start = p.row_start;
    const float *scale = p.tail.scale, *bias = p.tail.bias;
    auto* y = static_cast<uint8_t*>(p.y);
    p.rows = 1;
    for (int64_t o = 0; o < outputs_; ++o) {
      const int64_t row = group * outputs_ + o;
      const uint8_t* at = w + row * words() * 4;
      for (int64_t k = 0; k < depth_; ++k)
        taps.weights[k] = (packing_.bytes ? int32_t{reinterpret_cast<const int8_t*>(at)[k]}
                                          : int32_t{reinterpret_cast<const int16_t*>(at)[k]}) -
                          zeros[row];
      alignas(64) int32_t sums[kMostIntColumns];
      sum_taps(taps, sums);
      p.row_start = start + o;
      if (scale) p.tail.scale = scale + o * p.tail.scale_step;
      if (bias) p.tail.bias = bias + o;
      p.y = y + static_cast<size_t>(o * p.y_row) * size_of(p.tail.out);
      finish_int(p, sums);
    }
  }

  // Where a tap of the first place lies in a channel.
  int64_t place_of(int64_t tap) const {
    int64_t phase = 0, place = 0, at[kImageAxes];
    for (size_t i = kImageAxes; i-- > 0; tap /= axes_[i].taps)
      at[i] = tap % axes_[i].taps * axes_[i].dilation;
    for (size_t i = 0; i < kImageAxes; ++i) {
      phase = phase * axes_[i].phases + at[i] % axes_[i].stride;
      place = place * axes_[i].extent + at[i] / axes_[i].stride;
    }
    return phase * volume() + place;
  }

  // An image with its border, split into phases.
  void spread(const uint8_t* x, uint8_t zero, uint8_t* to) const {
    const double ns = static_cast<double>(channel_bytes()) * 0.1 + 20;
    const int64_t pixels = axes_[0].in * axes_[1].in * axes_[2].in;
    parallel_for(0, groups_ * channels_, ns, [&](int64_t first, int64_t last) {
      for (int64_t channel = first; channel < last; ++channel) {
        uint8_t* y = to + channel * channel_bytes();
        for (int64_t d = 0; d < axes_[0].phases; ++d)
          for (int64_t h = 0; h < axes_[1].phases; ++h)
            for (int64_t w = 0; w < axes_[2].phases; ++w, y += volume())
              spread_phase(x + channel * pixels, zero, {d, h, w}, y);
      }
    });
  }

  void spread_phase(const uint8_t* x, uint8_t zero, const std::array<int64_t, 3>& phase,
                    uint8_t* y) const {
    int64_t begin[kImageAxes], end[kImageAxes];
    for (size_t i = 0; i < kImageAxes; ++i) axes_[i].inside(phase[i], begin[i], end[i]);
    const auto from = [&](size_t axis, int64_t place) {
      return place * axes_[axis].stride + phase[axis] - axes_[axis].pad;
    };
    const auto fill = [&](uint8_t* to, int64_t count) {
      std::memset(to, zero, static_cast<size_t>(count));
    };
    for (int64_t d = 0; d < axes_[0].extent; ++d) {
      if (d < begin[0] || d >= end[0]) {
        fill(y, plane());
        y += plane();
        continue;
      }
      for (int64_t h = 0; h < axes_[1].extent; ++h, y += line()) {
        if (h < begin[1] || h >= end[1] || begin[2] == end[2]) {
          fill(y, line());
          continue;
        }
        const uint8_t* row = x + (from(0, d) * axes_[1].in + from(1, h)) * axes_[2].in;
        fill(y, begin[2]);
        take_every(row + from(2, begin[2]), axes_[2].stride, end[2] - begin[2], y + begin[2]);
        fill(y + end[2], line() - end[2]);
      }
    }
  }

  void multiply(const KernelArgs& args, int64_t n, const uint8_t* x, const uint8_t* w,
                const int32_t* start, const void* ones) const {
    const IntTail tail = end_.tail(args);
    const int64_t planes = axes_[0].out, count = panels(), panel_bytes = words() * full() * 4;
    const double ns = 100 + static_cast<double>(outputs_ * depth_ * full()) * 0.004 +
                      static_cast<double>(depth_ * full()) * 0.05;
    const size_t size = size_of(tail.out);
    parallel_for(0, groups_ * planes * count, ns, [&](int64_t begin, int64_t end) {
      uint8_t* const memory = by_taps() ? nullptr : panel_memory(panel_bytes);
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t first = unit % count * full(), depth = unit / count % planes;
        const int64_t group = unit / count / planes;
        IntRows from;
        from.dtype = x_.dtype;
        from.flip = flips_to_unsigned(packing_, x_.dtype);
        from.slack = !in_place_;
        from.from = x + group * channels_ * channel_bytes() + depth * plane() + first;
        from.offsets = offsets_.data();
        from.depth = depth_;
        from.columns = std::min(full(), places() - first);
        int32_t sums[kMostIntColumns];
        IntProduct p;
        p.a = w + group * outputs_ * words() * 4;
        p.a_row = words() * 4;
        p.b = memory;
        p.rows = outputs_;
        p.words = words();
        p.columns = from.columns;
        p.signed_a = true;
        p.row_start = start + group * outputs_;
        if (!by_taps()) pack_int_panel(packing_, from, memory);
        if (ones && !by_taps()) {
          sum_int_panel(packing_, memory, words(), from.columns, true, ones, sums);
          const auto* zeros = reinterpret_cast<const int32_t*>(w + rows() * words() * 4) + rows();
          p.corrections[0] = {zeros + group * outputs_, sums};
        }
        p.tail = tail;
        if (tail.scale) p.tail.scale += group * outputs_ * tail.scale_step;
        if (tail.bias) p.tail.bias += group * outputs_;
        p.line = line();
        p.kept = axes_[2].out;
        p.first = first;
        p.y_row = planes * kept();
        auto* y =
            static_cast<uint8_t*>(args.outputs[0]) +
            static_cast<size_t>((n * rows() + group * outputs_) * p.y_row + depth * kept()) * size;
        if (p.line == p.kept) {  // nothing lies between two lines
          p.line = 0;
          y += static_cast<size_t>(first) * size;
        }
        p.y = y;
        if (by_taps())
          run_taps(w, group, from, p);
        else
          multiply_int(packing_, p);
      }
    });
  }
};

KernelPtr make_integer_conv(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &w = request.in(1), &y = request.out();
  if (request.op->attr_index("layout") >= 0 && request.attrs.s("layout") != "channels_first")
    return refuse(why, "channels last");
  if (!x.contiguous() || !w.contiguous()) return refuse(why, "x or w is not contiguous");
  if (request.has(3) && !request.in(3).contiguous())
    return refuse(why, "the zero points are not contiguous");
  if (y.count() == 0) return refuse(why, "the result is empty");
  auto kernel = std::make_shared<IntegerConv>();
  kernel->x_ = x;
  kernel->w_ = w;
  const Shape kernel_shape(w.shape.begin() + 2, w.shape.end());
  const Window window =
      resolve_window(request.attrs, Shape(x.shape.begin() + 2, x.shape.end()), kernel_shape);
  bool plain = true;
  for (size_t i = 0; i < window.rank(); ++i) {
    Axis& axis = kernel->axes_[kImageAxes - window.rank() + i];
    axis = {x.shape[2 + i],    y.shape[2 + i],      window.kernel[i],
            window.strides[i], window.dilations[i], window.pads_begin[i]};
    axis.split();
    plain = plain && axis.plain();
  }
  kernel->images_ = x.shape[0];
  kernel->groups_ = request.attrs.i("groups");
  kernel->outputs_ = w.shape[0] / kernel->groups_;
  kernel->channels_ = w.shape[1];
  kernel->depth_ = element_count(kernel_shape) * kernel->channels_;
  if (kernel->depth_ > int64_t{1} << 24) return refuse(why, "too many taps");
  if (!kernel->end_.init(request, w.shape[0], true, "alpha", "beta", why)) return nullptr;
  kernel->has_x_zero_ = request.has(2);
  kernel->has_w_zero_ = request.has(3);
  kernel->one_w_zero_ = !request.has(3) || request.in(3).count() == 1;
  kernel->in_place_ = plain;
  if (plain) {  // an image is one line
    const int64_t pixels = element_count(Shape(x.shape.begin() + 2, x.shape.end()));
    kernel->axes_[0] = kernel->axes_[1] = Axis();
    kernel->axes_[2] = {pixels, pixels};
    kernel->axes_[2].split();
  }
  const Constant *weights = request.constant(1), *zeros = request.constant(3);
  if (weights && request.packed && (!request.has(3) || zeros)) {
    const Constant::Bytes zero_bytes = zeros ? zeros->data() : nullptr;
    kernel->packed_ = request.packed->get(
        *weights,
        fmt::format("int rows {} {} less {}", kernel->packing_.bytes, kernel->rows(),
                    zeros ? zeros->id() : 0),
        static_cast<size_t>(kernel->weights_bytes()), [&](const std::byte* plain_w, void* packed) {
          kernel->pack_weights(plain_w, zero_bytes.get(), static_cast<uint8_t*>(packed));
        });
  }
  kernel->plan();
  if (kernel->bytes_ > int64_t{1} << 30) return refuse(why, "its image needs over 1 GiB");
  return kernel;
}

const KernelRegistrar kConvInteger("cpu", "conv_integer", "panels", 10, make_integer_conv);
const KernelRegistrar kQuantizedConv("cpu", "quantized_conv", "panels", 10, make_integer_conv);

}  // namespace

}  // namespace anymps::cpu
