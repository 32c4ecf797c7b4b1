// SPDX-License-Identifier: Apache-2.0
// What Paddle loads at `import paddle`. The kernels are C++ against one version of Paddle, and
// register themselves when their library is loaded: in another version they would corrupt memory.
// So this library, which uses nothing of Paddle but two C structs, looks at the version first. It
// leaves Paddle without the device where that is another one.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "paddle/phi/backends/device_ext.h"

namespace {

std::string folder_of(const void* address) {
  Dl_info found;
  if (dladdr(address, &found) == 0 || !found.dli_fname) return "";
  const std::string path = found.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

// The version of the package whose library is calling: paddle/base/libpaddle.so,
// paddle/version/__init__.py.
std::string version_of(const std::string& library_folder) {
  std::ifstream file(library_folder + "../version/__init__.py");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("full_version")) continue;
    const size_t begin = line.find('\''), end = line.rfind('\'');
    if (end > begin) return line.substr(begin + 1, end - begin - 1);
  }
  return "of unknown version";
}

void refuse(const std::string& reason) {
  std::fprintf(stderr, "paddle_anymps: the device mps is not available: %s\n", reason.c_str());
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void InitPlugin(CustomRuntimeParams* params) {
  if (params->size != sizeof(CustomRuntimeParams) ||
      params->interface->size != sizeof(C_DeviceInterface)) {
    return refuse("this PaddlePaddle has another plug-in interface than " ANYMPS_PADDLE_VERSION
                  ", which the plug-in was built for");
  }
  const std::string version = version_of(folder_of(__builtin_return_address(0)));
  if (version != ANYMPS_PADDLE_VERSION) {
    return refuse("this PaddlePaddle is " + version +
                  ", but the plug-in was built for " ANYMPS_PADDLE_VERSION);
  }
  const char* set = std::getenv("ANYMPS_PADDLE_KERNELS");
  const std::string path = set && *set ? set
                                       : folder_of(reinterpret_cast<const void*>(&InitPlugin)) +
                                             "../paddle_anymps/libpaddle_anymps_kernels.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return refuse(dlerror());
  using Fill = const char* (*)(CustomRuntimeParams*);
  const auto fill = reinterpret_cast<Fill>(dlsym(library, "anymps_paddle_fill"));
  const char* error = fill ? fill(params) : "its library of kernels is another version's";
  if (error) refuse(error);
}
