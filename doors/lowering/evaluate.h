// SPDX-License-Identifier: Apache-2.0
// A kernel's expressions turned into a graph, for arguments of known types and shapes.
#pragma once

#include <string>
#include <unordered_map>

#include "lowering/builder.h"
#include "lowering/expression.h"

namespace anymps::lowering {

using Names = std::unordered_map<std::string, Value>;

// As many results as are asked for, or those that there are.
Values evaluate(Builder& builder, const Program& program, Names names, size_t results);

// A function, a definition or an op by its name, on values.
Values apply(Builder& builder, const std::string& name, Values parts, const NamedValues& named,
             size_t results);

}  // namespace anymps::lowering
