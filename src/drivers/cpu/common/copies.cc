// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/common/copies.h"

#include <array>

namespace anymps::cpu {

KernelPtr make_copies(std::vector<Piece> pieces) {
  return make_kernel([pieces = std::move(pieces)](const KernelArgs& args) {
    static constexpr std::array<char, 16> kZero = {};
    for (const Piece& piece : pieces)
      piece.copy.run(static_cast<char*>(args.outputs[piece.output]) + piece.to,
                     piece.input == Piece::kZeros
                         ? kZero.data()
                         : static_cast<const char*>(args.inputs[piece.input]) + piece.from);
  });
}

}  // namespace anymps::cpu
