// SPDX-License-Identifier: Apache-2.0
// Functions that are themselves written in the language of expressions.
#pragma once

#include <string>
#include <vector>

#include "lowering/expression.h"

namespace anymps::lowering {

struct Definition {
  std::vector<std::string> parameters;  // those that a call leaves out are none
  Program program;
};

// Null: there is none of this name.
const Definition* find_definition(const std::string& name);

}  // namespace anymps::lowering
