// SPDX-License-Identifier: Apache-2.0
// What a call throws.
#pragma once

#include <string>

#include "anymps/anymps.hpp"

namespace amps::testing {

// The status and the message, or "no error".
template <typename Fn>
std::string error_of(Fn&& fn) {
  try {
    fn();
  } catch (const amps::Error& error) {
    return std::string(amps_status_name(error.status())) + ": " + error.what();
  }
  return "no error";
}

template <typename Fn>
std::string message_of(Fn&& fn) {
  const std::string error = error_of(fn);
  const size_t colon = error.find(": ");
  return colon == std::string::npos ? error : error.substr(colon + 2);
}

}  // namespace amps::testing
