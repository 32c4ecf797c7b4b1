// SPDX-License-Identifier: Apache-2.0
#include "memory/system_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace anymps {

namespace {

// A number in a file; SIZE_MAX when there is no such file, or "max" in it.
size_t bound_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t bytes = 0;
  return file >> bytes ? bytes : SIZE_MAX;
}

size_t look_up_memory() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const size_t machine = pages > 0 && page > 0 ? static_cast<size_t>(pages * page) : SIZE_MAX;
  std::ifstream file("/proc/self/cgroup");
  std::ostringstream groups;
  groups << file.rdbuf();
  return std::min(machine, container_memory(groups.str(), "/sys/fs/cgroup"));
}

}  // namespace

size_t container_memory(const std::string& groups, const std::string& root) {
  size_t least = SIZE_MAX;
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {  // "0::/path", "9:memory:/path"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",memory,") == std::string::npos) continue;
    const std::string base = unified ? root : root + "/memory";
    const std::string name = unified ? "/memory.max" : "/memory.limit_in_bytes";
    std::string path = line.substr(second + 1);
    for (;; path.erase(std::min(path.rfind('/'), path.size()))) {
      while (!path.empty() && path.back() == '/') path.pop_back();
      least = std::min(least, bound_in(base + path + name));
      if (path.find('/') == std::string::npos) break;
    }
  }
  return least;
}

bool host_takes_memory_back(const std::string& folder) {
  constexpr int kBalloon = 5;     // the device's kind
  constexpr size_t kReports = 5;  // the bit of its features
  std::error_code error;
  for (const auto& device : std::filesystem::directory_iterator(folder, error)) {
    std::string kind, features;
    std::ifstream(device.path() / "device") >> kind;
    std::ifstream(device.path() / "features") >> features;
    if (std::strtol(kind.c_str(), nullptr, 0) == kBalloon && features.size() > kReports &&
        features[kReports] == '1')
      return true;
  }
  return false;
}

bool host_takes_memory_back() {
  static const bool back = host_takes_memory_back("/sys/bus/virtio/devices");
  return back;
}

size_t system_memory() {
  static const size_t bytes = look_up_memory();
  return bytes;
}

}  // namespace anymps
