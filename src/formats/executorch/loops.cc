// SPDX-License-Identifier: Apache-2.0
// Loops whose number of rounds is known only when they run: torch.map and torch.scan over an axis
// of dynamic extent. The exporter writes them as
//
//   first: …                                  the round; et_copy_index writes row `round` of a
//   result
//          executorch_prim::add.Scalar        round + 1 -> round
//          executorch_prim::eq.Scalar         round == rounds -> done
//          JumpFalse done -> first
//
// and nothing else is taken for a loop. When the jump is met, the first round has been walked; the
// others become the op `loop`.
#include <algorithm>

#include "formats/executorch/importer.h"

namespace anymps::executorch {

namespace {

constexpr const char* kAdd = "executorch_prim::add.Scalar";
constexpr const char* kEqual = "executorch_prim::eq.Scalar";

// The only instruction of the range that writes a value; null when there is none, or another.
const KernelCall* only_writer(const Method& method, const std::vector<Effects>& effects,
                              size_t begin, size_t end, int32_t id) {
  const KernelCall* writer = nullptr;
  for (size_t pc = begin; pc < end; ++pc) {
    const auto& writes = effects[pc].writes;
    if (std::find(writes.begin(), writes.end(), id) == writes.end()) continue;
    if (writer) return nullptr;
    writer = std::get_if<KernelCall>(&method.instructions[pc]);
    if (!writer) return nullptr;
  }
  return writer;
}

}  // namespace

// The number of the round and that of all rounds, if the range has the form above.
std::optional<Importer::Rounds> Importer::counted(const Memory& memory, int32_t condition,
                                                  Range range) const {
  const auto writer = [&](int32_t id) {
    return only_writer(method_, effects_, range.begin, range.end, id);
  };
  const auto is = [](const KernelCall* call, const char* op) {
    return call && call->op == op && call->args.size() == 3;
  };
  const KernelCall* equal = writer(condition);
  if (range.end < range.begin + 2 || !is(equal, kEqual)) return std::nullopt;
  const Rounds rounds{equal->args[0], equal->args[1]};
  const KernelCall* add = writer(rounds.round);
  if (!is(add, kAdd) || add->args[0] != rounds.round || known_int(memory, add->args[1]) != 1)
    return std::nullopt;
  if (equal != std::get_if<KernelCall>(&method_.instructions[range.end - 1]) ||
      add != std::get_if<KernelCall>(&method_.instructions[range.end - 2]))
    return std::nullopt;
  const std::set<int32_t> written = written_in(range);
  if (written.contains(rounds.count) || written.contains(add->args[1])) return std::nullopt;
  return rounds;
}

// What every further round reads and writes. Memory is used again within a round, so that a value
// whose place holds another one at the end of the round must not be read in the next.
void Importer::find_carried(Memory& memory, Range range, std::vector<int32_t>& carried,
                            std::vector<int32_t>& captures) {
  std::vector<int32_t> read;
  find_captures(memory, range, read);
  const std::set<int32_t> written = written_in(range);
  for (const int32_t id : read) {
    if (!memory.is_last(id))
      fail(Code::kUnsupported, "value {} is read in a loop that writes another one to its place",
           id);
    memory.load(id);
    if (!written.contains(id)) captures.push_back(id);
  }
  for (const int32_t id : written)
    if (!rows_.contains(id) && memory.is_last(id) && memory.current[id]) carried.push_back(id);
}

size_t Importer::run_loop(Memory& memory, const JumpFalse& jump, Range range) {
  const auto rounds = counted(memory, jump.condition, range);
  if (!rounds) fail(Code::kUnsupported, "a loop whose number of rounds is known only when it runs");
  if (loop_body_) fail(Code::kUnsupported, "a loop of as many rounds as the data says in another");
  require(++depth_ <= kMaxDepth, "branches are nested more than {} deep", kMaxDepth);
  check_jumps(range);
  rows_.clear();
  for (size_t pc = range.begin; pc < range.end; ++pc)
    if (const auto* call = std::get_if<KernelCall>(&method_.instructions[pc]);
        call && call->op == kCopyIndex) {
      require(call->args.size() == 3 && call->args[2] == rounds->round,
              "a row is written, but not that of the round");
      require(rows_.emplace(call->args[0], Rows{}).second, "two rows are written in a round");
    }
  std::vector<int32_t> carried, captures;
  find_carried(memory, range, carried, captures);

  auto body = std::make_shared<Graph>();
  Memory inside(*body, memory);
  body->input("index", DType::kI64, {});
  body->input("more", DType::kBool, {});
  Graph& graph = memory.graph;
  Values inputs{graph.add("sub", {memory.tensor(rounds->count), memory.tensor(rounds->round)}),
                nullptr};
  const auto hand_over = [&](int32_t id, std::optional<Dim> rows) {
    inputs.push_back(memory.tensor(id));
    ValueType type = inputs.back()->type;
    type.content.reset();
    require(!rows || !type.shape.empty(), "value {} has no rows", id);
    if (rows) type.shape[0] = *rows;
    return body->input(fmt::format("value{}", id), std::move(type));
  };
  for (const int32_t id : carried)
    inside.take(id, hand_over(id, std::nullopt), memory.is_moved(id));
  for (auto& [id, result] : rows_) result.rows = hand_over(id, Dim::symbol("rows"));
  for (const int32_t id : captures)
    inside.take(id, hand_over(id, std::nullopt), memory.is_moved(id));
  loop_body_ = body.get();
  run_range(inside, range.begin, range.end);
  loop_body_ = nullptr;

  Values outputs;
  const auto give = [&](Value* value) {
    if (!value->producer || std::find(outputs.begin(), outputs.end(), value) != outputs.end())
      value = body->add("identity", {value});
    outputs.push_back(value);
  };
  const std::byte yes{1};
  give(body->constant(Constant::copy(DType::kBool, {}, {&yes, 1})));
  for (const int32_t id : carried) give(inside.tensor(id));
  for (const auto& [id, result] : rows_) {
    require(result.written, "a row of value {} is not written in every round", id);
    give(result.rows);
  }
  const size_t results = outputs.size() - 1;
  body->set_outputs(std::move(outputs));
  body->erase_dead();
  const Values values = graph
                            .add_node(get_op("loop"), std::move(inputs),
                                      {{"body", AttrValue(std::move(body))},
                                       {"carried", static_cast<int64_t>(results)}},
                                      fmt::format("loop_{}", range.begin), results)
                            ->outputs;
  for (size_t i = 0; i < carried.size(); ++i)
    memory.take(carried[i], values[i], inside.is_moved(carried[i]));
  size_t next = carried.size();
  for (const auto& [id, result] : rows_) memory.write(id, values[next++]);
  --depth_;
  return range.end + 1;
}

}  // namespace anymps::executorch
