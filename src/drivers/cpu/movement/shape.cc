// SPDX-License-Identifier: Apache-2.0
// Shape ops that could not be views: what the view would be, copied; and depth_to_space and
// space_to_depth, where the block's places are separate axes.
#include "drivers/cpu/common/copies.h"

namespace anymps::cpu {

namespace {

// reshape and its kin: the elements keep their order.
KernelPtr make_in_order(const KernelRequest& request, std::string& why) {
  const TensorDesc& x = request.in(0);
  const std::string& op = request.op->name;
  if (op != "reshape" && op != "flatten" && op != "squeeze" && op != "unsqueeze")
    return refuse(why, "its view is not known");
  if (!request.out().contiguous()) return refuse(why, "y is not contiguous");
  return make_copies(
      {{0, 0, 0, 0,
        StridedCopy(size_of(x.dtype), x.shape, contiguous_strides(x.shape), x.strides)}});
}

// What the op's view would be, copied.
KernelPtr make_view(const KernelRequest& request, std::string& why) {
  const TensorDesc& x = request.in(0);
  const int64_t size = size_of(x.dtype);
  auto contents = request.contents;
  contents.resize(request.inputs.size());
  for (size_t i = 1; i < request.inputs.size(); ++i) {
    if (!request.has(i)) contents[i].emplace();  // an absent input's elements are none
    if (!contents[i]) return refuse(why, fmt::format("input {} is not known", i));
  }
  std::vector<Piece> pieces;
  for (size_t k = 0; k < request.outputs.size(); ++k) {
    ViewContext view{request.attrs,        x,  contents, k,
                     request.out(k).shape, {}, 0,        request.outputs.size()};
    if (!request.op->view(view)) return make_in_order(request, why);
    pieces.push_back({0, k, view.offset * size, 0,
                      StridedCopy(size_of(x.dtype), request.out(k).shape, request.out(k).strides,
                                  view.strides)});
  }
  return make_copies(std::move(pieces));
}

// A copy between any two layouts: how tensors become dense, and how dense ones are spread.
KernelPtr make_copy(const KernelRequest& request, std::string&) {
  class CopyKernel final : public Kernel {
   public:
    CopyKernel(const TensorDesc& x, const TensorDesc& y)
        : copy_(size_of(x.dtype), y.shape, y.strides, x.strides) {}
    void run(const KernelArgs& args) const override {
      if (args.outputs[0] != args.inputs[0]) copy_.run(args.outputs[0], args.inputs[0]);
    }
    bool in_place(size_t, size_t) const override { return true; }

   private:
    StridedCopy copy_;
  };
  return std::make_shared<CopyKernel>(request.in(0), request.out());
}

KernelPtr make_depth_blocks(const KernelRequest& request, std::string&) {
  const bool to_space = request.op->name == "depth_to_space";
  const TensorDesc &x = request.in(0), &y = request.out();
  const TensorDesc &deep = to_space ? x : y, &wide = to_space ? y : x;
  const bool first = request.attrs.s("layout") == "channels_first";
  const size_t c = first ? 1 : 3, h = first ? 2 : 1, w = first ? 3 : 2;
  const int64_t block = request.attrs.i("block"), channels = wide.shape[c];
  const bool dcr = request.attrs.s("mode") == "DCR";
  // Axes: image, channel, row, row in the block, column, column in the block.
  const Shape shape{wide.shape[0], channels, deep.shape[h], block, deep.shape[w], block};
  const int64_t step = deep.strides[c];
  const Strides in_wide{wide.strides[0], wide.strides[c],         wide.strides[h] * block,
                        wide.strides[h], wide.strides[w] * block, wide.strides[w]};
  const Strides in_deep{deep.strides[0], dcr ? step : step * block * block,
                        deep.strides[h], step * block * (dcr ? channels : 1),
                        deep.strides[w], step * (dcr ? channels : 1)};
  return make_copies({{0, 0, 0, 0,
                       StridedCopy(size_of(x.dtype), shape, to_space ? in_wide : in_deep,
                                   to_space ? in_deep : in_wide)}});
}

struct Register {
  Register() {
    for (const char* op : {"reshape", "transpose", "squeeze", "unsqueeze", "flatten", "expand",
                           "slice", "split", "reverse", "diagonal", "sliding_window"})
      KernelRegistrar("cpu", op, "copy", 10, make_view);
  }
};
const Register kRegister;
const KernelRegistrar kToSpace("cpu", "depth_to_space", "copy", 10, make_depth_blocks);
const KernelRegistrar kToDepth("cpu", "space_to_depth", "copy", 10, make_depth_blocks);
const KernelRegistrar kCopy("cpu", "identity", "copy", 5, make_copy);

}  // namespace

}  // namespace anymps::cpu
