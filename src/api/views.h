// SPDX-License-Identifier: Apache-2.0
// Views that callers give, checked.
#pragma once

#include <string_view>

#include "anymps/anymps.h"
#include "runtime/tensor_view.h"

namespace anymps::api {

// `what` ("input") and `who`, an op or a part in brackets, are for messages.
Views checked_views(const amps_view* views, size_t count, const char* what, std::string_view who);

}  // namespace anymps::api
