// SPDX-License-Identifier: Apache-2.0
// Control flow: nodes that hold graphs and run them. A body sees nothing but its inputs; what it
// uses from outside (its captures) is handed to it as inputs of the node, after the others. The
// runtime runs these ops, in src/runtime/control_flow.cc.
#include <algorithm>
#include <set>

#include "ops/expect.h"
#include "ops/subgraph.h"

namespace anymps {

namespace {

Signature body_of(const InferContext& ctx, const char* attr) {
  const auto& graph = ctx.attrs.graph(attr);
  ctx.check(graph != nullptr, "attribute '{}' holds no graph", attr);
  return signature_of(*graph);
}

// A body that takes an optional takes the thing itself.
bool holds(Container body, Container given) {
  return body == given || (body == Container::kOptional && given == Container::kTensor) ||
         (body == Container::kOptionalSequence && given == Container::kSequence);
}

bool accepts(const ValueType& body, const ValueType& given) {
  if (body.dtype != given.dtype || !holds(body.container, given.container)) return false;
  if (!body.ranked || !given.ranked) return true;
  return std::equal(body.shape.begin(), body.shape.end(), given.shape.begin(), given.shape.end(),
                    [](const Dim& a, const Dim& b) { return !a.known() || !b.known() || a == b; });
}

void check_input(const InferContext& ctx, const char* attr, const Signature& body, size_t k,
                 const ValueType& given) {
  ctx.check(accepts(body.inputs[k], given), "input '{}' of '{}' is {}, but gets {}", body.names[k],
            attr, to_string(body.inputs[k]), to_string(given));
}

void check_counts(const InferContext& ctx, const char* attr, const Signature& body, size_t inputs,
                  size_t outputs) {
  ctx.check(body.inputs.size() == inputs, "'{}' has {} inputs, must have {}", attr,
            body.inputs.size(), inputs);
  ctx.check(body.outputs.size() == outputs, "'{}' has {} outputs, must have {}", attr,
            body.outputs.size(), outputs);
}

// Node inputs from `first` on are what body inputs from `k` on get.
void check_inputs(const InferContext& ctx, const char* attr, const Signature& body, size_t k,
                  size_t first) {
  for (; k < body.inputs.size(); ++k, ++first) {
    ctx.check(ctx.has(first), "input {} is missing", first);
    check_input(ctx, attr, body, k, ctx.type(first));
  }
}

Container merged(const InferContext& ctx, size_t i, Container a, Container b) {
  if (a == b) return a;
  const auto both = static_cast<ContainerSet>(bit(a) | bit(b));
  if (both == (bit(Container::kTensor) | bit(Container::kOptional))) return Container::kOptional;
  if (both == (bit(Container::kSequence) | bit(Container::kOptionalSequence)))
    return Container::kOptionalSequence;
  ctx.fail_here(fmt::format("output {} is a {} or a {}", i, name(a), name(b)));
}

// The type of a value that is one of two: what they have in common.
ValueType either(const InferContext& ctx, size_t i, const ValueType& a, const ValueType& b) {
  ctx.check(a.dtype == b.dtype, "output {} is {} or {}", i, to_string(a), to_string(b));
  ValueType type;
  type.dtype = a.dtype;
  type.container = merged(ctx, i, a.container, b.container);
  type.ranked = a.ranked && b.ranked && a.shape.size() == b.shape.size();
  if (!type.ranked) return type;
  for (size_t axis = 0; axis < a.shape.size(); ++axis)
    type.shape.push_back(a.shape[axis] == b.shape[axis] ? a.shape[axis]
                                                        : ctx.fresh(fmt::format("{}.{}", i, axis)));
  return type;
}

// A type from inside a body: a symbol means the same outside only if it came in from there.
ValueType outside(const InferContext& ctx, size_t i, ValueType type) {
  type.content.reset();
  if (!type.ranked) return type;
  std::set<std::string> known;
  for (size_t k = 0; k < ctx.input_count(); ++k)
    if (ctx.has(k))
      for (const Dim& dim : ctx.type(k).shape)
        if (!dim.known()) known.insert(dim.str());
  for (size_t axis = 0; axis < type.shape.size(); ++axis)
    if (!type.shape[axis].known() && !known.contains(type.shape[axis].str()))
      type.shape[axis] = ctx.fresh(fmt::format("{}.{}", i, axis));
  return type;
}

// How many of the inputs after the first few.
size_t count_attr(const InferContext& ctx, const char* attr, size_t first = 0) {
  const int64_t count = ctx.attrs.i(attr);
  const size_t inputs = std::max(ctx.input_count(), first) - first;
  ctx.check(count >= 0 && count <= static_cast<int64_t>(inputs), "{} is {}, but there are {}", attr,
            count, inputs);
  return count;
}

void infer_if_else(InferContext& ctx) {
  expect_one_element(ctx, 0);
  const Signature yes = body_of(ctx, "then_branch"), no = body_of(ctx, "else_branch");
  const size_t captures = ctx.input_count() - 1, outputs = ctx.output_count();
  check_counts(ctx, "then_branch", yes, captures, outputs);
  check_counts(ctx, "else_branch", no, captures, outputs);
  check_inputs(ctx, "then_branch", yes, 0, 1);
  check_inputs(ctx, "else_branch", no, 0, 1);
  for (size_t i = 0; i < outputs; ++i)
    ctx.set_type(i, outside(ctx, i, either(ctx, i, yes.outputs[i], no.outputs[i])));
}

void infer_while_loop(InferContext& ctx) {
  const size_t carried = count_attr(ctx, "carried");
  const size_t captures = ctx.input_count() - carried, results = ctx.output_count();
  const Signature before = body_of(ctx, "before"), after = body_of(ctx, "after");
  check_counts(ctx, "before", before, carried + captures, results + 1);
  check_counts(ctx, "after", after, results + captures, carried);
  check_inputs(ctx, "before", before, 0, 0);
  check_inputs(ctx, "after", after, results, carried);
  for (size_t i = 0; i < results; ++i) check_input(ctx, "after", after, i, before.outputs[i + 1]);
  for (size_t i = 0; i < carried; ++i) check_input(ctx, "before", before, i, after.outputs[i]);
  for (size_t i = 0; i < results; ++i) ctx.set_type(i, outside(ctx, i, before.outputs[i + 1]));
}

void infer_for_loop(InferContext& ctx) {
  for (size_t i = 0; i < 3; ++i) expect_one_element(ctx, i);
  const size_t carried = count_attr(ctx, "carried", 3);
  ctx.check(carried == ctx.output_count(), "carries {} values, but has {} outputs", carried,
            ctx.output_count());
  const Signature body = body_of(ctx, "body");
  check_counts(ctx, "body", body, ctx.input_count() - 2, carried);
  ValueType index{ctx.dtype(0), true, {}, std::nullopt};
  check_input(ctx, "body", body, 0, index);
  check_inputs(ctx, "body", body, 1, 3);
  for (size_t i = 0; i < carried; ++i) check_input(ctx, "body", body, i + 1, body.outputs[i]);
  for (size_t i = 0; i < carried; ++i)
    ctx.set_type(i, outside(ctx, i, either(ctx, i, ctx.type(i + 3), body.outputs[i])));
}

void infer_loop(InferContext& ctx) {
  for (size_t i = 0; i < 2; ++i) expect_one_element(ctx, i);
  const size_t carried = count_attr(ctx, "carried", 2);
  const size_t outputs = ctx.output_count();
  ctx.check(outputs >= carried, "carries {} values, but has {} outputs", carried, outputs);
  const Signature body = body_of(ctx, "body");
  check_counts(ctx, "body", body, std::max<size_t>(ctx.input_count(), 2), outputs + 1);
  check_input(ctx, "body", body, 0, {DType::kI64, true, {}, std::nullopt});
  check_input(ctx, "body", body, 1, {DType::kBool, true, {}, std::nullopt});
  check_inputs(ctx, "body", body, 2, 2);
  for (size_t i = 0; i < carried; ++i) {
    check_input(ctx, "body", body, i + 2, body.outputs[i + 1]);
    ctx.set_type(i, outside(ctx, i, either(ctx, i, ctx.type(i + 2), body.outputs[i + 1])));
  }
  for (size_t i = carried; i < outputs; ++i) {
    ValueType type = outside(ctx, i, body.outputs[i + 1]);
    ctx.check(type.container == Container::kTensor, "scan output {} is a {}", i - carried,
              name(type.container));
    if (type.ranked) type.shape.insert(type.shape.begin(), ctx.fresh("trips"));
    ctx.set_type(i, std::move(type));
  }
}

void check_list(const InferContext& ctx, const char* attr, size_t count) {
  const size_t given = ctx.attrs.ints(attr).size();
  ctx.check(given == 0 || given == count, "{} has {} entries, must have {}", attr, given, count);
}

void infer_scan(InferContext& ctx) {
  const size_t states = count_attr(ctx, "states"), scans = count_attr(ctx, "scan_inputs");
  ctx.check(scans > 0 && states + scans <= ctx.input_count(), "{} states and {} scan inputs of {}",
            states, scans, ctx.input_count());
  const size_t outputs = ctx.output_count();
  ctx.check(outputs >= states, "carries {} values, but has {} outputs", states, outputs);
  check_list(ctx, "input_axes", scans);
  check_list(ctx, "input_reversed", scans);
  check_list(ctx, "output_axes", outputs - states);
  check_list(ctx, "output_reversed", outputs - states);
  const Signature body = body_of(ctx, "body");
  check_counts(ctx, "body", body, ctx.input_count(), outputs);
  Dim trips = ctx.fresh("trips");
  for (size_t i = 0; i < scans; ++i) {
    ValueType element = ctx.type(states + i);
    element.content.reset();
    ctx.check(element.container == Container::kTensor, "scan input {} is a {}", i,
              name(element.container));
    if (element.ranked) {
      const auto rank = std::ssize(element.shape);
      const int64_t axis = normalize_axis(entry_or_zero(ctx.attrs, "input_axes", i), rank, "scan");
      const Dim extent = element.shape[axis];
      ctx.check(!trips.known() || !extent.known() || trips == extent,
                "scan input {} has {} elements to go through, the others {}", i, extent.str(),
                trips.str());
      if (!trips.known()) trips = extent;
      element.shape.erase(element.shape.begin() + axis);
    }
    check_input(ctx, "body", body, states + i, element);
  }
  for (size_t i = 0; i < states; ++i) {
    check_input(ctx, "body", body, i, ctx.type(i));
    check_input(ctx, "body", body, i, body.outputs[i]);
    ctx.set_type(i, outside(ctx, i, either(ctx, i, ctx.type(i), body.outputs[i])));
  }
  check_inputs(ctx, "body", body, states + scans, states + scans);
  for (size_t i = states; i < outputs; ++i) {
    ValueType type = outside(ctx, i, body.outputs[i]);
    ctx.check(type.container == Container::kTensor, "scan output {} is a {}", i - states,
              name(type.container));
    if (type.ranked) {
      const auto rank = std::ssize(type.shape) + 1;
      const int64_t axis =
          normalize_axis(entry_or_zero(ctx.attrs, "output_axes", i - states), rank, "scan");
      type.shape.insert(type.shape.begin() + axis, trips);
    }
    ctx.set_type(i, std::move(type));
  }
}

void infer_call(InferContext& ctx) {
  const Signature body = body_of(ctx, "callee");
  check_counts(ctx, "callee", body, ctx.input_count(), ctx.output_count());
  check_inputs(ctx, "callee", body, 0, 0);
  for (size_t i = 0; i < ctx.output_count(); ++i) ctx.set_type(i, outside(ctx, i, body.outputs[i]));
}

void infer_invalid_branch(InferContext& ctx) {
  const Signature like = body_of(ctx, "like");
  ctx.check(like.outputs.size() == ctx.output_count(), "'like' has {} outputs, must have {}",
            like.outputs.size(), ctx.output_count());
  for (size_t i = 0; i < ctx.output_count(); ++i) ctx.set_type(i, outside(ctx, i, like.outputs[i]));
}

void infer_control_dependency(InferContext& ctx) {
  const size_t outputs = ctx.output_count();
  ctx.check(outputs <= ctx.input_count(), "has {} outputs, but only {} inputs", outputs,
            ctx.input_count());
  for (size_t i = 0; i < outputs; ++i) ctx.set_type(i, ctx.type(i));
}

void infer_read_variable(InferContext& ctx) {
  ctx.set_type(0, {ctx.dtype(0), ctx.type(0).ranked, ctx.type(0).shape, std::nullopt});
}

OpWriter& structural(OpWriter& op) {
  return op.facts(kStructural).no_tests("run by the runtime: tests/runtime/control_flow_test.cc");
}

OpWriter& carrying(OpWriter& op) {
  return op.variadic("values", kEvery, "", "first values of what is carried, then captures")
      .containers(kContainers)
      .variadic_outputs("results", "");
}

}  // namespace

OP(if_else)
    .doc("Runs one of two graphs. Both get all captures and have the same number of outputs.")
    .formula("outputs = condition ? then_branch(captures) : else_branch(captures)")
    .mps("ifWithPredicateTensor:thenBlock:elseBlock:name:")
    .input("condition", kBoolean | kInt, "", "one element")
    .variadic("captures", kEvery, "", "the inputs of both branches")
    .containers(kContainers)
    .variadic_outputs("outputs", "")
    .required("then_branch", AttrKind::kGraph, "run when the condition is not zero")
    .required("else_branch", AttrKind::kGraph, "run when the condition is zero")
    .with(structural)
    .infer(infer_if_else);

OP(while_loop)
    .doc(
        "Repeats two graphs. `before` takes the carried values and gives a predicate and results; "
        "when the predicate is zero, these are the outputs, otherwise `after` makes new carried "
        "values of them.")
    .formula("for (;;) { go, r = before(carried); if (!go) return r; carried = after(r) }")
    .mps("whileWithInitialInputs:before:after:name:")
    .with(carrying)
    .required("before", AttrKind::kGraph, "(carried, captures) -> (predicate, results)")
    .required("after", AttrKind::kGraph, "(results, captures) -> carried")
    .required("carried", AttrKind::kInt, "how many values are carried")
    .with(structural)
    .facts(kPredicateFirst)
    .infer(infer_while_loop);

OP(for_loop)
    .doc(
        "Runs a graph for each index from lower up to, not including, upper. A number of "
        "iterations is the loop from 0 in steps of 1.")
    .formula("for (i = lower; i < upper; i += step) carried = body(i, carried)")
    .mps("forLoopWithLowerBound:upperBound:step:initialBodyArguments:body:name:")
    .mps("forLoopWithNumberOfIterations:initialBodyArguments:body:name:")
    .input("lower", kIndex, "I", "one element")
    .input("upper", kIndex, "I", "one element")
    .input("step", kIndex, "I", "one element; if it is negative, the loop runs down")
    .with(carrying)
    .required("body", AttrKind::kGraph, "(index, carried, captures) -> carried")
    .required("carried", AttrKind::kInt, "how many values are carried")
    .with(structural)
    .infer(infer_for_loop);

OP(loop)
    .doc(
        "ONNX's Loop: runs a graph while its condition holds and no more often than max_trips. "
        "Outputs are the carried values, then what the body gives besides, stacked along a new "
        "first axis.")
    .formula("for (i = 0; i < max_trips && c; ++i) c, carried, scans[i] = body(i, c, carried)")
    .optional("max_trips", kIndex, "", "one element; absent: without limit")
    .optional("condition", kBoolean, "", "one element; absent: true")
    .with(carrying)
    .required("body", AttrKind::kGraph,
              "(iteration i64, condition, carried, captures) -> (condition, carried, scans)")
    .required("carried", AttrKind::kInt, "how many values are carried")
    .with(structural)
    .facts(kPredicateFirst)
    .infer(infer_loop);

OP(scan)
    .doc(
        "ONNX's Scan: runs a graph for each slice of the scan inputs. Outputs are the states, then "
        "what the body gives besides, stacked along a new axis.")
    .formula("for i: states, outs[i] = body(states, ins[i])")
    .variadic("values", kEvery, "", "states, scan inputs, captures")
    .containers(kContainers)
    .variadic_outputs("results", "")
    .required("body", AttrKind::kGraph, "(states, slices, captures) -> (states, slices)")
    .required("states", AttrKind::kInt, "how many states there are")
    .required("scan_inputs", AttrKind::kInt, "how many scan inputs there are")
    .attr("input_axes", Ints{}, "which axis is gone through; empty: 0")
    .attr("input_reversed", Ints{}, "1: from the end; empty: 0")
    .attr("output_axes", Ints{}, "which axis is new; empty: 0")
    .attr("output_reversed", Ints{}, "1: from the end; empty: 0")
    .with(structural)
    .infer(infer_scan);

OP(call)
    .doc("Runs a graph that has a name of its own.")
    .formula("outputs = callee(inputs)")
    .mps("callSymbolName:inputTensors:outputTypes:name:")
    .variadic("inputs", kEvery, "")
    .containers(kContainers)
    .variadic_outputs("outputs", "")
    .required("callee", AttrKind::kGraph, "what is called")
    .attr("symbol", "", {}, "the name of what is called, for messages")
    .with(structural)
    .infer(infer_call);

OP(invalid_branch)
    .doc(
        "Stands for a branch that does not fit the shapes around it. Models hold such branches for "
        "other shapes and never take them; taking one is an error.")
    .formula("fail(message)")
    .variadic_outputs("outputs", "")
    .required("like", AttrKind::kGraph, "the other branch, whose results have the same types")
    .attr("message", "", {}, "what is wrong with the branch")
    .with(structural)
    .facts(kInternal)
    .infer(infer_invalid_branch);

OP(control_dependency)
    .doc(
        "The first inputs, as many as there are outputs, as they are; but not before all inputs "
        "were computed.")
    .formula("outputs[i] = inputs[i]")
    .mps("controlDependencyWithOperations:dependentBlock:name:")
    .variadic("inputs", kEvery, "", "what is passed on, then what must be done before")
    .containers(kContainers)
    .variadic_outputs("outputs", "")
    .with(structural)
    .infer(infer_control_dependency);

OP(read_variable)
    .doc(
        "What a variable holds: the last value that was assigned to it, in this run or in an "
        "earlier one of the same executable, or the initial value.")
    .mps("variableWithData:shape:dataType:name:")
    .mps("variableFromTensorWithTensor:name:")
    .mps("readVariable:name:")
    .input("initial", kEvery, "T", "what it holds before the first assignment")
    .output("value")
    .attr("variable", "", {}, "its name; equal names are one variable")
    .with(structural)
    .facts(kImpure)
    .infer(infer_read_variable);

OP(assign_variable)
    .doc("Puts a value into a variable. The output is that value.")
    .mps("assignVariable:withValueOfTensor:name:")
    .input("value", kEvery, "T", "of the dtype and shape of the variable")
    .output("assigned")
    .attr("variable", "", {}, "its name; equal names are one variable")
    .with(structural)
    .facts(kImpure)
    .infer(infer_read_variable);

}  // namespace anymps
