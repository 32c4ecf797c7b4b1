// SPDX-License-Identifier: Apache-2.0
// The models of a server: which are there, which are loaded, in which state. A model that changed
// is loaded beside the old one and takes its place in one step; the old one answers what it has
// begun. Ensembles are made again when a model that they run has changed.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "grpc_service.pb.h"
#include "server/repository/ensemble_check.h"
#include "server/repository/model_version.h"
#include "server/repository/repository_scan.h"

namespace anymps::server {

class Repository {
 public:
  explicit Repository(Services services);
  ~Repository();  // waits for requests under way

  // Loads what the control mode asks for and begins to watch. Throws kInternal if not all of it
  // loads and `exit_on_error` is set.
  void start();
  // Looks for changes once, as the thread that watches does.
  void poll();
  void load(const std::string& name, const Parameters& parameters);
  void unload(const std::string& name, bool with_dependents);
  // Lets go of all models; those that have requests under way go when these are answered. Returns
  // false if that takes longer.
  bool stop(std::chrono::nanoseconds limit);

  // -1: the latest. Throws kNotFound or kUnavailable.
  std::shared_ptr<ModelVersion> find(const std::string& name, int64_t version) const;
  bool ready(const std::string& name, int64_t version) const;
  bool all_ready() const;  // every model that should be loaded is
  std::vector<std::shared_ptr<ModelVersion>> ready_versions(const std::string& name = "") const;
  inference::RepositoryIndexResponse index(bool ready_only) const;

 private:
  enum class State { kLoading, kReady, kUnloading, kUnavailable };
  static const char* text(State state);

  // A model as it lies in the repository, or as a load request brings it.
  struct Source {
    std::filesystem::path dir;
    inference::ModelConfig config;
    Fingerprint print;
    std::shared_ptr<PrivateDir> files;  // of the load request
    bool overridden = false;            // by a load request
  };
  struct VersionEntry {
    State state = State::kLoading;
    std::string reason;
    std::shared_ptr<ModelVersion> live;
    uint64_t serial = 0;  // of the version that is or was live
  };
  struct Entry {
    Source source;
    std::map<int64_t, VersionEntry> versions;
    bool wanted = false;  // it should be loaded
    bool asked = false;   // for itself, not for an ensemble
    Fingerprint tried;    // what was loaded last, or would not load
    std::string failure;  // why the last load did not succeed
  };
  struct Made {
    std::shared_ptr<ModelVersion> version;
    uint64_t serial = 0;
    std::string error;  // "Invalid argument: ..."
  };
  struct Job {
    const std::string* name = nullptr;
    const Source* source = nullptr;
    int64_t version = 0;
    Made made;
  };
  using Sources = std::map<std::string, Source>;
  using Errors = std::map<std::string, std::string>;
  using Trash = std::vector<std::shared_ptr<ModelVersion>>;

  void log(char level, const std::string& message) const;
  void need_explicit() const;
  Source read(const std::string& name, const std::filesystem::path& dir) const;
  Source read_override(const std::string& name, const Parameters& parameters) const;
  // nullopt and a line in the log if it cannot be read.
  std::optional<Source> poll_model(const Scan& scan, const std::string& name);
  void add_steps(const Scan& scan, const inference::ModelConfig& config, Sources& load);
  bool loaded_as(const std::string& name, const Source& source) const;
  // Throws kUnavailable if these would be more than may be loaded.
  void check_room(const std::string& name, const Sources& load) const;
  // Of models that are neither wanted nor in a repository nothing is left to tell.
  void forget_gone(const Scan& scan);

  // With the operation lock held. Returns why models were not loaded.
  Errors apply(Sources load, const std::set<std::string>& unload,
               const std::set<std::string>& asked);
  void drop(const std::string& name);
  void load_models(Sources& load, Errors& errors);
  std::string commit(const std::string& name, Source source, std::map<int64_t, Made> made);
  void run_jobs(std::vector<Job>& jobs);
  Made make(const std::string& name, const Source& source, int64_t version, bool ensemble);
  std::set<std::string> dependents(const std::set<std::string>& changed) const;
  std::string load_ensemble(const std::string& name, Source source, bool steps_changed);
  void load_ensembles(Sources ensembles, const std::set<std::string>& changed, Errors& errors);
  void check_cycle(const std::string& name, const inference::ModelConfig& config,
                   const Sources& load) const;
  StepModels steps_of(const inference::ModelConfig& config) const;
  void watch();

  Services services_;
  std::mutex operation_;             // one load, unload or poll at a time
  mutable std::shared_mutex mutex_;  // models_; never held while a model loads or runs
  std::map<std::string, Entry> models_;
  std::map<std::string, Fingerprint> refused_;  // could not be read as they were then
  std::atomic<uint64_t> serial_{0};

  std::mutex watch_mutex_;
  std::condition_variable watch_wake_;
  bool stopping_ = false;
  std::thread watcher_;
  Graveyard graveyard_;  // last: what it calls uses the rest
};

inline constexpr char kUnloaded[] = "unloaded";  // the reason of versions that were let go

// "Invalid argument", as Triton's core names the codes.
const char* code_text(Code code);

}  // namespace anymps::server
