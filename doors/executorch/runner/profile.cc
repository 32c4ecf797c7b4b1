// SPDX-License-Identifier: Apache-2.0
#include "profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace anymps::runner {

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
bool is_operator(const std::string& node) {
  const size_t scope = node.find("::"), mark = node.rfind('_');
  return !node.starts_with("delegate") && scope != std::string::npos && mark != std::string::npos &&
         mark > scope;
}

void name_event(ProfileEvent& event, const std::string& node, const DelegateCalls& calls) {
  event.instruction = instruction_of(node, calls);
  if (!is_operator(node)) {
    event.delegate = node;
    return;
  }
  const size_t scope = node.find("::");
  event.name = "native_call_" + node.substr(scope + 2, node.rfind('_') - scope - 2);
}

}  // namespace

DelegateCalls delegate_calls(const amps::Program& program, const std::string& method) {
  DelegateCalls calls;
  const Json about = Json::parse(program.text("json"));
  for (const Json& entry : about["methods"]) {
    if (entry["name"] != method) continue;
    std::map<int, int> times;
    for (const Json& call : entry["delegate_calls"]) {
      const int delegate = call["delegate"].get<int>(), before = times[delegate]++;
      calls[before ? fmt::format("delegate{}_{}", delegate, before)
                   : fmt::format("delegate{}", delegate)] = call["instruction"].get<int>();
    }
  }
  return calls;
}

int instruction_of(const std::string& node, const DelegateCalls& calls) {
  if (!is_operator(node)) {
    const auto call = calls.find(node.substr(0, node.find('/')));
    return call == calls.end() ? -1 : call->second;
  }
  int instruction = -1;
  const char* end = node.data() + node.size();
  const auto parsed = std::from_chars(node.data() + node.rfind('_') + 1, end, instruction);
  return parsed.ptr == end && parsed.ec == std::errc() ? instruction : -1;
}

std::vector<RunBlock> run_blocks(const amps::Profiler& profiler, int bundled_input,
                                 int64_t origin_ns, const DelegateCalls& calls) {
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
    name_event(event, node.empty() ? entry["name"].get<std::string>() : node, calls);
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

}  // namespace anymps::runner
