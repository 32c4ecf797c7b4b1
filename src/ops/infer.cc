// SPDX-License-Identifier: Apache-2.0
#include "ops/infer.h"

#include <algorithm>

namespace anymps {

std::string to_string(const ValueType& type) {
  const std::string tensor =
      name(type.dtype) + (type.ranked ? to_string(type.shape) : std::string("[?]"));
  return type.container == Container::kTensor
             ? tensor
             : fmt::format("{} of {}", name(type.container), tensor);
}

const Dims& InferContext::shape(size_t i) const {
  if (!inputs_[i]->ranked) throw Unranked{};
  return inputs_[i]->shape;
}

std::optional<Dims> InferContext::ints(size_t i, const char* attr) const {
  if (has(i)) return inputs_[i]->content;
  const std::vector<int64_t>& values = attrs.ints(attr);
  return Dims(values.begin(), values.end());
}

int64_t InferContext::axis(const char* attr, size_t input) const {
  const int64_t axis = attrs.i(attr), r = rank(input);
  check(axis >= -r && axis < r, "{} {} is out of range for rank {}", attr, axis, r);
  return axis < 0 ? axis + r : axis;
}

void InferContext::fail_here(const std::string& reason) const {
  if (node_.empty()) fail(Code::kInvalidArgument, "[{}] {}", op.name, reason);
  fail(Code::kInvalidArgument, "[{}] {} ({})", op.name, reason, node_);
}

DType InferContext::output_dtype(size_t i) const {
  const OutputSpec& spec = op.outputs[std::min(i, op.outputs.size() - 1)];
  const bool real = spec.type.starts_with("real "), complex = spec.type.starts_with("complex ");
  const std::string_view variable =
      std::string_view(spec.type).substr(real || complex ? spec.type.find(' ') + 1 : 0);
  for (size_t k = 0; k < op.inputs.size(); ++k)
    if (!variable.empty() && op.inputs[k].type == variable && has(k)) {
      const DType dtype = inputs_[k]->dtype;
      return real ? real_dtype(dtype) : complex ? complex_dtype(dtype) : dtype;
    }
  if (spec.type.empty())
    for (const AttrSpec& attr : op.attrs)
      if (attr.kind == AttrKind::kDType) return attrs.dtype(attr.name.c_str());
  if (spec.type.empty())
    fail(Code::kInternal, "[{}] infer must set the dtype of output '{}'", op.name, spec.name);
  return parse_dtype(spec.type);
}

void InferContext::set(size_t i, std::optional<DType> dtype, Dims shape) {
  outputs_.at(i) = {dtype ? *dtype : output_dtype(i), true, std::move(shape), std::nullopt};
}

void InferContext::set_unranked(size_t i, std::optional<DType> dtype) {
  outputs_.at(i) = {dtype ? *dtype : output_dtype(i), false, {}, std::nullopt};
}

void InferContext::set_type(size_t i, ValueType type) { outputs_.at(i) = std::move(type); }

void InferContext::set_content(size_t i, Dims content) {
  if (std::ssize(content) <= ValueType::kMaxContent) outputs_.at(i).content = std::move(content);
}

Dim InferContext::fresh(const std::string& hint) const {
  return Dim::symbol("?" + op.name + "." + hint + (node_.empty() ? "" : "@" + node_));
}

std::vector<ValueType> InferContext::run(const Op& op, const Attrs& attrs,
                                         std::vector<const ValueType*> inputs, size_t outputs,
                                         const std::string& node) {
  InferContext ctx(op, attrs, std::move(inputs), outputs, node);
  ctx.check(ctx.input_count() <= op.max_inputs(), "takes at most {} inputs, {} given",
            op.inputs.size(), ctx.input_count());
  struct Bound {
    const std::string* type;
    DType dtype;
  };
  SmallVector<Bound, 4> bound;
  const size_t slots = std::max(op.inputs.size(), ctx.input_count());
  for (size_t i = 0; i < slots; ++i) {
    const InputSpec& spec = op.inputs[std::min(i, op.inputs.size() - 1)];
    if (!ctx.has(i)) {
      // Control flow may have nothing to hand on.
      const bool none = spec.variadic && op.is(kStructural) && i >= ctx.input_count();
      ctx.check(spec.optional || none, "input '{}' is missing", spec.name);
      continue;
    }
    if (!contains(spec.dtypes, ctx.dtype(i)))
      ctx.fail_here(fmt::format("input '{}' is {}, must be one of {}", spec.name,
                                name(ctx.dtype(i)), to_string(spec.dtypes)));
    const Container container = ctx.type(i).container;
    ctx.check(spec.containers & bit(container), "input '{}' is a {}", spec.name, name(container));
    if (spec.type.empty()) continue;  // any dtype, whatever the others are
    const auto before = std::find_if(bound.begin(), bound.end(),
                                     [&](const Bound& item) { return *item.type == spec.type; });
    if (before == bound.end())
      bound.push_back({&spec.type, ctx.dtype(i)});
    else
      ctx.check(before->dtype == ctx.dtype(i),
                "input '{}' is {}, but must have the same dtype as the inputs before it, {}",
                spec.name, name(ctx.dtype(i)), name(before->dtype));
  }
  ctx.check(op.variadic_outputs || outputs <= op.outputs.size(), "has {} outputs, {} asked for",
            op.outputs.size(), outputs);
  try {
    op.infer(ctx);
  } catch (const Unranked&) {
    for (size_t i = 0; i < outputs; ++i) ctx.set_unranked(i);
  } catch (const Error& error) {
    const std::string what = error.what();
    if (node.empty() || what.find(node) != std::string::npos) throw;
    throw Error(error.code(), what + " (" + node + ")");
  }
  for (size_t i = 0; i < outputs; ++i)
    for (const Dim& dim : ctx.outputs_[i].shape)
      if (dim.known() && dim.value() < 0)
        ctx.fail_here(fmt::format("output '{}' would have the shape {}",
                                  op.outputs[std::min(i, op.outputs.size() - 1)].name,
                                  to_string(ctx.outputs_[i].shape)));
  return std::move(ctx.outputs_);
}

void infer_same(InferContext& ctx) {
  ctx.set(0, ctx.shape(0));
  if (const Dims* content = ctx.content(0); content && ctx.op.name == "identity")
    ctx.set_content(0, *content);
}

void infer_broadcast(InferContext& ctx) {
  Dims shape = ctx.shape(0);
  for (size_t i = 1; i < ctx.input_count(); ++i)
    if (ctx.has(i)) shape = broadcast(shape, ctx.shape(i), ctx.op.name.c_str());
  ctx.set(0, std::move(shape));
}

}  // namespace anymps
