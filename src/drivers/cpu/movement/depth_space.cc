// SPDX-License-Identifier: Apache-2.0
// depth_to_space and space_to_depth as one strided copy: the block's places are axes of their own.
#include "drivers/cpu/common/copy.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

namespace {

KernelPtr make_blocks(const KernelRequest& request, std::string&) {
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
  return make_kernel([copy = StridedCopy(size_of(x.dtype), shape, to_space ? in_wide : in_deep,
                                         to_space ? in_deep : in_wide)](const KernelArgs& args) {
    copy.run(args.outputs[0], args.inputs[0]);
  });
}

const KernelRegistrar kToSpace("cpu", "depth_to_space", "copy", 10, make_blocks);
const KernelRegistrar kToDepth("cpu", "space_to_depth", "copy", 10, make_blocks);

}  // namespace

}  // namespace anymps::cpu
