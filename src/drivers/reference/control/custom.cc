// SPDX-License-Identifier: Apache-2.0
// The user's own ops: their functions get contiguous tensors.
#include "ops/control/custom.h"

#include <cstring>

#include "drivers/reference/reference.h"

namespace anymps {

namespace {

// Calls fn(element of the view, number of the element) in row-major order.
template <typename Fn>
void for_each_element(const View& view, Fn&& fn) {
  const int64_t count = view.count();
  const size_t size = size_of(view.dtype);
  std::vector<int64_t> index(view.rank(), 0);
  for (int64_t i = 0; i < count; ++i) {
    fn(view.data + view.offset(index) * static_cast<int64_t>(size), static_cast<size_t>(i) * size,
       size);
    for (size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < view.shape()[axis]) break;
      index[axis] = 0;
    }
  }
}

bool dense(const View& view) { return is_contiguous(view.shape(), view.strides()); }

CustomTensor tensor_of(const View& view, std::vector<char>& copy) {
  CustomTensor tensor{true, view.dtype, {}, view.data};
  tensor.dims.assign(view.shape().begin(), view.shape().end());
  if (dense(view)) return tensor;
  copy.resize(static_cast<size_t>(view.count()) * size_of(view.dtype) + 1);
  tensor.data = copy.data();
  return tensor;
}

}  // namespace

REFERENCE(custom) {
  const CustomOp& op = get_custom_op(args.attrs.s("op"));
  CustomCall call;
  call.attrs = decode_custom_attrs(args.attrs.s("attributes"));
  std::vector<std::vector<char>> copies(args.in.size() + args.out.size());
  for (size_t i = 0; i < args.in.size(); ++i) {
    if (!args.has(i)) {
      call.inputs.emplace_back();
      continue;
    }
    call.inputs.push_back(tensor_of(args.in[i], copies[i]));
    if (!dense(args.in[i]))
      for_each_element(args.in[i], [&](const char* element, size_t at, size_t size) {
        std::memcpy(copies[i].data() + at, element, size);
      });
  }
  for (size_t i = 0; i < args.out.size(); ++i)
    call.outputs.push_back(tensor_of(args.out[i], copies[args.in.size() + i]));
  op.run(call);
  for (size_t i = 0; i < args.out.size(); ++i)
    if (!dense(args.out[i]))
      for_each_element(args.out[i], [&](char* element, size_t at, size_t size) {
        std::memcpy(element, copies[args.in.size() + i].data() + at, size);
      });
}

}  // namespace anymps
