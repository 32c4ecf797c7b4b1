// SPDX-License-Identifier: Apache-2.0
#include "runtime/eager/eager.h"

#include <algorithm>

#include "base/env.h"
#include "runtime/eager/channels_last.h"
#include "runtime/eager/request.h"
#include "runtime/eager/use.h"
#include "runtime/eager/window.h"
#include "runtime/measure.h"

namespace anymps {

namespace {

// A primitive of oneDNN holds some 75 KB of code and tables; our own kernels hold next to nothing.
constexpr size_t kPrimitiveWeight = 8;

// Whether the call can be an instruction of a program, with the same numbers.
bool can_join(const PreparedCall& call) {
  const KernelRequest& request = call.request;
  const Op& op = *request.op;
  const bool filled = fills(op) && !request.has(0);
  if ((!op.is(kElementwise) && !filled) || op.is(kInternal) || op.is(kImpure)) return false;
  if (op.outputs.size() != 1 || op.variadic_outputs || op.max_inputs() != op.inputs.size() ||
      request.inputs.size() > CallWindow::kMostInputs || call.choice->is_fallback)
    return false;
  const auto is_list = [](const AttrSpec& spec) {
    return spec.kind == AttrKind::kInts || spec.kind == AttrKind::kFloats ||
           spec.kind == AttrKind::kGraph;
  };
  if (!filled && std::any_of(op.attrs.begin(), op.attrs.end(), is_list)) return false;
  for (const auto& input : request.inputs)
    if (input && !contains(kAny, input->dtype)) return false;
  return contains(kAny, request.out().dtype);
}

Denormals denormals_of_calls(Driver& driver) {
  const Denormals mode = resolve(DenormalOption::kAsCalls);
  return driver.traits().flushes_denormals ? mode : Denormals::kAsThread;
}

}  // namespace

Eager::Eager(Device& device, size_t capacity)
    : device_(device),
      denormals_(denormals_of_calls(device.driver())),
      checked_(env_contains("ANYMPS_CHECK", "reference")),
      entries_(capacity),
      epoch_(next_id()) {}

CacheStats Eager::stats() const {
  CacheStats stats = entries_.stats();
  stats.hits += remembered_.load(std::memory_order_relaxed);
  return stats;
}

void Eager::clear() {
  const uint64_t before = epoch_.exchange(next_id());
  RememberedEntries::of_this_thread().forget(before);
  entries_.clear();
  versions_.clear();
}

void Eager::find(Use& use, const EagerKey& key) {
  const uint64_t hash = key.hash(), epoch = epoch_.load(std::memory_order_relaxed);
  RememberedEntries::Slot& slot = RememberedEntries::of_this_thread().slot(hash);
  if (slot.hash == hash && slot.epoch == epoch && slot.entry && slot.entry->key == key) {
    remembered_.fetch_add(1, std::memory_order_relaxed);
    return use.pin(slot);
  }
  std::shared_ptr<EagerEntry> found = entries_.find(key);
  if (!found) return use.drop();
  if (slot.pins > 0) return use.hold(std::move(found));
  slot.hash = hash;
  slot.epoch = epoch;
  slot.entry = std::move(found);
  use.pin(slot);
}

Content Eager::content_of(const TensorView& view, Queue& queue) {
  const TensorDesc desc = desc_of(view);
  if (!is_list(desc)) return std::nullopt;
  return device_.integers(borrowed(view), queue);
}

std::shared_ptr<EagerEntry> Eager::prepare(const Request& request, bool content,
                                           const std::vector<Shape>* measured) {
  const Op& op = request.op;
  if (op.is(kStructural))
    fail(Code::kUnsupported, "[{}] is for graphs: it cannot be called by itself", op.name);
  const ThreadScope threads(device_.driver(), ThreadScope::Exactly{0});
  const DenormalScope kept(Denormals::kKeep);
  auto entry =
      std::make_shared<EagerEntry>(PreparedCall(device_, op, request.complete_attrs(), ""));
  PreparedCall& call = entry->call;
  if (request.bound) call.request.parameters = request.bound->parameters;
  for (const TensorView& input : request.inputs) {
    if (input.absent()) {
      entry->input_reach.emplace_back();
      call.add_absent();
      continue;
    }
    call.add_input(desc_of(input), content ? content_of(input, request.queue) : std::nullopt);
    entry->input_reach.push_back(byte_range(call.request.inputs.back().value()));
  }
  if (!request.versions.empty()) set_constants(call, request);
  entry->open = call.infer(request.outputs.size(), "", measured);
  if (entry->open != PreparedCall::kNothing) return entry;
  entry->results = call.request.outputs;
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    TensorDesc& desc = call.request.outputs[i];
    if (!request.outputs[i].absent() && !row_major(request.outputs[i])) {
      check_output(*entry, i, request.outputs[i]);
      const TensorDesc given = desc_of(request.outputs[i]);
      for (size_t axis = 0; axis < given.shape.size(); ++axis)
        require(given.strides[axis] != 0 || given.shape[axis] <= 1,
                "[{}] the elements of output {} share memory: {}", op.name, i, to_string(given));
      desc = given;
    }
    entry->output_reach.push_back(byte_range(desc));
  }
  entry->written = call.request.outputs;
  const bool strings = std::any_of(entry->results.begin(), entry->results.end(),
                                   [](const auto& desc) { return desc.dtype == DType::kString; });
  entry->strings = strings;
  if (strings) call.request.outputs = entry->results;
  if (!choose_channels_last(call)) call.choose();
  for (size_t i = 0; i < call.aside.size(); ++i) {
    if (strings && !entry->written[i].contiguous()) call.aside[i] = true;
    if (call.aside[i]) entry->written[i] = entry->results[i];
  }
  const auto any = [](const std::vector<bool>& flags) {
    return std::find(flags.begin(), flags.end(), true) != flags.end();
  };
  if (denormals_ != Denormals::kAsThread)
    entry->denormals = call.choice->is_fallback ? Denormals::kKeep : denormals_;
  entry->copies = any(call.packed) || any(call.aside);
  entry->fixed = !call.request.parameters.empty() && !call.choice->kernel->takes_parameters();
  if (call.choice->name.ends_with(":onednn")) entry->weight = kPrimitiveWeight;
  entry->joins = !checked_ && !entry->copies && can_join(call);
  return entry;
}

std::vector<Shape> Eager::measure(const Request& request) {
  MeasureInputs measured(request.inputs.size());
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (request.inputs[i].absent()) continue;
    if (request.input_tensors.empty())
      measured.set(i, device_, borrowed(request.inputs[i]), request.queue);
    else
      measured.set(i, device_, *request.input_tensors[i], request.queue);
  }
  return measured.measure(request.op, request.complete_attrs(), request.outputs.size());
}

void Eager::find_or_make(Use& use, const EagerKey& key, const Request& request, bool content,
                         const std::vector<Shape>* measured) {
  find(use, key);
  if (use) return;
  auto made = prepare(request, content, measured);
  made->key = key;
  const size_t weight = made->weight;
  use.hold(entries_.insert(key, std::move(made), weight));
}

// Leaves the entry of the call in `use`, made now if it is not there.
void Eager::look_up(Use& use, const Request& request) {
  require(!request.bound || request.parameters.size() == request.bound->parameters.size(),
          "[{}] {} parameters are given, there are {}", request.op.name, request.parameters.size(),
          request.bound ? request.bound->parameters.size() : 0);
  EagerKey key = request.whole_key();
  bool content = false;
  std::vector<Shape> shapes;  // of the results, where they are measured
  const auto again = [&] {
    find_or_make(use, key, request, content, shapes.empty() ? nullptr : &shapes);
  };
  again();
  if (use->open != PreparedCall::kNothing) request.queue.synchronize();
  if (use->open == PreparedCall::kContents) {
    content = true;
    for (const TensorView& input : request.inputs) {
      const Content elements = input.absent() ? std::nullopt : content_of(input, request.queue);
      key.add(elements ? elements->size() + 1 : 0);
      if (elements) key.add(*elements);
    }
    again();
  }
  if (use->open == PreparedCall::kMeasure) {
    shapes = measure(request);
    for (const Shape& shape : shapes) {
      key.add(shape.size() + 1);
      key.add(std::span<const int64_t>(shape));
    }
    again();
  }
  if (use->fixed) {
    for (const double value : request.parameters) key.add(std::bit_cast<uint64_t>(value));
    again();
  }
}

void Eager::call(const BoundOp& op, std::span<const TensorView> inputs,
                 std::span<const TensorView> outputs, Queue& queue,
                 std::span<const double> parameters, std::span<const uint64_t> versions) {
  Request request{op.op, op.key, &op, {}, inputs, outputs, queue, parameters};
  Use use;
  look_up(use, request);
  request.versions = versions;
  if (!versions.empty())
    if (const auto entry = versioned(*use, request)) return run(*entry, request);
  run(*use, request);
}

void Eager::check(const BoundOp& op, std::span<const TensorView> inputs,
                  std::span<const TensorView> outputs, Queue& queue,
                  std::span<const double> parameters) {
  Use use;
  look_up(use, {op.op, op.key, &op, {}, inputs, outputs, queue, parameters});
  for (size_t i = 0; i < outputs.size(); ++i) check_output(*use, i, outputs[i]);
}

std::shared_ptr<const EagerEntry> Eager::fix(const BoundOp& op, std::span<const TensorView> inputs,
                                             std::span<const TensorView> outputs, Queue& queue) {
  if (checked_ || !op.parameters.empty()) return nullptr;
  const Request request{op.op, op.key, &op, {}, inputs, outputs, queue};
  Use use;
  find_or_make(use, request.whole_key(), request, false, nullptr);
  if (use->open != PreparedCall::kNothing) return nullptr;
  for (size_t i = 0; i < outputs.size(); ++i) check_output(*use, i, outputs[i]);
  const KernelChoice& choice = *use->call.choice;
  // What weighs more stays where the cache bounds it.
  const bool simple = !use->copies && !use->strings && use->weight == 1 && !choice.is_fallback &&
                      choice.kernel->scratch_bytes() == 0;
  return simple ? use.shared() : nullptr;
}

void Eager::infer(const BoundOp& op, std::span<const TensorView> inputs, size_t count, Queue& queue,
                  const std::function<void(size_t, const TensorDesc&)>& tell) {
  const SmallVector<TensorView, 4> none(count);
  Use use;
  const std::vector<double> any(op.parameters.size(), 0);  // shapes do not depend on them
  look_up(use, {op.op, op.key, &op, {}, inputs, none, queue, any});
  for (size_t i = 0; i < count; ++i) tell(i, use->results[i]);
}

void Eager::call(const Op& op, std::span<const Tensor* const> inputs,
                 std::span<const EagerAttr> attrs, std::span<Tensor> outputs) {
  SmallVector<TensorView, 8> from;
  for (const Tensor* input : inputs) {
    if (input && input->container != Container::kTensor)
      fail(Code::kUnsupported, "[{}] lists and optionals are for graphs: give a tensor", op.name);
    from.push_back(input ? view_of(*input) : TensorView());
  }
  SmallVector<TensorView, 4> to;
  for (const Tensor& output : outputs) to.push_back(output.buffer ? view_of(output) : TensorView());
  const EagerKey key(op, attrs);
  const Request request{op, key, nullptr, attrs, from, to, device_.queue(), {}, inputs};
  Use use;
  look_up(use, request);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].buffer) continue;
    outputs[i] = device_.empty(use->results[i].dtype, use->results[i].shape);
    to[i] = view_of(outputs[i]);
  }
  run(*use, {op, key, nullptr, attrs, from, to, device_.queue(), {}, inputs, outputs});
}

void Eager::copy(const TensorView& from, const TensorView& to, Queue& queue) {
  static const BoundOp& identity = *new BoundOp(get_op("identity"), {});
  // Kernels that move elements need not know the types that only lie in memory.
  TensorView source = from, target = to;
  if (contains(kNarrow, source.dtype)) source.dtype = target.dtype = DType::kU8;
  if (source.dtype == DType::kString) source.dtype = target.dtype = DType::kU64;
  static_assert(sizeof(void*) == sizeof(uint64_t));
  call(identity, {&source, 1}, {&target, 1}, queue);
}

std::map<std::string, EagerCounts> Eager::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

void Eager::reset_counts() {
  std::lock_guard lock(mutex_);
  counts_.clear();
}

void Eager::watch(std::shared_ptr<Profiler> profiler) {
  std::lock_guard lock(mutex_);
  profiler_ = std::move(profiler);
  watched_.store(profiler_ != nullptr, std::memory_order_relaxed);
}

}  // namespace anymps
