// SPDX-License-Identifier: Apache-2.0
// The distribution that the attributes of op `random` describe.
#pragma once

#include "ops/attr.h"
#include "semantics/random/philox.h"

namespace anymps {

Distribution distribution_of(const Attrs& attrs);

}  // namespace anymps
