// SPDX-License-Identifier: Apache-2.0
#include "memory/refreshable.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/fork.h"
#include "memory/pack.h"

namespace anymps {

namespace {

// Where a refreshable constant comes from. The constant owns it.
struct Origin {
  std::vector<ConstantPtr> inputs;  // none: the caller's memory
  Derivation derivation;
  TensorDesc desc;  // of the caller's memory
  const void* data = nullptr;
  std::shared_ptr<const void> owner;
  uint64_t id = 0;  // of the constant; 0: not known yet
  Origin() = default;
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;
  ~Origin();
};

// By the constants' ids. Kept beside them, since few programs have any: a constant need not carry
// the place for it.
struct Origins {
  ForkMutex mutex;
  std::unordered_map<uint64_t, std::weak_ptr<const Origin>> by_id;
  std::atomic<size_t> count{0};
};
Origins& origins() {
  static auto& all = *new Origins;  // never destroyed, as constants may outlive main
  return all;
}

Origin::~Origin() {
  if (id == 0) return;
  Origins& all = origins();
  std::lock_guard lock(all.mutex);
  all.by_id.erase(id);
  all.count = all.by_id.size();
}

void add_origin(const std::shared_ptr<Origin>& origin, const Constant& constant) {
  Origins& all = origins();
  std::lock_guard lock(all.mutex);
  all.by_id[constant.id()] = origin;
  all.count = all.by_id.size();
  origin->id = constant.id();
}

std::shared_ptr<const Origin> origin_of(const Constant& constant) {
  Origins& all = origins();
  if (all.count == 0) return nullptr;
  std::lock_guard lock(all.mutex);
  const auto found = all.by_id.find(constant.id());
  return found == all.by_id.end() ? nullptr : found->second.lock();
}

}  // namespace

ConstantPtr refreshable_constant(const TensorDesc& desc, const void* data,
                                 std::shared_ptr<const void> owner) {
  auto origin = std::make_shared<Origin>();
  origin->desc = desc;
  origin->data = data;
  origin->owner = std::move(owner);
  ConstantPtr made;
  if (desc.contiguous())
    made = Constant::view(desc.dtype, desc.shape, data, origin);
  else
    made = Constant::lazy(desc.dtype, desc.shape, [origin](std::byte* out) {
      pack(origin->desc, static_cast<const std::byte*>(origin->data), out);
    });
  add_origin(origin, *made);
  return made;
}

ConstantPtr refreshed(const ConstantPtr& source) {
  const auto origin = origin_of(*source);
  if (!origin || !origin->inputs.empty()) return source;
  return refreshable_constant(origin->desc, origin->data, origin->owner);
}

ConstantPtr derived_constant(DType dtype, Shape shape, std::vector<ConstantPtr> inputs,
                             Derivation derivation) {
  auto origin = std::make_shared<Origin>();
  origin->inputs = std::move(inputs);
  origin->derivation = std::move(derivation);
  ConstantPtr made = Constant::lazy(dtype, std::move(shape), [origin](std::byte* out) {
    origin->derivation(origin->inputs, out);
  });
  const bool refreshable =
      std::any_of(origin->inputs.begin(), origin->inputs.end(),
                  [](const ConstantPtr& input) { return input && is_refreshable(*input); });
  if (refreshable) add_origin(origin, *made);
  return made;
}

bool is_refreshable(const Constant& constant) { return origin_of(constant) != nullptr; }

ConstantPtr Renewal::of(const ConstantPtr& constant) {
  if (!constant) return nullptr;
  if (const auto made = made_.find(constant->id()); made != made_.end()) return made->second;
  const auto origin = origin_of(*constant);
  ConstantPtr result = constant;
  if (origin && !origin->inputs.empty()) {
    std::vector<ConstantPtr> inputs;
    for (const ConstantPtr& input : origin->inputs) inputs.push_back(of(input));
    if (inputs != origin->inputs)
      result = derived_constant(constant->dtype(), constant->shape(), std::move(inputs),
                                origin->derivation);
  }
  return made_[constant->id()] = result;
}

}  // namespace anymps
