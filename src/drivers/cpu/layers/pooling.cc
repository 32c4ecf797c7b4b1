// SPDX-License-Identifier: Apache-2.0
// Max and average pooling with oneDNN, in either layout. Places of the largest elements are left
// to the reference kernel.
#include <string_view>

#include "drivers/cpu/onednn.h"
#include "ops/layers/window.h"

namespace anymps::cpu {

namespace {

using dnnl::memory;

constexpr double kOpsEach = 8;  // floating-point operations that take as long as one element does

KernelPtr make_pool(const KernelRequest& request, dnnl::algorithm algorithm, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  const TensorDesc& input = request.in(0);
  if (!onednn_type(input.dtype)) return refuse(why, fmt::format("dtype {}", name(input.dtype)));
  if (request.outputs.size() > 1) return refuse(why, "no indices");
  if (input.rank() > 5) return refuse(why, fmt::format("rank {}", input.rank()));
  if (input.count() == 0) return refuse(why, "the input is empty");
  if (has_odd_strides(input)) return refuse(why, "the input has strides that are not positive");

  const bool last = request.attrs.s("layout") == "channels_last";
  const TensorDesc x = last ? channels_second(input) : input;
  const TensorDesc y = last ? channels_second(request.out()) : request.out();
  const Shape spatial(x.shape.begin() + 2, x.shape.end());
  const std::vector<int64_t>& extents = request.attrs.ints("kernel");
  const Window window =
      resolve_window(request.attrs, spatial, Shape(extents.begin(), extents.end()));
  memory::dims dilations = onednn_dims(window.dilations), end(window.rank());
  for (size_t i = 0; i < window.rank(); ++i) {
    --dilations[i];
    const int64_t reach = window.reach_end(i, spatial[i], y.shape[i + 2]);
    end[i] = std::max<int64_t>(0, reach);
    if (window.pads_begin[i] >= window.span(i) || reach >= window.span(i))
      return refuse(why, "a window lies in the padding alone");
    // oneDNN would count what sticks out of the padding.
    if (algorithm == dnnl::algorithm::pooling_avg_include_padding && reach > window.pads_end[i])
      return refuse(why, "counted padding with windows that stick out of it");
  }
  double window_size = 1;
  for (const int64_t extent : window.kernel) window_size *= static_cast<double>(extent);
  // A dense channels-first tensor stays as it is where oneDNN has vector code for it; all others
  // become channels-last.
  const bool dense = x.contiguous() && y.contiguous();
  for (const bool first : {dense, false}) {
    const memory::desc from = first ? onednn_desc(x) : channels_last_desc(x.dtype, x.shape);
    const memory::desc to = first ? onednn_desc(y) : channels_last_desc(y.dtype, y.shape);
    Parts parts(parts_for(kOpsEach * static_cast<double>(y.count()) * window_size));
    const auto pd = choose_implementation(parts, [&] {
      return dnnl::pooling_forward::primitive_desc(
          onednn_engine(), dnnl::prop_kind::forward_inference, algorithm, from, to,
          onednn_dims(window.strides), onednn_dims(window.kernel), dilations,
          onednn_dims(window.pads_begin), end, onednn_attr({}), true);
    });
    const bool slow = !pd || std::string_view(pd.impl_info_str()).starts_with("simple");
    if (first && slow && x.shape[1] > 1) continue;
    if (!pd) return refuse(why, "oneDNN has no implementation");
    OneDnnBuilder builder(request);
    const Place source = builder.read(0, x, from), result = builder.write(0, y, to);
    builder.call(dnnl::pooling_forward(pd), pd.scratchpad_desc(),
                 {{DNNL_ARG_SRC, from, source}, {DNNL_ARG_DST, to, result}});
    return builder.finish(pd.impl_info_str());
  }
  return nullptr;
}

KernelPtr make_max(const KernelRequest& request, std::string& why) {
  return make_pool(request, dnnl::algorithm::pooling_max, why);
}

KernelPtr make_average(const KernelRequest& request, std::string& why) {
  if (request.attrs.i("divisor_override") != 0) return refuse(why, "a divisor of its own");
  return make_pool(request,
                   request.attrs.b("count_include_pad")
                       ? dnnl::algorithm::pooling_avg_include_padding
                       : dnnl::algorithm::pooling_avg_exclude_padding,
                   why);
}

const KernelRegistrar kMax("cpu", "max_pool", "onednn", 10, onednn_factory(make_max));
const KernelRegistrar kAverage("cpu", "avg_pool", "onednn", 10, onednn_factory(make_average));

}  // namespace

}  // namespace anymps::cpu
