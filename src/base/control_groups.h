// SPDX-License-Identifier: Apache-2.0
// The control groups (cgroups) of Linux that bound this process, as folders: in a container the
// path in /proc/self/cgroup and the place where it is mounted differ, and what bounds the process
// may be set on any group around its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace anymps {

struct ControlGroup {
  std::string folder;
  bool unified;  // version 2; else a hierarchy of version 1 that has the controller
};

// The process's own group and those around it, as far as they are mounted. `root` stands for "/": a
// machine that is not available is a folder of files. What cannot be read or understood is left
// out. The folders, or files in them, may not exist.
std::vector<ControlGroup> control_groups(std::string_view controller,
                                         const std::string& root = "/");

// What a file holds, up to 16 MiB; "" when it cannot be read.
std::string small_file(const std::string& path);
// The parts between separators; "" has one, which is empty.
std::vector<std::string_view> split_at(std::string_view text, char separator);

}  // namespace anymps
