// SPDX-License-Identifier: Apache-2.0
// Strings as tensor elements. An element is a pointer, so that ops which only move elements move
// strings like numbers; a store owns the characters. A run has one store for the strings that its
// kernels make, and what it returns is copied into a separate store.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace anymps {

using Text = const std::string*;  // null: ""
inline const std::string& text_of(Text text) {
  static const std::string empty;
  return text ? *text : empty;
}

class StringStore {
 public:
  Text add(std::string value) {
    if (value.empty()) return nullptr;
    std::lock_guard lock(mutex_);
    return &strings_.emplace_back(std::move(value));
  }

 private:
  std::mutex mutex_;
  std::deque<std::string> strings_;  // never moves its elements
};
using StringStorePtr = std::shared_ptr<StringStore>;

}  // namespace anymps
