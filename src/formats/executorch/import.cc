// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/import.h"

#include <algorithm>
#include <optional>

#include "formats/executorch/importer.h"
#include "formats/executorch/operators/kernel_call.h"
#include "formats/executorch/payload/payload.h"
#include "formats/executorch/payload/payload_info.h"

namespace anymps::executorch {

namespace {

constexpr const char* kBackend = "MPSBackend";
constexpr size_t kShown = 8;               // instructions that a message lists
constexpr size_t kMaxRepeats = 1 << 14;    // instructions that unrolled loops add
constexpr size_t kMaxNodes = 1 << 14;      // of a graph with unrolled loops
constexpr size_t kMaxArguments = 1 << 22;  // of all instructions, lists unfolded
constexpr size_t kBytesOfAStep = 64;       // of a payload that is added another time

std::string reason(const std::string& op) {
  for (const KernelRefusal& refusal : refused_kernels())
    if (refusal.op == op) return fmt::format(": {}", refusal.reason);
  return {};
}

std::string label(const Instruction& instruction) {
  if (const auto* kernel = std::get_if<KernelCall>(&instruction))
    return fmt::format(" ({})", kernel->op);
  if (const auto* call = std::get_if<DelegateCall>(&instruction))
    return fmt::format(" (delegate {})", call->delegate);
  return {};
}

}  // namespace

void Importer::run() {
  check_supported();
  find_delegates();
  find_effects();
  add_inputs();
  run_range(memory_, 0, method_.instructions.size());
  for (const size_t i : given_outputs(method_)) memory_.load(method_.outputs[i]);
  memory_.save_states();
  set_outputs();
  memory_.graph.erase_dead();
}

// How many inputs those have that are called.
void Importer::find_delegates() {
  std::vector<bool> called(method_.delegates.size(), false);
  for (const Instruction& instruction : method_.instructions)
    if (const auto* call = std::get_if<DelegateCall>(&instruction)) called[call->delegate] = true;
  for (size_t d = 0; d < called.size(); ++d)
    delegate_inputs_.push_back(called[d] ? payload_info(payload(d)).inputs : 0);
}

// What each instruction reads and writes, and where each value is read for the last time.
void Importer::find_effects() {
  last_read_.assign(method_.values.size(), 0);
  size_t arguments = 0;
  bool loops = false;
  for (size_t pc = 0; pc < method_.instructions.size(); ++pc) {
    effects_.push_back(effects_of(method_, method_.instructions[pc], delegate_inputs_));
    arguments += effects_[pc].reads.size() + effects_[pc].writes.size();
    if (arguments > kMaxArguments)
      fail(Code::kUnsupported, "the instructions have more than {} arguments", kMaxArguments);
    for (const int32_t id : effects_[pc].reads) last_read_[id] = pc;
    const auto* jump = std::get_if<JumpFalse>(&method_.instructions[pc]);
    loops = loops || (jump && static_cast<size_t>(jump->destination) <= pc);
  }
  // What is read in a loop may be read again.
  if (loops) last_read_.assign(method_.values.size(), method_.instructions.size());
  for (const int32_t id : method_.outputs) last_read_[id] = method_.instructions.size();
}

// One error for all that is missing, so that an exporter can be told everything at once.
void Importer::check_supported() const {
  std::map<std::string, std::vector<size_t>> missing;
  std::set<std::string> backends;
  for (size_t pc = 0; pc < method_.instructions.size(); ++pc) {
    const Instruction& instruction = method_.instructions[pc];
    if (const auto* kernel = std::get_if<KernelCall>(&instruction)) {
      if (kernel->op != kCopyIndex && !find_kernel(kernel->op))
        missing[kernel->op + reason(kernel->op)].push_back(pc);
    } else if (const auto* call = std::get_if<DelegateCall>(&instruction)) {
      const std::string& backend = method_.delegates[call->delegate].backend;
      if (backend == kBackend) continue;
      missing["delegates of backend " + backend].push_back(pc);
      backends.insert(backend);
    }
  }
  if (missing.empty()) return;
  std::string list;
  for (const auto& [what, where] : missing) {
    const std::vector<size_t> shown(
        where.begin(), where.begin() + static_cast<long>(std::min(where.size(), kShown)));
    list += fmt::format(
        "{}{} (instruction{} {}{})", list.empty() ? "" : ", ", what, where.size() > 1 ? "s" : "",
        fmt::join(shown, ", "),
        where.size() > kShown ? fmt::format(" and {} more", where.size() - kShown) : "");
  }
  fail(Code::kUnsupported, "not supported: {}{}", list,
       backends.empty() ? ""
                        : "; only delegates of MPSBackend can be run: export the program with "
                          "the MPS partitioner, or without a partitioner");
}

Source Importer::payload(size_t delegate) const {
  return {method_.delegates[delegate].payload, program_.source.owner, program_.source.mapped,
          fmt::format("delegate {}", delegate)};
}

// For a dynamic tensor the file gives only the largest extent of each axis. Those that can be 1 at
// most are fixed; larger feeds are refused by the limit of the symbol, and feeds of another shape
// than the program was made for by the ops that care.
void Importer::add_inputs() {
  size_t count = 0;
  for (const size_t i : fed_inputs(method_)) {
    const int32_t id = method_.inputs[i];
    const Tensor& tensor = std::get<Tensor>(memory_.at(id));
    const std::string name = fmt::format("input{}", count++);
    const bool dynamic = tensor.dynamism != Tensor::Dynamism::kStatic;
    const bool bound = tensor.dynamism == Tensor::Dynamism::kBound;
    Dims shape;
    for (size_t axis = 0; axis < tensor.sizes.size(); ++axis) {
      const int64_t size = tensor.sizes[axis];
      const bool open = open_ == Open::kAll || (open_ == Open::kFirst && axis == 0);
      shape.push_back(dynamic && open && size != 1 ? Dim::symbol(fmt::format("{}.{}", name, axis),
                                                                 bound ? size : Dim::kNoLimit)
                                                   : Dim(size));
    }
    memory_.write(id, memory_.graph.input(name, tensor.dtype, std::move(shape)));
  }
}

void Importer::run_range(Memory& memory, size_t pc, size_t end) {
  while (pc < end) {
    if (++steps_ > method_.instructions.size() + kMaxRepeats)
      fail(Code::kUnsupported, "its loops unroll to more than {} instructions", kMaxRepeats);
    if (steps_ > method_.instructions.size() && memory.graph.node_count() > kMaxNodes)
      fail(Code::kUnsupported, "its loops unroll to more than {} nodes", kMaxNodes);
    const Instruction& instruction = method_.instructions[pc];
    try {
      if (const auto* jump = std::get_if<JumpFalse>(&instruction)) {
        pc = run_jump(memory, *jump, pc, end);
      } else {
        run_instruction(memory, instruction, pc);
        ++pc;
      }
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("instruction {}{}: {}", pc, label(instruction), error.what()));
    }
  }
}

void Importer::run_instruction(Memory& memory, const Instruction& instruction, size_t pc) {
  if (const auto* move = std::get_if<MoveCall>(&instruction)) {
    memory.move(move->from, move->to);
    return;
  }
  const Effects& effects = effects_[pc];
  for (const int32_t id : effects.reads) memory.load(id);
  if (const auto* kernel = std::get_if<KernelCall>(&instruction)) {
    const std::string name = fmt::format("{}_{}", kernel->op, pc);
    if (kernel->op == kCopyIndex) {
      copy_index(memory, *kernel, name);
      return;
    }
    convert_kernel(memory.graph, method_, *kernel, memory.current, name);
    for (const int32_t id : effects.writes)
      kernel->op == kDynamicView ? memory.detach(id) : memory.wrote(id);
  } else if (const auto* call = std::get_if<DelegateCall>(&instruction)) {
    run_delegate(memory, *call);
  }
}

// The rows of a result come one after the other, and it grows with each.
void Importer::copy_index(Memory& memory, const KernelCall& call, const std::string& name) {
  require(call.args.size() == 3, "the call has {} arguments, must have 3", call.args.size());
  if (&memory.graph == loop_body_) {
    const auto result = rows_.find(call.args[0]);
    require(result != rows_.end() && !result->second.written,
            "a row is written that is not that of the round");
    Value* last =
        memory.graph.add("unsqueeze", {memory.tensor(call.args[1])}, {{"axes", Ints{0}}}, name);
    result->second.rows =
        memory.graph.add("concat", {result->second.rows, last}, {{"axis", 0}}, name);
    result->second.written = true;
    return;
  }
  const auto index = known_int(memory, call.args[2]);
  if (!index) fail(Code::kUnsupported, "the number of the row is not known");
  Value* row =
      memory.graph.add("unsqueeze", {memory.tensor(call.args[1])}, {{"axes", Ints{0}}}, name);
  if (*index > 0) {
    Value* before = memory.current[call.args[0]];
    require(
        before && before->type.ranked && !before->shape().empty() && before->shape()[0].is(*index),
        "row {} is written, but the rows before it were not", *index);
    row = memory.graph.add("concat", {before, row}, {{"axis", 0}}, name);
  }
  require(*index >= 0, "row {} is negative", *index);
  memory.write(call.args[0], row);
}

void Importer::run_delegate(Memory& memory, const DelegateCall& call) {
  const size_t delegate = call.delegate;
  const size_t inputs = delegate_inputs_[delegate];
  require(call.args.size() >= inputs, "the call has {} arguments, the delegate {} inputs",
          call.args.size(), inputs);
  Values values;
  for (size_t i = 0; i < inputs; ++i) values.push_back(memory.tensor(call.args[i]));
  // The other calls of a delegate, in a loop for example, get their own names.
  const size_t times = calls_[call.delegate]++;
  if (times) steps_ += method_.delegates[delegate].payload.size() / kBytesOfAStep;
  const std::string stem =
      times ? fmt::format("delegate{}_{}", delegate, times) : fmt::format("delegate{}", delegate);
  const Values results = add_payload(memory.graph, payload(delegate), values, stem);
  require(results.size() == call.args.size() - inputs,
          "the call takes {} results, the delegate has {}", call.args.size() - inputs,
          results.size());
  for (size_t i = 0; i < results.size(); ++i) memory.write(call.args[inputs + i], results[i]);
}

void Importer::set_outputs() {
  Values outputs;
  Graph& graph = memory_.graph;
  for (const size_t i : given_outputs(method_)) {
    Value* value = memory_.tensor(method_.outputs[i]);
    // Each output is a separate value with its own name.
    if (!value->producer || std::find(outputs.begin(), outputs.end(), value) != outputs.end())
      value = graph.add("identity", {value});
    outputs.push_back(value);
  }
  for (size_t i = 0; i < outputs.size(); ++i) graph.rename(outputs[i], fmt::format("output{}", i));
  if (outputs.empty()) fail(Code::kUnsupported, "the method has no outputs");
  graph.set_outputs(std::move(outputs));
}

namespace {

bool has_dynamic_inputs(const Method& method) {
  for (const size_t i : fed_inputs(method))
    if (std::get<Tensor>(method.values[method.inputs[i]]).dynamism != Tensor::Dynamism::kStatic)
      return true;
  return false;
}

std::unique_ptr<Graph> import_shapes(const Program& program, const Method& method,
                                     Importer::Open open) {
  auto graph = std::make_unique<Graph>();
  graph->name = method.name;
  try {
    Importer(*graph, program, method, open).run();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("[executorch] {}: method \"{}\": {}", program.source.name,
                                          method.name, error.what()));
  }
  return graph;
}

}  // namespace

std::unique_ptr<Graph> import_method(const Program& program, const Method& method) {
  using Open = Importer::Open;
  if (!has_dynamic_inputs(method)) return import_shapes(program, method, Open::kNone);
  // Some operators must know an extent that the file does not fix. Then only the first axis, the
  // batch, stays open, or only the largest shape can be run.
  std::optional<Error> first;
  for (const Open open : {Open::kAll, Open::kFirst, Open::kNone}) {
    try {
      return import_shapes(program, method, open);
    } catch (const Error& error) {
      if (first) continue;
      if (error.code() != Code::kUnsupported && error.code() != Code::kInvalidArgument) throw;
      first = error;
    }
  }
  throw Error(*first);
}

bool is_executorch(std::string_view bytes) {
  return is_program(bytes) || is_bundle(bytes) || is_payload(bytes);
}

bool seems_executorch(const Source& source) {
  const std::string_view bytes = source.bytes;
  if (source.name.ends_with(".pte") || source.name.ends_with(".bpte")) return true;
  return bytes.size() >= 12 &&
         (bytes.substr(4, 2) == "ET" || bytes.substr(4, 2) == "BP" || bytes.substr(8, 4) == "eh00");
}

std::unique_ptr<Graph> import_source(const Source& source) {
  if (is_payload(source.bytes)) return import_payload(source);
  const Bundle bundle = read_bundle(source);
  return import_method(bundle.program, bundle.program.method(""));
}

}  // namespace anymps::executorch
