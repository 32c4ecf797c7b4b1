// SPDX-License-Identifier: Apache-2.0
// Two ops that undo each other are one walk over pairs of places, of which either may be the
// source.
#pragma once

#include "drivers/reference/move.h"

namespace anymps {

// walk(a, b, fn) calls fn(place in a, place in b). The result is a, or b if `backwards`.
template <typename Walk>
void move_by(const ReferenceArgs& args, bool backwards, Walk walk) {
  const View &x = args.in[0], &y = args.out[0];
  walk(backwards ? x : y, backwards ? y : x, [&](const Shape& a, const Shape& b) {
    move_element(y, y.offset(backwards ? b : a), x, x.offset(backwards ? a : b));
  });
}

}  // namespace anymps
