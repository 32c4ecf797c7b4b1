// SPDX-License-Identifier: Apache-2.0
#include "runtime_symbols.h"

#include <dlfcn.h>
#include <link.h>

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <vector>

namespace et = executorch::runtime;

namespace anymps::delegate {

namespace {

// Mangled by the C++ ABI of Linux; the runtime exports them in 1.4 and 1.5 alike.
constexpr const char* kRegister = "_ZN10executorch7runtime16register_backendERKNS0_7BackendE";
constexpr const char* kFind = "_ZN10executorch7runtime17get_backend_classEPKc";
constexpr const char* kResize =
    "_ZN10executorch7runtime8internal18resize_tensor_implEPNS0_7etensor10TensorImplENS0_"
    "8ArrayRefIiEE";
constexpr const char* kLog =
    "_ZN10executorch7runtime8internal5vlogfENS0_8LogLevelEmPKcS4_mS4_P13__va_list_tag";
constexpr const char* kTicks = "_ZN10executorch7runtime17pal_current_ticksEv";

using Register = et::Error (*)(const et::Backend&);
using Find = et::BackendInterface* (*)(const char*);
using Resize = et::Error (*)(et::etensor::TensorImpl*, et::ArrayRef<int32_t>);
using Log = void (*)(et::LogLevel, et_timestamp_t, const char*, const char*, size_t, const char*,
                     va_list);
using Ticks = et_timestamp_t (*)();

struct Runtime {
  std::mutex mutex;
  Resize resize = nullptr;
  Log log = nullptr;
  Ticks ticks = nullptr;
};

Runtime& runtime() {
  static Runtime* found = new Runtime;  // used until the process ends
  return *found;
}

// Handles of all libraries of the process. They are there already, so nothing is loaded, and the
// references are kept: a runtime that was used must stay.
std::vector<void*> loaded_libraries() {
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* list) {
        static_cast<std::vector<std::string>*>(list)->emplace_back(info->dlpi_name);
        return 0;
      },
      &names);
  std::vector<void*> handles;
  for (const std::string& name : names)
    if (void* handle = dlopen(name.empty() ? nullptr : name.c_str(), RTLD_LAZY | RTLD_NOLOAD))
      handles.push_back(handle);
  return handles;
}

template <typename Fn>
void take(Fn& place, void* library, const char* symbol) {
  if (!place) place = reinterpret_cast<Fn>(dlsym(library, symbol));
}

}  // namespace

std::string register_everywhere(const et::Backend& backend) {
  Runtime& found = runtime();
  const std::lock_guard lock(found.mutex);
  std::set<void*> registries;
  std::string problem;
  for (void* library : loaded_libraries()) {
    take(found.resize, library, kResize);
    take(found.log, library, kLog);
    take(found.ticks, library, kTicks);
    void* add = dlsym(library, kRegister);
    void* find = dlsym(library, kFind);
    if (!add || !find || !registries.insert(add).second) continue;
    const et::BackendInterface* known = reinterpret_cast<Find>(find)(backend.name);
    if (known == backend.backend) continue;
    if (known) {
      problem = std::string("another backend is registered as ") + backend.name;
      continue;
    }
    const et::Error error = reinterpret_cast<Register>(add)(backend);
    if (error != et::Error::Ok)
      problem = std::string("ExecuTorch refused the backend: ") + et::to_string(error);
  }
  if (registries.empty())
    return "there is no ExecuTorch runtime in this process yet: import executorch.runtime first, "
           "or "
           "link libexecutorch.so";
  return problem;
}

et::Error resize(et::etensor::Tensor& tensor, et::ArrayRef<int32_t> sizes) {
  const Resize function = runtime().resize;
  return function ? function(tensor.unsafeGetTensorImpl(), sizes) : et::Error::NotSupported;
}

int64_t ticks() {
  const Ticks function = runtime().ticks;
  return function ? static_cast<int64_t>(function()) : 0;
}

void log_error(const char* message) { ET_LOG(Error, "[MPSBackend] %s", message); }

}  // namespace anymps::delegate

// What inline functions of ExecuTorch's headers call. The definitions are this library's own and
// hidden; the log goes to the runtime's.
namespace executorch::runtime {

BackendInterface::~BackendInterface() = default;

void runtime_abort() { std::abort(); }

namespace internal {

et_timestamp_t get_log_timestamp() {
  return static_cast<et_timestamp_t>(anymps::delegate::ticks());
}

void vlogf(LogLevel level, et_timestamp_t timestamp, const char* filename, const char* function,
           size_t line, const char* format, va_list args) {
  if (const anymps::delegate::Log log = anymps::delegate::runtime().log) {
    log(level, timestamp, filename, function, line, format, args);
    return;
  }
  std::vfprintf(stderr, format, args);
  std::fputc('\n', stderr);
}

}  // namespace internal

}  // namespace executorch::runtime
