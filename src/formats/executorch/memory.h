// SPDX-License-Identifier: Apache-2.0
// What the values of a method hold while its instructions are walked. The exporter leaves out views
// of static shape: such a tensor has no instruction that writes it, it only lies at the same place
// of planned memory as the one that it views. So a tensor holds what was last written to its place.
//
// Tensors that are read before anything was written to them keep their content from one run to the
// next: these are the program's buffers, and become variables of the graph.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/executorch/program/program.h"
#include "formats/node_builder.h"

namespace anymps::executorch {

class Memory {
 public:
  Memory(Graph& graph, const Program& program, const Method& method);
  // Of a branch: its graph sees what it takes from outside as inputs.
  Memory(Graph& body, const Memory& outside);

  Graph& graph;
  const Program& program;
  const Method& method;
  // What each value holds, for converters: up to date for those that `load` was called with.
  Values current;

  // Makes sure that `current` has value `id` if it is a tensor; numbers that no instruction wrote
  // stay null. Fails if nothing was ever written to it.
  void load(int32_t id);
  bool can_load(int32_t id) const;
  bool holds(int32_t id) const;  // something that was written, or is in the file
  // Value `id` as a tensor: a number becomes one without axes.
  Value* tensor(int32_t id);
  // `current[id]` is new.
  void wrote(int32_t id);
  void write(int32_t id, Value* value);  // checked against what the file declares
  void move(int32_t from, int32_t to);
  // What a branch gave or got, as it is; `moved`: it lies in another value's memory.
  void take(int32_t id, Value* value, bool moved);
  void detach(int32_t id) { moved_[id] = true; }  // from its place
  bool is_moved(int32_t id) const { return moved_[id]; }
  bool is_last(int32_t id) const;  // its place, if it has one, was last written under this id
  bool is_state(int32_t id) const;
  void forget(int32_t id);  // a tensor that not every branch wrote: it can no longer be read
  // Adds the assignments of buffers that were changed; the others become constants.
  void save_states();

  const EValue& at(int32_t id) const { return method.values[id]; }

 private:
  using Place = std::pair<uint32_t, uint64_t>;
  Value* constant(const Tensor& tensor, int32_t id);
  Value* state(const Tensor& tensor, int32_t id);
  Value* view(const Tensor& tensor, int32_t id, int32_t of);
  const Tensor* placed(int32_t id) const;  // null: not a tensor with a place of its own

  bool is_body_ = false;
  std::map<Place, int32_t> last_;     // which value was last written to a place
  std::vector<bool> moved_;           // those that took over another's memory
  std::vector<bool> lost_;            // those that one branch wrote and another did not
  std::map<int32_t, Value*> states_;  // what was read at the start
};

// The elements of a tensor of the file, in the logical order of its axes.
ConstantPtr to_constant(const Tensor& tensor, const Source& source);

}  // namespace anymps::executorch
