// SPDX-License-Identifier: Apache-2.0
// `anymps bench`: latency of a model, with percentiles; and the worker that `scripts/bench models`
// drives beside its peers (bench/models/worker_protocol.md).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "commands.h"
#include "common/streams.h"
#include "options.h"
#include "session.h"

namespace anymps::cli {

namespace {

using Json = nlohmann::ordered_json;

struct BenchOptions : ModelOptions {
  int warmup = 5, runs = 50, concurrency = 1;
  double seconds = 0;
  bool json = false, worker = false;
};

void progress(const std::string& what, double part) {
  if (!isatty(STDERR_FILENO)) return;
  const int width = 30, full = static_cast<int>(part * width);
  common::say(fmt::format("\r{} [{}{}] {:3.0f} %", what, std::string(full, '#'),
                          std::string(width - full, '.'), part * 100));
  if (part >= 1) common::say("\r\033[K");
}

double percentile(const std::vector<double>& sorted, double q) {
  const int64_t last = std::ssize(sorted) - 1;
  return sorted[std::min<int64_t>(std::lround(q * static_cast<double>(last)), last)];
}

void bench(const BenchOptions& options) {
  const Session session(options);
  const std::vector<amps::Tensor> feeds = session.feeds(options);
  note_state(session.executable);
  std::vector<amps::Tensor> results = session.executable.run(feeds);
  for (int i = 0; i < options.warmup; ++i) session.run(feeds, results);

  std::vector<std::vector<double>> times(options.concurrency);
  std::atomic<int> done{0};
  const amps::Device::ThreadTimes before = session.device.thread_times();
  const double start = now_ms();
  auto loop = [&](std::vector<double>& mine, bool show) {
    std::vector<amps::Tensor> own;
    for (;;) {
      const double begin = now_ms();
      const int count = done.fetch_add(1);
      const bool enough = options.seconds > 0 ? begin - start >= options.seconds * 1e3
                                              : count >= options.runs * options.concurrency;
      if (enough) return;
      session.run(feeds, own);
      mine.push_back(now_ms() - begin);
      if (show)
        progress("bench", options.seconds > 0
                              ? std::min(1.0, (now_ms() - start) / (options.seconds * 1e3))
                              : static_cast<double>(count) / (options.runs * options.concurrency));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < options.concurrency; ++i)
    threads.emplace_back([&, i] { loop(times[i], false); });
  loop(times[0], true);
  for (std::thread& thread : threads) thread.join();
  const double total = now_ms() - start;
  progress("bench", 1);
  const amps::Device::ThreadTimes after = session.device.thread_times();
  const int team = options.threads ? options.threads : session.device.max_threads();
  // The share of the threads' time, the callers' included, in which nobody computed.
  const double worked = std::min(options.concurrency, team) * total / 1e3 -
                        (after.waited - before.waited) + after.helped - before.helped;
  const double waited = std::clamp(1 - worked / (team * total / 1e3), 0.0, 1.0);

  std::vector<double> all;
  for (const auto& mine : times) all.insert(all.end(), mine.begin(), mine.end());
  if (all.empty()) throw amps::Error(AMPS_INVALID_ARGUMENT, "[bench] nothing was run: --runs is 0");
  std::sort(all.begin(), all.end());
  double sum = 0;
  for (const double ms : all) sum += ms;
  const Json result{{"model", options.model},
                    {"device", session.device.name()},
                    {"stateful", session.executable.stateful()},
                    {"threads", team},
                    {"threads_waited", waited},
                    {"concurrency", options.concurrency},
                    {"runs", all.size()},
                    {"load_ms", session.load_ms},
                    {"min_ms", all.front()},
                    {"mean_ms", sum / static_cast<double>(all.size())},
                    {"median_ms", percentile(all, 0.5)},
                    {"p90_ms", percentile(all, 0.9)},
                    {"p99_ms", percentile(all, 0.99)},
                    {"max_ms", all.back()},
                    {"per_second", static_cast<double>(all.size()) / total * 1e3},
                    {"peak_rss_mb", peak_rss_mb()}};
  if (options.json) {
    fmt::print("{}\n", json_text(result));
    return;
  }
  fmt::print(
      "{} runs, {} threads, concurrency {}: median {:.3f} ms  min {:.3f}  p90 {:.3f}  p99 {:.3f}  "
      "max {:.3f}  {:.1f}/s  threads waited {:.0f} %  peak {:.1f} MiB\n",
      all.size(), team, options.concurrency, result["median_ms"].get<double>(), all.front(),
      result["p90_ms"].get<double>(), result["p99_ms"].get<double>(), all.back(),
      result["per_second"].get<double>(), waited * 100, result["peak_rss_mb"].get<double>());
  // Threads that wait for a core of another process: most runs are quick and some take many times
  // as long.
  if (team > 1 && percentile(all, 0.9) > 3 * all.front())
    fmt::print("one run in ten took over three times the shortest; if others use the cores: {}\n",
               kBusyCoresAdvice);
}

class Worker {
 public:
  Json answer(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    const size_t at = line.find(' ');
    const std::string rest = at == std::string::npos ? "" : line.substr(at + 1);
    if (command == "version") return {{"runtime", "anymps"}, {"version", amps_version()}};
    if (command == "input") {
      const size_t blank = rest.find(' ');
      if (blank == std::string::npos) throw std::runtime_error("input NAME FILE.npy");
      const std::string name = rest.substr(0, blank);
      std::erase_if(options_.inputs,
                    [&](const std::string& i) { return i.starts_with(name + "="); });
      options_.inputs.push_back(name + "=" + rest.substr(blank + 1));
      feeds_.clear();
      return {{"ok", true}};
    }
    if (command == "load") return load(rest);
    if (!session_) throw std::runtime_error("load a model first");
    if (command == "run") return run(std::stoi(rest));
    if (command == "output") return output(rest);
    throw std::runtime_error("unknown command '" + command + "'");
  }

  Json load(const std::string& rest) {
    const size_t blank = rest.rfind(' ');
    if (blank == std::string::npos) throw std::runtime_error("load MODEL THREADS");
    session_.reset();
    results_.clear();
    feeds_.clear();
    options_.model = rest.substr(0, blank);
    options_.threads = std::stoi(rest.substr(blank + 1));
    const double start = now_ms();
    session_.emplace(options_);
    double took = now_ms() - start;
    if (!options_.inputs.empty()) {
      feeds_ = session_->feeds(options_);
      if (has_open_shapes()) took += make_plan();
    }
    return {{"load_ms", took}};
  }

 private:
  bool has_open_shapes() const {
    for (const amps::Value& input : session_->executable.inputs())
      for (const int64_t extent : input.shape())
        if (extent < 0) return true;
    return false;
  }

  // Ready means: kernels prepared and weights packed for the feeds' shapes. Returns the time.
  double make_plan() {
    std::vector<int64_t> dims;
    for (const amps::Tensor& feed : feeds_)
      for (const int64_t extent : feed.shape()) dims.push_back(extent);
    const double start = now_ms();
    try {
      session_->executable.text("memory", dims);
    } catch (const amps::Error&) {
      // Shapes that depend on data have no plan; the first run will say what else is wrong.
    }
    return now_ms() - start;
  }

  Json run(int count) {
    if (feeds_.empty()) feeds_ = session_->feeds(options_);
    Json times = Json::array();
    for (int i = 0; i < count; ++i) {
      const double start = now_ms();
      session_->run(feeds_, results_);
      times.push_back(now_ms() - start);
    }
    return {{"ms", times}};
  }

  Json output(const std::string& folder) {
    Json names = Json::array();
    const std::vector<amps::Value> outputs = session_->executable.outputs();
    for (size_t i = 0; i < results_.size(); ++i) {
      for (const Part& part : session_->parts(outputs[i].name(), results_[i])) {
        names.push_back(part.name);
        std::string file = part.name;
        for (char& c : file)
          if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '-')
            c = '_';
        write_npy(folder + "/" + file + ".npy", part.array);
      }
    }
    return {{"outputs", names}};
  }

  ModelOptions options_;
  std::optional<Session> session_;
  std::vector<amps::Tensor> feeds_, results_;
};

void work(const BenchOptions& options) {
  Worker worker;
  if (!options.model.empty()) worker.load(fmt::format("{} {}", options.model, options.threads));
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    Json answer;
    try {
      answer = worker.answer(line);
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    fmt::print("{}\n", json_text(answer, -1));
    std::fflush(stdout);
  }
}

}  // namespace

void add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = options->add_command(app, "bench", "measure a model's latency");
  options->add_inputs_to(*command);
  command->get_option("model")->required(false);
  command->add_option("--warmup", options->warmup, "runs before the measurement")
      ->transform(whole_number(0, 1'000'000'000));
  CLI::Option* runs =
      command->add_option("-n,--runs", options->runs, "measured runs of each caller")
          ->transform(whole_number(1, 1'000'000'000));
  command->add_option("--seconds", options->seconds, "measure for so long instead of --runs")
      ->check(real_number(0, 1e6))
      ->excludes(runs);
  command->add_option("-c,--concurrency", options->concurrency, "callers at the same time")
      ->transform(whole_number(1, 4096));
  command->add_flag("--json", options->json, "print JSON");
  command->add_flag("--worker", options->worker, "serve the protocol of bench/models on stdin");
  command->callback([options] {
    if (options->worker) return work(*options);
    if (options->model.empty()) throw CLI::RequiredError("model");
    if (options->inputs.empty()) options->random_inputs = true;
    bench(*options);
  });
}

}  // namespace anymps::cli
