// SPDX-License-Identifier: Apache-2.0
// System shared memory regions that clients registered: tensors are read from and written to them
// without a copy. A region stays mapped until the last buffer into it is gone, even when it was
// unregistered in between.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "grpc_service.pb.h"
#include "server/core/request.h"

namespace anymps::server {

class SharedMemory {
 public:
  // Unless `allowed`, nothing can be registered: a region is memory of any process of this user.
  explicit SharedMemory(bool allowed = true) : allowed_(allowed) {}
  // `key`: the name of a POSIX shared memory object. kAlreadyExists if the name is taken.
  void add(const std::string& name, const std::string& key, uint64_t offset, uint64_t bytes);
  void remove(const std::string& name);
  void remove_all();
  inference::SystemSharedMemoryStatusResponse status(const std::string& name) const;  // "": all
  // Part of a region; kNotFound if there is none of the name, kInvalidArgument if the part does not
  // lie within.
  Buffer buffer(const std::string& region, uint64_t offset, uint64_t bytes) const;

 private:
  struct Region;
  void need_allowed() const;
  const bool allowed_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Region>> regions_;
};

}  // namespace anymps::server
