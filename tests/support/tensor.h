// SPDX-License-Identifier: Apache-2.0
// A typed tensor for tests: any dtype, any strides (negative and zero too), filled from doubles,
// compared element by element with the first difference in the message; and a call that runs one
// op on the reference driver, shapes and dtypes inferred from its record.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/narrow.h"
#include "drivers/reference/reference.h"
#include "ops/infer.h"

namespace anymps::testing {

using Ints = std::vector<int64_t>;
using Row = std::vector<double>;
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Bytes before and after the elements that the strides reach, filled with a pattern
// so that a write beside the tensor is seen.
inline constexpr size_t kGuardBytes = 64;
inline constexpr std::byte kGuard{0xa5};

// A string element that lives as long as the process.
inline Text interned(const std::string& text) {
  static auto* const all = new std::set<std::string>();
  return text.empty() ? nullptr : &*all->insert(text).first;
}

class TestTensor {
 public:
  TestTensor() : TestTensor(DType::kF32, Shape{}) {}
  TestTensor(DType dtype, Shape shape) : TestTensor(TensorDesc(dtype, std::move(shape))) {}
  // Memory for every element that the strides reach, whatever their sign; elements are zero.
  explicit TestTensor(TensorDesc desc) : desc_(std::move(desc)) {
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < desc_.shape.size(); ++i) {
      const int64_t reach = std::max<int64_t>(desc_.shape[i] - 1, 0) * desc_.strides[i];
      (reach < 0 ? low : high) += reach;
    }
    const size_t size = size_of(desc_.dtype);
    body_ = static_cast<size_t>(high - low + 1) * size;
    first_ = kGuardBytes + static_cast<size_t>(-low) * size;
    bytes_.assign(body_ + 2 * kGuardBytes, kGuard);
    std::memset(bytes_.data() + kGuardBytes, 0, body_);
  }
  // Contiguous, from values in row-major order.
  TestTensor(DType dtype, Shape shape, const std::vector<double>& values)
      : TestTensor(dtype, std::move(shape)) {
    set(values);
  }
  static TestTensor texts(Shape shape, const std::vector<std::string>& values) {
    TestTensor tensor(DType::kString, std::move(shape));
    EXPECT_EQ(static_cast<int64_t>(values.size()), tensor.count());
    for (size_t i = 0; i < values.size(); ++i) tensor.data<Text>()[i] = interned(values[i]);
    return tensor;
  }
  std::vector<std::string> texts() const {  // row-major
    std::vector<std::string> all;
    for_each_index(
        shape(), [&](const Shape& index) { all.push_back(text_of(data<Text>()[offset(index)])); });
    return all;
  }
  template <typename T>
  static TestTensor of(Shape shape, const std::vector<T>& values) {
    TestTensor tensor(dtype_of<T>, std::move(shape));
    EXPECT_EQ(static_cast<int64_t>(values.size()), tensor.count());
    for (size_t i = 0; i < values.size(); ++i) tensor.template data<T>()[i] = values[i];
    return tensor;
  }

  const TensorDesc& desc() const { return desc_; }
  DType dtype() const { return desc_.dtype; }
  const Shape& shape() const { return desc_.shape; }
  int64_t count() const { return desc_.count(); }
  void* ptr() { return bytes_.data() + first_; }  // of element [0, …, 0]
  const void* ptr() const { return bytes_.data() + first_; }
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(ptr());
  }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(ptr());
  }
  bool guards_intact() const {
    const auto guard = [](std::byte b) { return b == kGuard; };
    return std::all_of(bytes_.begin(), bytes_.begin() + kGuardBytes, guard) &&
           std::all_of(bytes_.end() - kGuardBytes, bytes_.end(), guard);
  }

  // One element as a complex number, which every dtype fits in (64-bit integers up to 2^53, strings
  // that are numbers).
  std::complex<double> get(const Shape& index) const {
    const int64_t at = offset(index);
    if (is_narrow(dtype())) return decode_narrow(dtype(), data<uint8_t>()[at]);
    if (dtype() == DType::kString) return std::strtod(text_of(data<Text>()[at]).c_str(), nullptr);
    return dispatch<kAny>(desc_.dtype, [&]<typename T>() -> std::complex<double> {
      if constexpr (kIsComplexType<T>) {
        return std::complex<double>(data<T>()[at]);
      } else if constexpr (std::is_same_v<T, bool>) {
        return data<uint8_t>()[at];
      } else {
        return static_cast<double>(static_cast<Compute<T>>(data<T>()[at]));
      }
    });
  }
  void put(const Shape& index, std::complex<double> value) {
    const int64_t at = offset(index);
    if (is_narrow(dtype())) {
      data<uint8_t>()[at] = encode_narrow(dtype(), value.real());
      return;
    }
    if (dtype() == DType::kString) {
      data<Text>()[at] = interned(fmt::format("{}", value.real()));
      return;
    }
    dispatch<kAny>(desc_.dtype, [&]<typename T>() {
      if constexpr (kIsComplexType<T>) {
        data<T>()[at] = T(value);
      } else {
        data<T>()[at] = static_cast<T>(static_cast<Compute<T>>(value.real()));
      }
    });
  }

  TestTensor& set(const std::vector<double>& values) {
    EXPECT_EQ(static_cast<int64_t>(values.size()), count());
    size_t i = 0;
    for_each_index(shape(), [&](const Shape& index) { put(index, values.at(i++)); });
    return *this;
  }
  // Uniform in [low, high]; whole numbers for integers, 0 or 1 for bool.
  TestTensor& fill(uint64_t seed, double low = -2, double high = 2) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> real(low, high);
    const int64_t first = static_cast<int64_t>(std::ceil(low));
    const int64_t last = std::max(first, static_cast<int64_t>(std::floor(high)));
    std::uniform_int_distribution<int64_t> whole(first, last);
    for_each_index(shape(), [&](const Shape& index) {
      if (dtype() == DType::kBool) return put(index, static_cast<double>(random() & 1));
      if (!is_int(dtype()) && !contains(kNarrowInt | kText, dtype()))
        return put(index, {real(random), real(random)});
      const int64_t value = whole(random);
      put(index, static_cast<double>(contains(kUnsigned, dtype()) ? std::abs(value) : value));
    });
    return *this;
  }
  std::vector<double> values() const {  // row-major, real parts
    std::vector<double> all;
    for_each_index(shape(), [&](const Shape& index) { all.push_back(get(index).real()); });
    return all;
  }

  // The same elements in other places.
  TestTensor with_strides(Strides strides) const {
    TensorDesc desc = desc_;
    desc.strides = std::move(strides);
    TestTensor other(std::move(desc));
    for_each_index(shape(), [&](const Shape& index) {
      std::memcpy(static_cast<char*>(other.ptr()) + other.byte_offset(index),
                  static_cast<const char*>(ptr()) + byte_offset(index), size_of(dtype()));
    });
    return other;
  }
  // Column-major with a gap between elements, last axis reversed: what a plain loop gets wrong.
  TestTensor scrambled() const {
    Strides strides(shape().size());
    int64_t step = 2;
    for (size_t i = 0; i < shape().size(); ++i) {
      strides[i] = step;
      step *= std::max<int64_t>(shape()[i], 1);
    }
    if (!strides.empty()) strides.back() = -strides.back();
    return with_strides(std::move(strides));
  }

 private:
  int64_t offset(const Shape& index) const {
    int64_t sum = 0;
    for (size_t i = 0; i < index.size(); ++i) sum += index[i] * desc_.strides[i];
    return sum;
  }
  int64_t byte_offset(const Shape& index) const {
    return offset(index) * static_cast<int64_t>(size_of(dtype()));
  }

  TensorDesc desc_;
  size_t body_ = 0, first_ = 0;
  std::vector<std::byte> bytes_;
};

inline TestTensor f32(Shape shape, const Row& values) {
  return TestTensor(DType::kF32, std::move(shape), values);
}
inline TestTensor f64(Shape shape, const Row& values) {
  return TestTensor(DType::kF64, std::move(shape), values);
}
inline TestTensor f32s(const Row& values) {  // a vector
  return f32({static_cast<int64_t>(values.size())}, values);
}
inline TestTensor indices(Shape shape, const Ints& values) {
  return TestTensor::of<int64_t>(std::move(shape), values);
}
inline TestTensor random_f32(Shape shape, uint64_t seed = 1, double low = -2, double high = 2) {
  return TestTensor(DType::kF32, std::move(shape)).fill(seed, low, high);
}

// Equal when |a - b| <= tolerance * max(1, |b|); NaN equals NaN, an infinity only itself.
inline bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  return std::isfinite(a) && std::isfinite(b) &&
         std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

// EXPECT_TRUE(same(result, expected, 1e-6)): dtype, shape, elements, and the memory around them.
inline ::testing::AssertionResult same(const TestTensor& actual, const TestTensor& expected,
                                       double tolerance = 0) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape())
    return ::testing::AssertionFailure()
           << "is " << to_string(actual.desc()) << ", expected " << to_string(expected.desc());
  if (!actual.guards_intact())
    return ::testing::AssertionFailure() << "memory around the tensor was written to";
  std::string difference;
  int64_t wrong = 0;
  for_each_index(actual.shape(), [&](const Shape& index) {
    const std::complex<double> a = actual.get(index), b = expected.get(index);
    if (close(a.real(), b.real(), tolerance) && close(a.imag(), b.imag(), tolerance)) return;
    if (wrong++ == 0)
      difference = fmt::format("{} at {}: {}{:+}i, expected {}{:+}i", to_string(actual.desc()),
                               to_string(index), a.real(), a.imag(), b.real(), b.imag());
  });
  if (wrong == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << difference << " (" << wrong << " of " << actual.count() << " elements differ)";
}

// An absent optional input is std::nullopt.
using TestInputs = std::vector<std::optional<TestTensor>>;

// The elements of an i32 or i64 vector or scalar, which inference may look at.
inline std::optional<std::vector<int64_t>> content_of(const TestTensor& tensor) {
  if (!contains(kIndex, tensor.dtype()) || tensor.shape().size() > 1 ||
      tensor.count() > ValueType::kMaxContent)
    return std::nullopt;
  std::vector<int64_t> content;
  const int64_t step = tensor.shape().empty() ? 0 : tensor.desc().strides[0];
  for (int64_t i = 0; i < tensor.count(); ++i)
    content.push_back(tensor.dtype() == DType::kI64 ? tensor.data<int64_t>()[i * step]
                                                    : tensor.data<int32_t>()[i * step]);
  return content;
}

// The shapes that an op's `measure` tells from the inputs' elements.
inline std::vector<Shape> measure_outputs(const Op& op, const Attrs& attrs,
                                          const TestInputs& inputs) {
  TestInputs dense = inputs;
  std::vector<MeasureInput> elements(inputs.size());
  for (size_t i = 0; i < dense.size(); ++i) {
    if (!dense[i]) continue;
    dense[i] = dense[i]->with_strides(contiguous_strides(dense[i]->shape()));
    elements[i] = {dense[i]->desc(), dense[i]->ptr()};
  }
  return op.measure({op, attrs, elements});
}

// Infers the outputs of an op for concrete inputs.
inline std::vector<TensorDesc> infer_outputs(const Op& op, const Attrs& attrs,
                                             const TestInputs& inputs, size_t outputs) {
  std::vector<ValueType> types(inputs.size());
  std::vector<const ValueType*> pointers(inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    types[i] = {inputs[i]->dtype(), true, to_dims(inputs[i]->shape()), std::nullopt};
    if (const auto content = content_of(*inputs[i]))
      types[i].content = Dims(content->begin(), content->end());
    pointers[i] = &types[i];
  }
  const std::vector<ValueType> results = InferContext::run(op, attrs, pointers, outputs, "");
  const bool open =
      std::any_of(results.begin(), results.end(), [](const auto& t) { return !t.static_shape(); });
  std::vector<Shape> measured;
  if (open && op.measure) measured = measure_outputs(op, attrs, inputs);
  std::vector<TensorDesc> descs;
  for (size_t i = 0; i < results.size(); ++i)
    descs.emplace_back(results[i].dtype,
                       measured.empty() ? to_shape(results[i].shape) : measured.at(i));
  return descs;
}

// Runs an op on the reference driver, all outputs contiguous.
inline std::vector<TestTensor> run_reference_all(const char* name, TestInputs inputs,
                                                 const NamedAttrs& attrs = {}, size_t outputs = 0) {
  const Op& op = get_op(name);
  KernelRequest request;
  request.op = &op;
  request.attrs = Attrs(op, attrs);
  request.node = "test";
  request.outputs = infer_outputs(op, request.attrs, inputs, outputs ? outputs : op.outputs.size());
  std::vector<void*> in, out;
  for (auto& input : inputs) {
    request.inputs.push_back(input ? std::optional(input->desc()) : std::nullopt);
    request.contents.push_back(input ? content_of(*input) : std::nullopt);
    in.push_back(input ? input->ptr() : nullptr);
  }
  std::vector<TestTensor> results;
  for (const TensorDesc& desc : request.outputs) results.emplace_back(desc);
  for (TestTensor& result : results) out.push_back(result.ptr());
  const KernelPtr kernel = make_reference_kernel(request);
  if (!kernel) fail(Code::kNotFound, "[{}] has no reference kernel", name);
  static auto* const strings = new StringStore();  // results may outlive the run
  kernel->run({in.data(), out.data(), nullptr, nullptr, strings});
  return results;
}

inline TestTensor run_reference(const char* name, TestInputs inputs, const NamedAttrs& attrs = {}) {
  return run_reference_all(name, std::move(inputs), attrs, 1).at(0);
}

// The message of the Error that fn throws; fails the test if there is none.
template <typename Fn>
std::string error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an error";
  return {};
}

}  // namespace anymps::testing
