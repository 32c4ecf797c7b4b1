// SPDX-License-Identifier: Apache-2.0
// The walk over the instructions of a method. What a single operator or node means is not its
// concern.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "formats/executorch/effects.h"
#include "formats/executorch/memory.h"
#include "formats/executorch/program/bundle.h"

namespace anymps::executorch {

class Importer {
 public:
  // Which axes stay open of the inputs whose shape may change; the others have the largest extent.
  enum class Open { kAll, kFirst, kNone };

  Importer(Graph& graph, const Program& program, const Method& method, Open open)
      : program_(program), method_(method), open_(open), memory_(graph, program, method) {}

  void run();

 private:
  static constexpr int kMaxDepth = 64;  // of branches in branches

  struct Range {
    size_t begin, end;
  };

  void check_supported() const;
  void find_effects();
  void find_delegates();
  Source payload(size_t delegate) const;
  void add_inputs();
  void set_outputs();

  void run_range(Memory& memory, size_t pc, size_t end);
  void run_instruction(Memory& memory, const Instruction& instruction, size_t pc);
  void copy_index(Memory& memory, const KernelCall& call, const std::string& name);
  void run_delegate(Memory& memory, const DelegateCall& call);

  // Loops that run as often as the data says (loops.cc). Ids of values.
  struct Rounds {
    int32_t round, count;
  };
  struct Rows {
    Value* rows = nullptr;  // of the rounds before, and of this one when it is written
    bool written = false;
  };
  std::optional<Rounds> counted(const Memory& memory, int32_t condition, Range range) const;
  void find_carried(Memory& memory, Range range, std::vector<int32_t>& carried,
                    std::vector<int32_t>& captures);
  size_t run_loop(Memory& memory, const JumpFalse& jump, Range range);

  // Jumps (branches.cc).
  size_t run_jump(Memory& memory, const JumpFalse& jump, size_t pc, size_t end);
  void run_if(Memory& memory, int32_t condition, Range yes, Range no, size_t after);
  void add_if(Memory& memory, Value* predicate, Range yes, Range no,
              const std::vector<int32_t>& captures, const std::vector<int32_t>& results);
  std::shared_ptr<Graph> make_branch(const Memory& outside, Range range,
                                     const std::vector<int32_t>& captures,
                                     const std::vector<int32_t>& results, std::set<int32_t>& moved);
  void find_captures(const Memory& memory, Range range, std::vector<int32_t>& captures) const;
  void check_jumps(Range range) const;
  std::set<int32_t> written_in(Range range) const;
  static std::optional<int64_t> known_int(const Memory& memory, int32_t id);

  const Program& program_;
  const Method& method_;
  const Open open_;
  Memory memory_;
  std::vector<size_t> delegate_inputs_;
  std::vector<Effects> effects_;   // of each instruction
  std::vector<size_t> last_read_;  // of each value: the instruction
  std::map<int32_t, size_t> calls_;
  Graph* loop_body_ = nullptr;    // while the rounds of a loop are one graph
  std::map<int32_t, Rows> rows_;  // what such a round adds to values
  size_t steps_ = 0;
  int depth_ = 0;
};

}  // namespace anymps::executorch
