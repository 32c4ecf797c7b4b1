// SPDX-License-Identifier: Apache-2.0
// The gradients of a convolution with oneDNN. That to the weights is a sum over pixels, which is
// cut by the shapes alone, so that it does not depend on the number of threads.
#include <algorithm>

#include "drivers/cpu/layers/convolution.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

using namespace convolution;

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
  p.w = with_groups(p.w, p.groups);
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
      // A band that sees nothing but padding: not worth a separate case.
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
        return pixel_bytes(all, part.image, row);
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

const KernelRegistrar kDataGradient("cpu", "conv_data_gradient", "onednn", 10,
                                    onednn_factory(make_data_gradient));
const KernelRegistrar kWeightsGradient("cpu", "conv_weights_gradient", "onednn", 10,
                                       onednn_factory(make_weights_gradient));

}  // namespace

}  // namespace anymps::cpu
