// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"

namespace anymps {

namespace {

constexpr size_t kGathered = 64 << 10;

// Where the links end, even if nothing is there yet. Links of /proc (/dev/stdout is one) stand for
// what a process has open, whose name says nothing: empty.
std::string end_of_links(const std::string& path) {
  std::filesystem::path at = path;
  for (int links = 0; links < 40; ++links) {
    std::error_code error;
    const std::filesystem::path folder =
        std::filesystem::canonical(at.has_parent_path() ? at.parent_path() : ".", error);
    if (!error && folder.string().starts_with("/proc/")) return "";
    const std::filesystem::path next = std::filesystem::read_symlink(at, error);
    if (error) return at.string();
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return path;  // a ring: opening it says so
}

}  // namespace

OutputFile::OutputFile(const std::string& path, const char* who)
    : path_(path), target_(end_of_links(path)), who_(who) {
  if (path.find('\0') != std::string::npos) broken("cannot be written", EINVAL);
  struct stat old {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (!exists && errno != ENOENT) broken("cannot be written", errno);
  if (exists && S_ISDIR(old.st_mode)) broken("cannot be written", EISDIR);
  if (target_.empty() || (exists && !S_ISREG(old.st_mode))) {
    // A pipe that nobody reads is not waited for; one that is read may take its time.
    fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC | O_NONBLOCK | O_NOCTTY);
    if (fd_ < 0 || ::fcntl(fd_, F_SETFL, O_WRONLY) != 0) broken("cannot be written", errno);
    return;
  }
  // Whoever may not write to the file may not replace it either.
  if (exists && ::access(target_.c_str(), W_OK) != 0) broken("cannot be written", errno);
  create_beside(target_);
  if (exists) {  // as far as the system lets us; the group's rights go with the group only
    const bool same_group = ::fchown(fd_, static_cast<uid_t>(-1), old.st_gid) == 0;
    if (::fchown(fd_, old.st_uid, static_cast<gid_t>(-1)) != 0) errno = 0;
    ::fchmod(fd_, old.st_mode & (same_group ? 0777 : 0707));
  }
}

void OutputFile::create_beside(const std::string& target) {
  static std::atomic<unsigned> next{0};
  const std::filesystem::path folder = std::filesystem::path(target).parent_path();
  do {  // a short name: that of the file may be as long as names can be
    temporary_ = (folder / fmt::format(".anymps-{}-{}.tmp", ::getpid(), next++)).string();
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, 0666);
  } while (fd_ < 0 && errno == EEXIST);
  if (fd_ >= 0) return;
  temporary_.clear();
  broken("cannot be created", errno);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::write(const void* data, size_t bytes) {
  at_ += bytes;
  if (bytes < kGathered) {
    buffer_.append(static_cast<const char*>(data), bytes);
    if (buffer_.size() >= kGathered) flush();
    return;
  }
  flush();
  put(static_cast<const char*>(data), bytes);
}

void OutputFile::flush() {
  put(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void OutputFile::put(const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t done = ::write(fd_, data, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) broken("cannot be written", errno);
    data += done;
    bytes -= static_cast<size_t>(done);
  }
}

void OutputFile::seek(uint64_t offset) {
  flush();
  if (::lseek(fd_, static_cast<off_t>(offset), SEEK_SET) < 0) broken("cannot be written", errno);
  at_ = offset;
}

void OutputFile::keep() {
  flush();
  if (::close(std::exchange(fd_, -1)) != 0) broken("cannot be written", errno);
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) broken("cannot be replaced", errno);
  temporary_.clear();
}

void OutputFile::broken(const char* what, int error) const {
  fail(Code::kIo, "[{}] {}: {}: {}", who_, path_, what, std::strerror(error));
}

}  // namespace anymps
