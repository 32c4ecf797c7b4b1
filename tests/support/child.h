// SPDX-License-Identifier: Apache-2.0
// A forked child, for tests. What it does is judged by how it ends: 0 if `fn` returned true. It
// cannot outlive a minute, so that a child that hangs is a failure and not a hanging suite.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "base/error.h"

namespace anymps::testing {

template <typename Fn>
std::string end_of_child(Fn&& fn) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    bool good = false;
    try {
      good = fn();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the child: %s\n", error.what());
    }
    _exit(good ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return "no child";
  if (WIFSIGNALED(status)) return fmt::format("killed by signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "good" : "wrong";
}

}  // namespace anymps::testing
