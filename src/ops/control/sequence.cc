// SPDX-License-Identifier: Apache-2.0
// Lists of tensors. A list's type is that of its elements; extents that differ among them are not
// known. The runtime runs these ops, in src/runtime/sequence.cc.
#include <algorithm>

#include "ops/expect.h"
#include "ops/subgraph.h"

namespace anymps {

namespace {

ValueType element(const ValueType& list) {
  return {list.dtype, list.ranked, list.shape, std::nullopt, Container::kTensor};
}

ValueType list_of(const ValueType& element) {
  return {element.dtype, element.ranked, element.shape, std::nullopt, Container::kSequence};
}

// What two elements have in common; `hint` names the extents that differ.
ValueType either(const InferContext& ctx, const ValueType& a, const ValueType& b) {
  ValueType type{
      a.dtype, a.ranked && b.ranked && a.shape.size() == b.shape.size(), {}, std::nullopt};
  if (!type.ranked) return type;
  for (size_t axis = 0; axis < a.shape.size(); ++axis)
    type.shape.push_back(a.shape[axis] == b.shape[axis] ? a.shape[axis]
                                                        : ctx.fresh(fmt::format("{}", axis)));
  return type;
}

void infer_construct(InferContext& ctx) {
  ctx.check(ctx.has(0), "needs at least one input; sequence_empty makes a list of none");
  ValueType type = element(ctx.type(0));
  for (size_t i = 1; i < ctx.input_count(); ++i) type = either(ctx, type, ctx.type(i));
  ctx.set_type(0, list_of(type));
}

void infer_empty(InferContext& ctx) {
  ctx.set_type(0, {ctx.attrs.dtype("dtype"), false, {}, std::nullopt, Container::kSequence});
}

// Elements of a list need not be alike, so an extent that is not a number is a new one each time.
void infer_at(InferContext& ctx) {
  expect_one_element(ctx, 1);
  ValueType type = element(ctx.type(0));
  for (size_t axis = 0; axis < type.shape.size(); ++axis)
    if (!type.shape[axis].known()) type.shape[axis] = ctx.fresh(fmt::format("{}", axis));
  ctx.set_type(0, std::move(type));
}

void infer_insert(InferContext& ctx) {
  expect_one_element(ctx, 2);
  ctx.set_type(0, list_of(either(ctx, ctx.type(0), ctx.type(1))));
}

void infer_erase(InferContext& ctx) {
  expect_one_element(ctx, 1);
  ctx.set_type(0, list_of(ctx.type(0)));
}

void infer_length(InferContext& ctx) { ctx.set(0, DType::kI64, {}); }

void infer_split_sequence(InferContext& ctx) {
  ValueType type = element(ctx.type(0));
  if (!type.ranked) return ctx.set_type(0, list_of(type));
  const size_t axis = ctx.axis("axis", 0);
  if (ctx.has(1) && ctx.type(1).ranked)
    ctx.check(ctx.rank(1) <= 1, "split must be a number or a list, it has the shape {}",
              to_string(ctx.shape(1)));
  if (!ctx.has(1) && !ctx.attrs.b("keep_dims"))
    type.shape.erase(type.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  else
    type.shape[axis] = ctx.has(1) ? ctx.fresh("piece") : Dim(1);
  ctx.set_type(0, list_of(type));
}

void infer_concat_sequence(InferContext& ctx) {
  const ValueType& list = ctx.type(0);
  ValueType type = element(list);
  if (!type.ranked) return ctx.set_type(0, std::move(type));
  const bool stacks = ctx.attrs.b("new_axis");
  const auto rank = std::ssize(type.shape) + stacks;
  const int64_t axis = normalize_axis(ctx.attrs.i("axis"), rank, "concat_from_sequence");
  if (stacks)
    type.shape.insert(type.shape.begin() + axis, ctx.fresh("n"));
  else
    type.shape[axis] = ctx.fresh("n");
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis && !type.shape[i].known()) type.shape[i] = ctx.fresh(fmt::format("{}", i));
  ctx.set_type(0, std::move(type));
}

void infer_map(InferContext& ctx) {
  const auto& graph = ctx.attrs.graph("body");
  ctx.check(graph != nullptr, "attribute 'body' holds no graph");
  const Signature body = signature_of(*graph);
  ctx.check(body.inputs.size() == ctx.input_count(), "'body' has {} inputs, must have {}",
            body.inputs.size(), ctx.input_count());
  ctx.check(body.outputs.size() == ctx.output_count(), "'body' has {} outputs, must have {}",
            body.outputs.size(), ctx.output_count());
  ctx.check(ctx.has(0) && ctx.type(0).container == Container::kSequence,
            "the first input must be a list");
  for (size_t i = 0; i < ctx.input_count(); ++i)
    ctx.check(body.inputs[i].dtype == ctx.dtype(i), "input '{}' of 'body' is {}, but gets {}",
              body.names[i], to_string(body.inputs[i]), to_string(ctx.type(i)));
  for (size_t i = 0; i < ctx.output_count(); ++i) {
    ValueType type = body.outputs[i];
    ctx.check(type.container == Container::kTensor, "output {} of 'body' is a {}", i,
              name(type.container));
    for (size_t axis = 0; axis < type.shape.size(); ++axis)
      if (!type.shape[axis].known()) type.shape[axis] = ctx.fresh(fmt::format("{}.{}", i, axis));
    ctx.set_type(i, list_of(type));
  }
}

OpWriter& list_input(OpWriter& op) { return op.input("list", kEvery).containers(kSequences); }

OpWriter& run_on_lists(OpWriter& op) {
  return op.facts(kStructural).no_tests("run by the runtime: tests/runtime/sequence_test.cc");
}

}  // namespace

OP(sequence_construct)
    .doc("A list of the inputs.")
    .formula("y = [x0, x1, …]")
    .onnx("SequenceConstruct")
    .variadic("inputs", kEvery)
    .output("y")
    .with(run_on_lists)
    .infer(infer_construct);

OP(sequence_empty)
    .doc("An empty list.")
    .formula("y = []")
    .output("y", "")
    .attr("dtype", DType::kF32, "of the elements to come")
    .with(run_on_lists)
    .infer(infer_empty);

OP(sequence_at)
    .doc("One tensor of a list; a negative position counts from the end.")
    .formula("y = list[position]")
    .onnx("SequenceAt")
    .with(list_input)
    .input("position", kIndex, "I", "one element")
    .output("y")
    .with(run_on_lists)
    .infer(infer_at);

OP(sequence_insert)
    .doc("The list with a tensor more, before a position; at the end if there is no position.")
    .formula("y = list[:position] + [x] + list[position:]")
    .with(list_input)
    .input("x", kEvery)
    .optional("position", kIndex, "I", "one element; negative: from the end")
    .output("y")
    .with(run_on_lists)
    .infer(infer_insert);

OP(sequence_erase)
    .doc("The list without one of its tensors, the last if there is no position.")
    .formula("y = list[:position] + list[position + 1:]")
    .with(list_input)
    .optional("position", kIndex, "I", "one element; negative: from the end")
    .output("y")
    .with(run_on_lists)
    .infer(infer_erase);

OP(sequence_length)
    .doc("How many tensors a list has.")
    .formula("y = len(list)")
    .onnx("SequenceLength")
    .with(list_input)
    .output("y", "i64")
    .with(run_on_lists)
    .infer(infer_length);

OP(split_to_sequence)
    .doc(
        "A list of pieces of a tensor: of the given sizes, of one size (the last may be smaller), "
        "or of one element along the axis.")
    .formula("y = split(x, split, axis)")
    .input("x", kEvery)
    .optional("split", kIndex, "I", "the sizes, or a scalar: the size of each")
    .output("y")
    .attr("axis", 0, "along which axis")
    .attr("keep_dims", true, "without `split`: whether the axis stays, with extent 1")
    .with(run_on_lists)
    .infer(infer_split_sequence);

OP(concat_from_sequence)
    .doc("The tensors of a list joined along an axis, or stacked along a new one.")
    .formula("y = concat(list, axis)")
    .with(list_input)
    .output("y")
    .required("axis", AttrKind::kInt, "along which axis of the result")
    .attr("new_axis", false, "the axis is a new one")
    .with(run_on_lists)
    .infer(infer_concat_sequence);

OP(sequence_map)
    .doc(
        "Runs a graph for each tensor of a list. Further lists, of the same length, are gone "
        "through alongside; tensors are given to each run as they are.")
    .formula("y[i] = body(list[i], others[i] or others)")
    .variadic("inputs", kEvery, "", "a list, then lists and tensors")
    .containers(kTensors | kSequences)
    .variadic_outputs("y", "")
    .required("body", AttrKind::kGraph, "what is done with each tensor")
    .with(run_on_lists)
    .infer(infer_map);

}  // namespace anymps
