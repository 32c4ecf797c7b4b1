// SPDX-License-Identifier: Apache-2.0
// Signatures of kernels that have no header in the wheel, or one that includes what is not there.
#pragma once

#include <string>
#include <vector>

#include <paddle/phi/common/scalar.h>
#include <paddle/phi/core/dense_tensor.h>
#include <paddle/utils/optional.h>

namespace phi {

template <typename T, typename Context>
void VarKernel(const Context&, const DenseTensor&, const std::vector<int64_t>&, bool, bool, double,
               DenseTensor*);
template <typename T, typename Context>
void StdKernel(const Context&, const DenseTensor&, const std::vector<int64_t>&, bool, bool, double,
               DenseTensor*);
template <typename T, typename Context>
void VarGradKernel(const Context&, const DenseTensor&, const DenseTensor&,
                   const std::vector<int64_t>&, bool, bool, double, DenseTensor*);
template <typename T, typename Context>
void StdGradKernel(const Context&, const DenseTensor&, const DenseTensor&, const DenseTensor&,
                   const std::vector<int64_t>&, bool, bool, double, DenseTensor*);
template <typename T, typename Context>
void LinearV2Kernel(const Context&, const DenseTensor&, const DenseTensor&, const DenseTensor&,
                    bool, DenseTensor*);
template <typename T, typename Context>
void LinearV2GradKernel(const Context&, const DenseTensor&, const DenseTensor&, const DenseTensor&,
                        const DenseTensor&, bool, DenseTensor*, DenseTensor*, DenseTensor*);
template <typename T, typename Context>
void IndexElementwisePutWithTensorKernel(const Context&, const DenseTensor&,
                                         const std::vector<const DenseTensor*>&, const DenseTensor&,
                                         const std::vector<int64_t>&, const std::vector<int64_t>&,
                                         const std::vector<int64_t>&, const std::vector<int64_t>&,
                                         int64_t, DenseTensor*);
template <typename T, typename Context>
void IndexElementwisePutWithTensorGradKernel(
    const Context&, const DenseTensor&, const std::vector<const DenseTensor*>&, const DenseTensor&,
    const DenseTensor&, const std::vector<int64_t>&, const std::vector<int64_t>&,
    const std::vector<int64_t>&, const std::vector<int64_t>&, int64_t, DenseTensor*, DenseTensor*);

template <typename T, typename Context>
void SequenceMaskScalarKernel(const Context&, const DenseTensor&, const Scalar&, DataType,
                              DenseTensor*);

template <typename T, typename Context>
void QuantizeLinearKernel(const Context&, const DenseTensor&, const paddle::optional<DenseTensor>&,
                          const DenseTensor&, const paddle::optional<DenseTensor>&,
                          const paddle::optional<DenseTensor>&, int, int, int, int, int, bool, bool,
                          DenseTensor*, DenseTensor*, DenseTensor*, DenseTensor*);
template <typename T, typename Context>
void DeQuantizeLinearKernel(const Context&, const DenseTensor&,
                            const paddle::optional<DenseTensor>&, const DenseTensor&,
                            const paddle::optional<DenseTensor>&,
                            const paddle::optional<DenseTensor>&, int, int, int, int, int, bool,
                            bool, DenseTensor*, DenseTensor*, DenseTensor*, DenseTensor*);

// The header of batch_norm_double_grad has one argument more than its callers give.
template <typename T, typename Context>
void BatchNormTwiceGradKernel(
    const Context&, const DenseTensor&, const paddle::optional<DenseTensor>&,
    const paddle::optional<DenseTensor>&, const paddle::optional<DenseTensor>&, const DenseTensor&,
    const DenseTensor&, const DenseTensor&, const paddle::optional<DenseTensor>&,
    const paddle::optional<DenseTensor>&, const paddle::optional<DenseTensor>&, float, float,
    const std::string&, bool, bool, bool, DenseTensor*, DenseTensor*, DenseTensor*);

}  // namespace phi
