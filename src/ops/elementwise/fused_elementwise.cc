// SPDX-License-Identifier: Apache-2.0
// The op that runs a program. It is made by passes, and by who joins calls before they run.
#include "ops/elementwise/elementwise_program.h"
#include "ops/gradient.h"
#include "ops/infer.h"

namespace anymps {

namespace {

void infer_fused(InferContext& ctx) {
  const auto program = ElementwiseProgram::decode(ctx.attrs.ints("program"));
  ctx.check(program.input_count() == ctx.input_count(), "the program reads {} inputs, {} given",
            program.input_count(), ctx.input_count());
  ctx.check(program.outputs().size() == ctx.output_count(),
            "the program has {} outputs, {} asked for", program.outputs().size(),
            ctx.output_count());
  std::vector<DType> dtypes;
  for (size_t i = 0; i < ctx.input_count(); ++i) dtypes.push_back(ctx.dtype(i));
  const ElementwiseProgram::Types types = program.infer(dtypes);

  Dims shape;
  for (const int64_t extent : ctx.attrs.ints("shape")) {
    ctx.check(extent >= 0, "attribute 'shape' has the extent {}", extent);
    shape.push_back(extent);
  }
  bool ranked = true;
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    const ValueType& type = ctx.type(i);
    if (program.holds_parameters(i)) {
      if (type.static_shape()) program.check_parameters(i, to_shape(type.shape));
    } else if (type.ranked) {
      shape = broadcast(shape, type.shape, ctx.op.name.c_str());
    } else {
      ranked = false;
    }
  }
  for (size_t i = 0; i < ctx.output_count(); ++i) {
    const DType dtype = types.results[program.outputs()[i]];
    if (ranked)
      ctx.set(i, dtype, shape);
    else
      ctx.set_unranked(i, dtype);
  }
}

bool is_fused(const Op& op) { return op.name == "fused_elementwise"; }

}  // namespace

bool is_elementwise(const Op& op, const Attrs& attrs) {
  if (!is_fused(op)) return op.is(kElementwise);
  const auto program = ElementwiseProgram::decode(attrs.ints("program"));
  if (!attrs.ints("shape").empty()) return false;
  for (size_t i = 0; i < program.input_count(); ++i)
    if (program.holds_parameters(i)) return false;
  return true;
}

std::optional<std::string> program_text(const Op& op, const AttrSpec& spec,
                                        const AttrValue& value) {
  if (!is_fused(op) || spec.name != "program") return std::nullopt;
  return ElementwiseProgram::decode(std::get<std::vector<int64_t>>(value)).print();
}

OP(fused_elementwise)
    .doc(
        "Several elementwise ops in one pass over the elements. Each step is rounded to its dtype "
        "as the separate ops would. An output may take the place of an input with the same dtype, "
        "shape and strides.")
    .formula("ys = program(xs[0], xs[1], …)")
    .variadic("xs", kAny, "",
              "inputs of the program; all broadcast together but vectors of parameters")
    .variadic_outputs("ys", "", "those results that the program names, all of the same shape")
    .required("program", AttrKind::kInts, "what ElementwiseProgramBuilder writes")
    .attr("shape", kNoInts, "broadcasts with the inputs")
    .facts(kElementwise | kInternal)
    .infer(infer_fused)
    .cost([](const Attrs& attrs, const std::vector<Shape>&, const std::vector<Shape>& out) {
      const auto program = ElementwiseProgram::decode(attrs.ints("program"));
      return static_cast<double>(program.instructions().size()) *
             static_cast<double>(element_count(out[0]));
    })
    .no_tests("programs are made by passes; they have tests of their own");

NO_GRADIENT(fused_elementwise, "it is made by passes: differentiate the graph, then compile it");

}  // namespace anymps
