// SPDX-License-Identifier: Apache-2.0
// Numbers on their way from bytes and back are three or four instructions each, which read and
// write a tile for little. They are joined:
//   mul(sub(cast(x), zero), scale)             ->  from_steps(x; scale, zero)
//   cast(add(rint(div(x, scale)), zero))       ->  to_steps(x; scale, zero)
//   to_steps(add(from_steps(x), from_steps(y)))  ->  add_steps(x, y; those of x, of y and of the
//   sum)
#include "drivers/cpu/elementwise/tile_kernel.h"

namespace anymps::cpu {

void TileKernelBuilder::join_steps() {
  std::vector<int> uses(values_.size());
  std::vector<Instruction*> makers(values_.size());
  for (Instruction& instruction : instructions_) {
    makers[instruction.value] = &instruction;
    for (const Value arg : instruction.args) ++uses[arg];
  }
  for (const Output& output : outputs_) ++uses[output.value];

  // The instruction that makes a value for one reader, of this name, of f32.
  const auto made_by = [&](Value value, std::string_view name) -> Instruction* {
    Instruction* maker = makers[value];
    return maker && maker->op && maker->op->name == name && maker->run_params.empty() &&
                   uses[value] == 1
               ? maker
               : nullptr;
  };
  // Takes the second argument of such an instruction, if it is a number.
  const auto number_of = [&](const Instruction* instruction) {
    return instruction && instruction->args.size() == 2 ? number(instruction->args[1])
                                                        : std::nullopt;
  };
  const auto join = [](Instruction& last, const char* name, DType in, Value x, double scale,
                       double zero, std::initializer_list<Instruction*> gone) {
    last.op = find_tile_op(name, in);
    last.args = {x};
    last.params = {scale, zero};
    for (Instruction* instruction : gone)
      if (instruction) instruction->op = nullptr;
  };

  // A sum of bytes of one kind, if both were read for it alone.
  const auto join_sum = [&](Instruction& last) {
    Instruction* add = made_by(last.args[0], "add");
    if (!add || add->op->in != DType::kF32) return;
    Instruction *x = made_by(add->args[0], "from_steps"), *y = made_by(add->args[1], "from_steps");
    if (!x || !y || x == y || x->op->in != last.op->out || y->op->in != last.op->out) return;
    const double scale = last.params[0], zero = last.params[1];
    last.op = find_tile_op("add_steps", last.op->out);
    last.args = {x->args[0], y->args[0]};
    last.params = {x->params[0], x->params[1], y->params[0], y->params[1], scale, zero};
    for (Instruction* instruction : {add, x, y}) instruction->op = nullptr;
  };

  for (Instruction& last : instructions_) {
    if (!last.op || !last.run_params.empty()) continue;
    if (last.op->name == "mul" && last.op->in == DType::kF32) {
      const auto scale = number_of(&last);
      Instruction* sub = made_by(last.args[0], "sub");
      const auto zero = number_of(sub);
      if (!zero) sub = nullptr;
      Instruction* cast = made_by(sub ? sub->args[0] : last.args[0], "cast");
      if (!scale || !cast || (cast->op->in != DType::kU8 && cast->op->in != DType::kI8)) continue;
      join(last, "from_steps", cast->op->in, cast->args[0], *scale, zero.value_or(0), {sub, cast});
    } else if (last.op->name == "cast" && last.op->in == DType::kF32 &&
               (last.op->out == DType::kU8 || last.op->out == DType::kI8)) {
      Instruction* add = made_by(last.args[0], "add");
      const auto zero = number_of(add);
      if (!zero) add = nullptr;
      Instruction* rint = made_by(add ? add->args[0] : last.args[0], "rint");
      Instruction* div = rint ? made_by(rint->args[0], "div") : nullptr;
      const auto scale = number_of(div);
      if (!scale) continue;
      join(last, last.op->out == DType::kU8 ? "to_steps_u8" : "to_steps_i8", DType::kF32,
           div->args[0], *scale, zero.value_or(0), {add, rint, div});
      join_sum(last);
    }
  }
  std::erase_if(instructions_, [](const Instruction& instruction) { return !instruction.op; });
}

}  // namespace anymps::cpu
