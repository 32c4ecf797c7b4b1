// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/linear/matmul_tensors.h"

#include <span>

namespace anymps::cpu {

namespace {

constexpr size_t kB = ProductTensors::kB, kY = ProductTensors::kY;

TensorDesc matrix(const TensorDesc& desc, bool vector_is_row, bool transpose) {
  TensorDesc result = desc;
  if (result.shape.size() == 1) {
    const size_t at = vector_is_row ? 0 : 1;
    result.shape.insert(at, 1);
    result.strides.insert(at, 0);
  } else if (transpose) {
    const size_t last = result.shape.size() - 1;
    std::swap(result.shape[last], result.shape[last - 1]);
    std::swap(result.strides[last], result.strides[last - 1]);
  }
  return result;
}

// Leading axes are added, and batch axes broadcast, to those of `y`.
TensorDesc with_batch(const TensorDesc& desc, const TensorDesc& y) {
  TensorDesc result;
  result.dtype = desc.dtype;
  const size_t rank = y.shape.size(), lead = rank - desc.shape.size();
  for (size_t i = 0; i < rank; ++i) {
    const int64_t have = i < lead ? 1 : desc.shape[i - lead];
    result.shape.push_back(i + 2 < rank ? y.shape[i] : have);
    result.strides.push_back(have == 1 ? 0 : desc.strides[i - lead]);
  }
  return result;
}

void insert_unit(TensorDesc& y, size_t from_end) {
  const size_t at = y.shape.size() - from_end;
  y.shape.insert(at, 1);
  y.strides.insert(at, 0);
}

// Bias and residual, broadcast to y.
bool add_summand(const KernelRequest& request, size_t i, const TensorDesc& y, ProductTensors& p,
                 std::string& why) {
  if (!request.has(i)) return true;
  TensorDesc desc = request.in(i);
  if (desc.shape.size() > request.out().shape.size())
    return refuse<bool>(why, fmt::format("input {} has a higher rank than the result", i));
  // Axes that y got for one-dimensional operands.
  if (request.in(1).shape.size() == 1) insert_unit(desc, 0);
  if (request.in(0).shape.size() == 1 && !desc.shape.empty())
    insert_unit(desc, std::min<size_t>(1, desc.shape.size()));
  while (desc.shape.size() < 2) {
    desc.shape.insert(0, 1);
    desc.strides.insert(0, 0);
  }
  p.tensors.push_back(with_batch(desc, y));
  p.summands.push_back(i);
  return true;
}

void erase_axis(ProductTensors& p, size_t axis) {
  for (TensorDesc& t : p.tensors) {
    t.shape.erase(axis);
    t.strides.erase(axis);
  }
}

void drop_units(ProductTensors& p) {
  for (size_t i = p.batch_rank(); i-- > 0;)
    if (p.tensors[kY].shape[i] == 1) erase_axis(p, i);
}

void merge_batches(ProductTensors& p) {
  for (size_t i = p.batch_rank(); i-- > 1;) {
    bool mergeable = true;
    for (const TensorDesc& t : p.tensors)
      mergeable &= t.strides[i - 1] == t.strides[i] * t.shape[i];
    if (!mergeable) continue;
    for (TensorDesc& t : p.tensors) {
      t.shape[i - 1] *= t.shape[i];
      t.strides[i - 1] = t.strides[i];
    }
    erase_axis(p, i);
  }
}

// When all batches use the same matrix b, the innermost batch axis only adds rows.
void fold_batch_into_rows(ProductTensors& p) {
  while (p.batch_rank() > 0) {
    const size_t axis = p.batch_rank() - 1, row = axis + 1;
    if (p.tensors[kB].strides[axis] != 0) return;
    const int64_t rows = p.tensors[kY].shape[row];
    for (size_t i = 0; i < p.tensors.size(); ++i) {
      const TensorDesc& t = p.tensors[i];
      if (i == kB || rows == 1) continue;
      // Rows of a summand that are all the same stay so only if the batches are, too.
      if (t.strides[axis] != t.strides[row] * rows) return;
    }
    for (size_t i = 0; i < p.tensors.size(); ++i) {
      TensorDesc& t = p.tensors[i];
      if (i == kB) continue;
      if (rows == 1) t.strides[row] = t.strides[axis];
      t.shape[row] = t.strides[row] == 0 && i > kY ? 1 : rows * t.shape[axis];
    }
    erase_axis(p, axis);
  }
}

}  // namespace

std::optional<ProductTensors> product_tensors(const KernelRequest& request, std::string& why) {
  const Attrs& attrs = request.attrs;
  const TensorDesc a = matrix(request.in(0), true, attrs.b("transpose_a"));
  const TensorDesc b = matrix(request.in(1), false, attrs.b("transpose_b"));
  TensorDesc y = request.out();
  if (request.in(0).shape.size() == 1) insert_unit(y, request.in(1).shape.size() == 1 ? 0 : 1);
  if (request.in(1).shape.size() == 1) insert_unit(y, 0);
  ProductTensors p;
  p.tensors = {with_batch(a, y), with_batch(b, y), with_batch(y, y)};
  for (const size_t i : {2u, 3u})
    if (!add_summand(request, i, y, p, why)) return std::nullopt;
  drop_units(p);
  merge_batches(p);
  fold_batch_into_rows(p);
  return p;
}

}  // namespace anymps::cpu
