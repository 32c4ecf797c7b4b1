// SPDX-License-Identifier: Apache-2.0
// anymps-server: the embedded server as a program; `anymps serve` starts it. Exit codes: 0 ended as
// told, 1 failed, 2 wrong usage. SIGTERM and SIGINT let requests under way finish first; a second
// one ends at once.
#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "common/streams.h"
#include "server/core/flags.h"
#include "server/core/server.h"
#include "server/grpc/grpc_server.h"
#include "server/http/http_server.h"
#include "server/observation/logger.h"

namespace anymps::server {
namespace {

constexpr const char* kName = "anymps serve";

// Beyond --exit-timeout-secs: for the servers' own cleanup.
constexpr std::chrono::seconds kGrace{5};

std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width;
  for (const std::string& cell : head) width.push_back(cell.size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  std::string rule = "+", text;
  for (const size_t w : width) rule += std::string(w + 2, '-') + "+";
  const auto line = [&](const std::vector<std::string>& cells) {
    text += "|";
    for (size_t i = 0; i < cells.size(); ++i) text += fmt::format(" {:<{}} |", cells[i], width[i]);
    text += "\n";
  };
  text = rule + "\n";
  line(head);
  text += rule + "\n";
  for (const auto& row : rows) line(row);
  return text + rule + "\n";
}

void print_models(Server& server) {
  std::vector<std::vector<std::string>> rows;
  const inference::RepositoryIndexResponse index = server.repository_index(false);
  for (const auto& model : index.models()) {
    std::string status = model.state();
    if (!model.reason().empty()) status += ": " + model.reason();
    std::replace(status.begin(), status.end(), '\n', ' ');
    rows.push_back({model.name(), model.version(), status});
  }
  server.logger().block(table({"Model", "Version", "Status"}, rows));
}

std::string endpoint(const std::string& address, uint16_t port) {
  return address.find(':') == std::string::npos ? fmt::format("{}:{}", address, port)
                                                : fmt::format("[{}]:{}", address, port);
}

// Ends the process at a second signal, or when the time to end in order has passed.
class Watchdog {
 public:
  Watchdog(const sigset_t& signals, std::chrono::seconds limit, Logger& logger)
      : thread_([this, signals, limit, &logger] {
          const timespec time{limit.count(), 0};
          const int signal = sigtimedwait(&signals, nullptr, &time);
          if (done_) return;
          if (signal > 0)
            logger.warning("Second signal: exiting at once.");
          else
            logger.error("Exit timeout expired. Exiting immediately.");
          _exit(1);
        }) {}
  ~Watchdog() {
    done_ = true;
    // Wakes sigtimedwait: the signal is blocked, so it ends no thread.
    pthread_kill(thread_.native_handle(), SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread)
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

int serve(const Options& options, const sigset_t& signals) {
  Server server(options);
  Logger& logger = server.logger();
  try {
    server.start();
  } catch (const Error&) {
    print_models(server);
    throw;
  }
  print_models(server);
  for (const std::string& warning : warnings(options)) logger.warning(warning);
  std::unique_ptr<GrpcServer> grpc;
  std::unique_ptr<HttpServer> http;
  if (options.grpc) {
    grpc = std::make_unique<GrpcServer>(server);
    logger.info("Started GRPCInferenceService at " + endpoint(options.grpc_address, grpc->port()));
  }
  if (options.http || options.metrics) http = std::make_unique<HttpServer>(server);
  if (options.http)
    logger.info("Started HTTPService at " + endpoint(options.http_address, http->port()));
  if (options.metrics)
    logger.info("Started Metrics Service at " +
                endpoint(options.metrics_address, http->metrics_port()));

  const timespec period{1, 0};
  int signal = -1;
  while ((signal = sigtimedwait(&signals, nullptr, &period)) < 0) server.trim();
  logger.info(
      fmt::format("Signal ({}) received: no new requests; those under way are answered "
                  "within {} s. A second signal exits at once.",
                  signal, options.exit_timeout_seconds));
  const Watchdog watchdog(signals, std::chrono::seconds(options.exit_timeout_seconds) + kGrace,
                          logger);
  std::thread other([&] {
    if (grpc) grpc->stop();
  });
  if (http) http->stop();
  other.join();
  const bool answered = server.stop();
  if (!answered) logger.error("Exit timeout expired: some requests were not answered.");
  grpc.reset();
  http.reset();
  return answered ? 0 : 1;
}

int run(int argc, char** argv) {
  common::open_standard_streams();
  Options options;
  if (const std::optional<int> code = parse_flags(argc, argv, options))
    return common::end_output(kName, *code);
  // Every thread inherits this: the signals come to sigwait alone.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  google::protobuf::SetLogHandler(nullptr);  // its sender is told what is wrong with a message
  try {
    return serve(options, signals);
  } catch (const std::exception& error) {
    common::say(fmt::format("{}: {}\n", kName, error.what()));
    return 1;
  }
}

}  // namespace
}  // namespace anymps::server

int main(int argc, char** argv) { return anymps::server::run(argc, argv); }
