// SPDX-License-Identifier: Apache-2.0
// Convolutions of bytes with the channels last: products of rows, one for each place of the result,
// with panels of weights. A row holds the bytes under the window, tap by tap; where the window is
// one pixel, the image has these rows already. The results of a row lie side by side, as the next
// convolution wants them.
#include <array>
#include <cstring>
#include <vector>

#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/linear/integer/image_window.h"
#include "drivers/cpu/linear/integer/int_operands.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kTileRows = 6, kMostTaskRows = 96;
constexpr int64_t kMostRowBytes = int64_t{1} << 18;  // of the rows of a task: they stay in a cache
constexpr int64_t kMostDepth = int64_t{1} << 24;

// A call takes longer than a few bytes do: two parts that may overlap.
void copy_bytes(const uint8_t* from, int64_t count, uint8_t* to) {
  const auto parts = [&](auto word) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(word));
    auto last = word;
    std::memcpy(&word, from, sizeof word);
    std::memcpy(&last, from + count - kSize, sizeof last);
    std::memcpy(to, &word, sizeof word);
    std::memcpy(to + count - kSize, &last, sizeof last);
  };
  struct Sixteen {
    uint64_t words[2];
  };
  if (count > 32 || count < 2)
    std::memcpy(to, from, static_cast<size_t>(count));
  else if (count >= 16)
    parts(Sixteen{});
  else if (count >= 8)
    parts(uint64_t{});
  else if (count >= 4)
    parts(uint32_t{});
  else
    parts(uint16_t{});
}

// What a task makes of the image: it stays in the cache of the thread.
struct Rows {
  std::vector<uint8_t> words, bytes;  // as products read them; as they were, if that differs
  std::vector<int32_t> sums;

  template <typename T>
  static T* room(std::vector<T>& memory, int64_t count) {
    if (std::ssize(memory) < count) memory.resize(static_cast<size_t>(count));
    return memory.data();
  }
};
Rows& rows_of_thread() {
  thread_local Rows rows;  // NOLINT: kept, so that a run allocates nothing
  return rows;
}

class ChannelsLastConv final : public Kernel {
 public:
  IntRight right_;  // of one group
  IntPacking packing_ = right_.packing;
  DType x_type_ = DType::kU8, w_type_ = DType::kI8;
  ImageWindow window_;
  int64_t groups_ = 1, channels_ = 1;  // of a group
  bool has_x_zero_ = false, has_w_zero_ = false;
  int64_t w_zero_step_ = 0;
  BufferRef packed_;  // constant weights
  IntEnd end_;

  int64_t right_bytes() const { return aligned(right_.bytes()); }
  int64_t all_channels() const { return groups_ * channels_; }
  int64_t all_columns() const { return groups_ * right_.columns; }
  int64_t row_bytes() const { return right_.words() * 4; }
  int64_t rows() const { return window_.places(); }
  bool flips() const { return flips_to_unsigned(packing_, x_type_); }
  bool as_they_are() const {
    return packing_.bytes && !flips();
  }  // rows of bytes are rows of words
  bool reads_x() const { return window_.pixels() && as_they_are() && right_.depth % 4 == 0; }

  size_t scratch_bytes() const override {
    return packed_ ? 0 : static_cast<size_t>(groups_ * right_bytes());
  }
  bool reads(size_t i) const override { return !(packed_ && (i == 1 || i == 3)); }
  std::string detail() const override {
    return fmt::format("{}{}{}", packing_.bytes ? "vnni" : "i16", packed_ ? " packed" : "",
                       reads_x() ? " in place" : "");
  }

  // Weights [outputs, channels, taps] of each group as panels whose depth goes tap by tap.
  void pack_weights(const void* w, const void* zeros, uint8_t* to) const {
    std::vector<int32_t> ones(static_cast<size_t>(right_.words()));
    fill_ones(packing_, right_.depth, ones.data());
    std::vector<uint8_t> turned(static_cast<size_t>(right_.columns * right_.depth));
    for (int64_t group = 0; group < groups_; ++group) {
      const auto* from = static_cast<const uint8_t*>(w) + group * right_.columns * right_.depth;
      for (int64_t o = 0; o < right_.columns; ++o, from += right_.depth)
        for (int64_t tap = 0; tap < window_.count(); ++tap)
          for (int64_t c = 0; c < channels_; ++c)
            turned[o * right_.depth + tap * channels_ + c] = from[c * window_.count() + tap];
      const auto* zero = static_cast<const uint8_t*>(zeros);
      if (zero) zero += group * right_.columns * w_zero_step_;
      const double ns = static_cast<double>(right_.depth * right_.full());
      parallel_for(0, right_.panels(), ns, [&](int64_t begin, int64_t end) {
        for (int64_t panel = begin; panel < end; ++panel)
          right_.pack({w_type_, 1, right_.depth, w_zero_step_}, turned.data(), zero, ones.data(),
                      panel, to + group * right_bytes());
      });
    }
  }

  void run(const KernelArgs& args) const override {
    const auto* right = static_cast<const uint8_t*>(packed_ ? packed_->data() : args.scratch);
    if (!packed_)
      pack_weights(args.inputs[1], has_w_zero_ ? args.inputs[3] : nullptr,
                   static_cast<uint8_t*>(args.scratch));
    bool sums = false;  // of rows are needed
    for (int64_t group = 0; group < groups_; ++group)
      sums = sums || !right_.plain(right + group * right_bytes());
    const int threads = current_threads();
    int64_t task_rows = std::clamp(kMostRowBytes / std::max<int64_t>(row_bytes(), 1) / kTileRows,
                                   int64_t{1}, kMostTaskRows / kTileRows) *
                        kTileRows;
    const auto blocks_of = [&](int64_t size) { return (rows() + size - 1) / size * groups_; };
    while (task_rows > kTileRows && blocks_of(task_rows) < 4 * threads)
      task_rows = (task_rows / kTileRows + 1) / 2 * kTileRows;
    // Few rows and many threads: several tasks make the same rows and take some of the panels.
    const int64_t blocks = blocks_of(task_rows), per_group = blocks / groups_;
    const int64_t parts =
        threads == 1 ? 1 : std::clamp<int64_t>(2 * threads / blocks, 1, right_.panels());
    const int64_t columns = right_.columns / parts + 8;
    const double ns =
        100 + static_cast<double>(std::min(task_rows, rows()) * right_.depth * columns) * 0.004;
    parallel_for(0, blocks * parts, ns, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t block = unit / parts, part = unit % parts,
                      row = block % per_group * task_rows;
        multiply(args, right, sums, block / per_group, row, std::min(task_rows, rows() - row),
                 {right_.panels() * part / parts, right_.panels() * (part + 1) / parts});
      }
    });
  }

 private:
  struct Panels {
    int64_t begin, end;
  };

  void multiply(const KernelArgs& args, const uint8_t* rights, bool sums, int64_t group,
                int64_t row, int64_t count, Panels panels) const {
    const uint8_t* right = rights + group * right_bytes();
    const int zero = has_x_zero_ ? load_byte(x_type_, args.inputs[2], 0) : 0;
    const auto* x = static_cast<const uint8_t*>(args.inputs[0]) + group * channels_;
    Rows& memory = rows_of_thread();
    IntProduct p;
    if (reads_x()) {
      p.a = x + row * all_channels();
      p.a_row = all_channels();
    } else {
      gather(x, row, count, static_cast<uint8_t>(zero), memory);
      p.a = memory.words.data();
      p.a_row = row_bytes();
    }
    if (sums) {
      sum_rows(x, row, count, zero, memory);
      p.corrections[0].row = memory.sums.data();
    }
    const IntTail tail = end_.tail(args);
    p.rows = count;
    p.words = right_.words();
    p.y_row = all_columns();
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const int64_t first = panel * right_.full(), column = group * right_.columns + first;
      int32_t start[kMostIntColumns];
      right_.start(right, panel, zero + (flips() ? 128 : 0), start);
      p.column_start = start;
      p.columns = right_.columns_of(panel);
      p.b = right + panel * right_.panel_bytes();
      if (sums) p.corrections[0].column = right_.zeros(right) + first;
      p.tail = tail;
      if (tail.scale) p.tail.scale += column * tail.scale_step;
      if (tail.bias) p.tail.bias += column;
      p.y = static_cast<uint8_t*>(args.outputs[0]) +
            static_cast<size_t>(row * all_columns() + column) * size_of(tail.out);
      multiply_int(packing_, p);
    }
  }

  // The rows [row, row + count) as words.
  void gather(const uint8_t* x, int64_t row, int64_t count, uint8_t zero, Rows& to) const {
    uint8_t* words = Rows::room(to.words, count * row_bytes());
    uint8_t* bytes = as_they_are() ? words : Rows::room(to.bytes, count * right_.depth);
    Place place;
    for (size_t i = 3; i-- > 0; row /= window_.out[i]) place.at[i] = row % window_.out[i];
    place.image = row;
    for (int64_t i = 0; i < count; ++i, words += row_bytes()) {
      if (as_they_are()) {
        gather_row(x, place, zero, words);
        std::fill(words + right_.depth, words + row_bytes(), uint8_t{0});
      } else {
        gather_row(x, place, zero, bytes + i * right_.depth);
        pack_int_row(packing_, x_type_, flips(), bytes + i * right_.depth, right_.depth, 1, words);
      }
      place.next(window_.out);
    }
  }

  struct Place {
    int64_t image = 0;
    Triple at{};
    void next(const Triple& extents) {
      for (size_t i = 3; i-- > 0; at[i] = 0)
        if (++at[i] < extents[i]) return;
      ++image;
    }
  };

  void gather_row(const uint8_t* x, const Place& result, uint8_t zero, uint8_t* to) const {
    int64_t first[3];
    for (size_t i = 0; i < 3; ++i) first[i] = result.at[i] * window_.strides[i] - window_.pads[i];
    const int64_t last = first[2] + (window_.taps[2] - 1) * window_.dilations[2];
    const bool run =
        groups_ == 1 && window_.dilations[2] == 1 && first[2] >= 0 && last < window_.in[2];
    const int64_t line = channels_ * window_.taps[2];
    for (int64_t d = 0; d < window_.taps[0]; ++d)
      for (int64_t h = 0; h < window_.taps[1]; ++h, to += line) {
        const int64_t z = first[0] + d * window_.dilations[0],
                      y = first[1] + h * window_.dilations[1];
        if (z < 0 || z >= window_.in[0] || y < 0 || y >= window_.in[1]) {
          std::memset(to, zero, static_cast<size_t>(line));
          continue;
        }
        const uint8_t* from = x + ((result.image * window_.in[0] + z) * window_.in[1] + y) *
                                      window_.in[2] * all_channels();
        if (run)
          copy_bytes(from + first[2] * all_channels(), line, to);
        else
          gather_taps(from, first[2], zero, to);
      }
  }

  // One line of the window, a part of which may be outside.
  void gather_taps(const uint8_t* from, int64_t place, uint8_t zero, uint8_t* to) const {
    for (int64_t w = 0; w < window_.taps[2]; ++w, place += window_.dilations[2], to += channels_)
      if (place < 0 || place >= window_.in[2])
        std::memset(to, zero, static_cast<size_t>(channels_));
      else
        copy_bytes(from + place * all_channels(), channels_, to);
  }

  // What the rows' sums are without the zero point of x.
  void sum_rows(const uint8_t* x, int64_t row, int64_t count, int64_t zero, Rows& memory) const {
    int32_t* sums = Rows::room(memory.sums, count);
    for (int64_t i = 0; i < count; ++i) {
      const uint8_t* bytes = reads_x()       ? x + (row + i) * all_channels()
                             : as_they_are() ? memory.words.data() + i * row_bytes()
                                             : memory.bytes.data() + i * right_.depth;
      sums[i] =
          static_cast<int32_t>(sum_bytes(x_type_, bytes, right_.depth, 1) - right_.depth * zero);
    }
  }
};

KernelPtr make_channels_last(const KernelRequest& request, std::string& why) {
  auto kernel = std::make_shared<ChannelsLastConv>();
  if (!kernel->window_.init(request, why)) return nullptr;
  const TensorDesc& w = request.in(1);
  kernel->x_type_ = request.in(0).dtype;
  kernel->w_type_ = w.dtype;
  kernel->groups_ = request.attrs.i("groups");
  kernel->channels_ = w.shape[1];
  kernel->right_.depth = kernel->window_.count() * w.shape[1];
  kernel->right_.columns = w.shape[0] / kernel->groups_;
  if (kernel->right_.depth > kMostDepth) return refuse(why, "too many taps");
  if (!kernel->end_.init(request, w.shape[0], false, "alpha", "beta", why)) return nullptr;
  kernel->has_x_zero_ = request.has(2);
  kernel->has_w_zero_ = request.has(3);
  kernel->w_zero_step_ = request.has(3) && request.in(3).count() > 1 ? 1 : 0;
  const int64_t bytes = kernel->groups_ * kernel->right_bytes();
  if (bytes > int64_t{1} << 31) return refuse(why, "its panels need over 2 GiB");
  const Constant *weights = request.constant(1), *zeros = request.constant(3);
  if (weights && request.packed && (!request.has(3) || zeros)) {
    const Constant::Bytes zero_bytes = zeros ? zeros->data() : nullptr;
    const IntPacking& packing = kernel->packing_;
    kernel->packed_ = request.packed->get(
        *weights,
        fmt::format("int taps {} {} {} less {}", packing.bytes, kernel->right_.full(),
                    kernel->groups_, zeros ? zeros->id() : 0),
        static_cast<size_t>(bytes), [&](const std::byte* plain, void* packed) {
          kernel->pack_weights(plain, zero_bytes.get(), static_cast<uint8_t*>(packed));
        });
  }
  return kernel;
}

const KernelRegistrar kQuantizedConvLast("cpu", "quantized_conv", "rows", 11, make_channels_last);

}  // namespace

}  // namespace anymps::cpu
