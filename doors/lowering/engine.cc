// SPDX-License-Identifier: Apache-2.0
#include "lowering/engine.h"

#include <dlfcn.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

namespace anymps::lowering {

namespace {

std::string library_path(const void* near) {
  if (const char* path = std::getenv("ANYMPS_LIBRARY"); path && *path) return path;
  Dl_info self;
  if (dladdr(near, &self) == 0) return "libanymps.so";
  std::string path = self.dli_fname;
  path.resize(path.rfind('/') + 1);
  return path + "libanymps.so";
}

}  // namespace

const amps_api& load_engine(const void* near) {
  const std::string path = library_path(near);
  // Not RTLD_DEEPBIND: the engine's libraries have names of their own, and with a preloaded malloc
  // (jemalloc, for one) glibc's would be asked to free what that has allocated.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw EngineError(AMPS_NOT_FOUND, std::string("[anymps] ") + dlerror());
  using GetApi = const amps_api* (*)(int);
  const auto get = reinterpret_cast<GetApi>(dlsym(library, "amps_get_api"));
  const amps_api* api = get ? get(AMPS_ABI_VERSION) : nullptr;
  // The table only grows: a library that lacks the last function this was compiled with is too old.
  if (!api || api->size < sizeof(amps_api))
    throw EngineError(AMPS_UNSUPPORTED, "[anymps] " + path + " is older than this plug-in");
  return *api;
}

int device_count_from_environment(int most) {
  const char* text = std::getenv("ANYMPS_DEVICE_COUNT");
  if (!text || !*text) return 1;
  int count = 0;
  const char* end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, count);
  if (parsed.ec != std::errc() || parsed.ptr != end || count < 1 || count > most)
    throw EngineError(AMPS_INVALID_ARGUMENT, "[anymps] ANYMPS_DEVICE_COUNT must be 1 to " +
                                                 std::to_string(most) + ", but it is \"" + text +
                                                 "\"");
  return count;
}

amps_device* find_device(const amps_api& api, int index) {
  amps_device* found = nullptr;
  check(api, api.device_get(nullptr, &found));
  if (index > 0) {
    const std::string name = std::string(api.device_name(found)) + ":" + std::to_string(index);
    check(api, api.device_get(name.c_str(), &found));
  }
  return found;
}

}  // namespace anymps::lowering
