// SPDX-License-Identifier: Apache-2.0
// A table of vector functions for both precisions. A file that Highway compiles for each
// instruction set exports one function that fills it, and the machine decides once which of them is
// called.
#pragma once

#include <type_traits>

namespace anymps::cpu {

template <template <typename> class Ops>
struct TypedOps {
  Ops<float> f32;
  Ops<double> f64;

  template <typename A>
  const Ops<A>& of() const {
    if constexpr (std::is_same_v<A, float>)
      return f32;
    else
      return f64;
  }
};

}  // namespace anymps::cpu
