// SPDX-License-Identifier: Apache-2.0
// The two ways in which a prepared kernel runs. Small kernels are calls of the engine's ops, one
// after the other, which start soonest; all else is a compiled graph.
#pragma once

#include <optional>

#include "lowering/builder.h"
#include "lowering/kernel.h"

namespace anymps::lowering {

// Where an input comes from: an argument's view or number, a constant, or an earlier step.
struct Source {
  enum class Kind : uint8_t { kAbsent, kView, kNumber, kConstant, kBetween };
  Kind kind = Kind::kAbsent;
  amps_dtype dtype = AMPS_F64;  // of a number, or of what an earlier step made
  int argument = 0;             // kView, kNumber
  int view = 0;                 // of the argument's
  int64_t offset = 0;           // kBetween: in the memory of a run
  const Builder::Constant* constant = nullptr;
  std::optional<Ints> dims = {};  // kBetween, or the view in another shape
};

// Where a step writes: a result of the kernel, or memory of the run.
struct Target {
  int result = -1;
  amps_dtype dtype = AMPS_F32;  // the rest: of memory of the run
  int64_t offset = 0;
  std::optional<Ints> dims = {};  // also a result's, if the op gives it another shape
};

class PreparedExecutable final : public Prepared {
 public:
  PreparedExecutable(const amps_api& api, amps_device* device) : api_(api), device_(device) {}
  ~PreparedExecutable() override { api_.executable_release(executable_); }

  void run(std::span<const Argument> arguments, std::span<const amps_view> outputs,
           amps_stream* stream) const override;
  void run(std::span<const Argument> arguments, Memory& memory) const override;

 private:
  friend class Preparation;
  const amps_api& api_;
  amps_device* device_;
  std::vector<Source> sources_;
  amps_executable* executable_ = nullptr;
};

class PreparedCalls final : public Prepared {
 public:
  static constexpr int64_t kMemory = 4096;  // bytes between steps

  explicit PreparedCalls(const amps_api& api) : api_(api) {}
  ~PreparedCalls() override {
    for (const Step& step : steps_) {
      api_.fixed_call_release(step.fixed);
      api_.call_release(step.call);
    }
  }

  void run(std::span<const Argument> arguments, std::span<const amps_view> outputs,
           amps_stream* stream) const override;
  void run(std::span<const Argument> arguments, Memory& memory) const override;

 private:
  friend class Preparation;
  struct Step {
    amps_call* call = nullptr;
    amps_fixed_call* fixed =
        nullptr;  // the same for row-major tensors, if it is all there is to do
    std::vector<Source> sources;
    std::vector<Target> targets;
  };
  void fix(Step& step, std::span<const Argument> arguments,
           std::span<const amps_type> results) const;
  void run(const Step& step, std::span<const Argument> arguments,
           std::span<const amps_view> outputs, std::byte* memory, amps_stream* stream) const;
  // A result that is written before the argument is read for the last time.
  struct Hazard {
    int result, argument, view;
  };
  bool in_the_way(std::span<const Argument> arguments, std::span<const amps_view> outputs) const;

  const amps_api& api_;
  std::vector<Step> steps_;
  std::vector<Builder::Constant> constants_;
  std::vector<Hazard> hazards_;
  std::unique_ptr<Prepared> whole_;  // several steps: for streams, and for results over arguments
};

}  // namespace anymps::lowering
