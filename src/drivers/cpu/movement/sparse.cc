// SPDX-License-Identifier: Apache-2.0
// sparse_to_dense on the CPU.
#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "semantics/scalar_functions.h"

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

CPU_KERNEL(sparse_to_dense, "plain") {
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

}  // namespace

}  // namespace anymps::cpu
