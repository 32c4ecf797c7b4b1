// SPDX-License-Identifier: Apache-2.0
// Convolution, pooling, normalization.
#include "formats/onnx/schema/auto_pad.h"
#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

OutAttrs window_attrs(Emit& e) {
  const std::string& mode = e.attrs().s("auto_pad");
  OutAttrs attrs;
  if (const AutoPad* known = auto_pad_of_mode(mode)) attrs.emplace_back("auto_pad", known->onnx);
  for (const char* list : {"strides", "dilations", "pads"}) {
    if (std::string_view(list) == "pads" && mode != "explicit") continue;
    if (!e.attrs().ints(list).empty()) attrs.emplace_back(list, e.attrs().ints(list));
  }
  return attrs;
}

ONNX_WRITE(conv) {
  const Layout layout(e);
  const int64_t rank = e.rank();
  OutAttrs attrs = window_attrs(e);
  attrs.emplace_back("group", e.attrs().i("groups"));
  std::string w = e.in(1);
  if (e.attrs().s("weights_layout") != "OI*") {  // [k…, I, O]
    Ints perm = {rank - 1, rank - 2};
    for (int64_t i = 0; i < rank - 2; ++i) perm.push_back(i);
    w = e.transpose(w, perm);
  }
  std::string y = e.add("Conv", {layout.first(e.in(0), rank), w, e.in(2)}, attrs);
  y = layout.back(y, rank);
  if (e.has(3)) y = e.add("Add", {y, e.in(3)});
  return {activated(e, y, "alpha", "beta")};
}

ONNX_WRITE(conv_transpose) {
  const Layout layout(e);
  const int64_t rank = e.rank();
  OutAttrs attrs = window_attrs(e);
  attrs.emplace_back("group", e.attrs().i("groups"));
  for (const char* list : {"output_padding", "output_shape"})
    if (!e.attrs().ints(list).empty()) attrs.emplace_back(list, e.attrs().ints(list));
  const std::string x = layout.first(e.in(0), rank);
  const std::string y = layout.back(e.add("ConvTranspose", {x, e.in(1), e.in(2)}, attrs), rank);
  return {activated(e, y, "alpha", "beta")};
}

Names pool(Emit& e, const char* op, const OutAttrs& more = {}) {
  const Layout layout(e);
  OutAttrs attrs = window_attrs(e);
  attrs.emplace_back("kernel_shape", e.attrs().ints("kernel"));
  attrs.emplace_back("ceil_mode", e.attrs().b("ceil_mode"));
  attrs.insert(attrs.end(), more.begin(), more.end());
  const size_t outputs = e.node.outputs.size();
  if (outputs > 1 && layout.last) e.refuse("places in a tensor with channels last");
  Names y = e.add_all(op, {layout.first(e.in(0), e.rank())}, attrs, outputs);
  y[0] = layout.back(y[0], e.rank());
  return y;
}
ONNX_WRITE(max_pool) { return pool(e, "MaxPool"); }
ONNX_WRITE(avg_pool) {
  if (e.attrs().i("divisor_override") != 0) e.refuse("ONNX divides by the count");
  return pool(e, "AveragePool", {{"count_include_pad", e.attrs().b("count_include_pad")}});
}
ONNX_WRITE(lp_pool) { return pool(e, "LpPool", {{"p", e.attrs().i("p")}}); }

// An optional vector, or one number for each channel of `like`.
std::string per_channel(Emit& e, size_t i, const Dim& channels, double otherwise) {
  if (e.has(i)) return e.in(i);
  if (!channels.known()) e.refuse("the number of channels is not known");
  return e.add("Expand", {e.number(e.dtype(), otherwise), e.ints({channels.value()})});
}

// ONNX has the channels in axis 1: swaps it with the node's, and back.
struct ChannelAxis {
  explicit ChannelAxis(Emit& e) : at(e.attrs().i("axis")), swap(counted(e.rank())) {
    if (at < 0) at += e.rank();
    if (at == 1) return;
    if (e.rank() < 2) e.refuse("its input has rank {}", e.rank());
    std::swap(swap[1], swap[at]);
  }
  std::string second(Emit& e, const std::string& x) const {
    return at == 1 ? x : e.transpose(x, swap);
  }
  int64_t at;
  Ints swap;
};

ONNX_WRITE(batch_norm) {
  const ChannelAxis axis(e);
  const Dim channels = e.value(0).shape()[axis.at];
  const std::string x = axis.second(e, e.in(0));
  const std::string y =
      e.add("BatchNormalization",
            {x, per_channel(e, 3, channels, 1), per_channel(e, 4, channels, 0), e.in(1), e.in(2)},
            {{"epsilon", e.attrs().f("epsilon")}});
  return {axis.second(e, y)};
}

ONNX_WRITE(lrn) {
  const ChannelAxis axis(e);
  OutAttrs attrs{{"size", e.attrs().i("size")}};
  for (const char* number : {"alpha", "beta", "bias"})
    attrs.emplace_back(number, e.attrs().f(number));
  return {axis.second(e, e.add("LRN", {axis.second(e, e.in(0))}, attrs))};
}

Ints trailing_axes(Emit& e) {
  int64_t axis = e.attrs().i("axis");
  if (axis < 0) axis += e.rank();
  Ints axes;
  for (; axis < e.rank(); ++axis) axes.push_back(axis);
  return axes;
}

ONNX_WRITE(layer_norm) {
  const Ints over = trailing_axes(e);
  bool whole = e.has(1) && e.value(1).type.ranked && e.rank(1) == std::ssize(over);
  for (size_t i = 0; whole && i < over.size(); ++i)
    whole = e.value(1).shape()[i] == e.value(0).shape()[over[i]];
  const double epsilon = e.attrs().f("epsilon");
  if (whole && e.node.outputs.size() == 1)  // the form that the standard's op has
    return {e.add("LayerNormalization", {e.in(0), e.in(1), e.in(2)},
                  {{"axis", e.attrs().i("axis")}, {"epsilon", epsilon}})};
  const std::string x = e.in(0), axes = e.ints(over);
  const std::string mean = e.add("ReduceMean", {x, axes});
  const std::string centred = e.add("Sub", {x, mean});
  const std::string variance = e.add("ReduceMean", {e.add("Mul", {centred, centred}), axes});
  const std::string sum = e.add("Add", {variance, e.number(e.dtype(), epsilon)});
  const std::string inverse = e.add("Reciprocal", {e.add("Sqrt", {sum})});
  std::string y = e.add("Mul", {centred, inverse});
  if (e.has(1)) y = e.add("Mul", {y, e.in(1)});
  if (e.has(2)) y = e.add("Add", {y, e.in(2)});
  return {y, mean, inverse};
}

ONNX_WRITE(rms_norm) {
  const std::string x = e.in(0);
  const std::string mean = e.add("ReduceMean", {e.add("Mul", {x, x}), e.ints(trailing_axes(e))});
  const std::string sum = e.add("Add", {mean, e.number(e.dtype(), e.attrs().f("epsilon"))});
  const std::string y = e.add("Div", {x, e.add("Sqrt", {sum})});
  return {e.has(1) ? e.add("Mul", {y, e.in(1)}) : y};
}

ONNX_WRITE(group_norm) {
  const ChannelAxis axis(e);
  const Dim channels = e.value(0).shape()[axis.at];
  return {axis.second(
      e, e.add("GroupNormalization",
               {axis.second(e, e.in(0)), per_channel(e, 1, channels, 1),
                per_channel(e, 2, channels, 0)},
               {{"num_groups", e.attrs().i("groups")}, {"epsilon", e.attrs().f("epsilon")}}))};
}

ONNX_WRITE(instance_norm) {
  const ChannelAxis axis(e);
  const Dim channels = e.value(0).shape()[axis.at];
  return {axis.second(e, e.add("InstanceNormalization",
                               {axis.second(e, e.in(0)), per_channel(e, 1, channels, 1),
                                per_channel(e, 2, channels, 0)},
                               {{"epsilon", e.attrs().f("epsilon")}}))};
}

}  // namespace

}  // namespace anymps::onnx
