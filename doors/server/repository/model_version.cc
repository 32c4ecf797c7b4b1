// SPDX-License-Identifier: Apache-2.0
#include "server/repository/model_version.h"

#include <atomic>
#include <chrono>
#include <fstream>

#include "server/core/clock.h"
#include "server/core/message_json.h"
#include "server/core/response_cache.h"
#include "server/core/validate.h"
#include "server/repository/config_text.h"
#include "server/repository/warmup.h"

namespace anymps::server {
namespace {

namespace fs = std::filesystem;

std::string next_load_id() {
  static std::atomic<uint64_t> last{0};
  return "#" + std::to_string(++last);
}

// Count of each group, on each of the devices that it names: all are the one that the engine has.
std::vector<std::unique_ptr<Instance>> make_instances(
    const AnswerContext& context, const std::shared_ptr<serving::Model>& model) {
  std::vector<std::unique_ptr<Instance>> instances;
  for (const inference::ModelInstanceGroup& group : context.config.instance_group()) {
    if (group.passive()) continue;
    const int devices = std::max(group.gpus_size(), 1);
    for (int device = 0; device < devices; ++device)
      for (int i = 0; i < group.count(); ++i) {
        inference::ModelInstanceGroup one = group;
        if (device < group.gpus_size()) {
          one.clear_gpus();
          one.add_gpus(group.gpus(device));
        }
        instances.push_back(std::make_unique<ModelInstance>(context, model, std::move(one)));
      }
  }
  if (instances.empty())
    throw Error(Code::kInvalidArgument,
                "must specify 'instance_group' with an instance that is "
                "not passive for " +
                    context.model);
  return instances;
}

}  // namespace

ModelVersion::ModelVersion(const Services& services, int64_t version,
                           const serving::ModelDir& model_dir, inference::ModelConfig config)
    : services_(services), version_(version), load_id_(next_load_id()) {
  const bool complete = !services.options->disable_auto_complete_config;
  serving::OperatorOptions options = services.options->models;
  options.folders = model_dir.repositories;
  model_ = serving::Model::load(model_dir.path / std::to_string(version),
                                nlohmann::json(to_json(config, Defaults::kPrint)), complete,
                                std::move(options));
  inference::ModelConfig completed;
  from_json(model_->config(), completed);
  normalize_config(completed);
  check_tensors(completed, true);
  context_ = {config.name(), std::to_string(version), std::move(completed), {},
              &metrics_,     services.cache,          services.finish_trace};
  read_labels(model_dir);
  std::vector<std::unique_ptr<Instance>> instances = make_instances(context_, model_);
  for (const std::unique_ptr<Instance>& instance : instances)
    warm_up(context_.config, model_dir, *instance);
  scheduler_ =
      make_scheduler(context_.config, std::move(instances), *services.limiter, metrics_, model_dir);
}

ModelVersion::ModelVersion(const Services& services, int64_t version,
                           const serving::ModelDir& model_dir, inference::ModelConfig config,
                           const MakeScheduler& make)
    : services_(services), version_(version), load_id_(next_load_id()) {
  const std::string name = config.name();
  context_ = {name,      std::to_string(version), std::move(config),    {},
              &metrics_, services.cache,          services.finish_trace};
  read_labels(model_dir);
  scheduler_ = make(context_);
}

ModelVersion::~ModelVersion() {
  scheduler_.reset();
  const std::string profile = model_ ? model_->profile() : "";
  if (!profile.empty() && services_.log)
    services_.log('I', "profile of '" + name() + "' version " + version_text() + ":\n" + profile);
}

void ModelVersion::read_labels(const serving::ModelDir& model_dir) {
  for (const inference::ModelOutput& output : context_.config.output()) {
    if (output.label_filename().empty()) continue;
    const fs::path path = model_dir.file(
        "", output.label_filename(),
        "model '" + context_.model + "', output '" + output.name() + "', label_filename");
    std::ifstream file(path);
    if (!file)
      throw Error(Code::kInternal, "unable to open file '" + path.string() +
                                       "' with the labels of output '" + output.name() + "'");
    std::vector<std::string>& labels = context_.labels[output.name()];
    for (std::string line; std::getline(file, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      labels.push_back(line);
    }
  }
}

void ModelVersion::infer(const std::shared_ptr<ModelVersion>& self, RequestPtr request) {
  const AnswerContext& context = self->context_;
  if (!request->times.received) request->times.received = now_ns();
  try {
    validate(context.config, *request);
    if (context.config.response_cache().enable() && context.cache->enabled()) {
      const uint64_t start = now_ns();
      const int64_t asked = request->version;
      request->version = self->version_;  // the answer of "the latest" is that of one version
      request->cache_key = context.cache->key(*request);
      request->version = asked;
      if (!request->cache_key.empty()) {
        request->cache_key += self->load_id_;
        std::optional<Response> found = context.cache->find(request->cache_key);
        const uint64_t end = now_ns();
        if (found) {
          request->times.queued = start;
          request->times.dequeued = start;
          request->times.answered = end;
          self->metrics_.cache_hit(request->times, end - start, rows_of(context.config, *request));
          found->id = request->id;
          found->times = request->times;
          request->respond(std::move(*found));
          if (request->trace && context.finish_trace)
            context.finish_trace(*request, context.version);
          return;
        }
        request->cache_lookup_ns = end - start;
      }
    }
  } catch (const Error& error) {
    return request->fail(error.code(), error.what());
  } catch (const std::exception& error) {
    return request->fail(Code::kInternal, error.what());
  }
  request->keep = self;
  self->scheduler_->enqueue(std::move(request));
}

Graveyard::Graveyard() : thread_([this] { work(); }) {}

Graveyard::~Graveyard() {
  {
    std::unique_lock lock(mutex_);
    empty_.wait(lock, [&] { return alive_ == 0; });
    stopping_ = true;
  }
  buried_.notify_one();
  thread_.join();
}

std::shared_ptr<ModelVersion> Graveyard::adopt(std::unique_ptr<ModelVersion> version,
                                               std::function<void()> gone) {
  {
    std::lock_guard lock(mutex_);
    ++alive_;
  }
  return {version.release(), [this, gone = std::move(gone)](ModelVersion* dead) {
            // Under the lock: this may be gone as soon as the thread has seen the grave.
            std::lock_guard lock(mutex_);
            graves_.push_back({dead, gone});
            buried_.notify_one();
          }};
}

bool Graveyard::wait(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  return empty_.wait_for(lock, limit, [&] { return alive_ == 0; });
}

void Graveyard::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    buried_.wait(lock, [&] { return stopping_ || !graves_.empty(); });
    if (graves_.empty()) return;
    Grave grave = std::move(graves_.front());
    graves_.pop_front();
    lock.unlock();
    delete grave.version;
    if (grave.gone) grave.gone();
    lock.lock();
    if (--alive_ == 0) empty_.notify_all();
  }
}

}  // namespace anymps::server
