// SPDX-License-Identifier: Apache-2.0
#include "drivers/kernel_ways.h"

#include <map>
#include <tuple>
#include <utility>

namespace anymps {

namespace {

using Key = std::tuple<std::string, std::string, std::string>;  // driver, op, kernel

std::map<Key, std::vector<std::string>>& all_ways() {
  // Never destroyed: a plan may be made while the program ends.
  static auto& all = *new std::map<Key, std::vector<std::string>>;
  return all;
}

thread_local std::string_view asked_way;

}  // namespace

KernelWays::KernelWays(const char* driver, const char* op, const char* kernel,
                       std::vector<std::string> ways) {
  all_ways()[{driver, op, kernel}] = std::move(ways);
}

const std::vector<std::string>& kernel_ways(std::string_view driver, std::string_view op,
                                            std::string_view kernel) {
  static const std::vector<std::string> kNone;
  const auto it = all_ways().find({std::string(driver), std::string(op), std::string(kernel)});
  return it == all_ways().end() ? kNone : it->second;
}

AskedWay::AskedWay(std::string_view way) : before_(std::exchange(asked_way, way)) {}
AskedWay::~AskedWay() { asked_way = before_; }
std::string_view AskedWay::now() { return asked_way; }

}  // namespace anymps
