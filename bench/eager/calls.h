// SPDX-License-Identifier: Apache-2.0
// One op through the public interface, as a plug-in of a framework calls it: the library is loaded
// by hand, tensors are views of the framework's memory, attributes are bound once.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <anymps/anymps.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

extern const amps_api* api;  // set by load()
extern amps_device* device;
void load(const char* library, int threads);
std::string& last_error();  // what bench_error() tells

// What a function that Python calls returns; -1 after an exception.
template <typename Fn>
double guarded(Fn fn) {
  try {
    return fn();
  } catch (const std::exception& caught) {
    last_error() = caught.what();
    return -1;
  }
}

inline void check(amps_status status) {
  if (status != AMPS_OK) throw std::runtime_error(api->last_error());
}

inline amps_dtype dtype_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return AMPS_F32;
    case at::kDouble:
      return AMPS_F64;
    case at::kLong:
      return AMPS_I64;
    case at::kInt:
      return AMPS_I32;
    case at::kByte:
      return AMPS_U8;
    case at::kBool:
      return AMPS_BOOL;
    case at::kComplexFloat:
      return AMPS_C64;
    case at::kComplexDouble:
      return AMPS_C128;
    case at::kHalf:
      return AMPS_F16;
    case at::kBFloat16:
      return AMPS_BF16;
    default:
      throw std::runtime_error("no such dtype here");
  }
}

inline amps_view view_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {nullptr, nullptr, nullptr, AMPS_F32, -1};
  return {tensor.data_ptr(), tensor.sizes().data(), tensor.strides().data(),
          dtype_of(tensor.scalar_type()), static_cast<int32_t>(tensor.dim())};
}

struct Attr : amps_attr {
  Attr(const char* name, int64_t value) : amps_attr{name, AMPS_ATTR_INT, value} {}
  Attr(const char* name, double value) : amps_attr{name, AMPS_ATTR_FLOAT, 0, value} {}
  Attr(const char* name, const char* value) : amps_attr{name, AMPS_ATTR_STRING, 0, 0, value} {}
  Attr(const char* name, const std::vector<int64_t>& value)
      : amps_attr{name, AMPS_ATTR_INTS, 0, 0, nullptr, value.data(), nullptr, value.size()} {}
};

inline const amps_op* find_op(const char* name) {
  const amps_op* found = api->op_find(name);
  if (!found) throw std::runtime_error(std::string("no op ") + name);
  return found;
}

// Views are made anew for each run, as a framework's call does.
class Call {
 public:
  explicit Call(const char* op, std::vector<Attr> attrs = {}) {
    std::vector<amps_attr> plain(attrs.begin(), attrs.end());
    check(api->call_create(device, find_op(op), plain.data(), plain.size(), nullptr, 0, &call_));
  }
  template <size_t In, size_t Out>
  void operator()(const at::Tensor* const (&inputs)[In], const at::Tensor* const (&outputs)[Out],
                  amps_stream* stream = nullptr) const {
    amps_view in[In], out[Out];
    for (size_t i = 0; i < In; ++i) in[i] = view_of(*inputs[i]);
    for (size_t i = 0; i < Out; ++i) out[i] = view_of(*outputs[i]);
    check(api->call_run(call_, in, In, nullptr, out, Out, stream));
  }

  const amps_call* get() const { return call_; }

 private:
  amps_call* call_ = nullptr;  // lives as long as the benchmark
};

}  // namespace bench
