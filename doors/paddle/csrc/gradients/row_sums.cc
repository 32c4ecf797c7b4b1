// SPDX-License-Identifier: Apache-2.0
#include "gradients/row_sums.h"

#include <algorithm>
#include <vector>

#include <paddle/common/enforce.h>
#include <paddle/phi/api/include/api.h>
#include <paddle/phi/backends/context_pool.h>
#include <paddle/phi/core/selected_rows.h>
#include <paddle/phi/kernels/selected_rows/merge_selected_rows_kernel.h>
#include "kernels/table.h"

namespace anymps::paddle {

namespace {

using ::paddle::Tensor;
using phi::DenseTensor;
using phi::SelectedRows;

const phi::CustomContext& context_of(const DenseTensor& tensor) {
  return *static_cast<const phi::CustomContext*>(
      phi::DeviceContextPool::Instance().Get(tensor.place()));
}

const SelectedRows& rows_of(const Tensor& tensor) {
  return *static_cast<const SelectedRows*>(tensor.impl().get());
}

// Calls with a number of the type of the elements, which are f32 or f64, as on the CPU.
template <class Function>
void with_type(const DenseTensor& values, const Function& function) {
  if (values.dtype() == phi::DataType::FLOAT64)
    function(double{});
  else if (values.dtype() == phi::DataType::FLOAT32)
    function(float{});
  else
    PADDLE_THROW(common::errors::Unimplemented(
        "[merge_selected_rows] gradients of rows are summed in float32 and float64, not in %s",
        phi::DataTypeToString(values.dtype())));
}

// Adds each row of x to that of `to` which `place` gives for its number.
template <class T, class Place>
void add_each(const SelectedRows& x, T* to, const Place& place) {
  if (x.rows().empty()) return;
  const int64_t width = x.value().numel() / std::ssize(x.rows());
  const T* from = x.value().data<T>();
  for (const int64_t row : x.rows()) {
    T* sum = to + place(row) * width;
    for (int64_t i = 0; i < width; ++i) sum[i] += *from++;
  }
}

void sum_rows(const phi::CustomContext& context, const std::vector<const SelectedRows*>& parts,
              SelectedRows* out) {
  std::vector<int64_t> rows;
  int64_t width = 0;
  for (const SelectedRows* part : parts) {
    rows.insert(rows.end(), part->rows().begin(), part->rows().end());
    if (!part->rows().empty()) width = part->value().numel() / std::ssize(part->rows());
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const auto place = [&](int64_t row) {
    return std::lower_bound(rows.begin(), rows.end(), row) - rows.begin();
  };
  DenseTensor* values = out->mutable_value();
  values->Resize(phi::make_ddim({std::ssize(rows), width}));
  with_type(parts[0]->value(), [&]<class T>(T) {
    T* to = context.Alloc<T>(values);
    std::fill_n(to, std::ssize(rows) * width, T(0));
    for (const SelectedRows* part : parts) add_each(*part, to, place);
  });
  out->set_rows(rows);
  out->set_height(parts[0]->height());
}

void merge_selected_rows(const phi::CustomContext& context, const SelectedRows& x,
                         SelectedRows* out) {
  sum_rows(context, {&x}, out);
}

const bool kRowSumsRegistered = [] {
  register_kernels(
      {entry<&merge_selected_rows>({"merge_selected_rows", "rows values", "by hand"}, kWide)});
  return true;
}();

}  // namespace

std::shared_ptr<Tensor> merged_rows(const Tensor& x, const Tensor& y) {
  const SelectedRows &a = rows_of(x), &b = rows_of(y);
  auto sum = std::make_shared<SelectedRows>();
  sum_rows(context_of(a.value()), {&a, &b}, sum.get());
  return std::make_shared<Tensor>(std::move(sum));
}

void add_rows(const Tensor& rows, Tensor* to) {
  if (!static_cast<const DenseTensor*>(to->impl().get())->meta().is_contiguous())
    to->set_impl(::paddle::experimental::assign(*to).impl());
  auto& full = *static_cast<DenseTensor*>(to->impl().get());
  with_type(full, [&]<class T>(T) {
    add_each(rows_of(rows), full.data<T>(), [](int64_t row) { return row; });
  });
}

void rows_plus(const Tensor& rows, const Tensor& full, Tensor* sum) {
  sum->set_impl(::paddle::experimental::assign(full).impl());
  add_rows(rows, sum);
}

}  // namespace anymps::paddle
