// SPDX-License-Identifier: Apache-2.0
// The user's own ops in the C interface, and the libraries that bring them.
#include "ops/control/custom.h"

#include <dlfcn.h>

#include <cstring>
#include <mutex>
#include <set>

#include "api/handles.h"
#include "base/fork.h"

using namespace anymps;
using namespace anymps::api;

namespace {

amps_custom_tensor to_c(const CustomTensor& tensor) {
  amps_custom_tensor out{};
  out.dtype = static_cast<amps_dtype>(tensor.dtype);
  out.rank = tensor.present ? std::ssize(tensor.dims) : -1;
  require(tensor.dims.size() <= AMPS_CUSTOM_MAX_RANK, "[custom] tensors of more than {} axes",
          static_cast<int>(AMPS_CUSTOM_MAX_RANK));
  for (size_t i = 0; i < tensor.dims.size(); ++i) out.dims[i] = tensor.dims[i];
  out.data = tensor.data;
  return out;
}

amps_attr to_c(const NamedAttr& attr) {
  amps_attr out{};
  out.name = attr.name.c_str();
  out.kind = static_cast<amps_attr_kind>(attr.value.index());
  if (const auto* i = std::get_if<int64_t>(&attr.value)) out.i = *i;
  if (const auto* f = std::get_if<double>(&attr.value)) out.f = *f;
  if (const auto* s = std::get_if<std::string>(&attr.value)) {
    out.s = s->c_str();
    out.count = s->size();
  }
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&attr.value)) {
    out.ints = ints->data();
    out.count = ints->size();
  }
  if (const auto* floats = std::get_if<std::vector<double>>(&attr.value)) {
    out.floats = floats->data();
    out.count = floats->size();
  }
  return out;
}

using Function = const char* (*)(const amps_custom_call*);

// Calls a function of the op with the call as C sees it, and takes the outputs' types back.
void call_c(const std::string& name, Function function, void* context, CustomCall& call,
            bool infer) {
  std::vector<amps_custom_tensor> inputs, outputs;
  std::vector<amps_attr> attrs;
  for (const CustomTensor& tensor : call.inputs) inputs.push_back(to_c(tensor));
  for (const CustomTensor& tensor : call.outputs) outputs.push_back(to_c(tensor));
  for (const NamedAttr& attr : call.attrs) attrs.push_back(to_c(attr));
  const amps_custom_call given{
      sizeof(amps_custom_call), inputs.data(), inputs.size(), outputs.data(),
      outputs.size(),           attrs.data(),  attrs.size(),  context};
  if (const char* why = function(&given)) fail(Code::kInvalidArgument, "[{}] {}", name, why);
  for (size_t i = 0; infer && i < outputs.size(); ++i) {
    require(outputs[i].rank >= 0 && outputs[i].rank <= AMPS_CUSTOM_MAX_RANK,
            "[{}] output {} has rank {}", name, i, outputs[i].rank);
    call.outputs[i].dtype = checked_dtype(outputs[i].dtype);
    call.outputs[i].dims.assign(outputs[i].dims, outputs[i].dims + outputs[i].rank);
  }
}

void add(const amps_custom_op* given) {
  amps_custom_op known{};
  require(need(given, "op").size >= sizeof(size_t), "[api] op.size must be set");
  std::memcpy(&known, given, std::min(given->size, sizeof(known)));
  CustomOp op;
  op.name = &need(known.name, "op.name");
  require(known.infer && known.run, "[custom] {} needs infer and run", op.name);
  op.infer = [known, name = op.name](CustomCall& call) {
    call_c(name, known.infer, known.context, call, true);
  };
  op.run = [known, name = op.name](CustomCall& call) {
    call_c(name, known.run, known.context, call, false);
  };
  register_custom_op(std::move(op));
}

}  // namespace

extern "C" {

amps_status amps_op_register(const amps_custom_op* op) {
  return guard([&] { add(op); });
}

amps_status amps_op_library_load(const char* path) {
  return guard([&] {
    static ForkMutex mutex;
    static std::set<void*> loaded;
    std::lock_guard lock(mutex);
    void* library = dlopen(&need(path, "path"), RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(Code::kNotFound, "[custom] {}", dlerror());
    if (!loaded.insert(library).second) {  // its ops are there already
      dlclose(library);
      return;
    }
    using Entry = const char* (*)(amps_status(*)(const amps_custom_op*));
    const auto entry = reinterpret_cast<Entry>(dlsym(library, "amps_op_library"));
    const char* why = entry ? entry(amps_op_register) : "it exports no amps_op_library";
    if (why) {
      loaded.erase(library);  // ops that it has added stay, and so does the library
      fail(Code::kInvalidArgument, "[custom] {}: {}", path, why);
    }
  });
}

}  // extern "C"
