// SPDX-License-Identifier: Apache-2.0
// Runs the short way: small models take longer to check and to look up than to compute, so what a
// run has found is kept for the next one that is like it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/executable.h"

namespace anymps {

namespace {

uint64_t hash_of(std::span<const TensorView> feeds, const Bindings& bindings) {
  uint64_t hash = feeds.size();
  const auto add = [&](uint64_t number) {
    hash = (hash ^ number) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  for (const TensorView& feed : feeds) {
    add(static_cast<uint64_t>(feed.dtype) << 32 | static_cast<uint32_t>(feed.rank));
    for (int32_t i = 0; i < feed.rank; ++i) add(static_cast<uint64_t>(feed.dims[i]));
  }
  for (const int64_t extent : bindings) add(static_cast<uint64_t>(extent));
  return hash;
}

bool is_plain(const TensorView& view, DType dtype, const Shape& shape) {
  return view.dtype == dtype && view.rank == static_cast<int32_t>(shape.size()) &&
         std::equal(shape.begin(), shape.end(), view.dims) && row_major(view);
}

bool fits(const ReadyPlans::Ready& ready, std::span<const TensorView> feeds,
          const Bindings& bindings) {
  const std::vector<Shape>& shapes = ready.plan->feeds();
  if (feeds.size() != shapes.size() || bindings != ready.bindings) return false;
  for (size_t i = 0; i < feeds.size(); ++i)
    if (!is_plain(feeds[i], ready.dtypes[i], shapes[i])) return false;
  return true;
}

// With so many, looking at each two of them would take longer than the long way.
constexpr size_t kMostGiven = 16;

bool meet(const TensorView& a, size_t a_bytes, const TensorView& b, size_t b_bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a.data);
  const auto second = reinterpret_cast<uintptr_t>(b.data);
  return a_bytes > 0 && b_bytes > 0 && first < second + b_bytes && second < first + a_bytes;
}

}  // namespace

ReadyPlans::Ready::~Ready() {
  if (context) plan->give_back(std::move(context));
}

// At most half of the plans that are kept at all: a plan that runs this way only is not known to
// have been used, and comes back to the cache before that forgets it.
ReadyPlans::ReadyPlans(size_t plan_cache) : count_(std::clamp<size_t>(plan_cache / 2, 1, kMost)) {}

std::unique_ptr<ReadyPlans::Ready> ReadyPlans::take(std::span<const TensorView> feeds,
                                                    const Bindings& bindings) {
  const uint64_t hash = hash_of(feeds, bindings);
  for (size_t i = 0; i < count_; ++i) {
    Slot& slot = slots_[i];
    if (slot.hash.load(std::memory_order_relaxed) != hash) continue;
    if (!slot.ready.load(std::memory_order_relaxed)) continue;
    std::unique_ptr<Ready> ready(slot.ready.exchange(nullptr, std::memory_order_acq_rel));
    if (!ready) continue;
    if (fits(*ready, feeds, bindings)) {
      hits_.fetch_add(1, std::memory_order_relaxed);
      return ready;
    }
    put_back(std::move(ready));
  }
  return nullptr;
}

void ReadyPlans::put_back(std::unique_ptr<Ready> ready) {
  if (ready->epoch != epoch_.load(std::memory_order_acquire)) return;
  for (size_t i = 0; i < count_; ++i) {
    Ready* none = nullptr;
    Slot& slot = slots_[i];
    if (slot.ready.load(std::memory_order_relaxed)) continue;
    const uint64_t hash = ready->hash;
    if (!slot.ready.compare_exchange_strong(none, ready.get(), std::memory_order_acq_rel)) continue;
    (void)ready.release();
    slot.hash.store(hash, std::memory_order_relaxed);
    return;
  }
}

void ReadyPlans::add(const std::shared_ptr<Plan>& plan, std::span<const TensorView> feeds,
                     const Bindings& bindings) {
  const uint64_t hash = hash_of(feeds, bindings);
  size_t used = 0;
  for (size_t i = 0; i < count_; ++i) {
    const bool there = slots_[i].ready.load(std::memory_order_relaxed) != nullptr;
    if (there && slots_[i].hash.load(std::memory_order_relaxed) == hash) return;
    used += there;
  }
  auto ready = std::make_unique<Ready>();
  ready->plan = plan;
  ready->context = plan->take_context();
  for (const TensorView& feed : feeds) ready->dtypes.push_back(feed.dtype);
  ready->bindings = bindings;
  ready->hash = hash;
  ready->epoch = epoch_.load(std::memory_order_acquire);
  if (used == count_) {
    Slot& slot = slots_[next_.fetch_add(1, std::memory_order_relaxed) % count_];
    const std::unique_ptr<Ready> old(slot.ready.exchange(nullptr, std::memory_order_acq_rel));
  }
  put_back(std::move(ready));
}

void ReadyPlans::clear() {
  epoch_.fetch_add(1, std::memory_order_acq_rel);
  for (Slot& slot : slots_)
    const std::unique_ptr<Ready> old(slot.ready.exchange(nullptr, std::memory_order_acq_rel));
}

ReadyRun::ReadyRun(Executable& executable, std::span<const TensorView> feeds,
                   const Bindings& bindings)
    : executable_(executable),
      inside_(executable.gate()),
      ready_(executable.ready_.take(feeds, bindings)) {}

ReadyRun::~ReadyRun() {
  if (ready_) executable_.ready_.put_back(std::move(ready_));
}

bool ReadyRun::may_write(std::span<const TensorView> feeds,
                         std::span<const TensorView> results) const {
  const std::vector<TensorDesc>& descs = ready_->plan->results();
  if (results.size() != descs.size() || results.size() > kMostGiven) return false;
  size_t bytes[kMostGiven];
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].absent()) continue;
    if (feeds.size() > kMostGiven || !is_plain(results[i], descs[i].dtype, descs[i].shape))
      return false;
    bytes[i] = descs[i].bytes();
    for (size_t k = 0; k < i; ++k)
      if (!results[k].absent() && meet(results[i], bytes[i], results[k], bytes[k])) return false;
  }
  for (size_t f = 0; f < feeds.size(); ++f) {
    size_t of_feed = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].absent()) continue;
      if (of_feed == 0) of_feed = byte_count(ready_->dtypes[f], ready_->plan->feeds()[f]);
      if (meet(results[i], bytes[i], feeds[f], of_feed)) return false;
    }
  }
  return true;
}

void ReadyRun::run(std::span<const TensorView> feeds, std::span<const TensorView> results,
                   Profiler* profiler) {
  SmallVector<void*, 16> in, out;
  for (const TensorView& feed : feeds) in.push_back(feed.data);
  for (const TensorView& result : results) out.push_back(result.data);
  Plan& plan = *ready_->plan;
  const auto run = [&] {
    plan.run(*ready_->context, in.data(), out.data(), executable_.device_->queue(), profiler,
             false);
  };
  if (plan.reads_files())
    reading(executable_.options_.files, run);
  else
    run();
}

// False: nothing has been done.
bool Executable::run_ready(const std::vector<Tensor>& feeds, std::vector<Tensor>& results,
                           Profiler* profiler, const Bindings& bindings) {
  Views in, out;
  for (const Tensor& feed : feeds) {
    if (feed.container != Container::kTensor || !feed.buffer) return false;
    in.push_back(view_of(feed));
  }
  ReadyRun run(*this, in, bindings);
  if (!run || results.size() > run.results().size()) return false;
  const std::vector<TensorDesc>& descs = run.results();
  for (size_t i = 0; i < descs.size(); ++i) {
    const bool given = i < results.size() && results[i].buffer;
    if (given && results[i].container != Container::kTensor) return false;
    out.push_back(given ? view_of(results[i]) : TensorView());
  }
  if (!run.may_write(in, out)) return false;
  results.resize(descs.size());
  for (size_t i = 0; i < descs.size(); ++i) {
    if (results[i].buffer) continue;
    results[i] = device_->empty(descs[i].dtype, descs[i].shape);
    out.begin()[i] = view_of(results[i]);
  }
  run.run(in, out, profiler);
  return true;
}

void Executable::make_ready(const std::shared_ptr<Plan>& plan, const std::vector<Tensor>& feeds,
                            const Bindings& bindings) {
  if (!plan->keeps_contexts()) return;
  Views in;
  for (const Tensor& feed : feeds) {
    if (!feed.desc.contiguous()) return;
    in.push_back(view_of(feed));
  }
  ready_.add(plan, in, bindings);
}

CacheStats Executable::plan_stats() const {
  CacheStats stats = plans_.stats();
  stats.hits += ready_.hits();
  return stats;
}

}  // namespace anymps
