// SPDX-License-Identifier: Apache-2.0
#include "server/memory/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>

#include "server/memory/cut_memory.h"

namespace anymps::server {

// A part of a POSIX shared memory object, mapped. The file stays open, so that its size can be
// asked again: a request for memory that was cut is refused.
struct SharedMemory::Region {
  std::string key;
  uint64_t offset = 0, bytes = 0;
  int file = -1;
  std::byte* mapped = nullptr;  // at `offset` rounded down to a page
  size_t mapped_bytes = 0, skip = 0;
  std::optional<WatchedMemory> watched;

  Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() {
    watched.reset();
    if (mapped) munmap(mapped, mapped_bytes);
    if (file >= 0) close(file);
  }
  bool is_whole() const {
    struct stat status {};
    if (watched && watched->was_cut()) return false;  // even if it has grown again
    return fstat(file, &status) == 0 && status.st_size >= 0 &&
           static_cast<uint64_t>(status.st_size) >= offset + bytes;
  }
};

namespace {

// The name of an object in the flat name space of shm_open: "/name" or "name".
bool is_object_name(std::string_view key) {
  if (key.starts_with('/')) key.remove_prefix(1);
  return !key.empty() && key != "." && key != ".." && key.size() < NAME_MAX &&
         key.find('/') == std::string_view::npos && key.find('\0') == std::string_view::npos;
}

}  // namespace

void SharedMemory::need_allowed() const {
  if (!allowed_)
    throw Error(Code::kUnsupported,
                "shared memory of clients is not allowed here; the server's operator allows it "
                "with --allow-client-shm=true");
}

void SharedMemory::add(const std::string& name, const std::string& key, uint64_t offset,
                       uint64_t bytes) {
  need_allowed();
  {
    const std::lock_guard lock(mutex_);
    if (regions_.count(name))
      throw Error(Code::kAlreadyExists,
                  fmt::format("shared memory region '{}' already in manager", name));
  }
  auto region = std::make_shared<Region>();
  region->key = key, region->offset = offset, region->bytes = bytes;
  if (is_object_name(key)) region->file = shm_open(key.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (region->file < 0)
    throw Error(Code::kInternal, fmt::format("Unable to open shared memory region: '{}'", key));
  uint64_t end = 0;
  if (__builtin_add_overflow(offset, bytes, &end) || !region->is_whole())
    throw Error(Code::kInvalidArgument,
                fmt::format("failed to register shared memory region '{}': invalid args", name));
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  region->skip = offset % page;
  region->mapped_bytes = bytes + region->skip;
  void* mapped = bytes == 0
                     ? (errno = EINVAL, MAP_FAILED)
                     : mmap(nullptr, region->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                            region->file, static_cast<off_t>(offset - region->skip));
  if (mapped == MAP_FAILED)
    throw Error(Code::kInvalidArgument,
                fmt::format("failed to register shared memory region '{}': unable to process "
                            "address space: {}",
                            name, std::strerror(errno)));
  region->mapped = static_cast<std::byte*>(mapped);
  region->watched.emplace(mapped, region->mapped_bytes);
  const std::lock_guard lock(mutex_);
  if (!regions_.emplace(name, std::move(region)).second)
    throw Error(Code::kAlreadyExists,
                fmt::format("shared memory region '{}' already in manager", name));
}

void SharedMemory::remove(const std::string& name) {
  std::shared_ptr<Region> last;  // unmapped after the lock
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(name);
  if (found == regions_.end()) return;
  last = std::move(found->second);
  regions_.erase(found);
}

void SharedMemory::remove_all() {
  std::map<std::string, std::shared_ptr<Region>> regions;
  const std::lock_guard lock(mutex_);
  regions.swap(regions_);
}

inference::SystemSharedMemoryStatusResponse SharedMemory::status(const std::string& name) const {
  inference::SystemSharedMemoryStatusResponse response;
  const std::lock_guard lock(mutex_);
  if (!name.empty() && !regions_.count(name))
    throw Error(Code::kNotFound,
                fmt::format("Unable to find system shared memory region: '{}'", name));
  for (const auto& [key, region] : regions_) {
    if (!name.empty() && key != name) continue;
    auto& status = (*response.mutable_regions())[key];
    status.set_name(key);
    status.set_key(region->key);
    status.set_offset(region->offset);
    status.set_byte_size(region->bytes);
  }
  return response;
}

Buffer SharedMemory::buffer(const std::string& name, uint64_t offset, uint64_t bytes) const {
  need_allowed();
  std::shared_ptr<Region> region;
  {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(name);
    if (found != regions_.end()) region = found->second;
  }
  if (!region)
    throw Error(Code::kNotFound, fmt::format("Unable to find shared memory region: '{}'", name));
  if (offset >= region->bytes)
    throw Error(Code::kInvalidArgument,
                fmt::format("Invalid offset for shared memory region: '{}'", name));
  if (bytes == 0 || bytes > region->bytes - offset)
    throw Error(Code::kInvalidArgument,
                fmt::format("Invalid offset + byte size for shared memory region: '{}'", name));
  if (!region->is_whole())
    throw Error(Code::kInvalidArgument,
                fmt::format("shared memory region '{}' has become smaller than it was when it was "
                            "registered",
                            name));
  std::byte* data = region->mapped + region->skip + offset;
  return {std::move(region), data, bytes};
}

}  // namespace anymps::server
