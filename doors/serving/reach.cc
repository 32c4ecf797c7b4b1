// SPDX-License-Identifier: Apache-2.0
#include "serving/reach.h"

#include <algorithm>

#include "serving/error.h"

namespace anymps::serving {
namespace fs = std::filesystem;

bool lies_in(const fs::path& path, const Folders& folders) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  if (error) return false;
  return std::any_of(folders.begin(), folders.end(), [&](const fs::path& folder) {
    fs::path root = fs::weakly_canonical(folder, error);
    if (error || folder.empty()) return false;
    if (!root.has_filename()) root = root.parent_path();  // it was written with a slash at its end
    const auto [at, rest] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
    return at == root.end();
  });
}

fs::path ModelDir::file(const std::string& within, const std::string& name,
                        const std::string& what) const {
  const fs::path folder = within.empty() ? path : path / within;
  const fs::path relative = fs::path(name).lexically_normal();
  if (relative.empty() || relative.is_absolute() || *relative.begin() == ".." ||
      name.find('\0') != std::string::npos)
    refuse(what + ": '" + name + "' must lie in the folder " + folder.string());
  Folders allowed = repositories;
  allowed.push_back(path);
  if (!lies_in(folder / relative, allowed))
    refuse(what + ": '" + name +
           "' is a link that leads out of the model repository; put the file itself there");
  return folder / relative;
}

}  // namespace anymps::serving
