// SPDX-License-Identifier: Apache-2.0
#include "device/generator.h"

#include <cstring>

#include <ATen/ops/empty.h>
#include "device/allocator.h"

namespace anymps::aten {

namespace {

// More words than any op draws.
constexpr uint64_t kDrawsPerCall = uint64_t{1} << 32;

}  // namespace

Generator::Generator(uint64_t seed) : GeneratorImpl(kDevice, kKeys), seed_(seed) {}

void Generator::set_current_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

uint64_t Generator::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom(true));
  return seed_;
}

void Generator::set_state(const c10::TensorImpl& state) {
  TORCH_CHECK_TYPE(state.dtype() == caffe2::TypeMeta::Make<uint8_t>() && state.device().is_cpu() &&
                       state.is_contiguous(),
                   "a random state is a contiguous torch.ByteTensor on the CPU");
  uint64_t words[2];
  TORCH_CHECK(state.numel() == sizeof(words), "a random state of mps has ", sizeof(words),
              " bytes, ", state.numel(), " given");
  std::memcpy(words, state.data(), sizeof(words));
  seed_ = words[0];
  offset_ = words[1];
}

c10::intrusive_ptr<c10::TensorImpl> Generator::get_state() const {
  const uint64_t words[2] = {seed_, offset_};
  const at::Tensor state =
      at::empty({sizeof(words)}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
  std::memcpy(state.mutable_data_ptr(), words, sizeof(words));
  return state.getIntrusivePtr();
}

std::array<int32_t, Generator::kStateWords> Generator::draw() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t offset = offset_;
  offset_ += kDrawsPerCall;
  return {static_cast<int32_t>(offset), static_cast<int32_t>(offset >> 32), 0, 0,
          static_cast<int32_t>(seed_),  static_cast<int32_t>(seed_ >> 32),  0};
}

Generator* Generator::clone_impl() const {
  auto* made = new Generator(seed_);
  made->offset_ = offset_;
  return made;
}

const at::Generator& default_generator() {
  static const at::Generator& made =
      *new at::Generator(at::make_generator<Generator>(c10::default_rng_seed_val));
  return made;
}

Generator& generator_or_default(const std::optional<at::Generator>& given) {
  const at::Generator& used = given && given->defined() ? *given : default_generator();
  TORCH_CHECK(used.device().is_mps(), "Expected a 'mps' device type for generator but found '",
              used.device().type(), "'");
  return *static_cast<Generator*>(used.unsafeGetGeneratorImpl());
}

}  // namespace anymps::aten
