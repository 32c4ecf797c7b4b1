// SPDX-License-Identifier: Apache-2.0
// Finds and loads the engine's library, and turns its errors into Paddle's.
#include "engine.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include <paddle/common/enforce.h>

namespace anymps::paddle {
namespace {

constexpr int kMaxDevices = 64;  // the engine's

std::string library_path() {
  if (const char* path = std::getenv("ANYMPS_LIBRARY"); path && *path) return path;
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&library_path), &self) == 0) return "libanymps.so";
  std::string path = self.dli_fname;
  path.resize(path.rfind('/') + 1);
  return path + "libanymps.so";
}

const amps_api* load_engine() {
  const std::string path = library_path();
  // Not RTLD_DEEPBIND: the engine's libraries have names of their own, and with a preloaded malloc
  // (jemalloc, for one) glibc's would be asked to free what that has allocated.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) PADDLE_THROW(common::errors::NotFound("[anymps] %s", dlerror()));
  using GetApi = const amps_api* (*)(int);
  const auto get = reinterpret_cast<GetApi>(dlsym(library, "amps_get_api"));
  const amps_api* api = get ? get(AMPS_ABI_VERSION) : nullptr;
  // The table only grows: a library that lacks the last function the kernels were compiled with is
  // too old.
  if (!api || api->size < sizeof(amps_api)) {
    PADDLE_THROW(common::errors::Unavailable("[anymps] %s is older than this plug-in", path));
  }
  return api;
}

amps_device* find_device(int index) {
  amps_device* found = nullptr;
  check(engine().device_get(nullptr, &found));
  if (index > 0) {
    const std::string name = std::string(engine().device_name(found)) + ":" + std::to_string(index);
    check(engine().device_get(name.c_str(), &found));
  }
  return found;
}

int count_from_environment() {
  const char* text = std::getenv("ANYMPS_DEVICE_COUNT");
  if (!text || !*text) return 1;
  int count = 0;
  const char* end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, count);
  if (parsed.ec != std::errc() || parsed.ptr != end || count < 1 || count > kMaxDevices) {
    PADDLE_THROW(common::errors::InvalidArgument(
        "[anymps] ANYMPS_DEVICE_COUNT must be 1 to %d, but it is \"%s\"", kMaxDevices, text));
  }
  return count;
}

}  // namespace

const amps_api& engine() {
  static const amps_api* const api = load_engine();
  return *api;
}

int device_count() {
  static const int count = count_from_environment();
  return count;
}

amps_device* device(int index) {
  static const auto devices = [] {
    std::array<amps_device*, kMaxDevices> all{};
    for (int i = 0; i < device_count(); ++i) all[i] = find_device(i);
    return all;
  }();
  if (index < 0 || index >= device_count()) {
    PADDLE_THROW(common::errors::OutOfRange("[anymps] there is no device mps:%d: there are %d",
                                            index, device_count()));
  }
  return devices[index];
}

void check(amps_status status) {
  if (status == AMPS_OK) return;
  const char* message = engine().last_error();
  switch (status) {
    case AMPS_INVALID_ARGUMENT:
      PADDLE_THROW(common::errors::InvalidArgument("%s", message));
    case AMPS_NOT_FOUND:
      PADDLE_THROW(common::errors::NotFound("%s", message));
    case AMPS_UNSUPPORTED:
      PADDLE_THROW(common::errors::Unimplemented("%s", message));
    case AMPS_OUT_OF_MEMORY:
      PADDLE_THROW(common::errors::ResourceExhausted("%s", message));
    default:
      PADDLE_THROW(common::errors::External("%s", message));
  }
}

}  // namespace anymps::paddle
