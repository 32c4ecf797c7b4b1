// SPDX-License-Identifier: Apache-2.0
// Jumps. A program has no blocks: torch.cond is a jump over one branch, at whose end another jumps
// over the other, and torch.map jumps back. Where the condition is known the jump is followed; the
// rest must have the form of torch.cond, or of the loops in loops.cc.
#include <algorithm>

#include "formats/executorch/importer.h"

namespace anymps::executorch {

namespace {

std::optional<int64_t> known_int(const Value* value) {
  const auto& content = value->type.content;
  if (!content || content->size() != 1 || !(*content)[0].known()) return std::nullopt;
  if (value->shape().size() > 1) return std::nullopt;
  return (*content)[0].value();
}

// Inference follows integers; what is compared here are numbers of rounds.
std::optional<bool> known_condition(const Memory& memory, int32_t id) {
  const Value* value = memory.current[id];
  if (!value) {
    const auto* flag = std::get_if<bool>(&memory.at(id));
    return flag ? std::optional(*flag) : std::nullopt;
  }
  if (value->is_constant()) {
    const auto number = scalar_of(value);
    return number ? std::optional(*number != 0) : std::nullopt;
  }
  const Node* node = value->producer;
  if (!node || node->inputs.size() != 2) return std::nullopt;
  const auto a = known_int(node->inputs[0]), b = known_int(node->inputs[1]);
  if (!a || !b) return std::nullopt;
  if (node->is("equal")) return *a == *b;
  if (node->is("less")) return *a < *b;
  if (node->is("less_equal")) return *a <= *b;
  if (node->is("greater")) return *a > *b;
  if (node->is("greater_equal")) return *a >= *b;
  return std::nullopt;
}

bool is_tensor(const Memory& memory, int32_t id) {
  return std::holds_alternative<Tensor>(memory.at(id));
}

void add_capture(const Memory& memory, int32_t id, std::vector<int32_t>& captures) {
  const auto* tensor = std::get_if<Tensor>(&memory.at(id));
  if (tensor && tensor->is_constant() && !memory.current[id]) return;
  if (memory.can_load(id) && std::find(captures.begin(), captures.end(), id) == captures.end())
    captures.push_back(id);
}

}  // namespace

std::optional<int64_t> Importer::known_int(const Memory& memory, int32_t id) {
  if (const Value* value = memory.current[id]) return executorch::known_int(value);
  const auto* number = std::get_if<int64_t>(&memory.at(id));
  return number ? std::optional(*number) : std::nullopt;
}

// Returns the next instruction. A condition that is known is followed, even backwards, so that
// loops with a known number of rounds are unrolled.
size_t Importer::run_jump(Memory& memory, const JumpFalse& jump, size_t pc, size_t end) {
  const size_t destination = jump.destination;
  if (const auto known = known_condition(memory, jump.condition))
    return *known ? pc + 1 : destination;
  if (destination <= pc) return run_loop(memory, jump, {destination, pc});
  // "then" ends with a jump over "else" whose condition is always false.
  size_t after = destination, then_end = destination;
  if (const auto* skip = destination > pc + 1
                             ? std::get_if<JumpFalse>(&method_.instructions[destination - 1])
                             : nullptr;
      skip && known_condition(memory, skip->condition) == false &&
      static_cast<size_t>(skip->destination) >= destination) {
    after = skip->destination;
    then_end = destination - 1;
  }
  require(after <= end, "it jumps to instruction {}, out of the branch that it is in", after);
  run_if(memory, jump.condition, {pc + 1, then_end}, {destination, after}, after);
  return after;
}

// What a branch takes from outside: read before it is written, by its name or its place.
void Importer::find_captures(const Memory& memory, Range range,
                             std::vector<int32_t>& captures) const {
  std::set<int32_t> written;
  std::set<std::pair<uint32_t, uint64_t>> places;
  for (size_t pc = range.begin; pc < range.end; ++pc) {
    const Effects& effects = effects_[pc];
    for (const int32_t id : effects.reads) {
      const auto* tensor = std::get_if<Tensor>(&memory.at(id));
      const bool placed = tensor && tensor->planned && !memory.is_moved(id);
      const bool inside =
          written.contains(id) || (placed && places.contains({tensor->memory, tensor->offset}));
      if (!inside) add_capture(memory, id, captures);
    }
    for (const int32_t id : effects.writes) {
      written.insert(id);
      const auto* tensor = std::get_if<Tensor>(&memory.at(id));
      if (tensor && tensor->planned) places.insert({tensor->memory, tensor->offset});
    }
  }
}

void Importer::check_jumps(Range range) const {
  for (size_t pc = range.begin; pc < range.end; ++pc) {
    const auto* jump = std::get_if<JumpFalse>(&method_.instructions[pc]);
    if (!jump) continue;
    const size_t destination = jump->destination;
    require(destination >= range.begin && destination <= range.end,
            "instruction {} jumps to {}, out of the branch that it is in", pc, destination);
  }
}

std::set<int32_t> Importer::written_in(Range range) const {
  std::set<int32_t> ids;
  for (size_t pc = range.begin; pc < range.end; ++pc)
    for (const int32_t id : effects_[pc].writes) ids.insert(id);
  return ids;
}

// torch.cond: both branches become graphs that get all that either of them takes from outside.
void Importer::run_if(Memory& memory, int32_t condition, Range yes, Range no, size_t after) {
  require(++depth_ <= kMaxDepth, "branches are nested more than {} deep", kMaxDepth);
  Value* predicate = memory.tensor(condition);
  require(predicate->dtype() == DType::kBool, "the condition is {}, must be bool",
          to_string(predicate->type));
  check_jumps(yes);
  check_jumps(no);
  std::vector<int32_t> captures, results, lost;
  find_captures(memory, yes, captures);
  find_captures(memory, no, captures);
  for (const int32_t id : captures) memory.load(id);
  const std::set<int32_t> in_yes = written_in(yes), in_no = written_in(no);
  std::set<int32_t> written = in_yes;
  written.insert(in_no.begin(), in_no.end());
  for (const int32_t id : written) {
    const bool in_both = in_yes.contains(id) && in_no.contains(id);
    const bool used = last_read_[id] >= after || memory.is_state(id);
    // What is held in one case only can be used in neither.
    if (!used || (!in_both && is_tensor(memory, id) && !memory.holds(id))) {
      lost.push_back(id);
      continue;
    }
    if (!in_both) add_capture(memory, id, captures);
    results.push_back(id);
  }
  if (!results.empty()) add_if(memory, predicate, yes, no, captures, results);
  for (const int32_t id : lost) memory.forget(id);
  --depth_;
}

void Importer::add_if(Memory& memory, Value* predicate, Range yes, Range no,
                      const std::vector<int32_t>& captures, const std::vector<int32_t>& results) {
  Values inputs{predicate};
  for (const int32_t id : captures) {
    memory.load(id);
    Value* value = memory.current[id];
    if (!executorch::known_int(value)) inputs.push_back(value);
  }
  std::set<int32_t> moved;
  auto then_body = make_branch(memory, yes, captures, results, moved);
  auto else_body = make_branch(memory, no, captures, results, moved);
  const Values values = memory.graph
                            .add_node(get_op("if_else"), std::move(inputs),
                                      {{"then_branch", AttrValue(std::move(then_body))},
                                       {"else_branch", AttrValue(std::move(else_body))}},
                                      fmt::format("cond_{}", yes.begin - 1), results.size())
                            ->outputs;
  for (size_t i = 0; i < results.size(); ++i)
    memory.take(results[i], values[i], moved.contains(results[i]));
}

std::shared_ptr<Graph> Importer::make_branch(const Memory& outside, Range range,
                                             const std::vector<int32_t>& captures,
                                             const std::vector<int32_t>& results,
                                             std::set<int32_t>& moved) {
  auto body = std::make_shared<Graph>();
  Memory memory(*body, outside);
  for (const int32_t id : captures) {
    const Value* value = outside.current[id];
    if (const auto number = executorch::known_int(value)) {  // stays known in the branch
      Value* same = body->constant(Constant::of<int64_t>({}, {*number}));
      if (!value->shape().empty()) same = body->add("reshape", {same}, {{"shape", Ints{1}}});
      if (value->dtype() != DType::kI64)
        same = body->add("cast", {same}, {{"dtype", value->dtype()}});
      memory.take(id, same, outside.is_moved(id));
      continue;
    }
    ValueType type = value->type;
    type.content.reset();
    memory.take(id, body->input(fmt::format("value{}", id), std::move(type)), outside.is_moved(id));
  }
  run_range(memory, range.begin, range.end);
  Values outputs;
  for (const int32_t id : results) {
    Value* value = memory.tensor(id);
    if (!value->producer || std::find(outputs.begin(), outputs.end(), value) != outputs.end())
      value = body->add("identity", {value});
    outputs.push_back(value);
    if (memory.is_moved(id)) moved.insert(id);
  }
  body->set_outputs(std::move(outputs));
  body->erase_dead();
  return body;
}

}  // namespace anymps::executorch
