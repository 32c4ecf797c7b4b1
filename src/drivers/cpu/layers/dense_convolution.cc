// SPDX-License-Identifier: Apache-2.0
// Convolutions of channels-last regions whose image or residual comes from outside of them, as a
// view of planes: the kernels that are made for dense pixels (products, Winograd's tiles, depthwise
// and grouped ones) are worth a copy, which takes a small part of their time.
#include <algorithm>
#include <array>

#include "drivers/cpu/common/copy.h"
#include "drivers/cpu/onednn.h"
#include "drivers/kernel.h"
#include "drivers/kernel_ways.h"

namespace anymps::cpu {

namespace {

constexpr size_t kCacheLine = 64;
constexpr int64_t kLeastChannels = 16;  // of fewer, `direct` reads the planes as they lie

size_t whole_lines(size_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

struct DenseCopy {
  size_t input, at;  // where it lies in the scratch memory
  StridedCopy copy;
};

class DenseConvolution final : public Kernel {
 public:
  DenseConvolution(KernelPtr kernel, std::vector<DenseCopy> copies, size_t scratch, size_t inputs)
      : kernel_(std::move(kernel)),
        copies_(std::move(copies)),
        scratch_(scratch),
        inputs_(inputs) {}

  size_t scratch_bytes() const override { return scratch_; }
  bool reads(size_t i) const override { return kernel_->reads(i); }
  std::string detail() const override { return "copied, " + kernel_->detail(); }

  void run(const KernelArgs& args) const override {
    std::array<void*, 4> inputs{};
    std::copy_n(args.inputs, inputs_, inputs.begin());
    for (const DenseCopy& part : copies_) {
      void* const to = static_cast<char*>(args.scratch) + part.at;
      part.copy.run(to, args.inputs[part.input]);
      inputs[part.input] = to;
    }
    KernelArgs dense = args;
    dense.inputs = inputs.data();
    kernel_->run(dense);
  }

 private:
  KernelPtr kernel_;
  std::vector<DenseCopy> copies_;
  size_t scratch_, inputs_;
};

KernelPtr make_dense_convolution(const KernelRequest& request, std::string& why) {
  const TensorDesc& x = request.in(0);
  if (request.attrs.s("layout") != "channels_last") return refuse(why, "channels are not last");
  if (!request.constant(1) || request.inputs.size() > 4)
    return refuse(why, "the weights are not constant");
  if (x.count() == 0 || request.out().count() == 0) return refuse(why, "nothing to compute");
  if (x.dtype != DType::kF32) return refuse(why, fmt::format("dtype {}", name(x.dtype)));
  if (!AskedWay::now().empty()) return refuse(why, "it has one way");
  KernelRequest dense = request;
  std::vector<size_t> copied;
  for (const size_t i : {size_t{0}, size_t{3}}) {
    if (!request.has(i) || request.in(i).contiguous()) continue;
    if (has_odd_strides(request.in(i)))
      return refuse(why, fmt::format("input {} has strides that are not positive", i));
    dense.inputs[i] = TensorDesc(request.in(i).dtype, request.in(i).shape);
    copied.push_back(i);
  }
  if (copied.empty()) return refuse(why, "inputs are dense");
  if (!x.contiguous() && x.shape.back() < kLeastChannels)
    return refuse(why, fmt::format("{} channels", x.shape.back()));
  for (const KernelEntry& entry : kernel_list("cpu", "conv")) {
    if (entry.name != "gemm" && entry.name != "depthwise" && entry.name != "grouped" &&
        entry.name != "narrow" && entry.name != "depthwise_rows" && entry.name != "winograd")
      continue;
    std::string reason;
    KernelPtr kernel = entry.make(dense, reason);
    if (!kernel) continue;
    size_t scratch = whole_lines(kernel->scratch_bytes());
    std::vector<DenseCopy> copies;
    for (const size_t i : copied) {
      const TensorDesc& from = request.in(i);
      copies.push_back(
          {i, scratch,
           StridedCopy(size_of(from.dtype), from.shape, dense.in(i).strides, from.strides)});
      scratch += whole_lines(static_cast<size_t>(from.count()) * size_of(from.dtype));
    }
    return std::make_shared<DenseConvolution>(std::move(kernel), std::move(copies), scratch,
                                              request.inputs.size());
  }
  return refuse(why, "no kernel for dense inputs takes it");
}

const KernelRegistrar kDenseConvolution("cpu", "conv", "dense", 4, make_dense_convolution);

}  // namespace

}  // namespace anymps::cpu
