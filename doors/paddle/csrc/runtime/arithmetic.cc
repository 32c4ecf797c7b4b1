// SPDX-License-Identifier: Apache-2.0
// The one computation that Paddle asks of a runtime: y = alpha x + beta y. It sums gradients of a
// value that several ops use, so that both factors are nearly always 1.
#include <array>
#include <memory>
#include <vector>

#include <paddle/common/enforce.h>
#include "engine.h"
#include "runtime/slots.h"

namespace anymps::paddle {
namespace {

amps_dtype to_engine(C_DataType dtype) {
  switch (dtype) {
    case C_DataType::FLOAT32:
      return AMPS_F32;
    case C_DataType::FLOAT64:
      return AMPS_F64;
    case C_DataType::FLOAT16:
      return AMPS_F16;
    case C_DataType::BFLOAT16:
      return AMPS_BF16;
    case C_DataType::COMPLEX64:
      return AMPS_C64;
    case C_DataType::INT8:
      return AMPS_I8;
    case C_DataType::INT16:
      return AMPS_I16;
    case C_DataType::INT32:
      return AMPS_I32;
    case C_DataType::INT64:
      return AMPS_I64;
    case C_DataType::UINT8:
      return AMPS_U8;
    default:
      PADDLE_THROW(common::errors::Unimplemented("[axpby] Paddle's type %d is not supported",
                                                 static_cast<int>(dtype)));
  }
}

enum Op { kAdd, kMul, kOpCount };

amps_call* call(int index, Op op) {
  static const auto calls = [] {
    constexpr std::array<const char*, kOpCount> kNames = {"add", "mul"};
    std::vector<std::array<amps_call*, kOpCount>> made(device_count());
    for (int i = 0; i < device_count(); ++i) {
      for (int j = 0; j < kOpCount; ++j) {
        check(engine().call_create(device(i), engine().op_find(kNames[j]), nullptr, 0, nullptr, 0,
                                   &made[i][j]));
      }
    }
    return made;
  }();
  return calls[index][op];
}

void run(amps_call* call, const amps_view& a, const amps_view& b, const amps_view& y) {
  const std::array<amps_view, 2> inputs = {a, b};
  check(engine().call_run(call, inputs.data(), inputs.size(), nullptr, &y, 1, nullptr));
}

// A factor as a tensor without axes of the operands' type.
class Factor {
 public:
  Factor(int index, amps_dtype dtype, float value)
      : view_{bytes_.data(), nullptr, nullptr, dtype, 0} {
    amps_attr attr{.name = "dtype", .kind = AMPS_ATTR_INT, .i = dtype};
    amps_call* cast = nullptr;
    check(
        engine().call_create(device(index), engine().op_find("cast"), &attr, 1, nullptr, 0, &cast));
    const std::unique_ptr<amps_call, decltype(engine().call_release)> owner(cast,
                                                                            engine().call_release);
    const amps_view from = {&value, nullptr, nullptr, AMPS_F32, 0};
    check(engine().call_run(cast, &from, 1, nullptr, &view_, 1, nullptr));
  }
  Factor(const Factor&) = delete;
  Factor& operator=(const Factor&) = delete;
  const amps_view& view() const { return view_; }

 private:
  alignas(16) std::array<char, 16> bytes_{};
  amps_view view_;
};

C_Status axpby(C_Device target, C_Stream stream, C_DataType type, size_t count, float alpha,
               void* x, float beta, void* y) {
  if (count == 0) return C_SUCCESS;
  if (stream) check(engine().stream_synchronize(reinterpret_cast<amps_stream*>(stream)));
  const int index = target->id;
  const amps_dtype dtype = to_engine(type);
  const int64_t dims = static_cast<int64_t>(count);
  amps_view a = {x, &dims, nullptr, dtype, 1};
  const amps_view b = {y, &dims, nullptr, dtype, 1};
  using Buffer = std::unique_ptr<amps_buffer, decltype(engine().buffer_release)>;
  Buffer scaled(nullptr, engine().buffer_release);
  if (alpha != 1) {
    amps_buffer* buffer = nullptr;
    check(engine().buffer_create(device(index), count * engine().dtype_size(dtype), &buffer));
    scaled.reset(buffer);
    const amps_view into = {engine().buffer_data(buffer), &dims, nullptr, dtype, 1};
    run(call(index, kMul), a, Factor(index, dtype, alpha).view(), into);
    a = into;
  }
  if (beta != 1) run(call(index, kMul), b, Factor(index, dtype, beta).view(), b);
  run(call(index, kAdd), a, b, b);
  return C_SUCCESS;
}

}  // namespace

void fill_arithmetic(C_DeviceInterface& slots) { slots.blas_axpby = axpby; }

}  // namespace anymps::paddle
