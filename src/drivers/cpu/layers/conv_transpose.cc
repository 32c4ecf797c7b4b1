// SPDX-License-Identifier: Apache-2.0
// Transposed convolution with oneDNN: as its deconvolution, or with strides as the gradient of a
// convolution, which sums in one order for any number of threads.
#include <algorithm>

#include "drivers/cpu/layers/convolution.h"

namespace anymps::cpu {

namespace {

using namespace convolution;

// Bias, residual and activation of a result that lies in `y` already.
void append_tail(OneDnnBuilder& builder, const KernelRequest& request, const Problem& p,
                 const memory::desc& y, Place result) {
  if (!request.has(2) && !request.has(3) && request.attrs.s("activation") == "none") return;
  Shape unit(p.y.shape.size(), 1);
  unit[1] = p.out_channels;
  const memory::desc row = channels_last_desc(p.y.dtype, unit);
  Place bias;
  if (request.has(2)) {
    bias = builder.read(2, request.in(2), onednn_desc(TensorDesc(p.y.dtype, {p.out_channels})));
  } else {
    bias = builder.scratch(row.get_size());
    builder.step([bias, bytes = row.get_size()](const KernelArgs& args) {
      std::fill_n(static_cast<char*>(bias.resolve(args)), bytes, '\0');
    });
  }
  const dnnl::binary::primitive_desc pd(onednn_engine(), dnnl::algorithm::binary_add, y, row, y,
                                        attr_for(request, y));
  std::vector<PrimitiveArg> args{
      {DNNL_ARG_SRC_0, y, result}, {DNNL_ARG_SRC_1, row, bias}, {DNNL_ARG_DST, y, result}};
  if (request.has(3))
    args.push_back(
        {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, y, builder.read(3, p.residual, y)});
  builder.call(dnnl::binary(pd), pd.scratchpad_desc(), std::move(args));
}

// A transposed convolution as what it is, the gradient of a convolution to its input, which oneDNN
// has in an implementation that sums in one order. Null where it has not.
KernelPtr make_strided_transpose(const KernelRequest& request, const Problem& p,
                                 const TensorDesc& plain) {
  Problem gradient = p;
  gradient.w = with_groups(plain, p.groups);
  const memory::desc x = channels_last_desc(p.x.dtype, p.x.shape);
  const memory::desc y = channels_last_desc(p.y.dtype, p.y.shape);
  Parts parts(parts_for(p.flops(true)));
  const Forward forward = forward_hint(gradient, y, x);
  const auto make = [&] {
    return gradient_desc<dnnl::convolution_backward_data>(gradient, forward, y,
                                                          any_layout(gradient.w), x);
  };
  const auto pd = choose_implementation(parts, make, {}, kOrderOfThreads);
  if (!pd || slow_half(p.x.dtype, pd.impl_info_str()) ||
      std::string_view(pd.impl_info_str()).find(kOrderOfThreads) != std::string_view::npos)
    return nullptr;
  OneDnnBuilder builder(request);
  const Place result = builder.write(0, p.y, y);
  builder.call(dnnl::convolution_backward_data(pd), pd.scratchpad_desc(),
               {{DNNL_ARG_DIFF_DST, x, builder.read(0, p.x, x)},
                {DNNL_ARG_WEIGHTS, pd.weights_desc(),
                 builder.read_weights(1, gradient.w, pd.weights_desc())},
                {DNNL_ARG_DIFF_SRC, y, result}});
  append_tail(builder, request, p, y, result);
  return builder.finish(pd.impl_info_str());
}

KernelPtr make_conv_transpose(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (!check(request, why)) return nullptr;
  Problem p = start(request);
  p.w = request.in(1);  // [I, O/groups, kernel…]
  set_window(
      p, resolve_transposed_window(request.attrs, spatial_of(p.x.shape), spatial_of(p.w.shape)));
  p.w = with_groups(p.w, p.groups);
  const size_t first = p.groups == 1 ? 0 : 1;
  std::swap(p.w.shape[first], p.w.shape[first + 1]);
  std::swap(p.w.strides[first], p.w.strides[first + 1]);
  // oneDNN derives the extents of y from its paddings, which may be negative.
  for (size_t i = 0; i < p.window.rank(); ++i)
    p.end[i] =
        (p.x.shape[i + 2] - 1) * p.strides[i] + p.window.span(i) - p.begin[i] - p.y.shape[i + 2];
  if (std::any_of(p.strides.begin(), p.strides.end(), [](int64_t step) { return step > 1; }))
    if (KernelPtr kernel = make_strided_transpose(request, p, request.in(1))) return kernel;
  const memory::desc x = channels_last_desc(p.x.dtype, p.x.shape);
  const memory::desc y = channels_last_desc(p.y.dtype, p.y.shape);
  const memory::desc bias = bias_desc(request, p);
  const dnnl::primitive_attr attr = attr_for(request, y);
  Parts parts(parts_for(p.flops(true)));
  const auto pd = choose_implementation(parts, [&] {
    return dnnl::deconvolution_forward::primitive_desc(
        onednn_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct,
        x, any_layout(p.w), bias, y, p.strides, p.dilations, p.begin, p.end, attr, true);
  });
  if (!pd || slow_half(p.x.dtype, pd.impl_info_str()))
    return refuse(why, "oneDNN has no implementation");
  return build(request, p, pd, dnnl::deconvolution_forward(pd));
}

const KernelRegistrar kConvTranspose("cpu", "conv_transpose", "onednn", 10,
                                     onednn_factory(make_conv_transpose));

}  // namespace

}  // namespace anymps::cpu
