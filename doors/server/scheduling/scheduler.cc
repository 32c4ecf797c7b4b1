// SPDX-License-Identifier: Apache-2.0
// Chooses the scheduler and checks what the configuration says about it.
#include "server/scheduling/scheduler.h"

#include <string>

#include "server/repository/limits.h"
#include "server/scheduling/dynamic_batcher.h"
#include "server/scheduling/sequence_batcher.h"

namespace anymps::server {
namespace {

void check_dynamic_batching(const inference::ModelConfig& config) {
  const inference::ModelDynamicBatching& batching = config.dynamic_batching();
  for (int32_t size : batching.preferred_batch_size()) {
    check(size > 0, "dynamic batching preferred size must be positive for " + config.name());
    check(size <= config.max_batch_size(),
          "dynamic batching preferred size must be <= max batch size for " + config.name());
  }
  const uint64_t levels = batching.priority_levels();
  if (levels > kMaxPriorityLevels)
    throw Error(Code::kUnsupported, "at most " + std::to_string(kMaxPriorityLevels) +
                                        " priority levels are supported, but there are " +
                                        std::to_string(levels) + " for " + config.name());
  const std::string range = "in range [1, " + std::to_string(levels) + "] for " + config.name();
  if (levels > 0)
    check(batching.default_priority_level() >= 1 && batching.default_priority_level() <= levels,
          "default priority level must be " + range);
  bool delay =
      batching.default_queue_policy().timeout_action() == inference::ModelQueuePolicy::DELAY;
  for (const auto& [level, policy] : batching.priority_queue_policy()) {
    check(level >= 1 && level <= levels, "priority queue policy must have priority level " + range);
    delay |= policy.timeout_action() == inference::ModelQueuePolicy::DELAY;
  }
  check(!batching.preserve_ordering() || !delay,
        "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for " +
            config.name());
}

}  // namespace

std::unique_ptr<Scheduler> make_scheduler(const inference::ModelConfig& config,
                                          std::vector<std::unique_ptr<Instance>> instances,
                                          RateLimiter& limiter, ModelMetrics& metrics,
                                          const serving::ModelDir& model_dir) {
  check(!instances.empty(), "no instance of model '" + config.name() + "' to run its requests");
  if (config.has_sequence_batching())
    return start_batcher(
        make_sequence_batcher(config, std::move(instances), limiter, metrics, model_dir));
  check_dynamic_batching(config);
  return start_batcher(make_dynamic_batcher(config, std::move(instances), limiter, metrics));
}

}  // namespace anymps::server
