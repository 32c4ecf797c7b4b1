// SPDX-License-Identifier: Apache-2.0
// Each task makes rows of the last result, from the top down. Before each band it makes the rows of
// the other results that are missing under it. Rows that the next band needs too are kept; at the
// begin of a task they are made again, which is the price of each cut.
#include "drivers/cpu/layers/row_chain.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/env.h"
#include "drivers/cpu/common/row_kernel.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

constexpr size_t kMostLinks = 3;
constexpr int64_t kMostBand = 8;  // rows
// What a task holds in the L2 cache, of which there are 512 KB and more where there is AVX2.
constexpr int64_t kBandBytes = 384 << 10;
// A thread's share of smaller results stays in its caches anyway.
constexpr int64_t kLeastBytes = 384 << 10;
constexpr int64_t kTasksEach = 2;    // for each thread, as far as cuts are cheap
constexpr double kMostAgain = 0.05;  // of all operations
constexpr double kRowChainFlopsInNs = 100;

class RowChain final : public Kernel {
 public:
  explicit RowChain(std::span<const ChainLink> links) {
    size_t first_input = 0;
    for (const ChainLink& link : links) {
      const auto* kernel = dynamic_cast<const RowKernel*>(link.kernel);
      if (!kernel || kernel->result_rows().images == 0 || kernel->scratch_bytes() > 0) return;
      links_[count_++] = {kernel, kernel->result_rows(), first_input, 0, 0};
      first_input += link.request->inputs.size();
    }
    if (is_chain() && has_one_window() && is_large() && cut_into_bands()) cut_into_tasks();
  }
  bool worth_it() const { return tasks_ > 0; }

  void run(const KernelArgs& args) const override {
    const Link& last = links_[count_ - 1];
    const int64_t rows = last.result.images * last.result.rows;
    const double ns = flops_ / static_cast<double>(tasks_) / kRowChainFlopsInNs;
    parallel_for(0, tasks_, ns, [&](int64_t first, int64_t end) {
      char* memory = static_cast<char*>(args.scratch) + first * task_bytes_;
      const int64_t stop = rows * end / tasks_;
      for (int64_t row = rows * first / tasks_; row < stop;) {
        const int64_t image = row / last.result.rows, at = row % last.result.rows;
        const int64_t count = std::min(stop - row, last.result.rows - at);
        run_image(args, image, {at, at + count}, memory);
        row += count;
      }
    });
  }
  size_t scratch_bytes() const override { return static_cast<size_t>(tasks_ * task_bytes_); }
  bool reads(size_t i) const override {
    size_t link = count_ - 1;
    while (links_[link].first_input > i) --link;
    return links_[link].kernel->reads(i - links_[link].first_input);
  }
  std::string detail() const override {
    return fmt::format("bands of {} rows, {} tasks", band_, tasks_);
  }

 private:
  struct Link {
    const RowKernel* kernel = nullptr;
    RowShape result;
    size_t first_input = 0;
    int64_t held = 0;    // rows of the result that a task holds, at most
    int64_t offset = 0;  // of these in its memory
  };

  bool is_chain() const {
    for (size_t i = 1; i < count_; ++i) {
      const RowShape x = links_[i].kernel->input_rows(), &y = links_[i - 1].result;
      if (x.images != y.images || x.rows != y.rows || x.floats != y.floats) return false;
    }
    return count_ > 1;
  }

  // A window with a link before and one behind it at most: the small results of others are better
  // written once than made again at each cut.
  bool has_one_window() const {
    size_t windows = 0, last = 0;
    for (size_t i = 0; i < count_; ++i) {
      const int64_t middle = links_[i].result.rows / 2;
      if (links_[i].kernel->under({middle, middle + 1}).count() <= 1) continue;
      ++windows;
      last = i;
    }
    return windows == 1 && last <= 1 && count_ - last <= 2;
  }

  int64_t row_bytes(size_t link) const {
    return links_[link].result.floats * static_cast<int64_t>(sizeof(float));
  }

  bool is_large() const {
    int64_t most = 0;
    for (size_t i = 0; i + 1 < count_; ++i)
      most = std::max(most, row_bytes(i) * links_[i].result.rows);
    return most >= kLeastBytes * current_threads();
  }

  // The largest band of which a task's rows stay in the cache.
  bool cut_into_bands() {
    for (band_ = kMostBand; band_ > 0; --band_) {
      for (Link& link : links_) link.held = 0;
      const int64_t rows = links_[count_ - 1].result.rows;
      for (int64_t first = 0; first < rows; ++first) {
        RowRange range{first, std::min(first + band_, rows)};
        for (size_t i = count_ - 1; i-- > 0;) {
          range = links_[i + 1].kernel->under(range);
          links_[i].held = std::max(links_[i].held, range.count());
        }
      }
      task_bytes_ = 0;
      for (size_t i = 0; i + 1 < count_; ++i) {
        links_[i].offset = task_bytes_;
        task_bytes_ += (links_[i].held * row_bytes(i) + 63) / 64 * 64;
      }
      if (task_bytes_ <= kBandBytes) return true;
    }
    return false;
  }

  // Operations that a cut in the middle of an image makes twice.
  double flops_of_cut() const {
    const int64_t middle = links_[count_ - 1].result.rows / 2;
    RowRange above{middle - 1, middle}, below{middle, middle + 1};
    double flops = 0;
    for (size_t i = count_ - 1; i-- > 0;) {
      above = links_[i + 1].kernel->under(above);
      below = links_[i + 1].kernel->under(below);
      const int64_t twice = std::max<int64_t>(above.last - below.first, 0);
      flops += links_[i].kernel->flops() * static_cast<double>(twice) /
               static_cast<double>(links_[i].result.images * links_[i].result.rows);
    }
    return flops;
  }

  void cut_into_tasks() {
    for (size_t i = 0; i < count_; ++i) flops_ += links_[i].kernel->flops();
    const int threads = current_threads();
    if (threads == 1) tasks_ = 1;
    const RowShape& result = links_[count_ - 1].result;
    const double again = flops_of_cut() / flops_;
    for (int64_t each = kTasksEach; each > 0 && tasks_ == 0; --each)
      if (const int64_t tasks = each * threads;
          tasks <= result.images * result.rows &&
          again * static_cast<double>(tasks - 1) <= kMostAgain)
        tasks_ = tasks;
  }

  void run_image(const KernelArgs& args, int64_t image, RowRange rows, char* memory) const {
    std::array<RowRange, kMostLinks> held{};
    for (RowRange band{rows.first, 0}; band.first < rows.last; band.first = band.last) {
      band.last = std::min(band.first + band_, rows.last);
      // What is missing of each result, and which rows of it the next link needs.
      std::array<RowRange, kMostLinks> missing{}, needed{};
      missing[count_ - 1] = band;
      for (size_t i = count_ - 1; i-- > 0;) {
        if (missing[i + 1].count() <= 0) break;
        needed[i] = links_[i + 1].kernel->under(missing[i + 1]);
        missing[i] = {std::max(needed[i].first, held[i].last), needed[i].last};
      }
      for (size_t i = 0; i < count_; ++i) {
        if (missing[i].count() <= 0) continue;
        const Link& link = links_[i];
        const KernelArgs own{args.inputs + link.first_input, args.outputs, nullptr, args.queue};
        const float* x = i > 0 ? rows_of(memory, i - 1) : nullptr;
        const int64_t x_first = i > 0 ? held[i - 1].first : 0;
        float* y = static_cast<float*>(args.outputs[0]) +
                   (image * link.result.rows + band.first) * link.result.floats;
        if (i + 1 < count_) y = make_room(memory, i, held[i], needed[i]);
        link.kernel->run_rows(own, image, missing[i], x, x_first, y);
      }
    }
  }

  float* rows_of(char* memory, size_t link) const {
    return reinterpret_cast<float*>(memory + links_[link].offset);
  }

  // Moves the rows that are still needed to the begin, and returns where the others go.
  float* make_room(char* memory, size_t link, RowRange& held, RowRange needed) const {
    float* rows = rows_of(memory, link);
    const int64_t floats = links_[link].result.floats;
    const int64_t kept = std::max<int64_t>(held.last - needed.first, 0);
    if (kept > 0 && needed.first > held.first)
      std::memmove(rows, rows + (needed.first - held.first) * floats,
                   static_cast<size_t>(kept * row_bytes(link)));
    held = needed;
    return rows + kept * floats;
  }

  std::array<Link, kMostLinks> links_;
  size_t count_ = 0;
  int64_t band_ = 0, task_bytes_ = 0, tasks_ = 0;
  double flops_ = 0;
};

}  // namespace

KernelPtr join_rows(std::span<const ChainLink> links) {
  if (links.size() < 2 || links.size() > kMostLinks) return nullptr;
  for (size_t i = 1; i < links.size(); ++i)
    if (links[i].input != 0) return nullptr;
  auto chain = std::make_shared<RowChain>(links);
  return chain->worth_it() && env_string("ANYMPS_JOIN") != "off" ? chain : nullptr;
}

}  // namespace anymps::cpu
