// SPDX-License-Identifier: Apache-2.0
// A file mapped read-only into memory: weights are used in place, without a second copy on the
// heap, and pages that nobody touches are never read. The mapping lives as long as the object.
// Others may truncate the file meanwhile. The system would end the process that touches what is
// gone (SIGBUS); here zeros take its place, and whoever has read asks check_whole() before trusting
// what was read.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace anymps {

class MappedFile {
 public:
  // Maps a regular file of any size, an empty one included. `who` is the part named in brackets in
  // errors: kNotFound for a missing file, kIo for one that cannot be read.
  static std::shared_ptr<const MappedFile> open(const std::string& path, std::string_view who);
  // Whether the place lies in a mapped file.
  static bool holds(const void* place);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  // Whether all that was read up to now was the file as it was opened. No system call.
  bool whole() const;

 private:
  struct Watch;
  friend struct Watches;
  MappedFile(std::string path, const char* data, size_t size, Watch* watch)
      : path_(std::move(path)), data_(data), size_(size), watch_(watch) {}

  std::string path_;
  const char* data_;
  size_t size_;
  Watch* watch_;  // null for an empty file
};

using MappedFiles = std::vector<std::shared_ptr<const MappedFile>>;

// Fails, naming the file, if one of them is not whole.
void check_whole(const MappedFiles& files);

// Reads files: an error that comes of one that was truncated meanwhile says so, and there is one
// too where none was noticed.
template <typename Fn>
void reading(const MappedFiles& files, Fn&& fn) {
  try {
    fn();
  } catch (const std::exception&) {
    check_whole(files);
    throw;
  }
  check_whole(files);
}

// The files that this thread opens while this object lives: a model may lie in several, and its
// loader need not know which of them are maps.
class OpenedFiles {
 public:
  OpenedFiles();
  ~OpenedFiles();
  OpenedFiles(const OpenedFiles&) = delete;
  OpenedFiles& operator=(const OpenedFiles&) = delete;

  const MappedFiles& all() const { return files_; }
  MappedFiles in_use() const;  // without those that nobody else holds

 private:
  friend class MappedFile;
  MappedFiles files_;
  OpenedFiles* outer_;
};

}  // namespace anymps
