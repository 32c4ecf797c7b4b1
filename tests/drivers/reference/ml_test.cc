// SPDX-License-Identifier: Apache-2.0
// Probabilities from pairs, where the answer is known: pairs that are true of some probabilities
// give these, as near as the iteration goes. ONNX Runtime checks the rest (test_learning.py).
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::TestTensor;

std::vector<double> coupled(int64_t classes, const std::vector<double>& pairs) {
  const Op& op = get_op("pair_coupling");
  KernelRequest request;
  request.op = &op;
  request.attrs = Attrs(op, {{"classes", classes}});
  TestTensor p = TestTensor::of<double>({1, static_cast<int64_t>(pairs.size())}, pairs);
  TestTensor y(DType::kF64, {1, classes});
  request.inputs = {p.desc()};
  request.contents.resize(1);
  request.outputs = {y.desc()};
  void *in = p.ptr(), *out = y.ptr();
  make_reference_kernel(request)->run({&in, &out, nullptr, nullptr});
  return y.values();
}

TEST(ReferenceMl, PairCoupling) {
  EXPECT_NEAR(coupled(2, {0.3})[0], 0.3, 1e-5);
  EXPECT_NEAR(coupled(3, {0.5, 0.5, 0.5})[1], 1.0 / 3, 1e-12);
  const std::vector<double> known = {0.5, 0.3, 0.15, 0.05};
  std::vector<double> pairs;
  for (size_t i = 0; i < known.size(); ++i)
    for (size_t j = i + 1; j < known.size(); ++j) pairs.push_back(known[i] / (known[i] + known[j]));
  const std::vector<double> y = coupled(4, pairs);
  double sum = 0;
  for (size_t i = 0; i < known.size(); ++i) {
    EXPECT_NEAR(y[i], known[i], 4e-3);
    sum += y[i];
  }
  EXPECT_NEAR(sum, 1, 1e-12);
}

}  // namespace
}  // namespace anymps
