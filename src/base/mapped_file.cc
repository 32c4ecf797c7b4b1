// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/fork.h"

namespace anymps {

// What the signal handler reads, without locks: a list that only grows. A free entry has begin 0.
struct MappedFile::Watch {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> cut{false};
  Watch* next = nullptr;
};

// A mapping has one page more than the file: its last page again, the probe. In the mapping itself
// that page is a private copy, so that a file cut inside its last page does no harm. Any shorter
// file has no last page, and reading the probe notices it, even where the bytes that are gone share
// a page with others and are zeros without a signal.
struct Watches {
  using Watch = MappedFile::Watch;

  static Watch* find(uintptr_t place) {
    for (Watch* watch = first.load(std::memory_order_acquire); watch; watch = watch->next) {
      const uintptr_t begin = watch->begin.load(std::memory_order_acquire);
      if (begin && place >= begin && place < watch->end.load(std::memory_order_relaxed))
        return watch;
    }
    return nullptr;
  }

  static Watch* add(void* begin, size_t bytes) {
    const std::lock_guard lock(mutex);
    if (!installed) install();
    Watch* watch = first.load();
    while (watch && watch->begin.load()) watch = watch->next;
    if (!watch) {
      watch = new Watch;
      watch->next = first.load();
      first.store(watch, std::memory_order_release);
    }
    watch->cut.store(false);
    watch->end.store(reinterpret_cast<uintptr_t>(begin) + bytes);
    watch->begin.store(reinterpret_cast<uintptr_t>(begin), std::memory_order_release);
    return watch;
  }

  static size_t page_bytes() {
    static const size_t bytes = sysconf(_SC_PAGESIZE);
    return bytes;
  }

 private:
  // Installed with the first file and never taken back: another library may have put its own on
  // top of it, and would go on calling this one.
  static void install() {
    page = page_bytes();
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, &previous) != 0)
      fail(Code::kIo, "[mapped file] no handler for SIGBUS: {}", std::strerror(errno));
    installed = true;
  }

  static void on_bus_error(int signal, siginfo_t* info, void* context) {
    const int error = errno;
    const auto place = reinterpret_cast<uintptr_t>(info->si_addr);
    Watch* watch = info->si_code > 0 ? find(place) : nullptr;
    if (watch) {  // all behind the place that was touched is gone too
      const uintptr_t from = place / page * page;
      watch->cut.store(true);
      if (mmap(reinterpret_cast<void*>(from), watch->end.load(std::memory_order_relaxed) - from,
               PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
        errno = error;
        return;
      }
    }
    // Not ours: whoever was there before is asked, or does what the system does.
    if (previous.sa_flags & SA_SIGINFO) {
      previous.sa_sigaction(signal, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
      previous.sa_handler(signal);
    } else if (info->si_code > 0 || previous.sa_handler == SIG_DFL) {
      struct sigaction standard {};
      standard.sa_handler = SIG_DFL;
      sigaction(SIGBUS, &standard, nullptr);
      if (info->si_code <= 0) raise(signal);  // a fault comes again by itself
    }
    errno = error;
  }

  static constinit inline std::atomic<Watch*> first{nullptr};
  static inline ForkMutex mutex{ForkMutex::kShort};
  static inline bool installed = false;
  static inline uintptr_t page = 0;
  static inline struct sigaction previous {};
};

namespace {
thread_local OpenedFiles* opened_files = nullptr;

// Its pages in one piece; unmapped unless it is kept.
struct Mapping {
  void* data = MAP_FAILED;
  size_t bytes = 0;
  ~Mapping() {
    if (data != MAP_FAILED) ::munmap(data, bytes);
  }
};

// Null, or what went wrong.
const char* map_with_probe(int fd, size_t size, Mapping& mapping) {
  const size_t page = Watches::page_bytes(), pages = (size + page - 1) / page * page;
  constexpr int kHere = MAP_PRIVATE | MAP_FIXED;
  mapping.bytes = pages + page;
  mapping.data =
      ::mmap(nullptr, mapping.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping.data == MAP_FAILED) return std::strerror(errno);
  char* first = static_cast<char*>(mapping.data);
  char* last = first + pages - page;
  const auto last_offset = static_cast<off_t>(pages - page);
  if (::mmap(first, size, PROT_READ, kHere, fd, 0) == MAP_FAILED ||
      ::mmap(first + pages, page, PROT_READ, kHere, fd, last_offset) == MAP_FAILED ||
      ::mprotect(last, page, PROT_READ | PROT_WRITE) != 0)
    return std::strerror(errno);
  const size_t tail = size - static_cast<size_t>(last_offset);
  const ssize_t got = ::pread(fd, last, tail, last_offset);  // writing to it makes it private
  if (got < 0) return std::strerror(errno);
  if (static_cast<size_t>(got) != tail) return "it is being truncated";
  return ::mprotect(last, page, PROT_READ) == 0 ? nullptr : std::strerror(errno);
}

}  // namespace

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

  const size_t size = info.st_size;
  Mapping mapping;
  Watch* watch = nullptr;
  if (size > 0) {
    if (const char* problem = map_with_probe(fd, size, mapping))
      fail(Code::kIo, "[{}] {}: cannot map {} bytes: {}", who, path, size, problem);
    watch = Watches::add(mapping.data, mapping.bytes);
  }
  const char* data = size > 0 ? static_cast<const char*>(mapping.data) : nullptr;
  std::shared_ptr<const MappedFile> file(new MappedFile(path, data, size, watch));
  mapping.data = MAP_FAILED;  // the file's from here on
  if (opened_files) opened_files->files_.push_back(file);
  return file;
}

MappedFile::~MappedFile() {
  if (!watch_) return;
  const size_t bytes = watch_->end.load() - watch_->begin.load();
  watch_->begin.store(0);  // from here on another file may have it
  ::munmap(const_cast<char*>(data_), bytes);
}

bool MappedFile::holds(const void* place) {
  return Watches::find(reinterpret_cast<uintptr_t>(place)) != nullptr;
}

bool MappedFile::whole() const {
  if (!watch_) return true;
  const auto* probe =
      reinterpret_cast<const volatile char*>(watch_->end.load() - Watches::page_bytes());
  static_cast<void>(*probe);
  return !watch_->cut.load();
}

void check_whole(const MappedFiles& files) {
  for (const auto& file : files)
    if (!file->whole())
      fail(Code::kIo,
           "[file] {}: was truncated while in use, or can no longer be read; load it again, and "
           "replace model files by renaming a new one over the old",
           file->path());
}

OpenedFiles::OpenedFiles() : outer_(std::exchange(opened_files, this)) {}
OpenedFiles::~OpenedFiles() { opened_files = outer_; }

MappedFiles OpenedFiles::in_use() const {
  MappedFiles used;
  for (const auto& file : files_)
    if (file.use_count() > 1) used.push_back(file);
  return used;
}

}  // namespace anymps
