// SPDX-License-Identifier: Apache-2.0
// The state of a random op as a tensor of the reference driver.
#pragma once

#include "drivers/reference/reference.h"
#include "semantics/random/philox.h"

namespace anymps {

inline Philox read_philox(const View& state) {
  return Philox::read(state.as<int32_t>(), state.stride(0));
}
inline void write_philox(const View& to, const Philox& state) {
  state.write(to.as<int32_t>(), to.stride(0));
}

}  // namespace anymps
