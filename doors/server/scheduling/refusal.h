// SPDX-License-Identifier: Apache-2.0
// How requests that never reach an instance are answered.
#pragma once

#include <string>
#include <utility>

#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/observation/statistics.h"

namespace anymps::server {

inline constexpr char kQueueFull[] = "Exceeds maximum queue size";
inline constexpr char kTimeout[] = "Request timeout expired";
inline constexpr char kCancelled[] = "Request cancelled";
inline constexpr char kStopping[] =
    "Server is stopping, scheduler for model has stopped accepting new inference requests";

inline void refuse(ModelMetrics& metrics, RequestPtr request, Code code,
                   const std::string& message) {
  request->times.answered = now_ns();
  metrics.failure(request->times, code);
  request->fail(code, message);
}

}  // namespace anymps::server
