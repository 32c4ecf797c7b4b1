// SPDX-License-Identifier: Apache-2.0
#include "runtime/report.h"

#include <nlohmann/json.hpp>

namespace anymps {

using Json = nlohmann::ordered_json;

// Names may hold bytes that are not UTF-8.
static std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string passes_json(const Executable& executable) {
  Json list = Json::array();
  for (const PassReport& report : executable.passes())
    list.push_back({{"pass", report.name},
                    {"changes", report.changes},
                    {"nodes_after", report.nodes_after},
                    {"milliseconds", report.milliseconds}});
  return json_text(list);
}

std::string plan_json(const Plan& plan) {
  Json list = Json::array();
  for (const Step& step : plan.steps()) {
    Json inputs = Json::array(), outputs = Json::array();
    for (const auto& input : step.request.inputs) inputs.push_back(input ? to_string(*input) : "-");
    for (const TensorDesc& output : step.request.outputs) outputs.push_back(to_string(output));
    list.push_back({{"node", step.name},
                    {"op", step.op},
                    {"kernel", step.choice.name},
                    {"detail", step.choice.kernel->detail()},
                    {"inputs", inputs},
                    {"outputs", outputs},
                    {"flops", step.flops},
                    {"bytes", step.bytes},
                    {"scratch", step.choice.kernel->scratch_bytes()}});
  }
  return json_text(list);
}

std::string memory_json(const Plan& plan) {
  const PlanMemory& memory = plan.memory();
  Json entries = Json::array();
  for (const PlanMemory::Entry& entry : memory.entries)
    entries.push_back({{"value", entry.value},
                       {"offset", entry.offset},
                       {"bytes", entry.bytes},
                       {"first_step", entry.first_step},
                       {"last_step", entry.last_step}});
  return json_text({{"arena_bytes", memory.arena_bytes},
                    {"unshared_bytes", memory.unshared_bytes},
                    {"lower_bound", memory.lower_bound},
                    {"steps", plan.steps().size()},
                    {"tensors", entries}});
}

}  // namespace anymps
