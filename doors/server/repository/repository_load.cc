// SPDX-License-Identifier: Apache-2.0
// Loading, unloading and reloading. All of it runs with the operation lock held, so that `models_`
// changes on one thread only (except for the notice that a version is gone); the other lock is
// taken for the moment in which a change becomes visible.
#include <algorithm>
#include <atomic>

#include "server/core/response_cache.h"
#include "server/repository/config_text.h"
#include "server/repository/repository.h"
#include "server/scheduling/ensemble.h"

namespace anymps::server {
namespace {

void check_backend(const inference::ModelConfig& config) {
  static const std::set<std::string> kBackends = {"", "metal_mps", "onnxruntime"};
  static const std::set<std::string> kPlatforms = {"", "metal_mps", "onnxruntime_onnx"};
  if (!kBackends.contains(config.backend()) || !kPlatforms.contains(config.platform()))
    throw Error(Code::kInvalidArgument,
                "unable to find backend library for backend '" +
                    (config.backend().empty() ? config.platform() : config.backend()) +
                    "', try specifying runtime on the model configuration.");
}

}  // namespace

void Repository::need_explicit() const {
  if (services_.options->model_control != ModelControl::kExplicit)
    throw Error(Code::kUnavailable,
                "explicit model load / unload is not allowed if polling is enabled");
}

// A configuration that came with a load stays as long as the files are as they were: that is how
// Triton has it.
bool Repository::loaded_as(const std::string& name, const Source& source) const {
  const auto found = models_.find(name);
  return found != models_.end() && found->second.wanted && found->second.failure.empty() &&
         !source.overridden && found->second.source.dir == source.dir &&
         found->second.source.print == source.print;
}

// The models that an ensemble needs and that are not loaded yet.
void Repository::add_steps(const Scan& scan, const inference::ModelConfig& config, Sources& load) {
  for (const auto& step : config.ensemble_scheduling().step()) {
    const std::string& name = step.model_name();
    const auto known = models_.find(name);
    if (name == config.name() || load.contains(name) ||
        (known != models_.end() && known->second.wanted && known->second.failure.empty()))
      continue;
    if (std::optional<Source> source = poll_model(scan, name)) {
      const inference::ModelConfig step_config = source->config;
      load.emplace(name, std::move(*source));
      add_steps(scan, step_config, load);
    }
  }
}

// What has been let go and still answers is not counted: the requests under way are bounded.
void Repository::check_room(const std::string& name, const Sources& load) const {
  size_t others = 0, more = 0;
  for (const auto& [model, entry] : models_) {
    if (!entry.wanted || load.contains(model)) continue;
    const auto live = std::count_if(entry.versions.begin(), entry.versions.end(),
                                    [](const auto& version) { return version.second.live; });
    others += std::max<size_t>(live, 1);  // it did not load: it is kept as well
  }
  for (const auto& [model, source] : load)
    more += std::max<size_t>(
        choose_versions(source.config.version_policy(), source.dir, [](int64_t) {}).size(), 1);
  const size_t most = services_.options->max_loaded_models;
  if (others + more > most)
    throw Error(Code::kUnavailable, "failed to load '" + name + "': the server would have " +
                                        std::to_string(others + more) +
                                        " versions of models and may have " + std::to_string(most) +
                                        "; unload others, or start it with a larger " +
                                        "--max-loaded-models");
}

void Repository::forget_gone(const Scan& scan) {
  std::unique_lock lock(mutex_);
  std::erase_if(models_, [&](const auto& model) {
    return !model.second.wanted && !scan.models.contains(model.first) &&
           !scan.twice.contains(model.first);
  });
}

void Repository::load(const std::string& name, const Parameters& parameters) {
  need_explicit();
  std::lock_guard operation(operation_);
  const auto refuse = [&](const std::string& why) {
    if (!why.empty()) log('E', "Poll failed for model '" + name + "': " + why);
    throw Error(Code::kInternal,
                "failed to load '" + name + "', failed to poll from model repository");
  };
  if (!valid_model_name(name)) refuse("the name is not that of a folder in a repository");
  Sources load;
  std::optional<Source> source;
  const Scan scan = scan_repositories(services_.options->model_repositories);
  if (parameters.empty()) {
    source = poll_model(scan, name);
    if (!source) refuse("");
  } else {
    try {
      source = read_override(name, parameters);
    } catch (const std::exception& error) {
      refuse(error.what());
    }
  }
  if (loaded_as(name, *source)) {
    models_[name].asked = true;
    return;
  }
  add_steps(scan, source->config, load);
  load.insert_or_assign(name, std::move(*source));
  check_room(name, load);
  forget_gone(scan);
  const Errors errors = apply(std::move(load), {}, {name});
  if (const auto error = errors.find(name); error != errors.end())
    throw Error(Code::kInvalidArgument,
                "load failed for model '" + name + "': " + error->second + "\n");
}

void Repository::unload(const std::string& name, bool with_dependents) {
  need_explicit();
  std::lock_guard operation(operation_);
  std::set<std::string> unload = {name};
  // What was loaded for this ensemble alone.
  for (bool changed = with_dependents; changed;) {
    changed = false;
    for (const std::string& ensemble : std::vector(unload.begin(), unload.end())) {
      const auto found = models_.find(ensemble);
      if (found == models_.end()) continue;
      for (const auto& step : found->second.source.config.ensemble_scheduling().step()) {
        const auto part = models_.find(step.model_name());
        if (part == models_.end() || part->second.asked) continue;
        const bool needed = std::any_of(models_.begin(), models_.end(), [&](const auto& model) {
          return model.second.wanted && !unload.contains(model.first) &&
                 depends_on(model.second.source.config, {step.model_name()});
        });
        if (!needed) changed = unload.insert(step.model_name()).second || changed;
      }
    }
  }
  apply({}, unload, {});
}

void Repository::poll() {
  std::lock_guard operation(operation_);
  const Scan scan = scan_repositories(services_.options->model_repositories);
  Sources load;
  std::set<std::string> unload, names;
  for (const auto& [name, entry] : models_)
    if (!scan.models.contains(name) && !scan.twice.contains(name) && entry.wanted)
      unload.insert(name);
  for (const auto& [name, dir] : scan.models) {
    const Fingerprint print = fingerprint(dir);
    const auto known = models_.find(name);
    if (known != models_.end() && known->second.wanted && known->second.source.dir == dir &&
        known->second.tried == print)
      continue;
    const auto refused = refused_.find(name);
    if (refused != refused_.end() && refused->second == print) continue;
    refused_.erase(name);
    if (std::optional<Source> source = poll_model(scan, name)) {
      load.emplace(name, std::move(*source));
      names.insert(name);
    }
  }
  if (!load.empty() || !unload.empty()) apply(std::move(load), unload, names);
}

Repository::Errors Repository::apply(Sources load, const std::set<std::string>& unload,
                                     const std::set<std::string>& asked) {
  Errors errors;
  std::set<std::string> changed = unload;
  for (const std::string& name : unload) drop(name);
  Sources ensembles;
  for (auto it = load.begin(); it != load.end();) {
    const auto next = std::next(it);
    if (is_ensemble(it->second.config)) ensembles.insert(load.extract(it));
    it = next;
  }
  for (const auto& [name, source] : load) changed.insert(name);
  load_models(load, errors);
  load_ensembles(std::move(ensembles), changed, errors);
  std::unique_lock lock(mutex_);
  for (const std::string& name : asked)
    if (const auto found = models_.find(name); found != models_.end()) found->second.asked = true;
  return errors;
}

void Repository::drop(const std::string& name) {
  Trash trash;  // let go of after the lock
  std::shared_ptr<PrivateDir> files;
  std::unique_lock lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) return;
  Entry& entry = found->second;
  entry.wanted = entry.asked = false;
  entry.failure.clear();
  files.swap(entry.source.files);
  for (auto& [number, version] : entry.versions) {
    if (version.live) {
      version.state = State::kUnloading;
      version.reason.clear();
      trash.push_back(std::move(version.live));
      version.live.reset();
    } else if (version.state != State::kUnloading) {
      version.state = State::kUnavailable;
      version.reason = kUnloaded;
    }
  }
  lock.unlock();
  services_.cache->forget_model(name);
}

void Repository::load_models(Sources& load, Errors& errors) {
  std::vector<Job> jobs;
  std::map<std::string, std::map<int64_t, Made>> made;
  for (auto& [name, source] : load) {
    const std::vector<int64_t> versions = choose_versions(
        source.config.version_policy(), source.dir, [&, &name = name](int64_t version) {
          log('E', "version " + std::to_string(version) + " is specified for model '" + name +
                       "', but the version directory is not present");
        });
    const auto known = models_.find(name);
    const bool same = known != models_.end() && !source.overridden &&
                      !known->second.source.overridden && known->second.source.dir == source.dir &&
                      known->second.source.print.rest == source.print.rest;
    for (const int64_t version : versions) {
      // A version that is as it was stays.
      if (same && known->second.versions.contains(version)) {
        const VersionEntry& old = known->second.versions.at(version);
        const auto& before = known->second.source.print.versions;
        if (old.live && before.contains(version) &&
            before.at(version) == source.print.versions[version]) {
          made[name][version] = {old.live, old.serial, ""};
          continue;
        }
      }
      jobs.push_back({&name, &source, version, {}});
    }
    made[name];
  }
  {
    std::unique_lock lock(mutex_);
    for (const Job& job : jobs) {
      VersionEntry& entry = models_[*job.name].versions[job.version];
      if (!entry.live) entry.state = State::kLoading, entry.reason.clear();
    }
  }
  run_jobs(jobs);
  for (Job& job : jobs) made[*job.name][job.version] = std::move(job.made);
  jobs.clear();
  for (auto& [name, source] : load) {
    std::string error = commit(name, std::move(source), std::move(made[name]));
    if (!error.empty()) errors[name] = std::move(error);
  }
}

void Repository::run_jobs(std::vector<Job>& jobs) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < jobs.size(); i = next++)
      jobs[i].made = make(*jobs[i].name, *jobs[i].source, jobs[i].version, false);
  };
  const size_t count =
      std::min<size_t>(std::max(services_.options->model_load_threads, 1u), jobs.size());
  std::vector<std::thread> threads;
  for (size_t i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

Repository::Made Repository::make(const std::string& name, const Source& source, int64_t version,
                                  bool ensemble) {
  const std::string number = std::to_string(version);
  log('I', "loading: " + name + ":" + number);
  Made made;
  try {
    check_tensors(source.config, ensemble);
    std::unique_ptr<ModelVersion> loaded;
    const std::vector<std::string>& repositories = services_.options->model_repositories;
    const serving::ModelDir dir(source.dir, {repositories.begin(), repositories.end()});
    if (ensemble) {
      const StepModels steps = steps_of(source.config);
      const ModelVersion::Extent extent = extent_of(source.config, steps);
      loaded = std::make_unique<ModelVersion>(
          services_, version, dir, source.config,
          [&](const AnswerContext& context) { return make_ensemble(context, steps); });
      loaded->set_extent(extent);
    } else {
      check_backend(source.config);
      loaded = std::make_unique<ModelVersion>(services_, version, dir, source.config);
    }
    made.serial = ++serial_;
    // Files that came with the request stay as long as the version: it may read them again.
    made.version = graveyard_.adopt(
        std::move(loaded), [this, name, version, serial = made.serial, files = source.files] {
          {
            std::unique_lock lock(mutex_);
            const auto model = models_.find(name);
            if (model == models_.end()) return;
            VersionEntry& entry = model->second.versions[version];
            if (entry.serial != serial || entry.state != State::kUnloading) return;
            entry.state = State::kUnavailable;
            entry.reason = kUnloaded;
          }
          log('I', "successfully unloaded '" + name + "' version " + std::to_string(version));
        });
  } catch (const Error& error) {
    made.error =
        ensemble ? error.what() : std::string(code_text(error.code())) + ": " + error.what();
  } catch (const std::exception& error) {
    made.error = std::string(code_text(Code::kInternal)) + ": " + error.what();
  }
  if (!made.error.empty())
    log('E', "failed to load '" + name + "' version " + number + ": " + made.error);
  return made;
}

// All versions or none: with an error the old ones stay.
std::string Repository::commit(const std::string& name, Source source,
                               std::map<int64_t, Made> made) {
  std::string failure;
  if (made.empty())
    failure =
        "at least one version must be available under the version policy of model '" + name + "'";
  Trash trash;
  std::unique_lock lock(mutex_);
  Entry& entry = models_[name];
  for (const auto& [number, version] : made)
    if (!version.error.empty())
      failure += "version " + std::to_string(number) + " is at " +
                 (entry.versions[number].live ? "READY" : "UNAVAILABLE") +
                 " state: " + version.error + ";";
  entry.wanted = true;
  entry.failure = failure;
  const bool failed = !failure.empty();
  for (auto& [number, version] : made) {
    VersionEntry& slot = entry.versions[number];
    if (failed) {
      slot.state = slot.live ? State::kReady : State::kUnavailable;
      slot.reason = !version.error.empty() ? version.error : slot.live ? "" : kUnloaded;
      trash.push_back(std::move(version.version));
    } else {
      trash.push_back(std::move(slot.live));
      slot = {State::kReady, "", std::move(version.version), version.serial};
    }
  }
  if (!failed)
    for (auto& [number, slot] : entry.versions)
      if (!made.contains(number) && slot.live) {
        slot.state = State::kUnloading;
        trash.push_back(std::move(slot.live));
        slot.live.reset();
      }
  const bool serving =
      std::any_of(entry.versions.begin(), entry.versions.end(),
                  [](const auto& version) { return version.second.live != nullptr; });
  entry.tried = source.print;  // what serves may be older
  if (!failed || !serving) entry.source = std::move(source);
  lock.unlock();
  trash.clear();
  if (failed) {
    if (made.empty()) log('E', "failed to load model '" + name + "': " + failure);
  } else {
    services_.cache->forget_model(name);
    log('I', "successfully loaded '" + name + "'");
  }
  return failure;
}

}  // namespace anymps::server
