// SPDX-License-Identifier: Apache-2.0
// What convolutions, transposed convolutions and their gradients have in common with oneDNN.
// Activations are channels-last in memory (others are reordered on the way in and out), weights are
// packed once, and bias, residual and activation are applied before the result is stored.
#pragma once

#include "drivers/cpu/kernel_family.h"
#include "drivers/cpu/onednn.h"
#include "ops/layers/window.h"

namespace anymps::cpu::convolution {

using dnnl::memory;

// A convolution in oneDNN's terms: all tensors as [batch, channels, spatial…].
struct Problem {
  TensorDesc x, w, y;  // w is [O, I, kernel…], with a leading axis of groups if there are several
  int64_t groups = 1, in_channels = 0, out_channels = 0;
  TensorDesc residual;
  Window window;
  memory::dims strides, dilations, begin, end;

  bool pointwise() const {
    for (const int64_t extent : window.kernel)
      if (extent != 1) return false;
    return true;
  }
  bool depthwise() const { return groups > 1 && groups == in_channels && groups == out_channels; }
  // Each element of y, or of x if the convolution is transposed, meets the weights of its channel.
  double flops(bool transposed = false) const {
    const int64_t weights_of_one = w.count() / (transposed ? in_channels : out_channels);
    return 2.0 * static_cast<double>((transposed ? x : y).count()) *
           static_cast<double>(weights_of_one);
  }
};

// Registers a convolution and its two gradients.
inline KernelFamily trained_family(const char* name, int order, const KernelFactory& forward,
                                   const KernelFactory& data, const KernelFactory& weights) {
  return {name,
          order,
          {{"conv", forward}, {"conv_data_gradient", data}, {"conv_weights_gradient", weights}}};
}

// Whether oneDNN takes the request's tensors.
bool check(const KernelRequest& request, std::string& why);
// A half type that only oneDNN's reference code serves.
bool slow_half(DType dtype, std::string_view implementation);

// A problem without its weights and its window.
Problem start(const KernelRequest& request);
// [batch, channels, spatial…], whatever the layout.
TensorDesc activations(const KernelRequest& request, const TensorDesc& desc);
// The weights as [O, I, kernel…], whatever their layout.
TensorDesc plain_weights(const KernelRequest& request, const TensorDesc& w);
// Splits the first axis, whose elements are ordered by group, into a leading axis of groups.
TensorDesc with_groups(const TensorDesc& w, int64_t groups);
Shape spatial_of(const Shape& shape);
void set_window(Problem& p, const Window& window);

memory::desc any_layout(const TensorDesc& desc);
memory::desc bias_desc(const KernelRequest& request, const Problem& p);  // empty: there is none
// Residual and activation, for a result that is stored as `y`.
dnnl::primitive_attr attr_for(const KernelRequest& request, const memory::desc& y);

// The kernel of a forward primitive: inputs x, w, bias and residual.
template <typename PrimitiveDesc>
KernelPtr build(const KernelRequest& request, const Problem& p, const PrimitiveDesc& pd,
                const dnnl::primitive& primitive) {
  OneDnnBuilder builder(request);
  std::vector<PrimitiveArg> args;
  args.push_back({DNNL_ARG_SRC, pd.src_desc(), builder.read(0, p.x, pd.src_desc())});
  args.push_back(
      {DNNL_ARG_WEIGHTS, pd.weights_desc(), builder.read_weights(1, p.w, pd.weights_desc())});
  if (request.has(2))
    args.push_back({DNNL_ARG_BIAS, pd.bias_desc(), builder.read(2, request.in(2), pd.bias_desc())});
  if (request.has(3)) {
    const memory::desc desc = channels_last_desc(p.y.dtype, p.y.shape);
    args.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, desc,
                    builder.read(3, p.residual, desc)});
  }
  args.push_back({DNNL_ARG_DST, pd.dst_desc(), builder.write(0, p.y, pd.dst_desc())});
  builder.call(primitive, pd.scratchpad_desc(), std::move(args));
  return builder.finish(pd.impl_info_str());
}

// Implementations that choose the order of a sum by the number of threads where windows
// move by more than one pixel.
inline constexpr std::string_view kOrderOfThreads = "brg";

// The convolution of which a gradient is asked for: a hint that oneDNN looks at again whenever it
// is asked for another implementation, so it must be kept until one is chosen.
using Forward = dnnl::convolution_forward::primitive_desc;
Forward forward_hint(const Problem& p, const memory::desc& x, const memory::desc& y);

template <typename Backward>
typename Backward::primitive_desc gradient_desc(const Problem& p, const Forward& forward,
                                                const memory::desc& x, const memory::desc& w,
                                                const memory::desc& y) {
  if (!forward) return {};
  return {onednn_engine(),
          dnnl::algorithm::convolution_direct,
          x,
          w,
          y,
          p.strides,
          p.dilations,
          p.begin,
          p.end,
          forward,
          onednn_attr({}),
          true};
}

}  // namespace anymps::cpu::convolution
