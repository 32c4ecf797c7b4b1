// SPDX-License-Identifier: Apache-2.0
// What the environment variable TRITON_MPS_VERBOSE=1 makes visible: files, shapes, kernels, caches.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace anymps::serving {

bool verbose();
// Where lines go; by default to the standard error stream.
void set_log_sink(std::function<void(std::string_view)> sink);
void log_line(std::string_view line);

}  // namespace anymps::serving
