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
  std::vector<std::optional<TensorDesc>> inputs;  // constants are not compared
  std::optional<std::vector<Content>> contents;   // set: holds for these elements only
  std::optional<std::vector<Shape>> measured;     // set: holds for these output shapes only

  bool needs_content = false, needs_measure = false;  // an answer that more must be known

  KernelRequest request;
  std::vector<std::pair<Strides, int64_t>> views;  // of each output; not empty: no kernel
  KernelChoice choice;
  std::vector<bool> made_plain;   // inputs that are copied to be contiguous first
  std::vector<Tensor> constants;  // those that the kernel reads
};

Interpreter::Interpreter(Device& device, const Graph& graph, const CompileOptions& options,
                         int depth)
    : device_(device), threads_(options.threads), check_(options.check) {
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
    for (const int slot : site.dying) slots[static_cast<size_t>(slot)] = Tensor();
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
  if (!input.constant) return slots[static_cast<size_t>(input.slot)];
  const Constant& constant = *input.constant->constant;
  if (!constant.is_lazy() || !device_.driver().traits().host_visible)
    return constant_tensor(constant);
  Tensor tensor = device_.empty(constant.dtype(), constant.shape());
  constant.make(static_cast<std::byte*>(tensor.data()));
  return tensor;
}

const TensorDesc& Interpreter::desc_of(const Input& input, const Slots& slots) const {
  return input.constant ? input.constant->constant->desc()
                        : slots[static_cast<size_t>(input.slot)].desc;
}

// The elements of small integer inputs, read from memory.
std::vector<Interpreter::Content> Interpreter::contents_of(const Site& site, const Slots& slots,
                                                           const RunState& state) {
  std::vector<Content> contents(site.inputs.size());
  for (size_t i = 0; i < contents.size(); ++i) {
    if (site.inputs[i].slot < 0) continue;
    const Tensor& tensor = slots[static_cast<size_t>(site.inputs[i].slot)];
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
      inputs.set(i, device_, slots[static_cast<size_t>(input.slot)], state.queue);
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
      if (site.inputs[i].slot >= 0 &&
          !(*made.inputs[i] == slots[static_cast<size_t>(site.inputs[i].slot)].desc))
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
  auto made = std::make_shared<Prepared>();
  if (contents) made->contents = *contents;
  if (measured) made->measured = *measured;
  KernelRequest& request = made->request;
  request.op = node.op;
  request.attrs = node.attrs;
  request.node = node.name;
  request.packed = &device_.packed();
  std::vector<ValueType> types(site.inputs.size());
  std::vector<const ValueType*> pointers(site.inputs.size(), nullptr);
  bool more = false;  // elements that could be read, but were not
  for (size_t i = 0; i < site.inputs.size(); ++i) {
    const Input& input = site.inputs[i];
    made->inputs.emplace_back();
    request.inputs.emplace_back();
    request.constants.emplace_back();
    request.contents.emplace_back();
    if (input.absent()) {
      request.contents[i].emplace();  // an empty list
      continue;
    }
    const TensorDesc& desc = desc_of(input, slots);
    request.inputs[i] = desc;
    if (input.constant) {
      types[i] = input.constant->type;
      request.constants[i] = input.constant->constant;
      request.contents[i] = numbers(types[i].content);
    } else {
      made->inputs[i] = desc;
      types[i] = {desc.dtype, true, to_dims(desc.shape), std::nullopt};
      if (contents) request.contents[i] = (*contents)[i];
      if (request.contents[i])
        types[i].content = Dims(request.contents[i]->begin(), request.contents[i]->end());
      more = more || (!contents && is_list(desc));
    }
    pointers[i] = &types[i];
  }
  const std::vector<ValueType> results =
      InferContext::run(*node.op, node.attrs, pointers, node.outputs.size(), node.label());
  for (size_t i = 0; i < results.size(); ++i) {
    const ValueType& type = results[i];
    if (type.static_shape()) {
      request.outputs.emplace_back(type.dtype, to_shape(type.shape));
    } else if (more) {
      made->needs_content = true;
      return made;
    } else if (measured) {
      request.outputs.emplace_back(type.dtype, (*measured)[i]);
    } else if (node.op->measure) {
      made->needs_measure = true;
      return made;
    } else {
      fail(Code::kInvalidArgument, "[{}] the shape {} cannot be known before the op runs",
           node.op->name, to_string(type));
    }
  }
  if (node.op->view && try_view(site, *made)) return made;
  choose(site, *made);
  if (more && made->choice.is_fallback) made->needs_content = true;  // perhaps it only lacks those
  return made;
}

bool Interpreter::try_view(const Site& site, Prepared& made) {
  const Node& node = *site.node;
  if (site.inputs.empty() || site.inputs[0].absent()) return false;
  const KernelRequest& request = made.request;
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    ViewContext view{
        node.attrs, request.in(0),         request.contents, i, request.outputs[i].shape, {},
        0,          request.outputs.size()};
    if (!node.op->view(view)) return made.views.clear(), false;
    made.views.emplace_back(view.strides, view.offset);
  }
  if (site.inputs[0].constant)
    made.constants = {constant_tensor(*site.inputs[0].constant->constant)};
  return true;
}

void Interpreter::choose(const Site& site, Prepared& made) {
  KernelRequest& request = made.request;
  made.choice = choose_kernel(device_.driver(), request);
  made.made_plain.assign(site.inputs.size(), false);
  if (made.choice.is_fallback) {
    // Perhaps only the strides were refused.
    KernelRequest packed = request;
    std::vector<bool> strided(site.inputs.size(), false);
    for (size_t i = 0; i < packed.inputs.size(); ++i) {
      if (!packed.inputs[i] || packed.inputs[i]->contiguous()) continue;
      strided[i] = true;
      packed.inputs[i] = TensorDesc(packed.inputs[i]->dtype, packed.inputs[i]->shape);
    }
    if (std::find(strided.begin(), strided.end(), true) != strided.end()) {
      KernelChoice better = choose_kernel(device_.driver(), packed);
      if (!better.is_fallback) {
        made.choice = std::move(better);
        made.made_plain = std::move(strided);
        request.inputs = packed.inputs;
      }
    }
  }
  made.constants.resize(site.inputs.size());
  for (size_t i = 0; i < site.inputs.size(); ++i)
    if (site.inputs[i].constant && (made.choice.kernel->reads(i) || check_))
      made.constants[i] = constant_tensor(*site.inputs[i].constant->constant);
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
  if (made->needs_content) {
    contents = contents_of(site, slots, state);
    made = ready(site, slots, &*contents, nullptr);
  }
  if (made->needs_measure) {
    const std::vector<Shape> shapes = measure(site, slots, state);
    made = ready(site, slots, contents ? &*contents : nullptr, &shapes);
  }
  const KernelRequest& request = made->request;
  if (!made->views.empty()) {
    const Tensor& source = site.inputs[0].constant
                               ? made->constants[0]
                               : slots[static_cast<size_t>(site.inputs[0].slot)];
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < made->views.size(); ++i) {
      Tensor& view = outputs.emplace_back(source);
      view.desc = request.outputs[i];
      view.desc.strides = made->views[i].first;
      view.offset = static_cast<size_t>(static_cast<int64_t>(source.offset) +
                                        made->views[i].second *
                                            static_cast<int64_t>(size_of(view.desc.dtype)));
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      slots[static_cast<size_t>(site.outputs[i])] = std::move(outputs[i]);
    return;
  }
  std::vector<void*> in(site.inputs.size(), nullptr), out;
  std::vector<Tensor> copies, outputs;
  for (size_t i = 0; i < in.size(); ++i) {
    const Input& input = site.inputs[i];
    if (input.constant) {
      if (made->constants[i].buffer) in[i] = made->constants[i].data();
    } else if (input.slot >= 0) {
      const Tensor& tensor = slots[static_cast<size_t>(input.slot)];
      in[i] = (made->made_plain[i] ? copies.emplace_back(device_.contiguous(tensor, state.queue))
                                   : tensor)
                  .data();
    }
  }
  for (const TensorDesc& desc : request.outputs) {
    outputs.push_back(device_.empty(desc.dtype, desc.shape));
    out.push_back(outputs.back().data());
  }
  const Kernel& kernel = *made->choice.kernel;
  BufferRef scratch;
  if (kernel.scratch_bytes() > 0) scratch = device_.allocator().allocate(kernel.scratch_bytes());
  const int64_t start = state.profiler ? state.profiler->now() : 0;
  kernel.run(
      {in.data(), out.data(), scratch ? scratch->data() : nullptr, &state.queue, state.strings});
  if (state.profiler)
    state.profiler->add({site.node->name, site.node->op->name, made->choice.name, kernel.detail(),
                         "", start, state.profiler->now() - start, 0, 0, 0});
  if (check_) check_with_oracle(device_.driver(), made->choice, request, in.data(), out.data());
  for (size_t i = 0; i < outputs.size(); ++i)
    slots[static_cast<size_t>(site.outputs[i])] = std::move(outputs[i]);
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
      inputs[i] = std::move(slots[static_cast<size_t>(input.slot)]);
    else
      inputs[i] = value_of(input, slots);
  }
  StructuralCall call(*site.node, device_, state, site.bodies, std::move(inputs));
  std::vector<Tensor> outputs = structural_op(*site.node->op).run(call);
  if (outputs.size() != site.outputs.size())
    fail(Code::kInternal, "[{}] gave {} results instead of {}", site.node->op->name, outputs.size(),
         site.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    slots[static_cast<size_t>(site.outputs[i])] =
        as_container(std::move(outputs[i]), site.node->outputs[i]->type.container);
}

}  // namespace anymps
