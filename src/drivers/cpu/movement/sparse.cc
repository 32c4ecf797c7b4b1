// SPDX-License-Identifier: Apache-2.0
// sparse_to_dense and hamming_distance on the CPU.
#include <bit>
#include <cstring>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/rows.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/kernel.h"
#include "semantics/elements.h"

namespace anymps::cpu {

namespace {

template <typename T, typename Index>
class SparseToDense {
 public:
  explicit SparseToDense(const KernelRequest& request)
      : storage_(request.attrs.s("storage")), y_(request.out()), count_(request.in(0).shape[0]) {
    lines_ = request.in(2).shape[0] - 1;
    for (size_t i = 0; i < 3; ++i) steps_[i] = request.in(i).strides[0];
  }

  void operator()(const KernelArgs& args) const {
    T* y = static_cast<T*>(args.outputs[0]);
    clear(args.outputs[0], y_.bytes());
    const auto at = [&](size_t input, int64_t i) {
      return static_cast<int64_t>(static_cast<const Index*>(args.inputs[input])[i * steps_[input]]);
    };
    const auto add = [&](int64_t row, int64_t column, int64_t i) {
      require(row >= 0 && row < y_.shape[0] && column >= 0 && column < y_.shape[1],
              "[sparse_to_dense] place ({}, {}) is outside {}", row, column, to_string(y_.shape));
      T& element = y[row * y_.shape[1] + column];
      element = scalar::add(element, static_cast<const T*>(args.inputs[0])[i * steps_[0]]);
    };
    if (storage_ == "coo") {
      for (int64_t i = 0; i < count_; ++i) add(at(2, i), at(1, i), i);
      return;
    }
    require(at(2, 0) == 0 && at(2, lines_) == count_,
            "[sparse_to_dense] the starts must go from 0 to {}", count_);
    for (int64_t line = 0; line < lines_; ++line) {
      const int64_t first = at(2, line), last = at(2, line + 1);
      require(first <= last && last <= count_, "[sparse_to_dense] start {} lies after start {}",
              line, line + 1);
      for (int64_t i = first; i < last; ++i)
        storage_ == "csr" ? add(line, at(1, i), i) : add(at(1, i), line, i);
    }
  }

 private:
  std::string storage_;
  TensorDesc y_;
  int64_t count_, lines_ = 0, steps_[3] = {1, 1, 1};
};

KernelPtr make_sparse_to_dense(const KernelRequest& request, std::string& why) {
  const DType dtype = request.in(0).dtype;
  if (is_half(dtype)) return widened(request, make_sparse_to_dense, why);
  if (!request.out().contiguous()) return refuse(why, "y is not contiguous");
  const DType index = request.in(1).dtype;
  if (index != request.in(2).dtype) return refuse(why, "indices of two dtypes");
  constexpr DTypeSet kTypes = bit(DType::kF32) | bit(DType::kF64) | kInt | kComplex;
  return dispatch<kTypes>(dtype, [&]<typename T>() {
    return index == DType::kI64 ? make_kernel(SparseToDense<T, int64_t>(request))
                                : make_kernel(SparseToDense<T, int32_t>(request));
  });
}

template <typename U>
KernelPtr make_hamming(const KernelRequest& request) {
  const TensorDesc &a = request.in(0), &b = request.in(1), &y = request.out();
  Shape whole = y.shape;
  whole.push_back(a.shape.back() == 1 ? b.shape.back() : a.shape.back());
  Strides from_a = broadcast_strides(a, whole), from_b = broadcast_strides(b, whole);
  const int64_t bits = whole.back(), a_step = from_a.back(), b_step = from_b.back();
  from_a.pop_back(), from_b.pop_back();
  const Rows rows(make_loops(y.shape, {y.strides, from_a, from_b}));
  const auto size = static_cast<int64_t>(size_of(y.dtype));
  return make_kernel([=, dtype = y.dtype](const KernelArgs& args) {
    for_each_row(rows, 10 + static_cast<double>(bits), [&](const Offsets& at) {
      for (int64_t i = 0; i < rows.length; ++i) {
        const U* first = static_cast<const U*>(args.inputs[0]) + at[1] + i * rows.steps[1];
        const U* second = static_cast<const U*>(args.inputs[1]) + at[2] + i * rows.steps[2];
        int64_t distance = 0;
        for (int64_t k = 0; k < bits; ++k)
          distance += std::popcount(static_cast<U>(first[k * a_step] ^ second[k * b_step]));
        void* to = static_cast<char*>(args.outputs[0]) + (at[0] + i * rows.steps[0]) * size;
        dispatch<kReal>(
            dtype, [&]<typename To>() { *static_cast<To*>(to) = scalar::convert<To>(distance); });
      }
    });
  });
}

KernelPtr make_hamming_distance(const KernelRequest& request, std::string&) {
  switch (size_of(request.in(0).dtype)) {
    case 1:
      return make_hamming<uint8_t>(request);
    case 2:
      return make_hamming<uint16_t>(request);
    case 4:
      return make_hamming<uint32_t>(request);
    default:
      return make_hamming<uint64_t>(request);
  }
}

const KernelRegistrar kSparse("cpu", "sparse_to_dense", "plain", 10, make_sparse_to_dense);
const KernelRegistrar kHamming("cpu", "hamming_distance", "plain", 10, make_hamming_distance);

}  // namespace

}  // namespace anymps::cpu
