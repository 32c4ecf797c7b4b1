// SPDX-License-Identifier: Apache-2.0
#include "profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace runner {

namespace {

using Json = nlohmann::json;

ProfileEvent event_of(const Json& entry, int64_t origin_ns) {
  ProfileEvent event;
  // The trace counts in microseconds, with the nanoseconds after the point.
  event.start_ns = origin_ns + std::llround(entry["ts"].get<double>() * 1e3);
  event.end_ns = event.start_ns + std::llround(entry["dur"].get<double>() * 1e3);
  return event;
}

// Nodes of a delegate are called "delegate0/conv2d_3", those of operators outside
// "aten::add.out_5", with the number of the instruction.
void name_event(ProfileEvent& event, const std::string& node) {
  const size_t scope = node.find("::"), mark = node.rfind('_');
  if (node.starts_with("delegate") || scope == std::string::npos || mark == std::string::npos ||
      mark < scope) {
    event.delegate = node;
    return;
  }
  event.name = "native_call_" + node.substr(scope + 2, mark - scope - 2);
  const char* end = node.data() + node.size();
  if (std::from_chars(node.data() + mark + 1, end, event.instruction).ptr != end)
    event.instruction = -1;
}

}  // namespace

std::vector<RunBlock> run_blocks(const amps::Profiler& profiler, int bundled_input,
                                 int64_t origin_ns) {
  const Json trace = Json::parse(profiler.text("trace"));
  std::vector<RunBlock> blocks;
  for (const Json& entry : trace["traceEvents"]) {
    if (entry["cat"] != "run") continue;
    ProfileEvent whole = event_of(entry, origin_ns);
    whole.name = "Method::execute";
    blocks.push_back({"Execute", bundled_input, {std::move(whole)}, {}});
  }
  std::sort(blocks.begin(), blocks.end(), [](const RunBlock& a, const RunBlock& b) {
    return a.profile[0].start_ns < b.profile[0].start_ns;
  });
  for (const Json& entry : trace["traceEvents"]) {
    if (entry["cat"] != "kernel") continue;
    ProfileEvent event = event_of(entry, origin_ns);
    const Json& args = entry["args"];
    const auto node = args["node"].get<std::string>();
    name_event(event, node.empty() ? entry["name"].get<std::string>() : node);
    event.metadata = fmt::format(
        "{} {} {} {}", entry["name"].get<std::string>(), args["kernel"].get<std::string>(),
        args["detail"].get<std::string>(), args["shapes"].get<std::string>());
    auto run = std::find_if(blocks.rbegin(), blocks.rend(), [&](const RunBlock& block) {
      return block.profile[0].start_ns <= event.start_ns;
    });
    if (run != blocks.rend()) run->profile.push_back(std::move(event));
  }
  // The Inspector takes events of one name in a run for one: number them apart.
  for (RunBlock& block : blocks) {
    std::map<std::pair<int, std::string>, int> seen;
    for (ProfileEvent& event : block.profile) {
      std::string& name = event.delegate.empty() ? event.name : event.delegate;
      const int count = ++seen[{event.instruction, name}];
      if (count > 1) name += fmt::format("#{}", count);
    }
  }
  return blocks;
}

}  // namespace runner
