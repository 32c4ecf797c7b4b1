// SPDX-License-Identifier: Apache-2.0
// The one kernel that writes into memory which is there already: a tensor into a view of another.
#include <paddle/phi/kernels/strided_copy_kernel.h>

#include <map>

#include <paddle/common/enforce.h>
#include "engine.h"
#include "kernels/table.h"

namespace anymps::paddle {

namespace {

void strided_copy(const phi::CustomContext& context, const DenseTensor& x,
                  const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
                  int64_t offset, DenseTensor* out) {
  phi::DenseTensorMeta meta = out->meta();
  meta.dims = phi::make_ddim(dims);
  meta.strides = phi::make_ddim(strides);
  meta.offset = offset;
  meta.dtype = x.dtype();
  out->set_meta(meta);
  if (x.numel() == 0) return;
  const auto dtype = to_engine(x.dtype());
  if (!dtype) PADDLE_THROW(common::errors::Unimplemented("[strided_copy] has no such type on mps"));
  thread_local std::map<int, amps_call*> calls;
  const int index = context.GetPlace().GetDeviceId();
  amps_call*& call = calls[index];
  if (!call)
    check(engine().call_create(device(index), engine().op_find("identity"), nullptr, 0, nullptr, 0,
                               &call));
  // Paddle broadcasts a single element; extents of 1 may be missing on either side.
  std::vector<int64_t> from_dims = phi::vectorize(x.dims()),
                       from_strides = phi::vectorize(x.strides());
  if (x.numel() == 1) {
    from_dims = dims;
    from_strides.assign(dims.size(), 0);
  }
  const amps_view from{const_cast<void*>(x.data()), from_dims.data(), from_strides.data(), *dtype,
                       static_cast<int32_t>(from_dims.size())};
  const amps_view to{out->data(), dims.data(), strides.data(), *dtype,
                     static_cast<int32_t>(dims.size())};
  if (from_dims == dims) return check(engine().call_run(call, &from, 1, nullptr, &to, 1, nullptr));
  // The same elements in another shape: x is row-major then.
  const amps_view shaped{from.data, dims.data(), nullptr, *dtype, to.rank};
  check(engine().call_run(call, &shaped, 1, nullptr, &to, 1, nullptr));
}

const bool kStridedCopyRegistered = [] {
  register_kernels(
      {entry<&strided_copy>({"strided_copy", "x dims strides offset", "identity(x)"}, kMoved)});
  return true;
}();

}  // namespace

}  // namespace anymps::paddle
