// SPDX-License-Identifier: Apache-2.0
#include "serving/chunks.h"

#include <algorithm>
#include <bit>

namespace anymps::serving {
namespace {

int size_of(int64_t rows) { return std::bit_width(static_cast<uint64_t>(rows)) - 1; }

}  // namespace

int64_t Chunks::choose(int64_t rows) {
  if (fixed_ == 0 || rows <= 1) return std::max<int64_t>(rows, 1);
  if (fixed_ > 0) return std::min(fixed_, rows);
  std::lock_guard lock(mutex_);
  const int largest = std::min(size_of(rows), kSizes - 1);
  int size = std::min(best_, largest);
  ++batches_;
  // One size larger while it is not known, and now and then; one less now and then.
  const bool again = batches_ % kAgain == 0;
  if (best_ < largest && (sizes_[best_ + 1].runs < kEnough || (again && batches_ / kAgain % 2)))
    size = best_ + 1;
  else if (best_ > 0 && best_ <= largest && again)
    size = best_ - 1;
  return size == largest ? rows : int64_t{1} << size;
}

void Chunks::record(int64_t rows, uint64_t nanoseconds) {
  if (rows <= 0) return;
  const int at = std::min(size_of(rows), kSizes - 1);
  const double row_ns = static_cast<double>(nanoseconds) / static_cast<double>(rows);
  std::lock_guard lock(mutex_);
  Size& size = sizes_[at];
  size.row_ns = size.runs ? 0.8 * size.row_ns + 0.2 * row_ns : row_ns;
  size.runs = std::min(size.runs + 1, uint32_t{1} << 30);
  if (fixed_ >= 0) return;
  const auto known = [&](int i) { return i < kSizes && sizes_[i].runs >= kEnough; };
  if (!known(best_)) return;
  if (known(best_ + 1) && sizes_[best_ + 1].row_ns < kGain * sizes_[best_].row_ns)
    ++best_;
  else if (best_ > 0 && known(best_ - 1) && sizes_[best_].row_ns > sizes_[best_ - 1].row_ns)
    --best_;
}

bool Chunks::worth_a_thread(int64_t rows) const {
  std::lock_guard lock(mutex_);
  return sizes_[std::min(size_of(rows), kSizes - 1)].row_ns * static_cast<double>(rows) >=
         kThreadNs;
}

int64_t Chunks::best() const {
  std::lock_guard lock(mutex_);
  return int64_t{1} << best_;
}

}  // namespace anymps::serving
