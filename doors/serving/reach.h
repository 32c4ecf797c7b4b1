// SPDX-License-Identifier: Apache-2.0
// Where the files that a configuration names may lie. A configuration can come with a request, so a
// name in it never leads out of what the operator gave: links are resolved before that is decided.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace anymps::serving {

using Folders = std::vector<std::filesystem::path>;

// Whether a path is one of the folders or lies below one, once all links are followed. What does
// not exist yet is taken as it is written.
bool lies_in(const std::filesystem::path& path, const Folders& folders);

// The folder of a model, and where links in it may lead: below itself, or to the repositories.
struct ModelDir {
  ModelDir(std::filesystem::path path = {}, Folders repositories = {})  // NOLINT: also a mere path
      : path(std::move(path)), repositories(std::move(repositories)) {}

  // The file `name` in the folder `within` of the model ("": its own). Throws
  // Error(kInvalidArgument) that begins with `what` (the model and the field) if the name leaves
  // that folder or is a link that leads elsewhere.
  std::filesystem::path file(const std::string& within, const std::string& name,
                             const std::string& what) const;

  std::filesystem::path path;
  Folders repositories;
};

}  // namespace anymps::serving
