// SPDX-License-Identifier: Apache-2.0
// How much a configuration may ask for. It can come with a load request, so each number in it that
// becomes memory, threads or time has a bound, and is refused before anything of it is taken.
// docs/guides/server.md lists them.
#pragma once

#include <cstdint>

#include "serving/settings.h"

namespace anymps::server {

inline constexpr int64_t kMaxBatchRows = serving::kMostRows;
inline constexpr int64_t kMaxInstances = 1024;
inline constexpr uint64_t kMaxPriorityLevels = 1024;  // the queue has a list for each of them
inline constexpr int64_t kMaxCandidateSequences = 1 << 20;
inline constexpr uint64_t kMaxWarmupRuns = 10000;  // of all samples of a model together
inline constexpr uint64_t kMaxWarmupBytes = uint64_t{1} << 30;  // of the inputs of one run
inline constexpr uint64_t kMaxStateBytes = uint64_t{1} << 30;   // of a sequence's initial states
// Models that one request to an ensemble runs, and ensembles within ensembles: each level could
// double them.
inline constexpr uint64_t kMaxEnsembleRuns = 1024;
inline constexpr unsigned kMaxEnsembleDepth = 16;

}  // namespace anymps::server
