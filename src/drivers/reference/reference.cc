// SPDX-License-Identifier: Apache-2.0
#include "drivers/reference/reference.h"

#include <map>

#include "drivers/driver.h"

namespace anymps {

namespace {

std::map<std::string, ReferenceFn, std::less<>>& functions() {
  // Never destroyed: a stream may still compute when the program ends.
  static auto& all = *new std::map<std::string, ReferenceFn, std::less<>>;
  return all;
}

class ReferenceKernel final : public Kernel {
 public:
  ReferenceKernel(KernelRequest request, ReferenceFn fn) : request_(std::move(request)), fn_(fn) {
    request_.constants.clear();
  }

  void run(const KernelArgs& args) const override {
    std::vector<View> in(request_.inputs.size()), out(request_.outputs.size());
    for (size_t i = 0; i < in.size(); ++i)
      if (request_.inputs[i]) in[i] = view(*request_.inputs[i], args.inputs[i]);
    for (size_t i = 0; i < out.size(); ++i) out[i] = view(request_.outputs[i], args.outputs[i]);
    fn_({*request_.op, request_.attrs, in, out, args.strings});
  }

 private:
  static View view(const TensorDesc& desc, void* data) {
    return {desc.dtype, static_cast<char*>(data), &desc.shape, &desc.strides};
  }

  KernelRequest request_;
  ReferenceFn fn_;
};

class ReferenceDriver final : public Driver {
 public:
  const char* name() const override { return "reference"; }
  std::string description() const override { return "scalar loops on the host: the oracle"; }
  DriverTraits traits() const override { return {}; }
};

const DriverRegistrar kDriver("reference", [] { return std::make_unique<ReferenceDriver>(); });

}  // namespace

ReferenceRegistrar::ReferenceRegistrar(const char* op, ReferenceFn fn) { functions()[op] = fn; }

bool has_reference(const Op& op) { return functions().contains(op.name); }

KernelPtr make_reference_kernel(const KernelRequest& request) {
  auto it = functions().find(request.op->name);
  if (it == functions().end()) return nullptr;
  return std::make_shared<ReferenceKernel>(request, it->second);
}

std::vector<int64_t> ReferenceArgs::ints(size_t i, const char* attr) const {
  if (!has(i)) return attrs.ints(attr);
  std::vector<int64_t> values;
  for_each_index(in[i].shape(), [&](const Shape& index) {
    values.push_back(load_int(in[i], in[i].offset(index)));
  });
  return values;
}

Strides BroadcastOffset::broadcast_strides_of(const View& view, const Shape& shape) {
  Strides strides(shape.size(), 0);
  const size_t lead = shape.size() - view.shape().size();
  for (size_t i = 0; i < view.shape().size(); ++i)
    strides[lead + i] = view.shape()[i] == 1 ? 0 : view.strides()[i];
  return strides;
}

double load_double(const View& view, int64_t offset) {
  return dispatch<kReal | kBoolean>(view.dtype, [&]<typename T>() {
    return static_cast<double>(static_cast<Compute<T>>(view.as<T>()[offset]));
  });
}

int64_t load_int(const View& view, int64_t offset) {
  return dispatch<kInt | kBoolean>(
      view.dtype, [&]<typename T>() { return static_cast<int64_t>(view.as<T>()[offset]); });
}

}  // namespace anymps
