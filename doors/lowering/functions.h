// SPDX-License-Identifier: Apache-2.0
// What expressions can call besides the engine's ops: questions about shapes and types that are
// answered while lowering, gradients, and compositions that several kernels share.
#pragma once

#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>

#include "lowering/builder.h"

namespace anymps::lowering {

struct Call {
  Builder& builder;
  Values parts;
  NamedValues named;
  size_t results;  // how many are asked for

  const Value& part(size_t i) const;
  bool has(size_t i) const { return i < parts.size() && !parts[i].absent(); }
  const Value* option(const char* name) const;
};

using Function = Values (*)(Call& call);

// All of them, by name.
const std::unordered_map<std::string, Function>& functions();

// A family of functions registers itself: a static object in its file.
struct Functions {
  Functions(std::initializer_list<std::pair<const char*, Function>> family);
};

}  // namespace anymps::lowering
