// SPDX-License-Identifier: Apache-2.0
// What is in a program or a bundle, for people ("text") and for tools ("json"). Nothing is
// converted: files with operators that are not supported can be looked at too.
#pragma once

#include <string>

#include "formats/executorch/program/bundle.h"

namespace anymps::executorch {

std::string program_text(const Bundle& bundle, const std::string& format);

}  // namespace anymps::executorch
