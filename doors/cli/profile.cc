// SPDX-License-Identifier: Apache-2.0
// `anymps profile`: where the time goes, kernel by kernel; as a table, JSON or a Perfetto trace.
#include <fmt/format.h>

#include "commands.h"
#include "common/streams.h"
#include "options.h"
#include "session.h"

namespace anymps::cli {

namespace {

struct ProfileOptions : ModelOptions {
  int runs = 10;
  bool json = false;
  std::string trace;
};

void profile(ProfileOptions options) {
  if (options.inputs.empty()) options.random_inputs = true;
  const Session session(options);
  const std::vector<amps::Tensor> feeds = session.feeds(options);
  note_state(session.executable);
  std::vector<amps::Tensor> results = session.executable.run(feeds);
  session.run(feeds, results);
  amps::Profiler profiler;
  for (int i = 0; i < options.runs; ++i) session.run(feeds, results, &profiler);
  fmt::print("{}\n", profiler.text(options.json ? "json" : "table"));
  if (options.trace.empty()) return;
  amps::write_file(options.trace, {profiler.text("trace")});
  common::say(fmt::format("trace written to {}: open it in ui.perfetto.dev or chrome://tracing\n",
                          shown(options.trace)));
}

}  // namespace

void add_profile(CLI::App& app) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* command =
      options->add_command(app, "profile", "show the time, bytes and FLOPs of each kernel");
  options->add_inputs_to(*command);
  command->add_option("-n,--runs", options->runs, "profiled runs")
      ->transform(whole_number(1, 1'000'000));
  command->add_option("--trace", options->trace, "write a Chrome/Perfetto trace to this file")
      ->check(not_empty());
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options] { profile(*options); });
}

}  // namespace anymps::cli
