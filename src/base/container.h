// SPDX-License-Identifier: Apache-2.0
// What a value is besides a single tensor. Only the runtime handles such values; kernels see
// tensors alone.
#pragma once

#include <cstdint>

namespace anymps {

// The numbers are part of the C ABI (amps_container) and of the .mps format, and never change.
enum class Container : uint8_t {
  kTensor = 0,
  kSequence = 1,          // a list of tensors of one dtype
  kOptional = 2,          // a tensor or nothing
  kOptionalSequence = 3,  // a list or nothing
  kMaps = 4,              // a list of maps that share their keys: the tensors keys[C], values[N, C]
};
inline constexpr int kContainerCount = 5;
const char* name(Container container);  // "tensor"

using ContainerSet = uint8_t;
constexpr ContainerSet bit(Container container) {
  return static_cast<ContainerSet>(1u << static_cast<int>(container));
}
inline constexpr ContainerSet kTensors = bit(Container::kTensor);
inline constexpr ContainerSet kSequences = bit(Container::kSequence);
inline constexpr ContainerSet kOptionals =
    static_cast<ContainerSet>(bit(Container::kOptional) | bit(Container::kOptionalSequence));
inline constexpr ContainerSet kContainers =
    static_cast<ContainerSet>(kTensors | kSequences | kOptionals);

}  // namespace anymps
