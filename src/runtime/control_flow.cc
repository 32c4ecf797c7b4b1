// SPDX-License-Identifier: Apache-2.0
// Running the ops of src/ops/control/control_flow.cc.
#include "ops/subgraph.h"
#include "runtime/structural.h"

namespace anymps {

namespace {

using Tensors = std::vector<Tensor>;

size_t number_attr(const Node& node, const char* attr) { return node.attrs.i(attr); }

Tensors part(const Tensors& list, size_t first, size_t last) {
  return {list.begin() + static_cast<std::ptrdiff_t>(first),
          list.begin() + static_cast<std::ptrdiff_t>(last)};
}

void append(Tensors& list, const Tensors& more, size_t first = 0) {
  list.insert(list.end(), more.begin() + static_cast<std::ptrdiff_t>(first), more.end());
}

// The values of a loop: what is carried from one run of the body to the next, and captures.
struct Values {
  Tensors carried, captures;
  Values(Tensors& inputs, size_t first, size_t count) {
    for (size_t i = first; i < inputs.size(); ++i)
      (i < first + count ? carried : captures).push_back(std::move(inputs[i]));
  }
};

}  // namespace

STRUCTURAL(if_else, [](const Node&, const std::string&) { return Captures{0, 1}; }) {
  const bool yes = call.number(call.inputs[0]) != 0;
  return call.run(yes ? "then_branch" : "else_branch", part(call.inputs, 1, call.inputs.size()));
}

STRUCTURAL(while_loop, [](const Node& node, const std::string& attr) {
  const size_t carried = number_attr(node, "carried");
  return Captures{attr == "before" ? carried : node.outputs.size(), carried};
}) {
  Values values(call.inputs, 0, call.carried("carried"));
  for (;;) {
    Tensors feeds = std::move(values.carried);
    append(feeds, values.captures);
    Tensors results = call.run("before", std::move(feeds));
    const bool go = call.number(results[0]) != 0;
    results.erase(results.begin());
    if (!go) return results;
    append(results, values.captures);
    values.carried = call.run("after", std::move(results));
  }
}

STRUCTURAL(for_loop, [](const Node& node, const std::string&) {
  const size_t carried = number_attr(node, "carried");
  return Captures{1 + carried, 3 + carried};
}) {
  const DType dtype = call.inputs[0].desc.dtype;
  const int64_t lower = call.number(call.inputs[0]), upper = call.number(call.inputs[1]);
  const int64_t step = call.number(call.inputs[2]);
  require(step != 0, "[for_loop] the step is 0");
  Values values(call.inputs, 3, call.carried("carried"));
  Tensor index;
  for (int64_t i = lower; step > 0 ? i < upper : i > upper;) {
    call.set_scalar(index, dtype, i);
    Tensors feeds = {index};
    append(feeds, values.carried);
    values.carried.clear();
    append(feeds, values.captures);
    values.carried = call.run("body", std::move(feeds));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return values.carried;
}

STRUCTURAL(loop, [](const Node& node, const std::string&) {
  const size_t carried = number_attr(node, "carried");
  return Captures{2 + carried, 2 + carried};
}) {
  const size_t carried = call.carried("carried"), outputs = call.node.outputs.size();
  const int64_t limit = call.has(0) ? call.number(call.inputs[0]) : INT64_MAX;
  bool go = !call.has(1) || call.number(call.inputs[1]) != 0;
  call.inputs.resize(std::max<size_t>(call.inputs.size(), 2));
  Values values(call.inputs, 2, carried);
  std::vector<Tensors> scans(outputs - carried);
  const Tensor yes = call.scalar(DType::kBool, 1);  // what the condition is in every round
  Tensor index;
  for (int64_t i = 0; go && i < limit; ++i) {
    call.set_scalar(index, DType::kI64, i);
    Tensors feeds = {index, yes};
    for (Tensor& value : values.carried) feeds.push_back(std::move(value));
    append(feeds, values.captures);
    Tensors results = call.run("body", std::move(feeds));
    go = call.number(results[0]) != 0;
    for (size_t k = 0; k < carried; ++k) values.carried[k] = std::move(results[k + 1]);
    for (size_t k = 0; k < scans.size(); ++k)
      scans[k].push_back(std::move(results[carried + 1 + k]));
  }
  const Graph& body = *call.node.attrs.graph("body");
  for (size_t k = 0; k < scans.size(); ++k)
    values.carried.push_back(join(call, scans[k], 0, true, body.outputs()[carried + 1 + k]->type));
  return values.carried;
}

STRUCTURAL(scan, [](const Node& node, const std::string&) {
  const size_t first = number_attr(node, "states") + number_attr(node, "scan_inputs");
  return Captures{first, first};
}) {
  const size_t states = call.carried("states"), count = call.carried("scan_inputs");
  const size_t outputs = call.node.outputs.size();
  Values values(call.inputs, 0, states);
  Tensors inputs(
      std::make_move_iterator(values.captures.begin()),
      std::make_move_iterator(values.captures.begin() + static_cast<std::ptrdiff_t>(count)));
  values.captures.erase(values.captures.begin(),
                        values.captures.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<int64_t> axes;
  int64_t trips = -1;
  for (size_t k = 0; k < count; ++k) {
    axes.push_back(normalize_axis(entry_or_zero(call.node.attrs, "input_axes", k),
                                  inputs[k].desc.rank(), "scan"));
    const int64_t extent = inputs[k].desc.shape[axes[k]];
    require(trips < 0 || trips == extent,
            "[scan] scan input {} has {} elements to go through, the others {}", k, extent, trips);
    trips = extent;
  }
  std::vector<Tensors> scans(outputs - states);
  for (int64_t i = 0; i < trips; ++i) {
    Tensors feeds = std::move(values.carried);
    for (size_t k = 0; k < count; ++k) {
      const bool reversed = entry_or_zero(call.node.attrs, "input_reversed", k) != 0;
      feeds.push_back(slice_at(inputs[k], axes[k], reversed ? trips - 1 - i : i));
    }
    append(feeds, values.captures);
    Tensors results = call.run("body", std::move(feeds));
    values.carried.clear();
    for (size_t k = 0; k < outputs; ++k)
      (k < states ? values.carried : scans[k - states]).push_back(std::move(results[k]));
  }
  const Graph& body = *call.node.attrs.graph("body");
  for (size_t k = 0; k < scans.size(); ++k) {
    if (entry_or_zero(call.node.attrs, "output_reversed", k))
      std::reverse(scans[k].begin(), scans[k].end());
    values.carried.push_back(join(call, scans[k], entry_or_zero(call.node.attrs, "output_axes", k),
                                  true, body.outputs()[states + k]->type));
  }
  return values.carried;
}

STRUCTURAL(call, [](const Node&, const std::string&) { return Captures{0, 0}; }) {
  return call.run("callee", std::move(call.inputs));
}

STRUCTURAL(invalid_branch) {
  fail(Code::kInvalidArgument, "[if_else] the branch that is taken is not valid: {}",
       call.node.attrs.s("message"));
}

STRUCTURAL(control_dependency) { return part(call.inputs, 0, call.node.outputs.size()); }

STRUCTURAL(read_variable) {
  auto value = call.state.variables->get(call.node.attrs.s("variable"));
  if (!value) return {call.inputs[0]};
  const ValueType& type = call.node.output()->type;
  bool fits = value->desc.dtype == type.dtype &&
              (!type.ranked || type.shape.size() == value->desc.shape.size());
  for (size_t i = 0; fits && type.ranked && i < type.shape.size(); ++i)
    fits = !type.shape[i].known() || type.shape[i].is(value->desc.shape[i]);
  require(fits, "[read_variable] variable '{}' must be {}, it holds {}",
          call.node.attrs.s("variable"), to_string(type), to_string(value->desc));
  return {std::move(*value)};
}

STRUCTURAL(assign_variable) {
  require(call.inputs[0].desc.dtype != DType::kString,
          "[assign_variable] variables cannot hold strings");
  call.state.variables->set(call.node.attrs.s("variable"), call.copy(call.inputs[0]));
  return {call.inputs[0]};
}

}  // namespace anymps
