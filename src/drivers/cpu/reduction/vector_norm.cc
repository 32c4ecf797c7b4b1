// SPDX-License-Identifier: Apache-2.0
// Norms of any order on the CPU, in double.
#include <complex>

#include "drivers/cpu/common/rows.h"
#include "drivers/kernel.h"
#include "semantics/distance.h"

namespace anymps::cpu {

namespace {

KernelPtr make_vector_norm(const KernelRequest& request, std::string&) {
  const TensorDesc &x = request.in(0), &y = request.out();
  const std::vector<int64_t>& axes = request.attrs.ints("axes");
  const bool keep = request.attrs.b("keep_dims");
  const double p = request.attrs.f("p");
  std::vector<bool> reduced(x.shape.size(), axes.empty());
  for (const int64_t axis : axes) reduced[normalize_axis(axis, x.rank(), "vector_norm")] = true;
  Strides to;  // of y, for x's axes
  for (size_t i = 0, own = 0; i < reduced.size(); ++i) {
    to.push_back(reduced[i] ? 0 : y.strides[own]);
    if (!reduced[i] || keep) ++own;
  }
  const Groups groups(x.shape, reduced, {x.strides, to});
  return dispatch<kFloat | kComplex>(x.dtype, [&]<typename T>() {
    return make_kernel([=](const KernelArgs& args) {
      const T* from = static_cast<const T*>(args.inputs[0]);
      groups.run(p == 1 || p == 2 ? 1 : 20, [&](const Groups::Block& block) {
        std::vector<Norm> norms(block.size(), Norm(p));
        block.each([&](const Offsets& at, const Offsets& steps, int64_t n, int64_t step) {
          for (int64_t i = 0; i < n; ++i) {
            const auto value = static_cast<Compute<T>>(from[at[0] + i * steps[0]]);
            if constexpr (contains(kComplex, dtype_of<T>))
              norms[i * step].add(std::abs(static_cast<std::complex<double>>(value)));
            else
              norms[i * step].add(std::abs(static_cast<double>(value)));
          }
        });
        using R = std::conditional_t<contains(kComplex, dtype_of<T>), decltype(std::abs(T{})), T>;
        for (int64_t g = 0; g < block.size(); ++g)
          static_cast<R*>(args.outputs[0])[block.offset(1, g)] =
              static_cast<R>(static_cast<Compute<R>>(norms[g].value()));
      });
    });
  });
}

const KernelRegistrar kVectorNorm("cpu", "vector_norm", "plain", 10, make_vector_norm);

}  // namespace

}  // namespace anymps::cpu
