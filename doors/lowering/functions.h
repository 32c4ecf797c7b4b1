// SPDX-License-Identifier: Apache-2.0
// What expressions can call besides the engine's ops: questions about shapes and types that are
// answered while lowering, gradients, and compositions that several kernels share.
#pragma once

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

// Null: there is none of this name.
Function find_function(const std::string& name);

struct FunctionEntry {
  const char* name;
  Function function;
};
// A family of functions, each in a file of its own.
std::span<const FunctionEntry> shape_functions();
std::span<const FunctionEntry> layer_functions();
std::span<const FunctionEntry> tensor_functions();
std::span<const FunctionEntry> list_functions();
std::span<const FunctionEntry> optimizer_functions();
std::span<const FunctionEntry> recurrent_functions();

}  // namespace anymps::lowering
