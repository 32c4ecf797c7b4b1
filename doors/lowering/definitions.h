// SPDX-License-Identifier: Apache-2.0
// Functions that are themselves written in the language of expressions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lowering/expression.h"

namespace anymps::lowering {

struct Definition {
  std::vector<std::string> parameters;  // those that a call leaves out are none
  Program program;
};

struct DefinitionText {
  const char *name, *parameters, *body;
};

// A door's own, beside those that all doors share. Called once, before the first kernel is
// prepared.
void define(std::span<const DefinitionText> texts);

// Null: there is none of this name.
const Definition* find_definition(const std::string& name);

}  // namespace anymps::lowering
