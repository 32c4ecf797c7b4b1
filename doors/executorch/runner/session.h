// SPDX-License-Identifier: Apache-2.0
// One call of the runner: a program, its method compiled, the inputs, the runs and what is reported
// about them.
#pragma once

#include <string>
#include <vector>

#include "anymps/anymps.hpp"
#include "etdump.h"
#include "flags.h"
#include "profile.h"
#include "verify.h"

namespace anymps::runner {

class Session {
 public:
  explicit Session(const Flags& flags);

  // Runs, prints and writes what the flags ask for. False: the outputs are not those of the bundle.
  bool run();

 private:
  void prepare_inputs();
  void forget_state();
  void run_once(int number, bool measured);
  std::vector<DebugEvent> outputs_as_events() const;
  std::vector<DebugEvent> intermediate_outputs() const;
  bool recording() const;  // with the profiler
  bool dumping() const;    // tensors into the ETDump
  void report_times() const;
  void write_files();

  const Flags& flags_;
  const double start_ms_;
  const amps::Device device_;
  const amps::Program program_;
  const std::string method_;
  const DelegateCalls delegate_calls_;
  const amps::Graph graph_;
  amps::Executable executable_;
  const double load_ms_;

  Tolerance tolerance_;
  std::vector<amps::Tensor> inputs_, expected_;  // kept as they came; each run gets copies
  std::vector<amps::Tensor> results_;
  amps::Profiler profiler_;
  std::vector<RunBlock> blocks_;
  std::vector<double> times_ms_;  // of the measured runs
  std::string mismatch_;          // of the first run that has one
};

}  // namespace anymps::runner
