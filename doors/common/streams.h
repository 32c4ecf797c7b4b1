// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error of a program, which may be closed or full: neither ends the
// program with a signal, and lost output is not success.
#pragma once

#include <string_view>

namespace anymps::common {

// First thing in main(): what is closed is opened on something that fails, so that no file that is
// opened later becomes standard output by its number.
void open_standard_streams();

// A message for people. Nobody can be told if it fails.
void say(std::string_view text);

// Last thing in main(): the exit code; 1 and a message if it was 0 and what was printed got lost.
int end_output(const char* program, int code);

}  // namespace anymps::common
