// SPDX-License-Identifier: Apache-2.0
// The ways in which one kernel can compute (Winograd's tiles, oneDNN's implementations). The
// kernel chooses among them by what is known of shapes; ANYMPS_TUNE asks for one after the other
// and measures. A kernel with several lists them beside its registration, and its factory asks
// AskedWay::now().
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace anymps {

struct KernelWays {
  KernelWays(const char* driver, const char* op, const char* kernel, std::vector<std::string> ways);
};

// Empty: the kernel has one way.
const std::vector<std::string>& kernel_ways(std::string_view driver, std::string_view op,
                                            std::string_view kernel);

// While one of these lives, factories that the calling thread calls are asked for this way, and
// refuse where they cannot go it.
class AskedWay {
 public:
  explicit AskedWay(std::string_view way);
  ~AskedWay();
  AskedWay(const AskedWay&) = delete;
  AskedWay& operator=(const AskedWay&) = delete;

  static std::string_view now();  // empty: the one that the kernel thinks best

 private:
  std::string_view before_;
};

}  // namespace anymps
