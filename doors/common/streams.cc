// SPDX-License-Identifier: Apache-2.0
#include "common/streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace anymps::common {

void open_standard_streams() {
  for (const int wanted : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(wanted, F_GETFD) != -1 || errno != EBADF) continue;
    // The wrong way round: whoever reads or writes is told. The lowest free number is the one
    // wanted.
    if (open("/dev/null", wanted == STDIN_FILENO ? O_WRONLY : O_RDONLY) != wanted) return;
  }
}

void say(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

int end_output(const char* program, int code) {
  errno = 0;
  std::cout.flush();
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost || code != 0) return code;
  say(fmt::format("{}: standard output cannot be written{}{}\n", program, errno ? ": " : "",
                  errno ? std::strerror(errno) : ""));
  return 1;
}

}  // namespace anymps::common
