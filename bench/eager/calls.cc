// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include <dlfcn.h>

namespace bench {

const amps_api* api = nullptr;
amps_device* device = nullptr;

void load(const char* library, int threads) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(dlerror());
  const auto get = reinterpret_cast<const amps_api* (*)(int)>(dlsym(handle, "amps_get_api"));
  api = get(AMPS_ABI_VERSION);
  check(api->device_get("cpu", &device));
  at::set_num_threads(threads);
  check(api->device_set_max_threads(device, threads));
}

std::string& last_error() {
  static std::string error;
  return error;
}

}  // namespace bench

extern "C" const char* bench_error() { return bench::last_error().c_str(); }
