// SPDX-License-Identifier: Apache-2.0
#include "drivers/kernel.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace anymps {

namespace {

using Lists = std::map<std::pair<std::string, std::string>, KernelList, std::less<>>;

Lists& lists() {
  // Never destroyed: a stream may still compute when the program ends.
  static Lists& all = *new Lists;
  return all;
}

}  // namespace

std::optional<std::vector<int64_t>> KernelRequest::ints(size_t i, const char* attr) const {
  if (!has(i)) return attrs.ints(attr);
  return i < contents.size() ? contents[i] : std::nullopt;
}

std::optional<double> KernelRequest::scalar(size_t i) const {
  const Constant* value = constant(i);
  if (!value || value->desc().count() != 1 || !contains(kReal | kBoolean, value->dtype()))
    return std::nullopt;
  const auto bytes = value->data();
  return dispatch<kReal | kBoolean>(value->dtype(), [&]<typename T>() {
    T element;
    std::memcpy(&element, bytes.get(), sizeof(T));
    return static_cast<double>(static_cast<Compute<T>>(element));
  });
}

const KernelList& kernel_list(std::string_view driver, std::string_view op) {
  static const KernelList kNone;
  auto it = lists().find(std::pair<std::string, std::string>(driver, op));
  return it == lists().end() ? kNone : it->second;
}

KernelRegistrar::KernelRegistrar(const char* driver, const char* op, const char* name, int order,
                                 KernelFactory make) {
  KernelList& list = lists()[{driver, op}];
  list.push_back({name, order, std::move(make)});
  std::stable_sort(list.begin(), list.end(), [](const KernelEntry& a, const KernelEntry& b) {
    return std::tie(a.order, a.name) < std::tie(b.order, b.name);
  });
}

}  // namespace anymps
