// SPDX-License-Identifier: Apache-2.0
// How oneDNN's primitives use the engine's threads. A primitive is made for a number of parts, and
// cuts its work into these; at each run the parts are tasks of the pool, done by whoever has a
// core. How many parts there are depends on the work alone, never on the threads: so do the
// results.
#pragma once

#include <string_view>

namespace anymps::cpu {

void use_onednn_teams();  // before oneDNN's first call

// Primitives that the calling thread makes or runs while this lives have this many parts.
class Parts {
 public:
  explicit Parts(int parts);
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  void become(int parts);
  static int now();

 private:
  int before_;
};

// How many are right for work of this many floating-point operations.
int parts_for(double flops);

// Whether parts of the implementation with this name wait for each other, so that there can only be
// one. Of those that the engine uses, these are the ones with oneDNN's own gemm inside.
bool parts_wait(std::string_view implementation);

}  // namespace anymps::cpu
