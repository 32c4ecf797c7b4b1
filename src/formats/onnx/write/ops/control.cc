// SPDX-License-Identifier: Apache-2.0
// Control flow. What a body captures is an input of its node here; in ONNX a body sees the names
// around it, so these inputs vanish and their names are used inside.
#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

std::vector<ValueType> types_of(const std::vector<Value*>& values, size_t first, size_t count) {
  std::vector<ValueType> types;
  for (size_t i = first; i < first + count; ++i) types.push_back(values.at(i)->type);
  return types;
}
std::vector<ValueType> types_of(const std::vector<Value*>& values) {
  return types_of(values, 0, values.size());
}

ValueType scalar_type(DType dtype) { return {dtype, true, {}, std::nullopt}; }

Names part(const Names& names, size_t first, size_t count = SIZE_MAX) {
  Names result;
  for (size_t i = first; i < names.size() && i - first < count; ++i) result.push_back(names[i]);
  return result;
}

Names joined(Names a, const Names& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

size_t count_of(Emit& e, const char* attr) { return e.attrs().i(attr); }

// The body with its first inputs as inputs of its graph; the others are captures.
OutGraph body_of(Emit& e, const anymps::Graph& body, size_t own, const Names& captures) {
  return e.graph(types_of(body.inputs(), 0, own), types_of(body.outputs()),
                 [&](Emit& inner, const Names& inputs) {
                   return inner.inlined(body, joined(inputs, captures));
                 });
}

void need_results(Emit& e) {
  if (e.node.outputs.empty()) e.refuse("it has no results");
}

ONNX_WRITE(if_else) {
  need_results(e);
  const Names captures = part(e.all(), 1);
  const OutGraph yes = body_of(e, e.attrs().graph("then_branch"), 0, captures),
                 no = body_of(e, e.attrs().graph("else_branch"), 0, captures);
  return e.add_all("If", {e.cast(e.in(0), DType::kBool)},
                   {{"then_branch", yes}, {"else_branch", no}}, e.node.outputs.size());
}

ONNX_WRITE(loop) {
  need_results(e);
  const size_t carried = count_of(e, "carried");
  Names all = e.all();
  all.resize(std::max<size_t>(all.size(), 2));
  const OutGraph body = body_of(e, e.attrs().graph("body"), 2 + carried, part(all, 2 + carried));
  Names inputs = {all[0].empty() ? all[0] : e.scalar(0), all[1]};
  return e.add_all("Loop", joined(inputs, part(all, 2, carried)), {{"body", body}},
                   e.node.outputs.size());
}

ONNX_WRITE(scan) {
  need_results(e);
  const size_t scans = count_of(e, "scan_inputs"), own = count_of(e, "states") + scans;
  const OutGraph body = body_of(e, e.attrs().graph("body"), own, part(e.all(), own));
  OutAttrs attrs = {{"body", body}, {"num_scan_inputs", static_cast<int64_t>(scans)}};
  static const std::pair<const char*, const char*> kLists[] = {
      {"input_axes", "scan_input_axes"},
      {"input_reversed", "scan_input_directions"},
      {"output_axes", "scan_output_axes"},
      {"output_reversed", "scan_output_directions"}};
  for (const auto& [ours, theirs] : kLists)
    if (!e.attrs().ints(ours).empty()) attrs.emplace_back(theirs, e.attrs().ints(ours));
  return e.add_all("Scan", part(e.all(), 0, own), attrs, e.node.outputs.size());
}

// A Loop of as many rounds as there are numbers; the index is made from the round.
ONNX_WRITE(for_loop) {
  need_results(e);
  const size_t carried = count_of(e, "carried");
  const anymps::Graph& source = e.attrs().graph("body");
  const Names all = e.all(), captures = part(all, 3 + carried);
  const std::string lower = e.scalar(0), upper = e.scalar(1), step = e.scalar(2);
  const DType dtype = e.dtype();
  const std::string far =
      e.add("Add", {e.add("Sub", {upper, lower}), e.add("Sub", {step, e.add("Sign", {step})})});
  const std::string trips = e.add("Max", {e.add("Div", {far, step}), e.number(DType::kI64, 0)});
  std::vector<ValueType> types = {scalar_type(DType::kI64), scalar_type(DType::kBool)};
  for (const ValueType& type : types_of(source.inputs(), 1, carried)) types.push_back(type);
  std::vector<ValueType> results = types_of(source.outputs());
  results.insert(results.begin(), scalar_type(DType::kBool));
  const OutGraph body = e.graph(types, results, [&](Emit& inner, const Names& inputs) {
    const std::string index = inner.add("Add", {lower, inner.add("Mul", {inputs[0], step})});
    const Names given = joined({inner.cast(index, dtype)}, joined(part(inputs, 2), captures));
    return joined({inputs[1]}, inner.inlined(source, given));
  });
  return e.add_all("Loop", joined({trips, e.number(DType::kBool, 1)}, part(all, 3, carried)),
                   {{"body", body}}, e.node.outputs.size());
}

// `before` runs once in front of a Loop and then at the end of each of its rounds, after `after`.
ONNX_WRITE(while_loop) {
  need_results(e);
  const size_t carried = count_of(e, "carried"), count = e.node.outputs.size();
  const anymps::Graph &before = e.attrs().graph("before"), &after = e.attrs().graph("after");
  const Names all = e.all(), captures = part(all, carried);
  const Names first = e.inlined(before, all);
  std::vector<ValueType> types = {scalar_type(DType::kI64), scalar_type(DType::kBool)};
  for (const ValueType& type : types_of(after.inputs(), 0, count)) types.push_back(type);
  std::vector<ValueType> results = types_of(before.outputs(), 1, count);
  results.insert(results.begin(), scalar_type(DType::kBool));
  const OutGraph body = e.graph(types, results, [&](Emit& inner, const Names& inputs) {
    const Names next = inner.inlined(after, joined(part(inputs, 2), captures));
    Names made = inner.inlined(before, joined(next, captures));
    made[0] = inner.cast(made[0], DType::kBool);
    return made;
  });
  return e.add_all("Loop", joined({"", e.cast(first[0], DType::kBool)}, part(first, 1)),
                   {{"body", body}}, count);
}

ONNX_WRITE(call) {
  e.attrs().s("symbol");  // for messages
  return e.inlined(e.attrs().graph("callee"), e.all());
}

ONNX_WRITE(sequence_map) {
  const anymps::Graph& body = e.attrs().graph("body");
  return e.add_all("SequenceMap", e.all(), {{"body", body_of(e, body, body.inputs().size(), {})}},
                   e.node.outputs.size());
}

}  // namespace

}  // namespace anymps::onnx
