// SPDX-License-Identifier: Apache-2.0
// Convolution, its gradients and transposed convolution with oneDNN. Activations are channels-last
// in memory (others are reordered on the way in and out), weights are packed once, and bias,
// residual and activation are applied before the result is stored.
#include <algorithm>

#include "drivers/cpu/linear/gemm.h"
#include "drivers/cpu/onednn.h"
#include "drivers/cpu/threads.h"
#include "ops/layers/window.h"

namespace anymps::cpu {

namespace {

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

TensorDesc activations(const KernelRequest& request, const TensorDesc& desc) {
  return request.attrs.s("layout") == "channels_last" ? channels_second(desc) : desc;
}

// Splits axis `axis`, whose elements are ordered by group, into a leading axis of groups.
TensorDesc with_groups(const TensorDesc& w, size_t axis, int64_t groups) {
  if (groups == 1) return w;
  TensorDesc result = w;
  result.shape[axis] /= groups;
  result.shape.insert(0, groups);
  result.strides.insert(0, w.strides[axis] * result.shape[axis + 1]);
  return result;
}

void set_window(Problem& p, const Window& window) {
  p.window = window;
  p.strides = onednn_dims(window.strides);
  p.dilations = onednn_dims(window.dilations);
  for (int64_t& dilation : p.dilations) --dilation;
  p.begin = onednn_dims(window.pads_begin);
  p.end = onednn_dims(window.pads_end);
}

Shape spatial_of(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

// Leaves out axes along which nothing happens: x, y and the window have extent 1 there. oneDNN's
// kernels walk along the last axis, so it had better be a long one.
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

bool check(const KernelRequest& request, std::string& why) {
  const TensorDesc& x = request.in(0);
  if (!onednn_type(x.dtype)) {
    why = fmt::format("dtype {}", name(x.dtype));
    return false;
  }
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (!request.has(i)) continue;
    if (request.in(i).count() == 0) {
      why = fmt::format("input {} is empty", i);
      return false;
    }
    if (has_odd_strides(request.in(i))) {
      why = fmt::format("input {} has strides that are not positive", i);
      return false;
    }
  }
  return true;
}

bool slow_half(DType dtype, std::string_view implementation) {
  return is_half(dtype) && implementation.find("ref") != implementation.npos;
}

memory::desc any_layout(const TensorDesc& desc) {
  return {onednn_dims(desc.shape), *onednn_type(desc.dtype), memory::format_tag::any};
}

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

dnnl::primitive_attr attr_for(const KernelRequest& request, const memory::desc& y) {
  dnnl::post_ops ops;
  if (request.has(3)) ops.append_binary(dnnl::algorithm::binary_add, y);
  append_activation(ops, request.attrs);
  return onednn_attr(ops);
}

// The weights as [O, I, kernel…], whatever their layout.
TensorDesc plain_weights(const KernelRequest& request, const TensorDesc& w) {
  if (request.attrs.s("weights_layout") != "*IO") return w;
  std::vector<size_t> axes{w.shape.size() - 1, w.shape.size() - 2};
  for (size_t i = 0; i + 2 < w.shape.size(); ++i) axes.push_back(i);
  return reorder_axes(w, axes);
}

KernelPtr make_conv(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (!check(request, why)) return nullptr;
  Problem p;
  p.groups = request.attrs.i("groups");
  p.x = activations(request, request.in(0));
  p.y = activations(request, request.out());
  p.w = request.in(1);
  p.w = plain_weights(request, p.w);
  p.in_channels = p.x.shape[1];
  p.out_channels = p.y.shape[1];
  if (request.has(3)) p.residual = activations(request, request.in(3));
  Window window = resolve_window(request.attrs, spatial_of(p.x.shape), spatial_of(p.w.shape));
  drop_unit_axes(p, window, request.has(3));
  set_window(p, window);
  p.w = with_groups(p.w, 0, p.groups);
  const memory::desc x = channels_last_desc(p.x.dtype, p.x.shape);
  const memory::desc y = channels_last_desc(p.y.dtype, p.y.shape);
  const memory::desc bias = request.has(2)
                                ? memory::desc({p.out_channels}, *onednn_type(p.x.dtype), {1})
                                : memory::desc();
  const dnnl::primitive_attr attr = attr_for(request, y);
  Parts parts(parts_for(p.flops()));
  const auto pd = choose_implementation(
      parts,
      [&] {
        return dnnl::convolution_forward::primitive_desc(
            onednn_engine(), dnnl::prop_kind::forward_inference,
            dnnl::algorithm::convolution_direct, x, any_layout(p.w), bias, y, p.strides,
            p.dilations, p.begin, p.end, attr, true);
      },
      p.x.dtype == DType::kF32 ? faster_implementation(p) : std::string_view());
  if (!pd || slow_half(p.x.dtype, pd.impl_info_str()))
    return refuse(why, "oneDNN has no implementation");
  return build(request, p, pd, dnnl::convolution_forward(pd));
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
  for (size_t i = 0; i < window.rank(); ++i)
    if (window.kernel[i] != 1 || window.strides[i] != 1 || window.pads_begin[i] != 0 ||
        window.pads_end[i] != 0)
      return refuse(why, "the window is not 1x1");
  for (const size_t i : {0u, 2u, 3u})
    if (request.has(i) && !request.in(i).contiguous()) return refuse(why, "strides");
  Gemm gemm;
  gemm.depth = gemm.x_row = x.shape.back();
  gemm.columns = gemm.y_row = request.out().shape.back();
  gemm.rows = request.out().count() / gemm.columns;
  gemm.w_depth = plain.strides[1];
  gemm.w_column = plain.strides[0];
  if (request.has(2)) gemm.bias = 2;
  if (request.has(3)) gemm.residual = 3;
  gemm.activation = tile_activation(request.attrs, "alpha", "beta");
  return make_gemm(request, gemm, why);
}

// Implementations that choose the order of a sum by the number of threads where windows
// move by more than one pixel.
constexpr std::string_view kOrderOfThreads = "brg";

// The convolution of which a gradient is asked for: a hint that oneDNN looks at again whenever it
// is asked for another implementation, so it must be kept until one is chosen.
using Forward = dnnl::convolution_forward::primitive_desc;
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
  gradient.w = with_groups(plain, 0, p.groups);
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
  Problem p;
  p.groups = request.attrs.i("groups");
  p.x = activations(request, request.in(0));
  p.y = activations(request, request.out());
  p.in_channels = p.x.shape[1];
  p.out_channels = p.y.shape[1];
  p.w = request.in(1);  // [I, O/groups, kernel…]
  if (request.has(3)) p.residual = activations(request, request.in(3));
  set_window(
      p, resolve_transposed_window(request.attrs, spatial_of(p.x.shape), spatial_of(p.w.shape)));
  p.w = with_groups(p.w, 0, p.groups);
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
  const memory::desc bias = request.has(2)
                                ? memory::desc({p.out_channels}, *onednn_type(p.x.dtype), {1})
                                : memory::desc();
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

// A convolution and its gradients: x, w and y are any of the inputs and outputs.
Problem forward_problem(const KernelRequest& request, const TensorDesc& x, const TensorDesc& w,
                        const TensorDesc& y) {
  Problem p;
  p.groups = request.attrs.i("groups");
  p.x = activations(request, x);
  p.y = activations(request, y);
  p.w = plain_weights(request, w);
  p.in_channels = p.x.shape[1];
  p.out_channels = p.y.shape[1];
  const Shape spatial = spatial_of(p.x.shape), kernel = spatial_of(p.w.shape);
  set_window(p, resolve_window(request.attrs, spatial, kernel));
  // oneDNN wants the padding that the last windows really reach.
  for (size_t i = 0; i < p.window.rank(); ++i)
    p.end[i] = p.window.reach_end(i, p.x.shape[i + 2], p.y.shape[i + 2]);
  p.w = with_groups(p.w, 0, p.groups);
  return p;
}

KernelPtr make_data_gradient(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (!check(request, why)) return nullptr;
  const Problem p = forward_problem(request, request.out(), request.in(1), request.in(0));
  const memory::desc x = channels_last_desc(p.x.dtype, p.x.shape);
  const memory::desc y = channels_last_desc(p.y.dtype, p.y.shape);
  Parts parts(parts_for(p.flops()));
  const Forward forward = forward_hint(p, x, y);
  const auto make = [&] {
    return gradient_desc<dnnl::convolution_backward_data>(p, forward, x, any_layout(p.w), y);
  };
  const auto pd = choose_implementation(parts, make, {}, kOrderOfThreads);
  if (!pd) return refuse(why, "oneDNN has no implementation");
  OneDnnBuilder builder(request);
  builder.call(
      dnnl::convolution_backward_data(pd), pd.scratchpad_desc(),
      {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), builder.read(0, p.y, pd.diff_dst_desc())},
       {DNNL_ARG_WEIGHTS, pd.weights_desc(), builder.read_weights(1, p.w, pd.weights_desc())},
       {DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), builder.write(0, p.x, pd.diff_src_desc())}});
  return builder.finish(pd.impl_info_str());
}

// Some images, or some rows of one image: the pixels of y from which a part of the gradient to the
// weights is summed, and the pixels of x that their windows reach.
struct Part {
  Problem problem;
  int64_t image = 0, x_row = 0, y_row = 0;
};

Part part_of(const Problem& p, int64_t image, int64_t images, int64_t row, int64_t rows) {
  Part part{p, image, 0, row};
  part.problem.x.shape[0] = part.problem.y.shape[0] = images;
  if (rows == p.y.shape[2]) return part;
  const int64_t first = row * p.strides[0] - p.begin[0], extent = p.x.shape[2];
  const int64_t last = first + (rows - 1) * p.strides[0] + p.window.span(0);
  part.x_row = std::max<int64_t>(first, 0);
  part.problem.begin[0] = std::max<int64_t>(-first, 0);
  part.problem.end[0] = std::max<int64_t>(last - extent, 0);
  part.problem.x.shape[2] = std::min(last, extent) - part.x_row;
  part.problem.y.shape[2] = rows;
  return part;
}

// Where there are few images, each is cut into bands of rows.
std::vector<Part> parts_of(const Problem& p, int64_t most) {
  constexpr int64_t kLeastRows = 4;
  const int64_t images = p.y.shape[0], rows = p.y.shape[2];
  const int64_t bands = std::clamp<int64_t>(std::min(most / images, rows / kLeastRows), 1, most);
  const int64_t batches = bands > 1 ? images : std::min(images, most);
  std::vector<Part> parts;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t r = 0; r < bands; ++r) {
      const int64_t image = images * b / batches, row = rows * r / bands;
      parts.push_back(
          part_of(p, image, images * (b + 1) / batches - image, row, rows * (r + 1) / bands - row));
      // A band that sees nothing but padding: not worth a case of its own.
      if (parts.back().problem.x.shape[2] <= 0) return {part_of(p, 0, images, 0, rows)};
    }
  return parts;
}

// How the gradient to the weights is cut up. It depends on the shapes alone, and with it the sums:
// how many threads there are does not matter. Pixels are cut first, but each part writes all
// weights, so where there are few pixels, output channels are.
struct Cut {
  int64_t parts, channels;  // parts of the pixels; output channels of a block
};

Cut cut_of(const Problem& p) {
  constexpr int64_t kMost = 8, kLeastPixels = 256, kLeastChannels = 32, kVector = 16;
  constexpr double kLeastWork = 2e6;
  const int64_t pixels = p.y.count() / p.out_channels;
  const double work = static_cast<double>(pixels) * static_cast<double>(p.w.count());
  const auto most = static_cast<int64_t>(std::clamp<double>(work / kLeastWork, 1, kMost));
  const int64_t parts = std::clamp<int64_t>(pixels / kLeastPixels, 1, most);
  if (p.groups > 1 || p.out_channels < 2 * kLeastChannels) return {parts, p.out_channels};
  const int64_t blocks = std::min(most / parts, p.out_channels / kLeastChannels);
  const int64_t each = (p.out_channels + blocks - 1) / blocks;
  return {parts, (each + kVector - 1) / kVector * kVector};
}

int64_t pixel_bytes(const TensorDesc& t, int64_t image, int64_t row) {
  return (image * t.shape[2] + row) * (t.count() / (t.shape[0] * t.shape[2])) *
         static_cast<int64_t>(size_of(t.dtype));
}

// Adds up what lies in `parts` into the first, in their order.
void add_up(OneDnnBuilder& builder, const std::vector<Place>& parts, size_t bytes) {
  if (parts.size() == 1) return;
  const auto count = static_cast<int64_t>(bytes / sizeof(float));
  builder.step([parts, count](const KernelArgs& args) {
    auto* const to = static_cast<float*>(parts[0].resolve(args));
    parallel_for(0, count, 0.2 * static_cast<double>(parts.size()),
                 [&](int64_t begin, int64_t end) {
                   for (size_t part = 1; part < parts.size(); ++part) {
                     const auto* from = static_cast<const float*>(parts[part].resolve(args));
                     for (int64_t i = begin; i < end; ++i) to[i] += from[i];
                   }
                 });
  });
}

KernelPtr make_weights_gradient(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (!check(request, why)) return nullptr;
  const Problem p = forward_problem(request, request.in(1), request.out(), request.in(0));
  const Cut cut = cut_of(p);
  OneDnnBuilder builder(request);
  const Place x = builder.read(1, p.x, channels_last_desc(p.x.dtype, p.x.shape));
  std::vector<OneDnnBuilder::Call> calls;
  struct Block {
    std::vector<Place> sums;
    size_t bytes = 0;
  };
  std::vector<Block> blocks;
  std::string detail;
  for (int64_t channel = 0; channel < p.out_channels; channel += cut.channels) {
    Problem own = p;
    own.out_channels = own.y.shape[1] = std::min(cut.channels, p.out_channels - channel);
    if (p.groups == 1) own.w.shape[0] = own.out_channels;
    const auto offset = [&](const TensorDesc& t, int64_t stride) {
      return static_cast<size_t>(channel * stride) * size_of(t.dtype);
    };
    const Place y = builder.read(0, own.y, channels_last_desc(own.y.dtype, own.y.shape),
                                 offset(p.y, p.y.strides[1]));
    memory::desc w(onednn_dims(own.w.shape), memory::data_type::f32, memory::format_tag::any);
    Block& block = blocks.emplace_back();
    for (const Part& part : parts_of(own, cut.parts)) {
      const Problem& some = part.problem;
      const Parts one(1);
      const memory::desc from = channels_last_desc(some.x.dtype, some.x.shape);
      const memory::desc to = channels_last_desc(some.y.dtype, some.y.shape);
      const auto pd = gradient_desc<dnnl::convolution_backward_weights>(
          some, forward_hint(some, from, to), from, w, to);
      if (!pd) return refuse(why, "oneDNN has no implementation");
      w = pd.diff_weights_desc();
      detail = pd.impl_info_str();
      block.bytes = w.get_size();
      block.sums.push_back(block.sums.empty()
                               ? builder.write(0, own.w, w, offset(p.w, p.w.strides[0]))
                               : builder.scratch(block.bytes));
      const auto bytes = [&](const TensorDesc& all, int64_t row) {
        return static_cast<size_t>(pixel_bytes(all, part.image, row));
      };
      calls.push_back({dnnl::convolution_backward_weights(pd),
                       pd.scratchpad_desc(),
                       {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), y.at(bytes(own.y, part.y_row))},
                        {DNNL_ARG_SRC, pd.src_desc(), x.at(bytes(p.x, part.x_row))},
                        {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc(), block.sums.back()}}});
    }
  }
  builder.calls(std::move(calls));
  for (const Block& block : blocks) add_up(builder, block.sums, block.bytes);
  return builder.finish(detail);
}

const KernelRegistrar kPointwise("cpu", "conv", "gemm", 5, make_pointwise);
const KernelRegistrar kConv("cpu", "conv", "onednn", 10, onednn_factory(make_conv));
const KernelRegistrar kConvTranspose("cpu", "conv_transpose", "onednn", 10,
                                     onednn_factory(make_conv_transpose));
const KernelRegistrar kDataGradient("cpu", "conv_data_gradient", "onednn", 10,
                                    onednn_factory(make_data_gradient));
const KernelRegistrar kWeightsGradient("cpu", "conv_weights_gradient", "onednn", 10,
                                       onednn_factory(make_weights_gradient));

}  // namespace

}  // namespace anymps::cpu
