// SPDX-License-Identifier: Apache-2.0
// Matrix products of f64, integers and complex numbers (typed_gemm.h). Scale, bias, residual and
// activation follow in a second pass over the result.
#include "drivers/cpu/linear/matmul_tensors.h"
#include "drivers/cpu/linear/typed_product.h"

namespace anymps::cpu {

namespace {

KernelPtr make_typed_matmul(const KernelRequest& request, std::string& why) {
  const TensorDesc& out = request.out();
  if (!TypedGemm::has(out.dtype)) return refuse(why, fmt::format("dtype {}", name(out.dtype)));
  if (out.count() == 0) return make_kernel([](const KernelArgs&) {});
  const std::optional<ProductTensors> p = product_tensors(request, why);
  if (!p) return nullptr;
  const TensorDesc &a = p->tensors[0], &b = p->tensors[1], &y = p->tensors[2];
  const size_t batches = p->batch_rank(), row = batches, column = batches + 1;
  const auto matrix = [&](const TensorDesc& t) {
    return TypedGemm::Matrix{t.strides[row], t.strides[column]};
  };
  const auto outer = [&](const TensorDesc& t) {
    return Strides(t.strides.begin(), t.strides.begin() + static_cast<int64_t>(batches));
  };
  TypedGemm::Problem problem;
  problem.dtype = out.dtype;
  problem.rows = y.shape[row];
  problem.depth = a.shape[column];
  problem.columns = y.shape[column];
  problem.a = matrix(a);
  problem.b = matrix(b);
  problem.y = matrix(y);
  problem.batch =
      merge_loops(Shape(y.shape.begin(), y.shape.begin() + static_cast<int64_t>(batches)),
                  {outer(a), outer(b), outer(y)});
  TypedTail tail(request.attrs, "act_alpha", "act_beta");
  tail.scale = request.attrs.f("alpha");
  tail.summands = p->summands;
  std::vector<Strides> strides{y.strides};
  for (size_t i = 3; i < p->tensors.size(); ++i) strides.push_back(p->tensors[i].strides);
  tail.rows = Rows(merge_loops(y.shape, std::move(strides)));
  return std::make_shared<TypedProduct>(out.dtype, 0, TypedGemm(std::move(problem)),
                                        std::move(tail));
}

const KernelRegistrar kTypedMatmul("cpu", "matmul", "typed", 15, make_typed_matmul);

}  // namespace

}  // namespace anymps::cpu
