// SPDX-License-Identifier: Apache-2.0
#include "delegate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime_symbols.h"

namespace et = executorch::runtime;

namespace anymps::delegate {

namespace {

using Tensor = et::etensor::Tensor;
using Type = et::etensor::ScalarType;

constexpr size_t kKnownShapes = 64;

[[noreturn]] void fail(const std::string& message) {
  throw amps::Error(AMPS_INVALID_ARGUMENT, message);
}

amps_dtype dtype_of(Type type) {
  switch (type) {
    case Type::Byte:
      return AMPS_U8;
    case Type::Char:
      return AMPS_I8;
    case Type::Short:
      return AMPS_I16;
    case Type::Int:
      return AMPS_I32;
    case Type::Long:
      return AMPS_I64;
    case Type::Half:
      return AMPS_F16;
    case Type::Float:
      return AMPS_F32;
    case Type::Double:
      return AMPS_F64;
    case Type::Bool:
      return AMPS_BOOL;
    case Type::BFloat16:
      return AMPS_BF16;
    case Type::UInt16:
      return AMPS_U16;
    case Type::UInt32:
      return AMPS_U32;
    case Type::UInt64:
      return AMPS_U64;
    default:
      throw amps::Error(AMPS_UNSUPPORTED, "a tensor of ExecuTorch's scalar type " +
                                              std::to_string(static_cast<int>(type)));
  }
}

std::vector<int64_t> shape_of(const Tensor& tensor) {
  return {tensor.sizes().begin(), tensor.sizes().end()};
}

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

// The engine's view of ExecuTorch's memory.
amps::Tensor wrap(const amps::Device& device, const Tensor& tensor, const std::string& name) {
  const std::vector<int64_t> shape = shape_of(tensor);
  if (!tensor.const_data_ptr() && tensor.numel() > 0)
    fail("'" + name +
         "' has no memory: the program leaves it to the caller (set_input, set_output)");
  const std::vector<int64_t> strides(tensor.strides().begin(), tensor.strides().end());
  amps_tensor* wrapped = nullptr;
  amps::check(amps_tensor_wrap(device.c(), dtype_of(tensor.scalar_type()), shape.size(),
                               shape.data(), strides.data(), tensor.mutable_data_ptr(), nullptr,
                               nullptr, &wrapped));
  return amps::Tensor(wrapped);
}

Tensor& tensor_of(et::EValue* value, const char* side, size_t index) {
  if (!value->isTensor())
    fail(std::string(side) + " " + std::to_string(index) + " of the delegate is no tensor");
  return value->toTensor();
}

void resize_output(Tensor& tensor, const std::vector<int64_t>& shape, const std::string& name) {
  if (shape_of(tensor) == shape) return;
  const std::vector<int32_t> sizes(shape.begin(), shape.end());
  if (std::ssize(sizes) != tensor.dim() ||
      resize(tensor, {sizes.data(), sizes.size()}) != et::Error::Ok)
    fail("output '" + name + "' has shape " + text_of(shape) + ", the program's tensor has " +
         text_of(shape_of(tensor)) + " and cannot be resized to it");
}

void log_events(et::EventTracer& tracer, const amps::Profiler& profiler, int64_t start_ticks) {
  const auto trace = nlohmann::json::parse(profiler.text("trace"));
  double origin = 0;
  for (const auto& event : trace["traceEvents"])
    if (event["cat"] == "run") origin = event["ts"].get<double>();
  for (const auto& event : trace["traceEvents"]) {
    if (event["cat"] != "kernel") continue;
    const auto& args = event["args"];
    const auto node = args["node"].get<std::string>();
    const auto op = event["name"].get<std::string>();
    const std::string kernel =
        op + " " + args["kernel"].get<std::string>() + " " + args["shapes"].get<std::string>();
    // Microseconds in the trace, nanoseconds on the runtime's clock.
    const int64_t start = start_ticks + std::llround((event["ts"].get<double>() - origin) * 1e3);
    const int64_t end = start + std::llround(event["dur"].get<double>() * 1e3);
    tracer.log_profiling_delegate(node.empty() ? op.c_str() : node.c_str(),
                                  et::kUnsetDelegateDebugIntId, static_cast<et_timestamp_t>(start),
                                  static_cast<et_timestamp_t>(end), kernel.data(), kernel.size());
  }
}

}  // namespace

Delegate::Compiled::Compiled(amps::Executable made)
    : executable(std::move(made)), inputs(executable.inputs()), outputs(executable.outputs()) {}

bool Delegate::Compiled::takes(const Shapes& shapes) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape own = inputs[i].shape();
    if (own.size() != shapes[i].size()) return false;
    for (size_t axis = 0; axis < own.size(); ++axis)
      if (own[axis] >= 0 && own[axis] != shapes[i][axis]) return false;
  }
  return true;
}

Delegate::Delegate(std::span<const std::byte> payload, int threads, const std::string& name)
    : payload_(payload),
      threads_(threads),
      name_(name),
      device_(amps::Device::get()),
      declared_(compile(nullptr)) {}

std::unique_ptr<Delegate::Compiled> Delegate::compile(const Shape* dims) const {
  amps::CompileOptions options;
  options.threads = threads_;
  const amps::Graph graph = amps::Graph::load_payload(payload_, name_, dims);
  return std::make_unique<Compiled>(device_.compile(graph, options));
}

Delegate::Compiled& Delegate::compiled_for(const Shapes& shapes) {
  if (declared_->takes(shapes)) return *declared_;
  if (open_ && open_->takes(shapes)) return *open_;
  Shape exact, dims;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape declared = declared_->inputs[i].shape();
    const Shape known = (open_ ? open_ : declared_)->inputs[i].shape();
    if (declared.size() != shapes[i].size())
      fail("input " + std::to_string(i) + " has shape " + text_of(shapes[i]) + ", declared is " +
           text_of(declared));
    for (size_t axis = 0; axis < declared.size(); ++axis) {
      if (declared[axis] >= 0 && shapes[i][axis] > declared[axis])
        fail("input " + std::to_string(i) + " has extent " + std::to_string(shapes[i][axis]) +
             " on axis " + std::to_string(axis) + ", but at most " +
             std::to_string(declared[axis]) + " is allowed");
      exact.push_back(shapes[i][axis]);
      dims.push_back(known[axis] == shapes[i][axis] ? known[axis] : -1);
    }
  }
  if (can_open_) {
    try {
      open_ = compile(&dims);
      return *open_;
    } catch (const amps::Error&) {
      can_open_ = false;  // an op wants to know an extent
    }
  }
  const auto found = fixed_.find(shapes);
  if (found != fixed_.end()) return *found->second;
  if (fixed_.size() >= kKnownShapes) fixed_.clear();
  return *fixed_.emplace(shapes, compile(&exact)).first->second;
}

void Delegate::run(et::Span<et::EValue*> args, et::EventTracer* tracer) {
  const size_t inputs = declared_->inputs.size(), outputs = declared_->outputs.size();
  if (args.size() != inputs + outputs)
    fail("the program passes " + std::to_string(args.size()) + " arguments, the payload has " +
         std::to_string(inputs) + " inputs and " + std::to_string(outputs) + " outputs");
  Shapes shapes;
  for (size_t i = 0; i < inputs; ++i) shapes.push_back(shape_of(tensor_of(args[i], "input", i)));
  run(compiled_for(shapes), args, shapes, tracer);
}

void Delegate::run(Compiled& compiled, et::Span<et::EValue*> args, const Shapes& shapes,
                   et::EventTracer* tracer) {
  std::vector<amps::Tensor> feeds, results(compiled.outputs.size());
  for (size_t i = 0; i < shapes.size(); ++i)
    feeds.push_back(wrap(device_, tensor_of(args[i], "input", i), compiled.inputs[i].name()));
  const auto output = [&](size_t i) -> Tensor& {
    return tensor_of(args[shapes.size() + i], "output", i);
  };
  const auto known = compiled.outputs_of.find(shapes);
  const bool seen = known != compiled.outputs_of.end();
  for (size_t i = 0; seen && i < results.size(); ++i) {
    resize_output(output(i), known->second[i], compiled.outputs[i].name());
    results[i] = wrap(device_, output(i), compiled.outputs[i].name());
  }
  std::optional<amps::Profiler> profiler;
  if (tracer) profiler.emplace();
  const int64_t start = tracer ? ticks() : 0;
  compiled.executable.run(feeds, results, nullptr, profiler ? &*profiler : nullptr);
  if (tracer) log_events(*tracer, *profiler, start);
  if (seen) return;
  // The first run of these shapes gives those of the outputs: it makes its own results.
  Shapes made;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string name = compiled.outputs[i].name();
    made.push_back(results[i].shape());
    resize_output(output(i), made.back(), name);
    if (static_cast<amps_dtype>(results[i].dtype()) != dtype_of(output(i).scalar_type()))
      fail("output '" + name + "' is " + amps::name(results[i].dtype()) +
           ", the program's tensor is not");
    const amps::Tensor target = wrap(device_, output(i), name);
    amps_tensor* from = results[i].c();
    amps_tensor* to = target.c();
    amps::check(amps_eager(device_.c(), amps_op_find("identity"), &from, 1, nullptr, 0, &to, 1));
  }
  if (compiled.outputs_of.size() >= kKnownShapes) compiled.outputs_of.clear();
  compiled.outputs_of.emplace(shapes, std::move(made));
}

}  // namespace anymps::delegate
