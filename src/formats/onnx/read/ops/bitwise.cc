// SPDX-License-Identifier: Apache-2.0
// Ops on the bits of integers.
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

Values BitShift(Call& c) {
  const std::string direction = c.s("direction");
  c.check(direction == "LEFT" || direction == "RIGHT", "direction '{}' is not LEFT or RIGHT",
          direction);
  return {c.add(direction == "LEFT" ? "left_shift" : "right_shift", {c.in(0), c.in(1)})};
}

const Converter kBitwiseTable[] = {
    {"BitShift", BitShift},      {"BitwiseAnd", "bitwise_and"}, {"BitwiseNot", "bitwise_not"},
    {"BitwiseOr", "bitwise_or"}, {"BitwiseXor", "bitwise_xor"},
};

}  // namespace

std::span<const Converter> bitwise_converters() { return kBitwiseTable; }

}  // namespace anymps::onnx
