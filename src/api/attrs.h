// SPDX-License-Identifier: Apache-2.0
// Attributes as they come through the C interface.
#pragma once

#include "anymps/anymps.h"
#include "ops/attr.h"
#include "runtime/eager/eager.h"

namespace anymps::api {

NamedAttr named_attr(const amps_attr& attr);
EagerAttr eager_attr(const amps_attr& attr);  // refers to the caller's memory

}  // namespace anymps::api
