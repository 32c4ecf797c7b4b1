// SPDX-License-Identifier: Apache-2.0
// Memory that its owner can take away: a client may cut a shared memory object while a request
// reads it, and the kernel ends a process that touches what is gone (SIGBUS). Watched memory gets
// zeros in its place instead, and whoever used it can ask.
#pragma once

#include <cstddef>

namespace anymps::server {

// A mapping, watched as long as this lives.
class WatchedMemory {
 public:
  WatchedMemory(void* begin, size_t bytes);  // begin: of a page. Throws Error: too many
  ~WatchedMemory();
  WatchedMemory(const WatchedMemory&) = delete;
  WatchedMemory& operator=(const WatchedMemory&) = delete;
  bool was_cut() const;

 private:
  size_t slot_;
};

// Whether this place belongs to watched memory that was gone when it was touched. An ordinary load
// as long as that has never happened.
bool was_cut(const void* place);

}  // namespace anymps::server
