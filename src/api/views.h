// SPDX-License-Identifier: Apache-2.0
// Views that callers give, checked.
#pragma once

#include <string>

#include "anymps/anymps.h"
#include "base/small_vector.h"
#include "runtime/tensor_view.h"

namespace anymps::api {

using Views = SmallVector<TensorView, 8>;

// `what` ("input") and `who`, an op or a part in brackets, are for messages.
Views checked_views(const amps_view* views, size_t count, const char* what, const std::string& who);

}  // namespace anymps::api
