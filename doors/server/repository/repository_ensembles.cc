// SPDX-License-Identifier: Apache-2.0
// Ensembles in a repository: what they run, in which order they load, and that they are made again
// when a model below them has changed. With the operation lock held, as in repository_load.cc.
#include <algorithm>

#include "server/repository/ensemble_check.h"
#include "server/repository/repository.h"

namespace anymps::server {

// Ensembles that run what has changed, directly or through others.
std::set<std::string> Repository::dependents(const std::set<std::string>& changed) const {
  std::set<std::string> affected = changed, found;
  for (bool more = true; more;) {
    more = false;
    for (const auto& [name, entry] : models_)
      if (entry.wanted && !affected.contains(name) && depends_on(entry.source.config, affected)) {
        affected.insert(name);
        found.insert(name);
        more = true;
      }
  }
  return found;
}

// Those that are asked for and those that run what has changed; each after the ensembles that it
// runs.
void Repository::load_ensembles(Sources ensembles, const std::set<std::string>& changed,
                                Errors& errors) {
  std::set<std::string> affected = changed;
  for (const auto& [name, source] : ensembles) affected.insert(name);
  for (const std::string& name : dependents(affected))
    if (!ensembles.contains(name)) ensembles.emplace(name, models_.at(name).source);
  affected = dependents(changed);
  for (auto it = ensembles.begin(); it != ensembles.end();) {
    const auto next = std::next(it);
    try {
      check_cycle(it->first, it->second.config, ensembles);
    } catch (const Error& error) {
      errors[it->first] = error.what();
      log('E', std::string(code_text(error.code())) + ": " + error.what());
      ensembles.erase(it);
    }
    it = next;
  }
  while (!ensembles.empty()) {
    auto next = std::find_if(ensembles.begin(), ensembles.end(), [&](const auto& ensemble) {
      const auto& steps = ensemble.second.config.ensemble_scheduling().step();
      return std::none_of(steps.begin(), steps.end(),
                          [&](const auto& step) { return ensembles.contains(step.model_name()); });
    });
    if (next == ensembles.end()) next = ensembles.begin();
    auto node = ensembles.extract(next);
    const std::string& name = node.key();
    std::string error = load_ensemble(name, std::move(node.mapped()), affected.contains(name));
    if (!error.empty()) errors[name] = std::move(error);
  }
}

// Follows the steps of `name` and refuses to come back to it.
void Repository::check_cycle(const std::string& name, const inference::ModelConfig& config,
                             const Sources& load) const {
  std::set<std::string> seen;
  std::vector<const inference::ModelConfig*> open = {&config};
  while (!open.empty()) {
    const inference::ModelConfig& next = *open.back();
    open.pop_back();
    for (const auto& step : next.ensemble_scheduling().step()) {
      if (step.model_name() == name)
        throw Error(Code::kInvalidArgument, "circular dependency between ensembles: " + name +
                                                " -> ... -> " + next.name() + " -> " + name);
      if (!seen.insert(step.model_name()).second) continue;
      const auto loading = load.find(step.model_name());
      const auto known = models_.find(step.model_name());
      if (loading != load.end())
        open.push_back(&loading->second.config);
      else if (known != models_.end())
        open.push_back(&known->second.source.config);
    }
  }
}

StepModels Repository::steps_of(const inference::ModelConfig& config) const {
  StepModels models;
  std::string missing;
  for (const auto& step : config.ensemble_scheduling().step())
    if (const auto found = models_.find(step.model_name());
        found == models_.end() || !found->second.wanted)
      missing += (missing.empty() ? "" : ", ") + step.model_name();
  if (!missing.empty())
    throw Error(Code::kInvalidArgument,
                "ensemble " + config.name() +
                    " contains models that are not available or ambiguous: " + missing);
  for (const auto& step : config.ensemble_scheduling().step()) {
    const std::string start =
        "ensemble '" + config.name() + "' depends on '" + step.model_name() + "' ";
    const int64_t version = step.model_version() > 0 ? step.model_version() : -1;
    if (!ready(step.model_name(), -1))
      throw Error(Code::kInvalidArgument,
                  start + "which has no loaded version. Model '" + step.model_name() +
                      "' loading failed with error: " + models_.at(step.model_name()).failure);
    if (!ready(step.model_name(), version))
      throw Error(Code::kInvalidArgument,
                  start + "whose required version " + std::to_string(version) + " is not loaded.");
    models.push_back(find(step.model_name(), version));
  }
  return models;
}

std::string Repository::load_ensemble(const std::string& name, Source source, bool steps_changed) {
  std::map<int64_t, Made> made;
  std::string failure;
  for (const int64_t version :
       choose_versions(source.config.version_policy(), source.dir, [](int64_t) {})) {
    made[version] = make(name, source, version, true);
    if (!made[version].error.empty()) failure = made[version].error;
  }
  if (failure.empty()) return commit(name, std::move(source), std::move(made));
  if (!steps_changed && ready(name, -1)) {
    commit(name, std::move(source), std::move(made));
    return failure;
  }
  // Its models are not what they were: what is there of it cannot stay. It comes back when they
  // fit again.
  drop(name);
  std::unique_lock lock(mutex_);
  Entry& entry = models_[name];
  entry.tried = source.print;
  entry.source = std::move(source);
  entry.wanted = true;
  entry.failure = failure;
  return failure;
}

}  // namespace anymps::server
