// SPDX-License-Identifier: Apache-2.0
// What most files of the engine include, directly or not. It is compiled once where ANYMPS_PCH is
// on (scripts/quickstart and scripts/test turn it on when the compiler cache is empty: a third less
// work from nothing). No file includes it itself, and every file names what it uses: the build
// without it must work too.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/shape.h"
