// SPDX-License-Identifier: Apache-2.0
#include "runtime/interpreter.h"

#include <unordered_map>

#include "base/thread_pool.h"
#include "ops/shape_rules.h"
#include "runtime/executable.h"
#include "runtime/measure.h"
#include "runtime/structural.h"

namespace anymps {

namespace {

constexpr size_t kRecent = 4;  // preparations that a node keeps
constexpr int kMaxDepth = 32;  // of bodies in bodies

}  // namespace

Error with_node(const Error& error, const std::string& label) {
  const std::string what = error.what();
  const size_t at = what.rfind(" (node \"");
  if (at == std::string::npos || !what.ends_with(')'))
    return {error.code(), fmt::format("{} ({})", what, label)};
  if (what.compare(at + 2, std::string::npos, label + ")") == 0) return error;
  return {error.code(), fmt::format("{} ({} / {}", what.substr(0, at), label, what.substr(at + 2))};
}

// What a node needs to run, for one set of input descriptions.
struct Interpreter::Prepared {
  Prepared(Device& device, const Node& node) : call(device, *node.op, node.attrs, node.name) {}

  std::vector<std::optional<TensorDesc>> inputs;  // constants are not compared
  std::optional<std::vector<Content>> contents;   // set: holds for these elements only
  std::optional<std::vector<Shape>> measured;     // set: holds for these output shapes only

  PreparedCall::Open open = PreparedCall::kNothing;  // an answer that more must be known
  PreparedCall call;
  std::vector<Tensor> constants;  // those that are read
};

Interpreter::Interpreter(Device& device, const Graph& graph, const CompileOptions& options,
                         int depth)
    : device_(device),
      threads_(options.threads),
      check_(options.check),
      denormals_(denormals_of(options, device.driver().traits())) {
  std::unordered_map<const Value*, int> slots;
  auto slot = [&](const Value* value) {
    return slots.emplace(value, static_cast<int>(slots.size())).first->second;
  };
  auto input = [&](const Value* value) {
    if (!value) return Input{};
    return value->is_constant() ? Input{-1, value} : Input{slot(value), nullptr};
  };
  for (const Value* value : graph.inputs()) slot(value);
  std::unordered_map<int, Site*> last_use;
  for (const auto& node : graph.nodes()) {
    Site& site = sites_.emplace_back();
    site.node = node.get();
    add_bodies(site, options, depth);
    for (const Value* value : node->inputs) {
      site.inputs.push_back(input(value));
      if (site.inputs.back().slot >= 0) last_use[site.inputs.back().slot] = &site;
    }
    for (const Value* value : node->outputs) {
      site.outputs.push_back(slot(value));
      last_use[site.outputs.back()] = &site;
    }
  }
  for (const Value* value : graph.outputs()) {
    results_.push_back(input(value));
    last_use.erase(results_.back().slot);
  }
  for (const auto& [dying, site] : last_use) site->dying.push_back(dying);
  slot_count_ = slots.size();
  for (Site& site : sites_) {
    std::unordered_map<int, int> reads;
    for (const Input& read : site.inputs) ++reads[read.slot];
    for (Input& read : site.inputs) {
      const auto last = last_use.find(read.slot);
      read.ends = last != last_use.end() && last->second == &site && reads[read.slot] == 1;
    }
  }
}

Interpreter::~Interpreter() = default;

// What a body captures is the same in each of its runs; if it is a constant, it is one there too,
// so that it can be folded and packed.
void Interpreter::add_bodies(Site& site, const CompileOptions& options, int depth) {
  const Node& node = *site.node;
  for (size_t i = 0; i < node.op->attrs.size(); ++i) {
    if (node.op->attrs[i].kind != AttrKind::kGraph) continue;
    const std::string& attr = node.op->attrs[i].name;
    const auto& body = node.attrs.graph(attr.c_str());
    if (!body || !structural_op(*node.op).captures) continue;  // or a graph that is never run
    try {
      require(depth < kMaxDepth, "[{}] graphs are nested more than {} deep", node.op->name,
              kMaxDepth);
      auto copy = body->clone();
      const StructuralOp& op = structural_op(*node.op);
      const Captures captures = op.captures(node, attr);
      for (size_t k = captures.body; k < copy->inputs().size(); ++k) {
        const Value* given = node.input(captures.node + k - captures.body);
        if (given && given->is_constant())
          copy->replace_uses(copy->inputs()[k], copy->constant(given->constant, given->name));
      }
      site.bodies[attr] =
          std::make_shared<Executable>(device_.shared_from_this(), *copy, options, depth + 1);
    } catch (const Error& error) {
      throw with_node(error, node.label());
    }
  }
}

std::vector<Tensor> Interpreter::run(std::vector<Tensor> feeds, const RunState& state) {
  const ThreadScope threads(device_.driver(), threads_);
  const DenormalScope mode(denormals_);
  const ThreadPool::Awake awake;
  Slots slots = std::move(feeds);
  slots.resize(slot_count_);
  for (Site& site : sites_) {
    try {
      if (site.node->op->is(kStructural))
        run_structural(site, slots, state);
      else
        run_node(site, slots, state);
    } catch (const Error& error) {
      throw with_node(error, site.node->label());
    }
    for (const int slot : site.dying) slots[slot] = Tensor();
  }
  std::vector<Tensor> results;
  for (const Input& result : results_) results.push_back(value_of(result, slots));
  return results;
}

Tensor Interpreter::constant_tensor(const Constant& constant) {
  const Constant::Bytes bytes = constant.data();
  if (!device_.driver().traits().host_visible)
    return device_.from_host(constant.desc(), bytes.get());
  Tensor tensor;
  tensor.desc = constant.desc();
  tensor.buffer =
      Buffer::external(const_cast<std::byte*>(bytes.get()), constant.bytes(), [bytes](void*) {});
  return tensor;
}

// What a run hands on. Elements that a recipe makes for it (zeros that a buffer of a program starts
// with, whatever size a file claims) are memory of the device, which has a limit.
Tensor Interpreter::value_of(const Input& input, const Slots& slots) {
  if (!input.constant) return slots[input.slot];
  const Constant& constant = *input.constant->constant;
  if (!constant.is_lazy() || !device_.driver().traits().host_visible)
    return constant_tensor(constant);
  Tensor tensor = device_.empty(constant.dtype(), constant.shape());
  constant.make(static_cast<std::byte*>(tensor.data()));
  return tensor;
}

// The elements of small integer inputs, read from memory.
std::vector<Content> Interpreter::contents_of(const Site& site, const Slots& slots,
                                              const RunState& state) {
  std::vector<Content> contents(site.inputs.size());
  for (size_t i = 0; i < contents.size(); ++i) {
    if (site.inputs[i].slot < 0) continue;
    const Tensor& tensor = slots[site.inputs[i].slot];
    if (is_list(tensor.desc)) contents[i] = device_.integers(tensor, state.queue);
  }
  return contents;
}

std::vector<Shape> Interpreter::measure(const Site& site, const Slots& slots,
                                        const RunState& state) {
  MeasureInputs inputs(site.inputs.size());
  for (size_t i = 0; i < site.inputs.size(); ++i) {
    const Input& input = site.inputs[i];
    if (input.constant)
      inputs.set(i, *input.constant->constant);
    else if (!input.absent())
      inputs.set(i, device_, slots[input.slot], state.queue);
  }
  return inputs.measure(*site.node->op, site.node->attrs, site.node->outputs.size());
}

Interpreter::PreparedPtr Interpreter::find(Site& site, const Slots& slots,
                                           const std::vector<Content>* contents,
                                           const std::vector<Shape>* measured) {
  auto fits = [&](const Prepared& made) {
    if (made.contents.has_value() != (contents != nullptr)) return false;
    if (made.measured.has_value() != (measured != nullptr)) return false;
    for (size_t i = 0; i < site.inputs.size(); ++i)
      if (site.inputs[i].slot >= 0 && !(*made.inputs[i] == slots[site.inputs[i].slot].desc))
        return false;
    return (!contents || *made.contents == *contents) && (!measured || *made.measured == *measured);
  };
  std::lock_guard lock(site.mutex);
  for (const PreparedPtr& made : site.recent)
    if (fits(*made)) return made;
  return nullptr;
}

// A node is prepared in up to three steps: from descriptions alone, with the elements of small
// integer inputs, and with shapes that were measured.
Interpreter::PreparedPtr Interpreter::prepare(Site& site, const Slots& slots,
                                              const std::vector<Content>* contents,
                                              const std::vector<Shape>* measured) {
  const Node& node = *site.node;
  const ThreadScope threads(device_.driver(), ThreadScope::Exactly{threads_});
  const DenormalScope kept(Denormals::kKeep);
  auto made = std::make_shared<Prepared>(device_, node);
  if (contents) made->contents = *contents;
  if (measured) made->measured = *measured;
  PreparedCall& call = made->call;
  for (size_t i = 0; i < site.inputs.size(); ++i) {
    const Input& input = site.inputs[i];
    std::optional<TensorDesc>& compared = made->inputs.emplace_back();
    if (input.absent()) {
      call.add_absent();
    } else if (input.constant) {
      const ConstantPtr& constant = input.constant->constant;
      call.add_input(constant->desc(), numbers(input.constant->type.content), constant);
    } else {
      compared = slots[input.slot].desc;
      call.add_input(*compared, contents ? (*contents)[i] : std::nullopt);
    }
  }
  made->open = call.infer(node.outputs.size(), node.label(), measured);
  if (made->open != PreparedCall::kNothing) return made;
  if (!call.find_views()) call.choose();
  // Perhaps a kernel only lacks the elements.
  if (call.choice && call.choice->is_fallback && call.lacks_contents())
    made->open = PreparedCall::kContents;
  made->constants.resize(site.inputs.size());
  for (size_t i = 0; i < site.inputs.size(); ++i) {
    const bool read = call.choice ? call.choice->kernel->reads(i) || check_ : i == 0;
    if (site.inputs[i].constant && read)
      made->constants[i] = constant_tensor(*site.inputs[i].constant->constant);
  }
  return made;
}

Interpreter::PreparedPtr Interpreter::ready(Site& site, const Slots& slots,
                                            const std::vector<Content>* contents,
                                            const std::vector<Shape>* measured) {
  if (PreparedPtr found = find(site, slots, contents, measured)) return found;
  PreparedPtr made = prepare(site, slots, contents, measured);
  std::lock_guard lock(site.mutex);
  site.recent.push_front(made);
  if (site.recent.size() > kRecent) site.recent.pop_back();
  return made;
}

void Interpreter::run_node(Site& site, Slots& slots, const RunState& state) {
  PreparedPtr made = ready(site, slots, nullptr, nullptr);
  std::optional<std::vector<Content>> contents;
  if (made->open == PreparedCall::kContents) {
    contents = contents_of(site, slots, state);
    made = ready(site, slots, &*contents, nullptr);
  }
  if (made->open == PreparedCall::kMeasure) {
    const std::vector<Shape> shapes = measure(site, slots, state);
    made = ready(site, slots, contents ? &*contents : nullptr, &shapes);
  }
  const KernelRequest& request = made->call.request;
  if (const std::vector<OutputView>& views = made->call.views; !views.empty()) {
    const Tensor& source =
        site.inputs[0].constant ? made->constants[0] : slots[site.inputs[0].slot];
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < views.size(); ++i) {
      Tensor& view = outputs.emplace_back(source);
      view.desc = request.outputs[i];
      view.desc.strides = views[i].strides;
      view.offset = static_cast<int64_t>(source.offset) +
                    views[i].offset * static_cast<int64_t>(size_of(view.desc.dtype));
    }
    for (size_t i = 0; i < outputs.size(); ++i) slots[site.outputs[i]] = std::move(outputs[i]);
    return;
  }
  std::vector<void*> in(site.inputs.size(), nullptr), out;
  std::vector<Tensor> copies, outputs;
  for (size_t i = 0; i < in.size(); ++i) {
    const Input& input = site.inputs[i];
    if (input.constant) {
      if (made->constants[i].buffer) in[i] = made->constants[i].data();
    } else if (input.slot >= 0) {
      const Tensor& tensor = slots[input.slot];
      in[i] = (made->call.packed[i] ? copies.emplace_back(device_.contiguous(tensor, state.queue))
                                    : tensor)
                  .data();
    }
  }
  for (const TensorDesc& desc : request.outputs) {
    outputs.push_back(device_.empty(desc.dtype, desc.shape));
    out.push_back(outputs.back().data());
  }
  const KernelChoice& choice = *made->call.choice;
  const Kernel& kernel = *choice.kernel;
  BufferRef scratch;
  if (kernel.scratch_bytes() > 0) scratch = device_.allocator().allocate(kernel.scratch_bytes());
  const DenormalScope own_mode(choice.is_fallback ? Denormals::kKeep : Denormals::kAsThread);
  const int64_t start = state.profiler ? state.profiler->now() : 0;
  kernel.run(
      {in.data(), out.data(), scratch ? scratch->data() : nullptr, &state.queue, state.strings});
  if (state.profiler)
    state.profiler->add({site.node->name, site.node->op->name, choice.name, kernel.detail(), "",
                         start, state.profiler->now() - start, 0, 0, 0});
  if (check_) check_with_oracle(device_.driver(), choice, request, in.data(), out.data());
  for (size_t i = 0; i < outputs.size(); ++i) slots[site.outputs[i]] = std::move(outputs[i]);
}

Tensor as_container(Tensor tensor, Container container) {
  if (tensor.container == container) return tensor;
  if (container == Container::kOptional && tensor.container == Container::kTensor) {
    Tensor result;
    result.desc.dtype = tensor.desc.dtype;
    result.container = container;
    result.items = std::make_shared<const std::vector<Tensor>>(1, std::move(tensor));
    return result;
  }
  if (container == Container::kOptionalSequence && tensor.container == Container::kSequence)
    tensor.container = container;
  return tensor;
}

void Interpreter::run_structural(Site& site, Slots& slots, const RunState& state) {
  std::vector<Tensor> inputs(site.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = site.inputs[i];
    if (input.absent()) continue;
    // A value that ends here is handed over: whoever is its only owner may change it in place.
    if (input.ends)
      inputs[i] = std::move(slots[input.slot]);
    else
      inputs[i] = value_of(input, slots);
  }
  StructuralCall call(*site.node, device_, state, site.bodies, std::move(inputs));
  std::vector<Tensor> outputs = structural_op(*site.node->op).run(call);
  if (outputs.size() != site.outputs.size())
    fail(Code::kInternal, "[{}] gave {} results instead of {}", site.node->op->name, outputs.size(),
         site.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    slots[site.outputs[i]] =
        as_container(std::move(outputs[i]), site.node->outputs[i]->type.container);
}

}  // namespace anymps
