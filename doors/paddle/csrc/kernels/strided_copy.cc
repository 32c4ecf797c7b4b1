// SPDX-License-Identifier: Apache-2.0
// The one kernel that writes into memory which is there already: a tensor into a view of another.
#include <paddle/phi/kernels/strided_copy_kernel.h>

#include <functional>
#include <numeric>

#include <paddle/common/enforce.h>
#include "engine.h"
#include "kernels/table.h"

namespace anymps::paddle {

namespace {

constexpr lowering::Row kRow{"strided_copy", "x", "identity(x)"};

void copy(const phi::CustomContext& context, const amps_view& from, const amps_view& to) {
  static const lowering::Kernel& kernel = *new lowering::Kernel(kRow);
  const lowering::Argument argument = lowering::Argument::tensor(&from);
  const lowering::Wanted wanted;
  kernel.prepare(engine(), device(context.GetPlace().GetDeviceId()), {&argument, 1}, {&wanted, 1})
      .run({&argument, 1}, {&to, 1}, nullptr);
}

// A view may come from as_strided, which does not look at the memory it is a view of.
bool in_its_memory(const DenseTensor& tensor) {
  const phi::DenseTensorMeta& meta = tensor.meta();
  const auto size = static_cast<int64_t>(phi::SizeOf(meta.dtype));
  const int64_t room = static_cast<int64_t>(tensor.Holder()->size()) / size;
  const int64_t start = static_cast<int64_t>(meta.offset) / size;
  int64_t first = start, last = start;
  for (int axis = 0; axis < meta.dims.size(); ++axis) {
    const int64_t steps = meta.dims[axis] - 1, stride = meta.strides[axis];
    if (steps > 0 && (stride > room / steps || stride < -(room / steps))) return false;
    (stride < 0 ? first : last) += steps * stride;
  }
  return first >= 0 && last < room;
}

void check_memory(const char* name, const DenseTensor& tensor) {
  if (tensor.Holder() && !in_its_memory(tensor))
    PADDLE_THROW(common::errors::InvalidArgument(
        "[%s] a view of the shape [%s] and the strides [%s] reaches outside of its memory", name,
        tensor.dims().to_str().c_str(), tensor.strides().to_str().c_str()));
}

void contiguous(const phi::CustomContext& context, const DenseTensor& x, DenseTensor* out) {
  phi::DenseTensorMeta meta = x.meta();
  meta.strides = phi::DenseTensorMeta::calc_strides(meta.dims);
  meta.offset = 0;
  out->set_meta(meta);
  void* data = context.Alloc(out, x.dtype());
  if (x.numel() == 0) return;
  const auto dtype = to_engine(x.dtype());
  if (!dtype) PADDLE_THROW(common::errors::Unimplemented("[contiguous] has no such type on mps"));
  check_memory("contiguous", x);
  const int32_t rank = x.dims().size();
  copy(context, {const_cast<void*>(x.data()), x.dims().Get(), x.strides().Get(), *dtype, rank},
       {data, out->dims().Get(), nullptr, *dtype, rank});
}

void strided_copy(const phi::CustomContext& context, const DenseTensor& x,
                  const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
                  int64_t offset, DenseTensor* out) {
  phi::DenseTensorMeta meta = out->meta();
  meta.dims = phi::make_ddim(dims);
  meta.strides = phi::make_ddim(strides);
  meta.offset = offset;
  meta.dtype = x.dtype();
  out->set_meta(meta);
  const int64_t count = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  if (x.numel() != count && x.numel() != 1)
    PADDLE_THROW(common::errors::InvalidArgument(
        "[strided_copy] %d elements do not fit into a view of %d", x.numel(), count));
  if (count == 0) return;
  check_memory("strided_copy", x);
  check_memory("strided_copy", *out);
  const auto dtype = to_engine(x.dtype());
  if (!dtype) PADDLE_THROW(common::errors::Unimplemented("[strided_copy] has no such type on mps"));
  amps_view from{const_cast<void*>(x.data()), x.dims().Get(), x.strides().Get(), *dtype,
                 x.dims().size()};
  const amps_view to{out->data(), dims.data(), strides.data(), *dtype,
                     static_cast<int32_t>(dims.size())};
  // Paddle broadcasts a single element. Of other elements in another shape the order counts, which
  // is the order of memory where x is row-major.
  static constexpr int64_t kNowhere[AMPS_MAX_RANK] = {};
  DenseTensor packed;
  if (x.numel() == 1) {
    from = {from.data, dims.data(), kNowhere, *dtype, to.rank};
  } else if (phi::vectorize(x.dims()) != dims) {
    if (!lowering::row_major(from)) {
      packed.Resize(x.dims());
      const amps_view in_order{context.Alloc(&packed, x.dtype()), from.dims, nullptr, *dtype,
                               from.rank};
      copy(context, from, in_order);
      from = in_order;
    }
    from = {from.data, dims.data(), nullptr, *dtype, to.rank};
  }
  copy(context, from, to);
}

const bool kStridedCopyRegistered = [] {
  register_kernels(
      {entry<&strided_copy>({"strided_copy", "x dims strides offset", "identity(x)"}, kMoved),
       entry<&contiguous>({"contiguous", "x", "identity(x)"}, kMoved)});
  return true;
}();

}  // namespace

}  // namespace anymps::paddle
