// SPDX-License-Identifier: Apache-2.0
#include "server/repository/repository_scan.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>

#include "server/core/request.h"

namespace anymps::server {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxFolderDepth = 32;

// "12", but neither "012" nor "0" nor "x".
std::optional<int64_t> version_of(const std::string& folder) {
  int64_t version = 0;
  const auto [end, error] = std::from_chars(folder.data(), folder.data() + folder.size(), version);
  if (folder.empty() || folder[0] == '0' || error != std::errc() ||
      end != folder.data() + folder.size() || version < 1)
    return std::nullopt;
  return version;
}

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(*it);
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Files may come and go meanwhile: what cannot be read is as if it were not there.
void add_file(const fs::directory_entry& entry, const std::string& name, std::string& to,
              int depth) {
  std::error_code error;
  if (entry.is_directory(error)) {
    to += name + "/\n";
    if (depth < kMaxFolderDepth)
      for (const fs::directory_entry& inner : entries_of(entry.path()))
        add_file(inner, name + "/" + inner.path().filename().string(), to, depth + 1);
    return;
  }
  const uintmax_t size = fs::file_size(entry.path(), error);
  if (error) return;
  const auto time = fs::last_write_time(entry.path(), error).time_since_epoch().count();
  to += name + " " + std::to_string(size) + " " + std::to_string(time) + "\n";
}

}  // namespace

bool valid_model_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos &&
         name.size() <= 255;
}

Scan scan_repositories(const std::vector<std::string>& repositories) {
  Scan scan;
  for (const std::string& repository : repositories) {
    std::error_code error;
    if (!fs::is_directory(repository, error))
      throw Error(Code::kInternal, "failed to open the model repository '" + repository +
                                       "': there is no such folder");
    for (const fs::directory_entry& entry : entries_of(repository)) {
      const std::string name = entry.path().filename().string();
      if (!entry.is_directory(error) || name.starts_with('.')) continue;
      if (scan.models.contains(name)) scan.twice.insert(name);
      scan.models.emplace(name, entry.path());
    }
  }
  for (const std::string& name : scan.twice) scan.models.erase(name);
  return scan;
}

std::string why_empty(const fs::path& repository) {
  const auto has_version = [](const fs::path& folder) {
    const std::vector<fs::directory_entry> entries = entries_of(folder);
    return std::any_of(entries.begin(), entries.end(), [](const fs::directory_entry& entry) {
      std::error_code error;
      return entry.is_directory(error) && version_of(entry.path().filename().string());
    });
  };
  for (const fs::directory_entry& entry : entries_of(repository)) {
    std::error_code error;
    if (entry.is_directory(error) && !entry.path().filename().string().starts_with('.') &&
        has_version(entry.path()))
      return "";
  }
  std::string why = "the model repository '" + repository.string() +
                    "' has no model. A model is a folder with a folder for each version: " +
                    (repository / "NAME" / "1" / "model.onnx").string() +
                    " (or model.mps, model.pte)";
  if (has_version(repository))
    why += ". This looks like the folder of one model: give the folder above it";
  return why;
}

Fingerprint fingerprint(const fs::path& model_dir) {
  Fingerprint print;
  for (const fs::directory_entry& entry : entries_of(model_dir)) {
    const std::string name = entry.path().filename().string();
    const std::optional<int64_t> version = version_of(name);
    std::error_code error;
    if (version && entry.is_directory(error))
      add_file(entry, name, print.versions[*version], 0);
    else if (!entry.is_directory(error) || name == "configs" || name == "warmup" ||
             name == "initial_state")
      add_file(entry, name, print.rest, 0);
  }
  return print;
}

std::vector<int64_t> choose_versions(const inference::ModelVersionPolicy& policy,
                                     const fs::path& model_dir,
                                     const std::function<void(int64_t)>& missing) {
  std::set<int64_t> there;
  for (const fs::directory_entry& entry : entries_of(model_dir)) {
    std::error_code error;
    if (!entry.is_directory(error)) continue;
    if (const auto version = version_of(entry.path().filename().string())) there.insert(*version);
  }
  if (policy.has_specific()) {
    std::set<int64_t> chosen;
    for (const int64_t version : policy.specific().versions()) {
      if (there.contains(version))
        chosen.insert(version);
      else
        missing(version);
    }
    return {chosen.begin(), chosen.end()};
  }
  std::vector<int64_t> versions(there.begin(), there.end());
  if (policy.has_latest() && policy.latest().num_versions() < versions.size())
    versions.erase(versions.begin(), versions.end() - policy.latest().num_versions());
  return versions;
}

PrivateDir::PrivateDir() {
  std::string pattern = (fs::temp_directory_path() / "anymps-model-XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    throw Error(Code::kInternal, "cannot make a folder for the files of a model below " +
                                     fs::temp_directory_path().string() + ": " +
                                     std::strerror(errno));
  path_ = pattern;
}

PrivateDir::~PrivateDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void PrivateDir::write(const std::string& name, std::string_view content) const {
  const fs::path relative = fs::path(name).lexically_normal();
  if (relative.empty() || relative.is_absolute() || !relative.has_filename() ||
      *relative.begin() == ".." || name.find('\0') != std::string::npos)
    throw Error(Code::kInvalidArgument,
                "the file '" + name + "' of a model must lie in the model's folder");
  const fs::path path = path_ / relative;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) throw Error(Code::kInternal, "cannot write the file '" + name + "' of a model");
}

}  // namespace anymps::server
