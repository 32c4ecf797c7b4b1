// SPDX-License-Identifier: Apache-2.0
// Running what an eager call has found: which tensors the kernel works on directly, which are
// copied before or after it, and what is counted and timed.
#include <pthread.h>

#include <optional>

#include "runtime/eager/request.h"
#include "runtime/eager/temporaries.h"
#include "runtime/plan.h"

namespace anymps {

namespace {

bool meet(const TensorView& a, const ByteRange& a_reach, const TensorView& b,
          const ByteRange& b_reach) {
  const char *first = static_cast<const char*>(a.data), *second = static_cast<const char*>(b.data);
  return first + a_reach.begin < second + b_reach.end &&
         second + b_reach.begin < first + a_reach.end;
}

// Element by element the same memory.
bool same_place(const TensorView& a, const TensorView& b) {
  if (a.data != b.data || a.rank != b.rank || size_of(a.dtype) != size_of(b.dtype)) return false;
  if (!std::equal(a.dims, a.dims + a.rank, b.dims)) return false;
  const bool plain = row_major(a);
  return plain == row_major(b) && (plain || std::equal(a.strides, a.strides + a.rank, b.strides));
}

// Elements point to strings of the inputs or of the run: the output gets its own.
StringStorePtr own_strings(Device& device, Text* elements, const TensorDesc& desc) {
  require(device.driver().traits().host_visible, "[eager] device '{}' cannot hold strings",
          device.name());
  auto store = std::make_shared<StringStore>();
  for (int64_t i = 0; i < desc.count(); ++i) elements[i] = store->add(text_of(elements[i]));
  return store;
}

}  // namespace

void Eager::check_output(const EagerEntry& entry, size_t i, const TensorView& output) {
  const TensorDesc& desc = entry.results[i];
  const bool fits = output.dtype == desc.dtype &&
                    static_cast<size_t>(output.rank) == desc.shape.size() &&
                    std::equal(desc.shape.begin(), desc.shape.end(), output.dims);
  if (!fits) [[unlikely]]
    fail(Code::kInvalidArgument, "[{}] output {} must be {}, {} given", entry.call.request.op->name,
         i, to_string(desc), to_string(desc_of(output)));
}

void Eager::run(const EagerEntry& entry, const Request& request) {
  const std::span<const TensorView> inputs = request.inputs, outputs = request.outputs;
  const PreparedCall& ready = entry.call;
  const Kernel& kernel = *ready.choice->kernel;
  Temporaries temporaries(device_.allocator());
  SmallVector<void*, 8> in, out;
  uint64_t packed = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    in.push_back(inputs[i].data);
    if (!entry.copies || !ready.packed[i]) continue;
    const TensorDesc dense(inputs[i].dtype, Shape(inputs[i].dims, inputs[i].dims + inputs[i].rank));
    const TensorView copied = temporaries.like(dense);
    copy(inputs[i], copied, request.queue);
    in.back() = copied.data;
    ++packed;
  }
  // An output that shares memory with an input the kernel cannot overwrite, or whose strides it
  // cannot write, is computed aside and copied.
  SmallVector<size_t, 4> aside;
  SmallVector<TensorView, 4> computed;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorView& output = outputs[i];
    check_output(entry, i, output);
    bool direct = !entry.copies || !ready.aside[i];
    for (size_t k = 0; direct && k < inputs.size(); ++k)
      if (in[k] && in[k] == inputs[k].data &&
          meet(inputs[k], entry.input_reach[k], output, entry.output_reach[i]))
        direct = !checked_ && kernel.in_place(k, i) && same_place(inputs[k], output);
    for (size_t k = 0; k < i; ++k)
      require(!meet(outputs[k], entry.output_reach[k], output, entry.output_reach[i]),
              "[{}] outputs {} and {} share memory", request.op.name, k, i);
    out.push_back(output.data);
    if (direct) continue;
    aside.push_back(i);
    computed.push_back(temporaries.like(entry.written[i]));
    out.back() = computed.back().data;
  }
  std::optional<StringStore> strings;
  if (entry.strings) strings.emplace();
  const size_t scratch = kernel.scratch_bytes();
  run_kernel(entry, {in.data(), out.data(), scratch ? temporaries.take(scratch) : nullptr,
                     &request.queue, strings ? &*strings : nullptr, request.parameters.data()});
  if (checked_) [[unlikely]]
    compare(entry, request, in.data(), out.data());
  if (entry.strings) {
    require(!request.output_tensors.empty(), "[{}] strings need tensors", request.op.name);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (entry.results[i].dtype == DType::kString)
        request.output_tensors[i].strings =
            own_strings(device_, static_cast<Text*>(out[i]), entry.results[i]);
  }
  for (size_t i = 0; i < aside.size(); ++i) copy(computed[i], outputs[aside[i]], request.queue);
  if (ready.choice->is_fallback || packed || !aside.empty()) count(entry, packed, aside.size());
}

void Eager::run_kernel(const EagerEntry& entry, const KernelArgs& args) {
  const PreparedCall& call = entry.call;
  const DenormalScope mode(entry.denormals);
  if (!watched_.load(std::memory_order_relaxed)) [[likely]]
    return call.choice->kernel->run(args);
  std::shared_ptr<Profiler> profiler;
  {
    std::lock_guard lock(mutex_);
    profiler = profiler_;
  }
  if (!profiler) return call.choice->kernel->run(args);
  const int64_t start = profiler->now();
  call.choice->kernel->run(args);
  const KernelRequest& request = call.request;
  ProfileEvent event{request.op->name, request.op->name, call.choice->name,
                     call.choice->kernel->detail(), ""};
  event.start_ns = start;
  event.duration_ns = profiler->now() - start;
  for (const auto& input : request.inputs)
    if (input) event.shapes += (event.shapes.empty() ? "" : " x ") + to_string(*input);
  event.bytes = bytes_moved(request);
  event.flops = flops(request);
  event.thread = static_cast<uint64_t>(pthread_self());
  profiler->add(std::move(event));
}

void Eager::compare(const EagerEntry& entry, const Request& request, void* const* in,
                    void* const* out) {
  request.queue.synchronize();
  const DenormalScope mode(entry.denormals);
  KernelRequest asked = entry.call.request;
  for (size_t i = 0; i < request.parameters.size(); ++i)
    asked.attrs.set({request.bound->parameters[i], request.parameters[i]});
  asked.parameters.clear();  // their values are among the attributes
  check_with_oracle(device_.driver(), *entry.call.choice, asked, in, out);
}

void Eager::count(const EagerEntry& entry, uint64_t packed, uint64_t aside) {
  std::lock_guard lock(mutex_);
  EagerCounts& counts = counts_[entry.call.request.op->name];
  ++counts.calls;
  counts.reference += entry.call.choice->is_fallback;
  counts.packed += packed;
  counts.aside += aside;
}

}  // namespace anymps
