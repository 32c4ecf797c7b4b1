// SPDX-License-Identifier: Apache-2.0
#include "runtime/eager/versions.h"

#include <mutex>

#include "runtime/eager/request.h"

namespace anymps {

// Moves it to `gone`, which outlives the lock: what ends may take its time.
void VersionedKernels::take(Items::iterator item, Items& gone) {
  index_.erase(key_of(item->sources));
  bytes_ -= item->bytes;
  gone.splice(gone.begin(), items_, item);
  count_.store(std::ssize(items_), std::memory_order_relaxed);
}

std::shared_ptr<EagerEntry> VersionedKernels::find(const Sources& sources) {
  Items gone;
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(key_of(sources));
  if (found == index_.end()) return nullptr;
  const auto item = found->second;
  if (item->sources.versions != sources.versions) {
    take(item, gone);
    return nullptr;
  }
  items_.splice(items_.begin(), items_, item);
  return item->entry;
}

void VersionedKernels::keep(const Sources& sources, std::shared_ptr<EagerEntry> entry, size_t bytes,
                            size_t most) {
  Items gone;
  const std::lock_guard lock(mutex_);
  if (const auto found = index_.find(key_of(sources)); found != index_.end())
    take(found->second, gone);
  if (bytes > most) return;
  while (bytes_ + bytes > most) take(std::prev(items_.end()), gone);
  items_.push_front({sources, std::move(entry), bytes});
  index_[key_of(sources)] = items_.begin();
  bytes_ += bytes;
  count_.store(std::ssize(items_), std::memory_order_relaxed);
}

void VersionedKernels::forget(const void* memory, size_t bytes) {
  if (empty()) return;
  const char *begin = static_cast<const char*>(memory), *end = begin + bytes;
  Items gone;
  const std::lock_guard lock(mutex_);
  for (auto item = items_.begin(); item != items_.end();) {
    const auto next = std::next(item);
    const Sources& from = item->sources;
    for (int i = 0; i < from.count; ++i)
      if (from.data[i] + from.reach[i].begin < end && begin < from.data[i] + from.reach[i].end) {
        take(item, gone);
        break;
      }
    item = next;
  }
}

void VersionedKernels::clear() {
  Items gone;
  const std::lock_guard lock(mutex_);
  gone.swap(items_);
  index_.clear();
  bytes_ = 0;
  count_.store(0, std::memory_order_relaxed);
}

namespace {

constexpr int64_t kPartOfMemory = 4;  // packed weights may have this part of a device's memory

// Constants are dense. A matrix that is the transpose of a dense one is taken as that.
bool take_transposed(KernelRequest& request, size_t i) {
  TensorDesc& desc = *request.inputs[i];
  if (request.op->name != "matmul" || i != 1 || desc.rank() != 2) return false;
  const TensorDesc dense(desc.dtype, Shape{desc.shape[1], desc.shape[0]});
  if (desc.strides[0] != 1 || desc.strides[1] != dense.strides[0]) return false;
  desc = dense;
  request.attrs.set({"transpose_b", !request.attrs.b("transpose_b")});
  return true;
}

}  // namespace

// Inputs of the prepared call that are known by their versions become constants over the caller's
// memory.
void Eager::set_constants(PreparedCall& call, const Request& request) {
  for (size_t i = 0; i < request.versions.size(); ++i) {
    if (request.versions[i] == 0 || !call.request.has(i)) continue;
    if (!call.request.in(i).contiguous() && !take_transposed(call.request, i)) continue;
    const TensorDesc& desc = call.request.in(i);
    call.request.constants[i] =
        Constant::view(desc.dtype, desc.shape, request.inputs[i].data, nullptr);
  }
}

// The entry of a call some of whose inputs have versions; null: the one without is to be used.
std::shared_ptr<EagerEntry> Eager::versioned(EagerEntry& plain, const Request& request) {
  if (!request.op.is(kProduct) || request.versions.size() > 64) return nullptr;
  VersionedKernels::Sources sources;
  sources.call = plain.id;
  uint64_t inputs = 0;
  for (size_t i = 0; i < request.versions.size(); ++i) {
    if (request.versions[i] == 0 || request.inputs[i].absent()) continue;
    if (sources.count == VersionedKernels::kMostSources) return nullptr;
    inputs |= uint64_t{1} << i;
    sources.data[sources.count] = static_cast<const char*>(request.inputs[i].data);
    sources.versions[sources.count] = request.versions[i];
    sources.reach[sources.count++] = plain.input_reach[i];
  }
  if ((inputs & ~plain.not_packed.load(std::memory_order_relaxed)) == 0) return nullptr;
  if (auto kept = versions_.find(sources)) return kept;
  std::shared_ptr<EagerEntry> made = prepare(request, false, nullptr);
  PreparedCall& call = made->call;
  size_t bytes = 0;
  for (size_t i = 0; i < request.versions.size(); ++i)
    if (call.request.constant(i) && !call.choice->kernel->reads(i))
      bytes += call.request.constant(i)->bytes();
  if (bytes == 0) {
    plain.not_packed.fetch_or(inputs, std::memory_order_relaxed);
    return nullptr;
  }
  for (ConstantPtr& constant : call.request.constants) constant.reset();
  versions_.keep(sources, made, bytes, device_.allocator().limit() / kPartOfMemory);
  return made;
}

}  // namespace anymps
