// SPDX-License-Identifier: Apache-2.0
// What memory there is for this process: the machine's, or less where a container (a control group
// of Linux) bounds it, and whether its host gives it at once. The system hands out more than it has
// and ends the process that touches it, so what cannot fit has to be refused before it is asked
// for.
#pragma once

#include <cstddef>
#include <string>

namespace anymps {

size_t system_memory();  // bytes; looked up once

// The least bound of the groups that `groups` (the content of /proc/self/cgroup) names and of those
// around them, under `root` (/sys/fs/cgroup); SIZE_MAX: none.
size_t container_memory(const std::string& groups, const std::string& root);

// Whether this is a virtual machine whose host takes free memory back: a large page is then rarely
// at hand, and finding one takes the host longer than many small ones.
bool host_takes_memory_back();
// The same by the devices in `folder` (/sys/bus/virtio/devices).
bool host_takes_memory_back(const std::string& folder);

}  // namespace anymps
