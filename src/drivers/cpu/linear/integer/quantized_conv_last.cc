// SPDX-License-Identifier: Apache-2.0
// Convolutions of bytes with the channels last: products of rows, one for each place of the result
// (image_rows.h), with panels of weights. The results of a row lie side by side, as the next
// convolution wants them.
#include <cstring>
#include <vector>

#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/linear/integer/image_rows.h"
#include "drivers/cpu/linear/integer/int_operands.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kTileRows = 6, kMostTaskRows = 96;
constexpr int64_t kMostRowBytes = int64_t{1} << 18;  // of the rows of a task: they stay in a cache
constexpr int64_t kMostDepth = int64_t{1} << 24;

// What a task makes of the image: it stays in the cache of the thread.
struct TaskRows {
  PlacedRows placed;
  std::vector<int32_t> sums;
};
TaskRows& rows_of_thread() {
  thread_local TaskRows rows;  // NOLINT: kept, so that a run allocates nothing
  return rows;
}

class ChannelsLastConv final : public Kernel {
 public:
  IntRight right_;  // of one group; its depth is filled up to whole words run by run
  IntPacking packing_ = right_.packing;
  DType w_type_ = DType::kI8;
  ImageRows rows_;
  bool has_x_zero_ = false, has_w_zero_ = false;
  int64_t w_zero_step_ = 0;
  BufferRef packed_;  // constant weights
  IntEnd end_;

  int64_t groups() const { return rows_.groups; }
  int64_t right_bytes() const { return aligned(right_.bytes()); }
  int64_t all_columns() const { return groups() * right_.columns; }

  // Ends of the columns of each group, then weights that are not constant.
  int64_t ends_bytes() const { return groups() * right_.ends_bytes(); }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(ends_bytes() + (packed_ ? 0 : groups() * right_bytes()));
  }
  bool reads(size_t i) const override { return !(packed_ && (i == 1 || i == 3)); }
  std::string detail() const override {
    return fmt::format("{}{}{}", packing_.bytes ? "vnni" : "i16", packed_ ? " packed" : "",
                       rows_.in_place() ? " in place" : "");
  }

  // Weights [outputs, channels, taps] of each group as panels whose depth goes tap by tap.
  void pack_weights(const void* w, const void* zeros, uint8_t* to) const {
    std::vector<int32_t> ones(static_cast<size_t>(right_.words()));
    fill_ones(packing_, right_.depth, ones.data());
    const uint8_t nothing = flips_to_signed(packing_, w_type_) ? 128 : 0;
    std::vector<uint8_t> turned(static_cast<size_t>(right_.columns * right_.depth), nothing);
    const int64_t taps = rows_.window.count(), channels = rows_.channels,
                  run_step = rows_.run_words() * packing_.per_word();
    for (int64_t group = 0; group < groups(); ++group) {
      const auto* from = static_cast<const uint8_t*>(w) + group * right_.columns * rows_.depth();
      for (int64_t o = 0; o < right_.columns; ++o, from += rows_.depth())
        for (int64_t tap = 0; tap < taps; ++tap) {
          uint8_t* const at = turned.data() + o * right_.depth + tap / rows_.run_taps() * run_step +
                              tap % rows_.run_taps() * channels;
          for (int64_t c = 0; c < channels; ++c) at[c] = from[c * taps + tap];
        }
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
    auto* scratch = static_cast<uint8_t*>(args.scratch);
    if (!packed_)
      pack_weights(args.inputs[1], has_w_zero_ ? args.inputs[3] : nullptr, scratch + ends_bytes());
    Run run{args, end_.tail(args)};
    run.rights = packed_ ? static_cast<const uint8_t*>(packed_->data()) : scratch + ends_bytes();
    run.zero = has_x_zero_ ? load_byte(rows_.dtype, args.inputs[2], 0) : 0;
    tell_columns(run, scratch);
    const Tasks tasks = tasks_for(current_threads());
    const int64_t rows = rows_.rows(), columns = right_.columns / tasks.parts + 8;
    const double ns =
        100 + static_cast<double>(std::min(tasks.rows, rows) * rows_.depth() * columns) * 0.004;
    parallel_for(0, groups() * tasks.blocks * tasks.parts, ns, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t block = unit / tasks.parts, part = unit % tasks.parts,
                      row = block % tasks.blocks * tasks.rows;
        multiply(
            run, block / tasks.blocks, row, std::min(tasks.rows, rows - row),
            {right_.panels() * part / tasks.parts, right_.panels() * (part + 1) / tasks.parts});
      }
    });
  }

 private:
  // What all tasks of a run share.
  struct Run {
    const KernelArgs& args;
    IntTail tail;
    const uint8_t* rights = nullptr;
    IntColumns ends;    // of the first group, direct if all are
    bool sums = false;  // of rows are needed
    int zero = 0;       // of x
  };
  struct Tasks {
    int64_t rows = 0, blocks = 0, parts = 1;  // rows of a block; of the panels
  };
  struct Panels {
    int64_t begin, end;
  };

  void tell_columns(Run& run, uint8_t* scratch) const {
    for (int64_t group = 0; group < groups(); ++group) {
      const uint8_t* packed = run.rights + group * right_bytes();
      IntTail tail = run.tail;
      if (tail.scale) tail.scale += group * right_.columns * tail.scale_step;
      if (tail.bias) tail.bias += group * right_.columns;
      const IntColumns ends = right_.ends(packed, run.zero + (rows_.flips() ? 128 : 0), tail,
                                          scratch + group * right_.ends_bytes());
      if (group == 0 || !ends.direct) run.ends = ends;
      run.sums = run.sums || !right_.plain(packed);
    }
  }

  // Few rows and many threads: several tasks place the same rows and take some of the panels, which
  // are read once then.
  Tasks tasks_for(int threads) const {
    const int64_t rows = rows_.rows();
    const int64_t most =
        std::clamp(kMostRowBytes / std::max<int64_t>(rows_.channels, 1), kTileRows, kMostTaskRows);
    const int64_t wanted = threads == 1 ? 1 : 4 * threads;
    Tasks tasks;
    const auto cut = [&](int64_t blocks) {
      const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
      tasks.rows = (tiles + blocks - 1) / blocks * kTileRows;
      tasks.blocks = (rows + tasks.rows - 1) / tasks.rows;
    };
    cut((rows + most - 1) / most);
    tasks.parts = std::clamp<int64_t>(wanted / (tasks.blocks * groups()), 1, right_.panels());
    if (tasks.blocks * groups() * tasks.parts < wanted)
      cut((wanted + groups() * tasks.parts - 1) / (groups() * tasks.parts));
    return tasks;
  }

  void multiply(const Run& run, int64_t group, int64_t row, int64_t count, Panels panels) const {
    const uint8_t* right = run.rights + group * right_bytes();
    TaskRows& memory = rows_of_thread();
    rows_.place(static_cast<const uint8_t*>(run.args.inputs[0]) + group * rows_.channels, row,
                count, run.zero, memory.placed);
    IntProduct p;
    p.a = memory.placed.from;
    p.a_rows = memory.placed.at.data();
    p.run_at = memory.placed.runs.data();
    p.runs = rows_.runs();
    if (run.sums) {
      if (std::ssize(memory.sums) < count) memory.sums.resize(static_cast<size_t>(count));
      rows_.sum(memory.placed, count, run.zero, memory.sums.data());
      p.corrections[0].row = memory.sums.data();
    }
    p.rows = count;
    p.words = right_.words();
    p.y_row = all_columns();
    IntColumns ends = run.ends;
    ends.memory = static_cast<const uint8_t*>(run.args.scratch) + group * right_.ends_bytes();
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const int64_t first = panel * right_.full(), column = group * right_.columns + first;
      ends.set(p, run.tail, first);
      p.columns = right_.columns_of(panel);
      p.b = right + panel * right_.panel_bytes();
      if (run.sums) p.corrections[0].column = right_.zeros(right) + first;
      p.y = static_cast<uint8_t*>(run.args.outputs[0]) +
            static_cast<size_t>(row * all_columns() + column) * size_of(run.tail.out);
      multiply_int(packing_, p);
    }
  }
};

KernelPtr make_channels_last(const KernelRequest& request, std::string& why) {
  auto kernel = std::make_shared<ChannelsLastConv>();
  ImageRows& rows = kernel->rows_;
  if (!rows.window.init(request, why)) return nullptr;
  const TensorDesc& w = request.in(1);
  rows.packing = kernel->packing_;
  rows.dtype = request.in(0).dtype;
  rows.groups = request.attrs.i("groups");
  rows.channels = w.shape[1];
  rows.plan();
  kernel->w_type_ = w.dtype;
  kernel->right_.depth = rows.runs() * rows.run_words() * kernel->packing_.per_word();
  kernel->right_.columns = w.shape[0] / rows.groups;
  if (kernel->right_.depth > kMostDepth) return refuse(why, "too many taps");
  if (!kernel->end_.init(request, w.shape[0], false, "alpha", "beta", why)) return nullptr;
  kernel->has_x_zero_ = request.has(2);
  kernel->has_w_zero_ = request.has(3);
  kernel->w_zero_step_ = request.has(3) && request.in(3).count() > 1 ? 1 : 0;
  const int64_t bytes = rows.groups * kernel->right_bytes();
  if (bytes > int64_t{1} << 31) return refuse(why, "its panels need over 2 GiB");
  const Constant *weights = request.constant(1), *zeros = request.constant(3);
  if (weights && request.packed && (!request.has(3) || zeros)) {
    const Constant::Bytes zero_bytes = zeros ? zeros->data() : nullptr;
    const IntPacking& packing = kernel->packing_;
    kernel->packed_ = request.packed->get(
        *weights,
        fmt::format("int taps {} {} {} {} less {}", packing.bytes, kernel->right_.full(),
                    rows.groups, rows.run_taps(), zeros ? zeros->id() : 0),
        static_cast<size_t>(bytes), [&](const std::byte* plain, void* packed) {
          kernel->pack_weights(plain, zero_bytes.get(), static_cast<uint8_t*>(packed));
        });
  }
  return kernel;
}

const KernelRegistrar kQuantizedConvLast("cpu", "quantized_conv", "rows", 11, make_channels_last);

}  // namespace

}  // namespace anymps::cpu
