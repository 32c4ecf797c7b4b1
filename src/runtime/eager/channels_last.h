// SPDX-License-Identifier: Apache-2.0
// Images that lie in memory with their channels last, though their dims say channels first, as
// frameworks have them: the call is prepared as what it is, an op with layout="channels_last" on
// dense tensors, so that nothing is copied.
#pragma once

#include "runtime/preparation.h"

namespace anymps {

// True: the call has a kernel, and its request speaks of the permuted images.
bool choose_channels_last(PreparedCall& call);

}  // namespace anymps
