// SPDX-License-Identifier: Apache-2.0
// The runner's flags: upstream's names and defaults, and the ways in which gflags lets them be
// written: --flag=value, --flag value, -flag, --flag, --noflag, and '-' for '_' in names.
#pragma once

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace anymps::runner {

struct Flags {
  std::string model_path = "model.ff";
  std::string method_name;
  bool bundled_program = false;
  int testset_idx = 0;
  int num_runs = 1;
  bool skip_warmup = false;
  bool profile = false;
  bool print_output = true;
  std::string etdump_path = "etdump.etdp";
  std::string prof_result_path = "prof_result.json";
  bool dump_outputs = false;
  bool dump_intermediate_outputs = false;
  std::string debug_output_path = "debug_output.bin";
  int64_t debug_buffer_size = 262144;
  double rtol = -1, atol = -1;
  int cpu_threads = -1;
  std::string device;

  bool help = false, version = false;
  std::set<std::string> given;           // names of those on the command line
  std::vector<std::string> positionals;  // what belongs to no flag

  bool was_given(const std::string& name) const { return given.count(name) > 0; }
};

class FlagError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

Flags parse_flags(const std::vector<std::string>& arguments);  // throws FlagError
std::string flags_help(const std::string& program);

}  // namespace anymps::runner
