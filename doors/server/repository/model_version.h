// SPDX-License-Identifier: Apache-2.0
// One loaded version of a model: its completed configuration, counters and scheduler. Requests keep
// the version that answers them; when the repository lets go of it and its last request is
// answered, it is destroyed on a separate thread, never on one that runs requests.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "server/core/options.h"
#include "server/observation/statistics.h"
#include "server/scheduling/instance.h"
#include "serving/reach.h"

namespace anymps::server {

class RateLimiter;
class Graveyard;

// What all models of a server share.
struct Services {
  const Options* options = nullptr;
  RateLimiter* limiter = nullptr;
  ResponseCache* cache = nullptr;
  std::function<void(char level, const std::string& message)> log;  // 'E', 'W', 'I', 'V'
  std::function<void(const Request&, const std::string& version)> finish_trace;
};

class ModelVersion {
 public:
  // `config`: normalized (repository/config_text.h). Loads, makes the instances and warms them up.
  ModelVersion(const Services& services, int64_t version, const serving::ModelDir& model_dir,
               inference::ModelConfig config);
  // An ensemble; its scheduler is made with the version's own context.
  using MakeScheduler = std::function<std::unique_ptr<Scheduler>(const AnswerContext&)>;
  ModelVersion(const Services& services, int64_t version, const serving::ModelDir& model_dir,
               inference::ModelConfig config, const MakeScheduler& make);
  ~ModelVersion();

  const std::string& name() const { return context_.model; }
  int64_t version() const { return version_; }
  const std::string& version_text() const { return context_.version; }
  const inference::ModelConfig& config() const { return context_.config; }
  const Labels& labels() const { return context_.labels; }
  const ModelMetrics& metrics() const { return metrics_; }
  // What a request to it runs: one model, or those of the steps of an ensemble, and how many
  // ensembles lie in each other.
  struct Extent {
    uint64_t runs = 1;
    unsigned depth = 0;
  };
  const Extent& extent() const { return extent_; }
  void set_extent(const Extent& extent) { extent_ = extent; }

  // Checks the request, answers it from the cache or queues it. It is always answered.
  static void infer(const std::shared_ptr<ModelVersion>& self, RequestPtr request);

 private:
  void read_labels(const serving::ModelDir& model_dir);

  const Services services_;
  const int64_t version_;
  const std::string
      load_id_;  // of this load: answers of an earlier one are never taken for its own
  ModelMetrics metrics_;
  AnswerContext context_;
  std::shared_ptr<serving::Model> model_;
  std::unique_ptr<Scheduler> scheduler_;
  Extent extent_;
};

// Where versions are destroyed.
class Graveyard {
 public:
  Graveyard();
  ~Graveyard();  // waits for all of them
  // Shares the version; `gone` is called when it has been destroyed.
  std::shared_ptr<ModelVersion> adopt(std::unique_ptr<ModelVersion> version,
                                      std::function<void()> gone);
  // Waits until all that were adopted are gone; false if the time was not enough.
  bool wait(std::chrono::nanoseconds limit);

 private:
  struct Grave {
    ModelVersion* version;
    std::function<void()> gone;
  };
  void work();
  std::mutex mutex_;
  std::condition_variable buried_, empty_;
  std::deque<Grave> graves_;
  size_t alive_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace anymps::server
