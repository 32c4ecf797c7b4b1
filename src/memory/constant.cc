// SPDX-License-Identifier: Apache-2.0
#include "memory/constant.h"

#include <atomic>
#include <cstring>

#include "base/denormals.h"
#include "base/fork.h"
#include "memory/pages.h"
#include "memory/spare_memory.h"

namespace anymps {

namespace {

std::shared_ptr<std::byte> new_bytes(size_t size) {
  auto memory = spare_bytes(size);
  if (!memory) fail(Code::kOutOfMemory, "[constant] cannot allocate {} bytes", size);
  return memory;
}

}  // namespace

struct Constant::Made {
  explicit Made(Recipe recipe) : recipe(std::move(recipe)) {}

  const Recipe recipe;
  std::weak_ptr<const std::byte> bytes;
  // Guards `bytes`, even while they are made.
  ForkMutex mutex{ForkMutex::kLong, [this](bool whole) {
                    if (!whole) std::construct_at(&bytes);
                  }};
};

Constant::Constant(DType dtype, Shape shape) : desc_(dtype, std::move(shape)) {
  static std::atomic<uint64_t> next{1};
  id_ = next++;
}

Constant::~Constant() = default;

ConstantPtr Constant::copy(DType dtype, Shape shape, std::span<const std::byte> bytes) {
  ConstantPtr constant(new Constant(dtype, std::move(shape)));
  require(bytes.size() == constant->bytes(), "[constant] {} needs {} bytes, {} given",
          to_string(constant->desc_), constant->bytes(), bytes.size());
  auto memory = new_bytes(bytes.size());
  if (!bytes.empty()) std::memcpy(memory.get(), bytes.data(), bytes.size());
  constant->view_ = memory.get();
  constant->owner_ = std::move(memory);
  return constant;
}

ConstantPtr Constant::view(DType dtype, Shape shape, const void* data,
                           std::shared_ptr<const void> owner, bool mapped) {
  ConstantPtr constant(new Constant(dtype, std::move(shape)));
  constant->bytes();  // fails on an overflowing size
  constant->view_ = static_cast<const std::byte*>(data);
  constant->owner_ = std::move(owner);
  constant->mapped_ = mapped;
  return constant;
}

ConstantPtr Constant::lazy(DType dtype, Shape shape, Recipe recipe) {
  ConstantPtr constant(new Constant(dtype, std::move(shape)));
  constant->bytes();
  constant->made_ = std::make_unique<Made>(std::move(recipe));
  return constant;
}

Constant::Bytes Constant::data() const {
  if (!made_) return {owner_, view_};
  std::lock_guard lock(made_->mutex);
  if (Bytes made = made_->bytes.lock()) return made;
  auto memory = new_bytes(bytes());
  make(memory.get());
  made_->bytes = memory;
  return memory;
}

// The same whoever asks: a run may take subnormal numbers for zeros.
void Constant::make(std::byte* out) const {
  const DenormalScope keep(Denormals::kKeep);
  made_->recipe(out);
}

void Constant::release() const {
  if (mapped_) give_back_pages(view_, bytes());
}

}  // namespace anymps
