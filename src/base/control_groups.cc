// SPDX-License-Identifier: Apache-2.0
#include "base/control_groups.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace anymps {

namespace {

using Parts = std::vector<std::string_view>;

bool contains(const Parts& parts, std::string_view part) {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

Parts path_parts(std::string_view path) {
  Parts parts = split_at(path, '/');
  std::erase_if(parts, [](std::string_view part) { return part.empty() || part == "."; });
  return parts;
}

// mountinfo writes blanks, line ends and backslashes as three octal digits.
std::string unescaped(std::string_view text) {
  const auto digit = [&](size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] < '8';
  };
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && digit(at + 1) && digit(at + 2) && digit(at + 3)) {
      out += static_cast<char>((text[at + 1] - '0') * 64 + (text[at + 2] - '0') * 8 +
                               (text[at + 3] - '0'));
      at += 3;
    } else {
      out += text[at];
    }
  }
  return out;
}

struct Mount {
  std::string top, point;  // the group that is shown, and where
};

// "31 23 0:28 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup rw": any number of words before the
// "-".
std::vector<Mount> mounts_of(std::string_view controller, bool unified, std::string_view info) {
  std::vector<Mount> mounts;
  for (const std::string_view line : split_at(info, '\n')) {
    const Parts words = split_at(line, ' ');
    if (words.size() < 10) continue;
    const auto dash = std::find(words.begin() + 6, words.end(), "-");
    if (words.end() - dash < 4) continue;
    if (dash[1] == (unified ? "cgroup2" : "cgroup") &&
        (unified || contains(split_at(dash[3], ','), controller)))
      mounts.push_back({unescaped(words[3]), unescaped(words[4])});
  }
  return mounts;
}

// From the group at `path` up to the one that is mounted. Both paths are given from the root of the
// process's namespace of groups; what lies above that root begins with "..", and is not named.
void add_groups(std::string_view path, const Mount& mount, bool unified, const std::string& root,
                std::vector<ControlGroup>& groups) {
  const Parts own = path_parts(path), top = path_parts(mount.top);
  Parts below;
  if (own.size() >= top.size() && std::equal(top.begin(), top.end(), own.begin()))
    below.assign(own.begin() + static_cast<std::ptrdiff_t>(top.size()), own.end());
  else if (!std::all_of(top.begin(), top.end(), [](std::string_view part) { return part == ".."; }))
    return;                           // shows other groups
  if (contains(below, "..")) return;  // lies beside what is mounted
  for (;; below.pop_back()) {
    std::string folder = root + mount.point;
    for (const std::string_view part : below) folder.append("/").append(part);
    groups.push_back({std::move(folder), unified});
    if (below.empty()) return;
  }
}

}  // namespace

std::string small_file(const std::string& path) {
  constexpr size_t kMost = 16 << 20;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return "";
  std::string content;
  std::array<char, 4096> block;
  while (content.size() < kMost) {
    const ssize_t got = ::read(file, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    content.append(block.data(), got);
  }
  ::close(file);
  return content;
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  Parts parts;
  for (size_t begin = 0;;) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    if (end == text.size()) return parts;
    begin = end + 1;
  }
}

std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root) {
  std::vector<ControlGroup> groups;
  const std::string own = small_file(root + "/proc/self/cgroup");
  const std::string mounts = small_file(root + "/proc/self/mountinfo");
  for (const std::string_view line : split_at(own, '\n')) {  // "0::/path", "4:cpu,cpuacct:/path"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view list = line.substr(first + 1, second - first - 1);
    if (!list.empty() && !contains(split_at(list, ','), controller)) continue;
    for (const Mount& mount : mounts_of(controller, list.empty(), mounts))
      add_groups(line.substr(second + 1), mount, list.empty(), root, groups);
  }
  return groups;
}

}  // namespace anymps
