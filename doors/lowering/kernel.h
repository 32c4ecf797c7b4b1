// SPDX-License-Identifier: Apache-2.0
// A framework's kernel as the engine runs it. A row of a door's table says how the kernel is told
// in ops; for arguments of certain types, shapes and values it becomes a few calls of the engine,
// or one compiled graph, which is kept and found again by a key that is made without an allocation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anymps/anymps.h"
#include "lowering/builder.h"
#include "lowering/expression.h"

namespace anymps::lowering {

inline constexpr amps_view kAbsent{nullptr, nullptr, nullptr, AMPS_F32, -1};

// An argument as a framework hands it over; all it points to lives as long as the call.
struct Argument {
  enum class Kind : uint8_t {
    kNothing,
    kTensor,
    kTensors,
    kFlag,
    kInt,
    kFloat,
    kInts,
    kFloats,
    kText,
    kDType,
    kComplex
  };
  Kind kind = Kind::kNothing;
  bool at_run = false;          // a number that is given at the run, whatever the row says of it
  int64_t i = 0;                // kFlag, kInt, kDType
  double f = 0, imaginary = 0;  // kFloat, kComplex
  std::span<const amps_view> views;  // kTensor (one), kTensors
  std::span<const int64_t> ints;
  std::span<const double> floats;
  std::string_view text;

  static Argument tensor(const amps_view* view) {
    Argument argument;
    argument.kind = Kind::kTensor;
    argument.views = {view, 1};
    return argument;
  }
};

inline bool row_major(const amps_view& view) {
  if (!view.strides) return true;
  int64_t expected = 1;
  bool plain = true;
  for (int32_t i = view.rank; i-- > 0; expected *= view.dims[i])
    plain = plain && (view.dims[i] == 1 || view.strides[i] == expected);
  return plain;
}

// A row of a table: "softmax", "x axis", "softmax(x, axis=axis)". An argument that starts with
//   ~  is a number that changes from call to call (a learning rate): it is given at the run, and
//   one
//      compiled form serves all values;
//   ^  is a tensor, or a list of them, whose half types are computed with in f32. Results take the
//      type that the framework wants;
//   *  is a tensor that is computed with in the type of the argument `common`.
// A number of the first kind that is 0 or 1 is told while lowering, as bodies ask for those.
struct Row {
  const char* name;
  const char* arguments;
  const char* body;
};

// What the door wants of a result: nothing, or a type.
struct Wanted {
  bool wanted = true;
  std::optional<amps_dtype> dtype;  // not given: what comes
  bool row_major = true;            // in memory
  const void* memory = nullptr;     // that it will be written to, if known: an argument's perhaps
};

// Where the argument lies whose memory a result is written to; both 0 and no tensor if there is
// none.
struct InPlace {
  const amps_view* view = nullptr;
  size_t argument = 0, number = 0;  // of its tensors
};
InPlace in_place(const Wanted& result, std::span<const Argument> arguments);

class Key;
class Prepared;

// What is known of a call from an earlier one with arguments of the same types, shapes, strides and
// values: how it runs, and what its results are as the framework makes them.
struct Recalled {
  struct Output {
    amps_dtype dtype;
    std::vector<int64_t> dims, strides;
  };
  std::shared_ptr<const Prepared> prepared;
  std::vector<Output> outputs;
};

class Kernel {
 public:
  explicit Kernel(const Row& row);

  const char* name() const { return row_.name; }
  size_t arguments() const { return names_.size(); }
  const std::string& argument(size_t i) const { return names_[i].name; }

  // As part of a graph: for each result that is wanted a tensor in its type, or nothing. `found`:
  // the types that they had before.
  Values lower(Builder& builder, Values arguments, std::span<const Wanted> wanted,
               std::vector<std::optional<amps_dtype>>* found = nullptr) const;

  // Kept per thread. Fails with the kernel's name in front.
  const Prepared& prepare(const amps_api& api, amps_device* device,
                          std::span<const Argument> arguments,
                          std::span<const Wanted> wanted) const;
  // Null: no such call was remembered on this thread, or it is forgotten.
  const Recalled* recall(amps_device* device, std::span<const Argument> arguments,
                         bool in_place) const;
  void remember(amps_device* device, std::span<const Argument> arguments, bool in_place,
                Recalled what) const;

 private:
  friend class Preparation;
  struct Name {
    std::string name;
    bool at_run = false, wide = false, common = false;
  };
  bool at_run(const Argument& argument, size_t i) const;
  Value marked(Builder& builder, const Value& value, const Name& name, const Values& all) const;
  void add_to(Key& key, amps_device* device, std::span<const Argument> arguments,
              bool with_strides) const;

  const Row& row_;
  const uint64_t id_;  // in keys
  std::vector<Name> names_;
  std::optional<size_t> common_;  // which argument it is
  Program program_;
};

// For arguments of the key.
class Prepared : public std::enable_shared_from_this<Prepared> {
 public:
  virtual ~Prepared() = default;

  // The types of the results. A dim of -1 is known when it has run.
  std::span<const amps_type> results() const { return results_; }
  // For each output of the kernel the place of its result; -1: not wanted, or one that the row
  // leaves as it is.
  std::span<const int> places() const { return places_; }
  bool sized() const { return sized_; }
  // For each output of the kernel the type that the row gives it; none if there is no result.
  std::span<const std::optional<amps_dtype>> found() const { return found_; }
  // For the door: whether it has found that such results may be written.
  mutable bool accepted = false;
  virtual void run(std::span<const Argument> arguments, std::span<const amps_view> outputs,
                   amps_stream* stream) const = 0;
  // The same where the shapes of results depend on elements: `allocate` is asked for memory for
  // each when its shape is known.
  class Memory {
   public:
    virtual ~Memory() = default;
    virtual void* allocate(size_t result, const amps_type& type) = 0;
  };
  virtual void run(std::span<const Argument> arguments, Memory& memory) const = 0;

 protected:
  friend class Preparation;
  std::vector<amps_type> results_;
  std::vector<int> places_;
  std::vector<std::optional<amps_dtype>> found_;
  bool sized_ = true;
};

}  // namespace anymps::lowering
