// SPDX-License-Identifier: Apache-2.0
// A convolution of one channel whose window is as wide as the image sees whole rows: it is one in
// one dimension, of which a row's elements are the channels. Text classifiers are written so, with
// words as rows:
//   conv(x [N, 1, H, W], w [O, 1, k, W])  ->  conv(x [N, W, H], w [O, W, k]), as [N, O, H', 1]
#include "passes/fuse.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;

// The part of a list of two axes, or of their beginnings and ends, that is about the first.
Ints of_rows(const Ints& list) {
  if (list.size() == 4) return {list[0], list[2]};
  return list.empty() ? list : Ints{list[0]};
}

Value* over_rows(Graph& graph, Node& node) {
  if (!node.is("conv") || node.input(3) || node.attrs.i("groups") != 1 ||
      node.attrs.s("layout") != "channels_first" || node.attrs.s("weights_layout") == "*IO")
    return nullptr;
  Value *x = node.input(0), *w = node.input(1);
  if (rank_of(x) != 4 || rank_of(w) != 4 || !w->is_constant() || rank_of(node.output()) != 4)
    return nullptr;
  const Dims &image = x->shape(), &window = w->shape();
  const std::string& automatic = node.attrs.s("auto_pad");
  if (automatic != "explicit" && automatic != "valid") return nullptr;
  const Ints& pads = node.attrs.ints("pads");
  if (!pads.empty() && (pads.size() != 4 || pads[1] != 0 || pads[3] != 0)) return nullptr;
  if (!image[1].is(1) || !image[3].known() || image[3].is(1) || !(image[3] == window[3]))
    return nullptr;
  if (!window[0].known() || !window[2].known()) return nullptr;
  Value* rows = reshaped(graph, x, {image[0], image[2], image[3]}, x->name + ".rows");
  Value* flat = reshaped(graph, w, {window[0], window[2], window[3]}, w->name + ".rows");
  if (!rows || !flat) return nullptr;
  Attrs attrs = node.attrs;
  for (const char* list : {"pads", "strides", "dilations"})
    attrs.set({list, of_rows(node.attrs.ints(list))});
  attrs.set({"weights_layout", "*IO"});
  Value* planes = graph.add("transpose", {rows}, {{"perm", Ints{0, 2, 1}}}, x->name + ".channels");
  Value* weights = graph.add("transpose", {flat}, {{"perm", Ints{1, 2, 0}}}, w->name + ".columns");
  std::vector<Value*> inputs{planes, weights};
  if (node.input(2)) inputs.push_back(node.input(2));
  Value* y = graph.add("conv", inputs, attrs.named(), node.name + ".rows");
  return graph.add("unsqueeze", {y}, {{"axes", Ints{3}}}, node.name);
}

}  // namespace

PASS(rows_as_channels, 345, "a window as wide as the image makes rows channels") {
  return fuse_each(graph, context, over_rows);
}

}  // namespace anymps
