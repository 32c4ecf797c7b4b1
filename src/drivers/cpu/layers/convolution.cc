// SPDX-License-Identifier: Apache-2.0
// Convolution with oneDNN, or as a product where the window is one pixel.
#include "drivers/cpu/layers/convolution.h"

#include "drivers/cpu/linear/gemm.h"
#include "drivers/kernel_ways.h"

namespace anymps::cpu {

namespace convolution {

bool check(const KernelRequest& request, std::string& why) {
  const TensorDesc& x = request.in(0);
  if (!onednn_type(x.dtype)) return refuse<bool>(why, fmt::format("dtype {}", name(x.dtype)));
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (!request.has(i)) continue;
    if (request.in(i).count() == 0) return refuse<bool>(why, fmt::format("input {} is empty", i));
    if (has_odd_strides(request.in(i)))
      return refuse<bool>(why, fmt::format("input {} has strides that are not positive", i));
  }
  return true;
}

bool slow_half(DType dtype, std::string_view implementation) {
  return is_half(dtype) && implementation.find("ref") != implementation.npos;
}

TensorDesc activations(const KernelRequest& request, const TensorDesc& desc) {
  return request.attrs.s("layout") == "channels_last" ? channels_second(desc) : desc;
}

TensorDesc plain_weights(const KernelRequest& request, const TensorDesc& w) {
  if (request.attrs.s("weights_layout") != "*IO") return w;
  std::vector<size_t> axes{w.shape.size() - 1, w.shape.size() - 2};
  for (size_t i = 0; i + 2 < w.shape.size(); ++i) axes.push_back(i);
  return reorder_axes(w, axes);
}

TensorDesc with_groups(const TensorDesc& w, int64_t groups) {
  if (groups == 1) return w;
  TensorDesc result = w;
  result.shape[0] /= groups;
  result.shape.insert(0, groups);
  result.strides.insert(0, w.strides[0] * result.shape[1]);
  return result;
}

Shape spatial_of(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

void set_window(Problem& p, const Window& window) {
  p.window = window;
  p.strides = onednn_dims(window.strides);
  p.dilations = onednn_dims(window.dilations);
  for (int64_t& dilation : p.dilations) --dilation;
  p.begin = onednn_dims(window.pads_begin);
  p.end = onednn_dims(window.pads_end);
}

memory::desc any_layout(const TensorDesc& desc) {
  return {onednn_dims(desc.shape), *onednn_type(desc.dtype), memory::format_tag::any};
}

Problem start(const KernelRequest& request) {
  Problem p;
  p.groups = request.attrs.i("groups");
  p.x = activations(request, request.in(0));
  p.y = activations(request, request.out());
  p.in_channels = p.x.shape[1];
  p.out_channels = p.y.shape[1];
  if (request.has(3)) p.residual = activations(request, request.in(3));
  return p;
}

memory::desc bias_desc(const KernelRequest& request, const Problem& p) {
  if (!request.has(2)) return {};
  return memory::desc({p.out_channels}, *onednn_type(p.x.dtype), memory::dims{1});
}

dnnl::primitive_attr attr_for(const KernelRequest& request, const memory::desc& y) {
  dnnl::post_ops ops;
  if (request.has(3)) ops.append_binary(dnnl::algorithm::binary_add, y);
  append_activation(ops, request.attrs);
  return onednn_attr(ops);
}

Forward forward_hint(const Problem& p, const memory::desc& x, const memory::desc& y) {
  return {onednn_engine(),
          dnnl::prop_kind::forward_training,
          dnnl::algorithm::convolution_direct,
          x,
          any_layout(p.w),
          y,
          p.strides,
          p.dilations,
          p.begin,
          p.end,
          onednn_attr({}),
          true};
}

}  // namespace convolution

namespace {

using namespace convolution;

// oneDNN's first choice is not always its fastest on channels-last f32; names are prefixes.
std::string_view faster_implementation(const Problem& p) {
  // brdgmm_dw, the first choice, takes up to 1.5 times as long.
  if (p.depthwise()) return "jit_dw:";
  if (p.groups > 1) return {};
  // A half-empty vector of output channels, or few input channels to sum over: 256-bit vectors win.
  if (p.pointwise() && (p.out_channels % 16 == 8 || p.in_channels <= 32)) return "jit_1x1:avx2";
  // Image stems: the 512-bit kernel does not spread small windows over threads.
  if (p.in_channels <= 4 && p.window.rank() == 2 && p.window.kernel[0] <= 3) return "jit:avx2";
  return {};
}

// Leaves out axes along which nothing happens: x, y and the window have extent 1 there. oneDNN's
// kernels walk along the last axis, so it should be a long one.
void drop_unit_axes(Problem& p, Window& window, bool has_residual) {
  for (size_t i = window.rank(); i-- > 0 && window.rank() > 1;) {
    if (p.x.shape[i + 2] != 1 || p.y.shape[i + 2] != 1 || window.kernel[i] != 1 ||
        window.pads_begin[i] != 0 || window.pads_end[i] != 0)
      continue;
    for (TensorDesc* desc : {&p.x, &p.w, &p.y, has_residual ? &p.residual : nullptr}) {
      if (!desc) continue;
      desc->shape.erase(i + 2);
      desc->strides.erase(i + 2);
    }
    for (Shape* part :
         {&window.kernel, &window.strides, &window.dilations, &window.pads_begin, &window.pads_end})
      part->erase(i);
  }
}

// The first whose name begins like this. Empty: there is none, or its parts would wait for each
// other.
template <typename Make>
auto asked_implementation(Make make, std::string_view name) {
  auto pd = make();
  while (pd && !std::string_view(pd.impl_info_str()).starts_with(name))
    if (!pd.next_impl()) return decltype(pd)();
  return pd && parts_wait(pd.impl_info_str()) ? decltype(pd)() : pd;
}

KernelPtr make_conv(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (!check(request, why)) return nullptr;
  Problem p = start(request);
  p.w = plain_weights(request, request.in(1));
  Window window = resolve_window(request.attrs, spatial_of(p.x.shape), spatial_of(p.w.shape));
  drop_unit_axes(p, window, request.has(3));
  set_window(p, window);
  p.w = with_groups(p.w, p.groups);
  const memory::desc x = channels_last_desc(p.x.dtype, p.x.shape);
  const memory::desc y = channels_last_desc(p.y.dtype, p.y.shape);
  const memory::desc bias = bias_desc(request, p);
  const dnnl::primitive_attr attr = attr_for(request, y);
  Parts parts(parts_for(p.flops()));
  const auto make = [&] {
    return dnnl::convolution_forward::primitive_desc(
        onednn_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, x,
        any_layout(p.w), bias, y, p.strides, p.dilations, p.begin, p.end, attr, true);
  };
  const std::string_view asked = AskedWay::now();
  const auto pd = asked.empty()
                      ? choose_implementation(parts, make,
                                              p.x.dtype == DType::kF32 ? faster_implementation(p)
                                                                       : std::string_view())
                      : asked_implementation(make, asked);
  if (!pd || slow_half(p.x.dtype, pd.impl_info_str()))
    return refuse(why, "oneDNN has no implementation");
  return build(request, p, pd, dnnl::convolution_forward(pd));
}

// The rows of a product that are the pixels a strided 1x1 window sees.
bool skip_pixels(const TensorDesc& x, const TensorDesc& y, const Window& window, Gemm& gemm) {
  constexpr int64_t kLeastRun = 4;  // shorter tiles leave the multipliers waiting for loads
  const size_t across = window.rank() - 1;
  gemm.run = y.shape[across + 1];
  if (across > 1 || gemm.run < kLeastRun) return false;
  gemm.x_row *= window.strides[across];
  gemm.x_image = x.count() / x.shape[0];
  if (across == 1) {
    gemm.runs = y.shape[1];
    gemm.x_run = window.strides[0] * x.shape[2] * x.shape[3];
  }
  return true;
}

// Where a window of one dimension is dense in x, with weights that lie like it, it is a row of a
// product as well: rows overlap.
bool overlapping_rows(const KernelRequest& request, const Window& window) {
  return window.rank() == 1 && window.dilations[0] == 1 && window.pads_begin[0] == 0 &&
         window.pads_end[0] == 0 && request.attrs.s("weights_layout") == "*IO" &&
         request.in(1).contiguous();
}

// A 1x1 convolution is a product: pixels are rows, channels are columns.
KernelPtr make_pointwise(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (!check(request, why)) return nullptr;
  const TensorDesc &x = request.in(0), &w = request.in(1);
  if (request.attrs.i("groups") != 1) return refuse(why, "groups");
  if (request.attrs.s("layout") != "channels_last") return refuse(why, "channels are not last");
  const TensorDesc plain = plain_weights(request, w);
  const Window window =
      resolve_window(request.attrs, spatial_of(channels_second(x).shape), spatial_of(plain.shape));
  const bool overlap = overlapping_rows(request, window);
  bool strided = overlap && window.kernel[0] != 1;
  for (size_t i = 0; !overlap && i < window.rank(); ++i) {
    if (window.kernel[i] != 1 || window.pads_begin[i] != 0 || window.pads_end[i] != 0)
      return refuse(why, "the window is not 1x1");
    strided = strided || window.strides[i] != 1;
  }
  for (const size_t i : {0u, 2u, 3u})
    if (request.has(i) && !request.in(i).contiguous()) return refuse(why, "strides");
  Gemm gemm;
  gemm.depth = gemm.x_row = x.shape.back();
  if (overlap) {
    gemm.depth *= window.kernel[0];
    strided = strided || window.strides[0] != 1;
  }
  gemm.columns = gemm.y_row = request.out().shape.back();
  gemm.rows = request.out().count() / gemm.columns;
  if (strided && !skip_pixels(x, request.out(), window, gemm))
    return refuse(why, "strides in three dimensions, or over short rows");
  if (!strided && window.rank() == 2) {
    gemm.images = x.shape[0];
    gemm.lines = x.shape[1];
  }
  gemm.w_depth = plain.strides[1];
  gemm.w_column = plain.strides[0];
  if (request.has(2)) gemm.bias = 2;
  if (request.has(3)) gemm.residual = 3;
  gemm.activation = tile_activation(request.attrs, "alpha", "beta");
  return make_gemm(request, gemm, why);
}

const KernelRegistrar kPointwise("cpu", "conv", "gemm", 5, make_pointwise);
const KernelRegistrar kConv("cpu", "conv", "onednn", 10, onednn_factory(make_conv));
const KernelWays kImplementations("cpu", "conv", "onednn",
                                  {"brg", "jit:avx512", "jit:avx2", "jit_1x1:avx512",
                                   "jit_1x1:avx2", "jit_dw:"});

}  // namespace

}  // namespace anymps::cpu
