// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace anymps {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, std::string_view who) {
  // O_NONBLOCK: a FIFO given as a model must fail below, not wait for a writer.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    int error = errno;
    fail(error == ENOENT || error == ENOTDIR ? Code::kNotFound : Code::kIo,
         "[{}] {}: cannot open: {}", who, path, std::strerror(error));
  }
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{fd};

  struct stat info {};
  if (::fstat(fd, &info) != 0)
    fail(Code::kIo, "[{}] {}: cannot stat: {}", who, path, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) fail(Code::kIo, "[{}] {}: not a regular file", who, path);

  size_t size = static_cast<size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
      fail(Code::kIo, "[{}] {}: cannot map {} bytes: {}", who, path, size, std::strerror(errno));
  }
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, static_cast<const char*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<char*>(data_), size_);
}

}  // namespace anymps
