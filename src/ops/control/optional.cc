// SPDX-License-Identifier: Apache-2.0
// Values that may be nothing. The runtime runs these ops, in src/runtime/sequence.cc.
#include "ops/infer.h"

namespace anymps {

namespace {

constexpr const char* kOptionalTests = "run by the runtime: tests/runtime/sequence_test.cc";
constexpr ContainerSet kWhole = static_cast<ContainerSet>(kTensors | kSequences);

void infer_optional(InferContext& ctx) {
  ValueType type;
  if (ctx.has(0)) {
    type = ctx.type(0);
    type.content.reset();
    type.container = type.container == Container::kSequence ? Container::kOptionalSequence
                                                            : Container::kOptional;
  } else {
    type = {ctx.attrs.dtype("dtype"), false, {}, std::nullopt};
    type.container = ctx.attrs.b("sequence") ? Container::kOptionalSequence : Container::kOptional;
  }
  ctx.set_type(0, std::move(type));
}

void infer_has_element(InferContext& ctx) { ctx.set(0, DType::kBool, {}); }

void infer_get_element(InferContext& ctx) {
  ValueType type = ctx.type(0);
  type.content.reset();
  if (type.container == Container::kOptional) type.container = Container::kTensor;
  if (type.container == Container::kOptionalSequence) type.container = Container::kSequence;
  ctx.set_type(0, std::move(type));
}

void infer_container_identity(InferContext& ctx) { ctx.set_type(0, ctx.type(0)); }

}  // namespace

OP(optional)
    .doc("An optional that holds the input, or nothing if there is no input.")
    .formula("y = x or nothing")
    .optional("x", kEvery)
    .containers(kWhole)
    .output("y", "")
    .attr("dtype", DType::kF32, "without an input: of the elements that are not there")
    .attr("sequence", false, "without an input: whether it would be a list")
    .facts(kStructural)
    .infer(infer_optional)
    .no_tests(kOptionalTests);

OP(optional_has_element)
    .doc("Whether an optional holds something. A tensor or a list always does, no input never.")
    .formula("y = x is not nothing")
    .onnx("OptionalHasElement")
    .optional("x", kEvery)
    .containers(kContainers)
    .output("y", "bool")
    .facts(kStructural)
    .infer(infer_has_element)
    .no_tests(kOptionalTests);

OP(optional_get_element)
    .doc("What an optional holds; an error if it is nothing. A tensor or a list is passed on.")
    .formula("y = x")
    .onnx("OptionalGetElement")
    .input("x", kEvery)
    .containers(kContainers)
    .output("y")
    .facts(kStructural)
    .infer(infer_get_element)
    .no_tests(kOptionalTests);

OP(container_identity)
    .doc("A list or an optional as it is: what identity is to tensors.")
    .formula("y = x")
    .onnx("Identity")
    .input("x", kEvery)
    .containers(kContainers)
    .output("y")
    .facts(kStructural)
    .infer(infer_container_identity)
    .no_tests(kOptionalTests);

}  // namespace anymps
