// SPDX-License-Identifier: Apache-2.0
// What lies in the model repositories: folders of models, their versions, and whether anything in
// them has changed.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model_config.pb.h"

namespace anymps::server {

// A name that is one folder and cannot lead out of the repository.
bool valid_model_name(std::string_view name);

struct Scan {
  std::map<std::string, std::filesystem::path> models;  // those that are there once
  std::set<std::string> twice;                          // those of more than one repository
};
// Throws kInternal if a repository cannot be read.
Scan scan_repositories(const std::vector<std::string>& repositories);

// Why there is nothing to load in a repository, and how it should look; "" if there is something.
std::string why_empty(const std::filesystem::path& repository);

// Names, sizes and times of all files: of each version, and of the rest.
struct Fingerprint {
  std::string rest;
  std::map<int64_t, std::string> versions;
  bool operator==(const Fingerprint&) const = default;
};
Fingerprint fingerprint(const std::filesystem::path& model_dir);

// The folders of versions that the policy wants, in order. `missing` is told of versions that it
// names and that are not there.
std::vector<int64_t> choose_versions(const inference::ModelVersionPolicy& policy,
                                     const std::filesystem::path& model_dir,
                                     const std::function<void(int64_t)>& missing);

// A separate folder below the system's temporary one, which only this user can read. It goes with
// the object.
class PrivateDir {
 public:
  PrivateDir();
  ~PrivateDir();
  PrivateDir(const PrivateDir&) = delete;
  PrivateDir& operator=(const PrivateDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  // Throws kInvalidArgument for names that lead out of the folder.
  void write(const std::string& name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

}  // namespace anymps::server
