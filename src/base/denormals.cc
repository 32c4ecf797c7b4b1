// SPDX-License-Identifier: Apache-2.0
#include "base/denormals.h"

#include <string>

#include "base/env.h"
#include "base/error.h"

namespace anymps {

Denormals resolve(DenormalOption option) {
  if (option == DenormalOption::kFlush) return Denormals::kFlush;
  if (option == DenormalOption::kKeep) return Denormals::kKeep;
  const std::string word = env_string("ANYMPS_DENORMALS");
  require(word.find(',') == std::string::npos, "[env] ANYMPS_DENORMALS='{}': it takes one word",
          word);
  if (word.empty())
    return option == DenormalOption::kAsCalls ? Denormals::kAsThread : Denormals::kFlush;
  return word == "flush" ? Denormals::kFlush : Denormals::kKeep;
}

}  // namespace anymps
