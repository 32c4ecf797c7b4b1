// SPDX-License-Identifier: Apache-2.0
// A file that is written aside, under a temporary name in the same folder, and takes the place of
// the old one when it is complete: whoever has the old one open or mapped keeps it as it was, and a
// full disk leaves no half file. Links are followed. Whatever is not a regular file (a FIFO,
// /dev/null, /dev/stdout) is written where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace anymps {

class OutputFile {
 public:
  // `who` is the part named in brackets in errors (kIo).
  OutputFile(const std::string& path, const char* who);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();  // what is not kept is gone

  void write(const void* data, size_t bytes);
  void seek(uint64_t offset);
  uint64_t at() const { return at_; }
  void keep();

 private:
  [[noreturn]] void broken(const char* what, int error) const;
  void create_beside(const std::string& target);
  void flush();
  void put(const char* data, size_t bytes);

  std::string path_, target_, temporary_;  // temporary_ is empty when it is written in place
  const char* who_;
  int fd_ = -1;
  uint64_t at_ = 0;
  std::string buffer_;  // small writes are gathered
};

}  // namespace anymps
