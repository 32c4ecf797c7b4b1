// SPDX-License-Identifier: Apache-2.0
#include "runtime/preparation.h"

#include <algorithm>

namespace anymps {

PreparedCall::PreparedCall(Device& device, const Op& op, Attrs attrs, std::string node)
    : device_(device) {
  request.op = &op;
  request.attrs = std::move(attrs);
  request.node = std::move(node);
  request.packed = &device.packed();
}

void PreparedCall::add_absent() {
  request.inputs.emplace_back();
  request.constants.emplace_back();
  request.contents.emplace_back().emplace();  // an empty list
}

void PreparedCall::add_input(const TensorDesc& desc, Content content, ConstantPtr constant) {
  request.inputs.emplace_back(desc);
  request.constants.push_back(std::move(constant));
  request.contents.push_back(std::move(content));
}

bool PreparedCall::lacks_contents() const {
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (request.has(i) && !request.constants[i] && !request.contents[i] && is_list(request.in(i)))
      return true;
  return false;
}

PreparedCall::Open PreparedCall::infer(size_t outputs, const std::string& label,
                                       const std::vector<Shape>* measured) {
  const Op& op = *request.op;
  std::vector<ValueType> types(request.inputs.size());
  std::vector<const ValueType*> pointers(types.size(), nullptr);
  for (size_t i = 0; i < types.size(); ++i) {
    if (!request.has(i)) continue;
    types[i] = {request.in(i).dtype, true, to_dims(request.in(i).shape), std::nullopt};
    if (const Content& content = request.contents[i])
      types[i].content = Dims(content->begin(), content->end());
    pointers[i] = &types[i];
  }
  request.outputs.clear();
  for (const ValueType& type : InferContext::run(op, request.attrs, pointers, outputs, label)) {
    if (type.static_shape()) {
      request.outputs.emplace_back(type.dtype, to_shape(type.shape));
      continue;
    }
    if (lacks_contents()) return kContents;
    if (!measured && op.measure) return kMeasure;
    require(measured, "[{}] the shape {} cannot be known before the op runs", op.name,
            to_string(type));
    request.outputs.emplace_back(type.dtype, measured->at(request.outputs.size()));
  }
  return kNothing;
}

std::optional<OutputView> view_of(const Op& op, const Attrs& attrs, const TensorDesc& source,
                                  const std::vector<Content>& contents, size_t output,
                                  const Shape& shape, size_t outputs) {
  ViewContext view{attrs, source, contents, output, shape, {}, 0, outputs};
  if (!op.view(view)) return std::nullopt;
  return OutputView{std::move(view.strides), view.offset};
}

bool PreparedCall::find_views() {
  if (!request.op->view || !request.has(0)) return false;
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    auto view = view_of(*request.op, request.attrs, request.in(0), request.contents, i,
                        request.outputs[i].shape, request.outputs.size());
    if (!view) {
      views.clear();
      return false;
    }
    views.push_back(std::move(*view));
  }
  return !views.empty();
}

void PreparedCall::choose(const Choose& choose) {
  choice = choose(request);
  packed.assign(request.inputs.size(), false);
  aside.assign(request.outputs.size(), false);
  // Copying is what makes tensors dense, so it takes them as they are.
  if (!choice->is_fallback || request.op == &get_op("identity")) return;
  std::vector<bool> strided_inputs(packed), strided_outputs(aside);
  bool any_input = false, any_output = false;
  for (size_t i = 0; i < strided_inputs.size(); ++i)
    if (request.has(i) && !request.in(i).contiguous()) strided_inputs[i] = any_input = true;
  for (size_t i = 0; i < strided_outputs.size(); ++i)
    if (!request.out(i).contiguous()) strided_outputs[i] = any_output = true;
  const auto with_dense = [&](bool inputs, bool outputs) {
    if ((inputs && !any_input) || (outputs && !any_output)) return false;
    KernelRequest dense = request;
    for (size_t i = 0; inputs && i < strided_inputs.size(); ++i)
      if (strided_inputs[i]) dense.inputs[i] = TensorDesc(request.in(i).dtype, request.in(i).shape);
    for (size_t i = 0; outputs && i < strided_outputs.size(); ++i)
      if (strided_outputs[i])
        dense.outputs[i] = TensorDesc(request.out(i).dtype, request.out(i).shape);
    auto better = choose(dense);
    if (better->is_fallback) return false;
    choice = std::move(better);
    request.inputs = std::move(dense.inputs);
    request.outputs = std::move(dense.outputs);
    if (inputs) packed = strided_inputs;
    if (outputs) aside = strided_outputs;
    return true;
  };
  if (!with_dense(false, true) && !with_dense(true, false)) with_dense(true, true);
}

void PreparedCall::choose() {
  choose([this](const KernelRequest& asked) {
    return std::make_shared<const KernelChoice>(choose_kernel(device_.driver(), asked));
  });
}

}  // namespace anymps
