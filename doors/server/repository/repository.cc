// SPDX-License-Identifier: Apache-2.0
// Finding models and asking about them; loading is in repository_load.cc.
#include "server/repository/repository.h"

#include <chrono>
#include <iterator>

#include "server/core/message_json.h"
#include "server/repository/config_text.h"

namespace anymps::server {

namespace fs = std::filesystem;

const char* code_text(Code code) {
  static constexpr const char* kTexts[] = {"Unknown",          "Internal",    "Not found",
                                           "Invalid argument", "Unavailable", "Unsupported",
                                           "Already exists",   "Cancelled"};
  static_assert(std::size(kTexts) == static_cast<size_t>(Code::kCancelled) + 1);
  return kTexts[static_cast<size_t>(code)];
}

const char* Repository::text(State state) {
  static constexpr const char* kTexts[] = {"LOADING", "READY", "UNLOADING", "UNAVAILABLE"};
  static_assert(std::size(kTexts) == static_cast<size_t>(State::kUnavailable) + 1);
  return kTexts[static_cast<size_t>(state)];
}

Repository::Repository(Services services) : services_(std::move(services)) {}

Repository::~Repository() { stop(std::chrono::nanoseconds(0)); }

void Repository::log(char level, const std::string& message) const {
  if (services_.log) services_.log(level, message);
}

void Repository::start() {
  const Options& options = *services_.options;
  bool good = true;
  {
    std::lock_guard operation(operation_);
    const Scan scan = scan_repositories(options.model_repositories);
    for (const std::string& repository : options.model_repositories)
      if (const std::string why = why_empty(repository); !why.empty()) log('W', why);
    const bool all = options.model_control != ModelControl::kExplicit;
    std::set<std::string> names;
    for (const std::string& name : options.load_models)
      if (!all && name != "*") names.insert(name);
    const bool star = std::find(options.load_models.begin(), options.load_models.end(), "*") !=
                      options.load_models.end();
    if (all || star) {
      for (const auto& [name, dir] : scan.models) names.insert(name);
      names.insert(scan.twice.begin(), scan.twice.end());
    }
    Sources load;
    for (const std::string& name : names) {
      std::optional<Source> source = poll_model(scan, name);
      if (source) {
        add_steps(scan, source->config, load);
        load.insert_or_assign(name, std::move(*source));
      }
      good = good && load.contains(name);
    }
    good = apply(std::move(load), {}, names).empty() && good;
  }
  if (!good && options.exit_on_error) throw Error(Code::kInternal, "failed to load all models");
  if (!good) log('E', "Internal: failed to load all models");
  if (options.model_control == ModelControl::kPoll && options.poll_seconds > 0)
    watcher_ = std::thread([this] { watch(); });
}

void Repository::watch() {
  std::unique_lock lock(watch_mutex_);
  while (!watch_wake_.wait_for(lock, std::chrono::seconds(services_.options->poll_seconds),
                               [&] { return stopping_; })) {
    lock.unlock();
    try {
      poll();
    } catch (const std::exception& error) {
      log('E', std::string("failed to poll the model repository: ") + error.what());
    }
    lock.lock();
  }
}

bool Repository::stop(std::chrono::nanoseconds limit) {
  {
    std::lock_guard lock(watch_mutex_);
    stopping_ = true;
  }
  watch_wake_.notify_all();
  if (watcher_.joinable()) watcher_.join();
  {
    std::lock_guard operation(operation_);
    std::vector<std::string> names;
    for (const auto& [name, entry] : models_) names.push_back(name);
    for (const std::string& name : names) drop(name);
  }
  return graveyard_.wait(limit);
}

Repository::Source Repository::read(const std::string& name, const fs::path& dir) const {
  Source source;
  source.dir = dir;
  source.print = fingerprint(dir);  // before the files are read: a later change is seen
  const Options& options = *services_.options;
  source.config =
      read_config(dir, name, options.model_config_name, !options.disable_auto_complete_config);
  check_config(source.config);
  normalize_config(source.config);
  return source;
}

std::optional<Repository::Source> Repository::poll_model(const Scan& scan,
                                                         const std::string& name) {
  if (scan.twice.contains(name)) {
    log('E', "failed to poll model '" + name + "': not unique across all model repositories");
    return std::nullopt;
  }
  const auto found = scan.models.find(name);
  if (found == scan.models.end()) {
    log('E', "failed to poll model '" + name + "': model not found in any model repository.");
    return std::nullopt;
  }
  try {
    return read(name, found->second);
  } catch (const std::exception& error) {
    log('E', "Poll failed for model directory '" + name + "': " + error.what());
    refused_[name] = fingerprint(found->second);
    return std::nullopt;
  }
}

Repository::Source Repository::read_override(const std::string& name,
                                             const Parameters& parameters) const {
  Source source;
  source.overridden = true;
  const std::string* config = nullptr;
  for (const auto& [key, value] : parameters) {
    const std::string* content = std::get_if<std::string>(&value);
    if (key == "config") {
      if (!content)
        throw Error(Code::kInvalidArgument, "attempt to access non-string load parameter 'config'");
      config = content;
    } else if (key.starts_with("file:")) {
      if (!content)
        throw Error(Code::kInvalidArgument, "load parameter '" + key + "' must hold bytes");
      if (!source.files) source.files = std::make_shared<PrivateDir>();
      source.files->write(key.substr(5), *content);
    } else {
      throw Error(Code::kInvalidArgument,
                  "unrecognized load parameter '" + key + "' for model '" + name + "'");
    }
  }
  if (!config)
    throw Error(Code::kInvalidArgument,
                "the files of a model must come with its configuration, parameter 'config'");
  if (source.files) {
    source.dir = source.files->path();
  } else {
    const Scan scan = scan_repositories(services_.options->model_repositories);
    if (!scan.models.contains(name))
      throw Error(Code::kInvalidArgument, "model not found in any model repository.");
    source.dir = scan.models.at(name);
    source.print = fingerprint(source.dir);
  }
  parse_json(*config, source.config);
  set_model_name(source.config, name);
  check_config(source.config);
  normalize_config(source.config);
  return source;
}

std::shared_ptr<ModelVersion> Repository::find(const std::string& name, int64_t version) const {
  const auto fail = [&](Code code, const std::string& what) {
    throw Error(code, "Request for unknown model: '" + name + "' " + what);
  };
  std::shared_lock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) fail(Code::kNotFound, "is not found");
  const auto& versions = model->second.versions;
  if (version == -1) {
    for (auto it = versions.rbegin(); it != versions.rend(); ++it)
      if (it->second.live) return it->second.live;
    fail(Code::kNotFound, "has no available versions");
  }
  const std::string which = "version " + std::to_string(version);
  const auto found = versions.find(version);
  if (found == versions.end()) fail(Code::kNotFound, which + " is not found");
  if (!found->second.live) fail(Code::kUnavailable, which + " is not at ready state");
  return found->second.live;
}

bool Repository::ready(const std::string& name, int64_t version) const {
  std::shared_lock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) return false;
  for (const auto& [number, entry] : model->second.versions)
    if (entry.live && (version == -1 || version == number)) return true;
  return false;
}

bool Repository::all_ready() const {
  std::shared_lock lock(mutex_);
  for (const auto& [name, entry] : models_) {
    if (!entry.wanted) continue;
    bool live = false, loading = false, failed = entry.versions.empty();
    for (const auto& [number, version] : entry.versions) {
      live = live || version.live;
      loading = loading || version.state == State::kLoading;
      failed = failed || (version.state == State::kUnavailable && version.reason != kUnloaded);
    }
    if (failed || (loading && !live)) return false;
  }
  return true;
}

std::vector<std::shared_ptr<ModelVersion>> Repository::ready_versions(
    const std::string& name) const {
  std::vector<std::shared_ptr<ModelVersion>> list;
  std::shared_lock lock(mutex_);
  for (const auto& [model, entry] : models_)
    for (const auto& [number, version] : entry.versions)
      if (version.live && (name.empty() || name == model)) list.push_back(version.live);
  return list;
}

inference::RepositoryIndexResponse Repository::index(bool ready_only) const {
  const Scan scan = scan_repositories(services_.options->model_repositories);
  std::set<std::string> names = scan.twice;
  for (const auto& [name, dir] : scan.models) names.insert(name);
  inference::RepositoryIndexResponse response;
  std::shared_lock lock(mutex_);
  for (const std::string& name : names) {
    const auto add = [&](const std::string& version, const char* state, const std::string& reason) {
      auto& model = *response.add_models();
      model.set_name(name);
      model.set_version(version);
      model.set_state(state);
      model.set_reason(reason);
    };
    const auto found = models_.find(name);
    if (scan.twice.contains(name)) {
      if (!ready_only)
        add("", text(State::kUnavailable), "model appears in two or more repositories");
    } else if (found == models_.end()) {
      if (!ready_only) add("", "", "");
    } else {
      for (const auto& [number, version] : found->second.versions)
        if (!ready_only || version.state == State::kReady)
          add(std::to_string(number), text(version.state), version.reason);
      if (found->second.versions.empty() && is_ensemble(found->second.source.config) && !ready_only)
        add("", "", "");
    }
  }
  return response;
}

}  // namespace anymps::server
