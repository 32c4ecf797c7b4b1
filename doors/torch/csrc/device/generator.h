// SPDX-License-Identifier: Apache-2.0
// The device's stream of random numbers: a Philox key (the seed) and a place in its stream (the
// offset).
#pragma once

#include <array>

#include <ATen/core/Generator.h>

namespace anymps::aten {

class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(uint64_t seed);

  static c10::DeviceType device_type() { return c10::DeviceType::MPS; }
  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override { offset_ = offset; }
  uint64_t get_offset() const override { return offset_; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  // The state that an op of the engine draws from, for one call; the next call gets another part of
  // the stream.
  static constexpr int64_t kStateWords = 7;
  std::array<int32_t, kStateWords> draw();

 private:
  Generator* clone_impl() const override;

  uint64_t seed_, offset_ = 0;
};

const at::Generator& default_generator();
Generator& generator_or_default(const std::optional<at::Generator>& given);

}  // namespace anymps::aten
