// SPDX-License-Identifier: Apache-2.0
// A file mapped read-only into memory: weights are used where they lie, without a second copy on
// the heap, and pages that nobody touches are never read. The mapping lives as long as the object.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace anymps {

class MappedFile {
 public:
  // Maps a regular file of any size, an empty one included. `who` is the part named in brackets in
  // errors: kNotFound for a missing file, kIo for one that cannot be read.
  static std::shared_ptr<const MappedFile> open(const std::string& path, std::string_view who);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, const char* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const char* data_;
  size_t size_;
};

}  // namespace anymps
