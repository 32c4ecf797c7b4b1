// SPDX-License-Identifier: Apache-2.0
// Gradients of embeddings that hold the rows that were looked up, and no others. Their list of rows
// lies on the host, so these kernels are written by hand; those that read such a gradient are
// rows of the table.
#include <paddle/common/enforce.h>
#include <paddle/phi/kernels/embedding_grad_kernel.h>

#include <cstring>
#include <vector>

#include "kernels/table.h"

namespace anymps::paddle {

namespace {

template <class T>
std::vector<int64_t> numbers_of(const DenseTensor& tensor) {
  const T* first = tensor.data<T>();
  return {first, first + tensor.numel()};
}

// The rows of dout, each for the row of the table that its id names.
void embedding_sparse_grad(const phi::CustomContext& context, const DenseTensor& ids,
                           const DenseTensor& weight, const DenseTensor& dout, int64_t padding,
                           phi::SelectedRows* dweight) {
  std::vector<int64_t> rows =
      ids.dtype() == phi::DataType::INT32 ? numbers_of<int32_t>(ids) : numbers_of<int64_t>(ids);
  const int64_t height = weight.dims()[0], width = weight.dims()[1];
  for (const int64_t row : rows)
    if (row < 0 || row >= height)
      PADDLE_THROW(common::errors::InvalidArgument(
          "[embedding_sparse_grad] id %d is not in a table of %d rows", row, height));
  DenseTensor* values = dweight->mutable_value();
  values->Resize(phi::make_ddim({std::ssize(rows), width}));
  auto* to = static_cast<char*>(context.Alloc(values, dout.dtype()));
  const size_t bytes = phi::SizeOf(dout.dtype()) * static_cast<size_t>(width);
  if (dout.numel() > 0) std::memcpy(to, dout.data(), bytes * rows.size());
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] == padding) std::memset(to + i * bytes, 0, bytes);
  dweight->set_rows(rows);
  dweight->set_height(height);
}

// Every row times a number: what clipping by a norm does.
void multiply_sr(const phi::CustomContext& context, const phi::SelectedRows& x,
                 const DenseTensor& y, phi::SelectedRows* out) {
  static constexpr lowering::Row kRow{"multiply_sr", "x y", "x * reshaped(y, [])"};
  static const lowering::Kernel& kernel = *new lowering::Kernel(kRow);
  out->set_rows(x.rows());
  out->set_height(x.height());
  DenseTensor* values = out->mutable_value();
  values->Resize(x.value().dims());
  KernelCall call(kernel);
  call.add(x.value());
  call.add(y);
  call.add(values);
  call.run(context);
}

const bool kSelectedRowsRegistered = [] {
  register_kernels(
      {entry<&embedding_sparse_grad>({"embedding_sparse_grad", "ids w dout padding", "by hand"},
                                     kFloats),
       entry<&multiply_sr>({"multiply_sr", "rows x y", "x * reshaped(y, [])"}, kFloats)});
  return true;
}();

}  // namespace

}  // namespace anymps::paddle
