// SPDX-License-Identifier: Apache-2.0
// Running a graph whose shapes depend on data: one node at a time, each result allocated when its
// shape is known. Slower than a plan, and used only when there cannot be one.
#include <cstring>
#include <unordered_map>

#include "runtime/executable.h"

namespace anymps {

namespace {

class Interpreter {
 public:
  Interpreter(Device& device, const Graph& graph, int threads, Queue& queue, bool check,
              Profiler* profiler)
      : device_(device),
        graph_(graph),
        threads_(threads),
        queue_(queue),
        check_(check),
        profiler_(profiler) {}

  std::vector<Tensor> run(const std::vector<Tensor>& feeds) {
    for (size_t i = 0; i < feeds.size(); ++i)
      tensors_[graph_.inputs()[i]] = device_.contiguous(feeds[i]);
    std::unordered_map<const Value*, size_t> uses;
    for (const auto& node : graph_.nodes())
      for (const Value* value : node->inputs)
        if (value) ++uses[value];
    for (const auto& node : graph_.nodes()) {
      run_node(*node);
      for (const Value* value : node->inputs)
        if (value && --uses[value] == 0 && !graph_.is_output(value)) tensors_.erase(value);
    }
    std::vector<Tensor> results;
    for (const Value* value : graph_.outputs()) results.push_back(tensor_of(value));
    return results;
  }

 private:
  const Tensor& tensor_of(const Value* value) {
    auto it = tensors_.find(value);
    if (it != tensors_.end()) return it->second;
    const Constant& constant = *value->constant;
    const Constant::Bytes bytes = constant.data();
    if (!device_.driver().traits().host_visible)
      return tensors_[value] = device_.from_host(constant.desc(), bytes.get());
    Tensor tensor{
        constant.desc(),
        Buffer::external(const_cast<std::byte*>(bytes.get()), constant.bytes(), [bytes](void*) {}),
        0};
    return tensors_[value] = std::move(tensor);
  }

  ValueType type_of(const Tensor& tensor) {
    ValueType type{tensor.desc.dtype, true, to_dims(tensor.desc.shape), std::nullopt};
    const bool integer = type.dtype == DType::kI64 || type.dtype == DType::kI32;
    const int64_t count = tensor.desc.count();
    if (!integer || tensor.desc.rank() > 1 || count > ValueType::kMaxContent) return type;
    std::vector<char> bytes(tensor.desc.bytes());
    device_.to_host(tensor, bytes.data());
    type.content =
        content_of(*Constant::copy(type.dtype, tensor.desc.shape, std::as_bytes(std::span(bytes))));
    return type;
  }

  void run_node(const Node& node) {
    KernelRequest request;
    request.op = node.op;
    request.attrs = node.attrs;
    request.node = node.name;
    request.threads = threads_;
    request.packed = &device_.packed();
    std::vector<ValueType> types(node.inputs.size());
    std::vector<const ValueType*> pointers(node.inputs.size(), nullptr);
    std::vector<void*> in(node.inputs.size(), nullptr), out;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      request.inputs.emplace_back();
      request.constants.emplace_back();
      request.contents.emplace_back();
      if (!node.inputs[i]) continue;
      const Tensor& tensor = tensor_of(node.inputs[i]);
      types[i] = type_of(tensor);
      pointers[i] = &types[i];
      in[i] = tensor.data();
      request.inputs[i] = tensor.desc;
      request.constants[i] = node.inputs[i]->constant;
      if (!types[i].content) continue;
      request.contents[i].emplace();
      for (const Dim& dim : *types[i].content) request.contents[i]->push_back(dim.value());
    }
    std::vector<ValueType> results =
        InferContext::run(*node.op, node.attrs, pointers, node.outputs.size(), node.label());
    std::vector<Tensor> outputs;
    for (const ValueType& type : results) {
      require(type.static_shape(), "[{}] the shape {} cannot be known before the op runs ({})",
              node.op->name, to_string(type), node.label());
      outputs.push_back(device_.empty(type.dtype, to_shape(type.shape)));
      request.outputs.push_back(outputs.back().desc);
      out.push_back(outputs.back().data());
    }
    const KernelChoice choice = choose_kernel(device_.driver(), request);
    BufferRef scratch;
    if (choice.kernel->scratch_bytes() > 0)
      scratch = device_.allocator().allocate(choice.kernel->scratch_bytes());
    const int64_t start = profiler_ ? profiler_->now() : 0;
    try {
      choice.kernel->run({in.data(), out.data(), scratch ? scratch->data() : nullptr, &queue_});
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{} ({})", error.what(), node.label()));
    }
    if (profiler_)
      profiler_->add({node.name, node.op->name, choice.name, choice.kernel->detail(), "", start,
                      profiler_->now() - start, 0, 0, 0});
    if (check_) check_with_oracle(device_.driver(), choice, request, in.data(), out.data());
    for (size_t i = 0; i < outputs.size(); ++i) tensors_[node.outputs[i]] = outputs[i];
  }

  Device& device_;
  const Graph& graph_;
  int threads_;
  Queue& queue_;
  bool check_;
  Profiler* profiler_;
  std::unordered_map<const Value*, Tensor> tensors_;
};

}  // namespace

void Executable::interpret(const std::vector<Tensor>& feeds, std::vector<Tensor>& results,
                           Queue& queue, Profiler* profiler) {
  device_->driver().use_threads(options_.threads);
  std::vector<Tensor> made =
      Interpreter(*device_, *graph_, options_.threads, queue, options_.check, profiler).run(feeds);
  results.resize(made.size());
  for (size_t i = 0; i < made.size(); ++i) {
    if (!results[i].buffer) {
      results[i] = made[i];
      continue;
    }
    require(results[i].desc == made[i].desc, "[run] result '{}' must be {}, {} given",
            graph_->outputs()[i]->name, to_string(made[i].desc), to_string(results[i].desc));
    device_->driver().copy_on_device(results[i].data(), made[i].data(), made[i].desc.bytes(),
                                     &queue);
  }
}

}  // namespace anymps
