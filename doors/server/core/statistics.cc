// SPDX-License-Identifier: Apache-2.0
#include "server/core/statistics.h"

namespace server {}  // namespace server
