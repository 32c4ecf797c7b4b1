// SPDX-License-Identifier: Apache-2.0
#include "triton/triton_api.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <vector>

namespace anymps::triton {
namespace {

// A server that was loaded as a private library is not in the global scope: look into each one.
void* find_anywhere(const char* name) {
  if (void* found = dlsym(RTLD_DEFAULT, name)) return found;
  std::vector<std::string> libraries;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* list) {
        if (info->dlpi_name && *info->dlpi_name)
          static_cast<std::vector<std::string>*>(list)->push_back(info->dlpi_name);
        return 0;
      },
      &libraries);
  for (const std::string& library : libraries) {
    void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) continue;
    void* found = dlsym(handle, name);
    dlclose(handle);
    if (found) return found;
  }
  return nullptr;
}

template <typename Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(find_anywhere(name));
}

}  // namespace

Api api;

std::string load_api() {
  std::string missing;
#define TRITON_REQUIRE(type, name, parameters) \
  find(api.name, #name);                       \
  if (!api.name) missing += missing.empty() ? #name : ", " #name;
#define TRITON_TRY(type, name, parameters) find(api.name, #name);
  TRITON_FUNCTIONS(TRITON_REQUIRE, TRITON_TRY)
#undef TRITON_REQUIRE
#undef TRITON_TRY
  uint32_t major = 0, minor = 0;
  if (api.TRITONBACKEND_ApiVersion && api.TRITONSERVER_ErrorDelete)
    if (Failure failure = api.TRITONBACKEND_ApiVersion(&major, &minor))
      api.TRITONSERVER_ErrorDelete(failure);
  if (major != kApiMajor || minor < kApiMinor)
    return "the server's backend API is version " + std::to_string(major) + "." +
           std::to_string(minor) + ", but metal_mps needs version " + std::to_string(kApiMajor) +
           "." + std::to_string(kApiMinor) + " or a later minor version";
  if (!missing.empty()) return "the server lacks functions that metal_mps needs: " + missing;
  return "";
}

void check(Failure failure) {
  if (!failure) return;
  const auto code = static_cast<serving::Code>(api.TRITONSERVER_ErrorCode(failure));
  const std::string message = api.TRITONSERVER_ErrorMessage(failure);
  api.TRITONSERVER_ErrorDelete(failure);
  throw serving::Error(code, message);
}

void log(LogLevel level, const std::string& message) {
  if (!api.TRITONSERVER_LogIsEnabled(level)) return;
  if (Failure failure = api.TRITONSERVER_LogMessage(level, "metal_mps", 0, message.c_str()))
    api.TRITONSERVER_ErrorDelete(failure);
}

void log_failure(Failure failure, const char* what) {
  if (!failure) return;
  log(kLogError, std::string("metal_mps: ") + what + ": " + api.TRITONSERVER_ErrorMessage(failure));
  api.TRITONSERVER_ErrorDelete(failure);
}

Failure to_failure(const serving::Error& error) {
  return api.TRITONSERVER_ErrorNew(static_cast<int>(error.code()), error.what());
}

}  // namespace anymps::triton
