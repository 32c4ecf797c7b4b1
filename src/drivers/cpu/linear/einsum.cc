// SPDX-License-Identifier: Apache-2.0
// Einstein's summation of one or two tensors as a batch of matrix products: the axes of both are
// brought to [batch, rows, summed] and [batch, summed, columns] by strided copies.
#include "semantics/einsum.h"

#include <algorithm>

#include "drivers/cpu/common/copy.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/linear/typed_gemm.h"

namespace anymps::cpu {

namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Group {
  std::vector<size_t> labels;
  int64_t extent = 1;
};

class EinsumKernel final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    char* scratch = static_cast<char*>(args.scratch);
    void* parts[2] = {scratch, scratch + sizes[0]};
    void* product = scratch + sizes[0] + sizes[1];
    for (size_t i = 0; i < copies.size(); ++i) copies[i].run(parts[i], args.inputs[i]);
    if (copies.size() == 1) parts[1] = const_cast<std::byte*>(ones.data());
    matmul->run({parts, &product, static_cast<char*>(product) + sizes[2], args.queue});
    result->run(args.outputs[0], product);
  }
  size_t scratch_bytes() const override {
    return sizes[0] + sizes[1] + sizes[2] + matmul->scratch_bytes();
  }
  std::string detail() const override { return "matmul " + matmul->detail(); }

  std::vector<StridedCopy> copies;
  std::vector<std::byte> ones;  // what one tensor is multiplied with
  std::optional<StridedCopy> result;
  KernelPtr matmul;
  size_t sizes[3] = {0, 0, 0};
};

// The axes of `desc`, whose labels are given, seen as the groups in turn; repeated labels are
// diagonals, labels that it lacks or has with extent 1 are repeated.
std::pair<Shape, Strides> view_of(const TensorDesc& desc, const std::vector<size_t>& labels,
                                  const std::vector<const Group*>& groups, const Shape& extents) {
  std::pair<Shape, Strides> view;
  for (const Group* group : groups)
    for (const size_t label : group->labels) {
      int64_t stride = 0;
      for (size_t k = 0; k < labels.size(); ++k)
        if (labels[k] == label && desc.shape[k] != 1) stride += desc.strides[k];
      view.first.push_back(extents[label]);
      view.second.push_back(stride);
    }
  return view;
}

std::vector<std::byte> ones_of(DType dtype, int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size_of(dtype));
  dispatch<kNumber>(dtype, [&]<typename T>() {
    std::fill_n(reinterpret_cast<T*>(bytes.data()), count, T(1.0f));
  });
  return bytes;
}

CPU_KERNEL(einsum, "matmul") {
  const size_t count = request.inputs.size();
  const TensorDesc& y = request.out();
  if (count > 2) return refuse(why, fmt::format("{} tensors", count));
  if (is_half(y.dtype)) return widened(request, make_einsum, why);
  if (y.dtype != DType::kF32 && !TypedGemm::has(y.dtype))
    return refuse(why, fmt::format("dtype {}", name(y.dtype)));
  std::vector<size_t> ranks;
  for (size_t i = 0; i < count; ++i) {
    if (request.in(i).count() == 0) return refuse(why, "an input is empty");
    ranks.push_back(request.in(i).shape.size());
  }
  const Einsum einsum = Einsum::parse(request.attrs.s("equation"), ranks);
  Shape extents(einsum.labels, 1);
  std::vector<unsigned> where(einsum.labels, 0);  // bits: the inputs that have the label
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < ranks[i]; ++k) {
      const int64_t extent = request.in(i).shape[k];
      if (extent == 1) continue;
      extents[einsum.inputs[i][k]] = extent;
      where[einsum.inputs[i][k]] |= 1u << i;
    }
  Group batch, rows, columns, summed;
  for (const size_t label : einsum.output) {
    Group& group = where[label] == 3 ? batch : where[label] == 2 ? columns : rows;
    group.labels.push_back(label);
    group.extent *= extents[label];
  }
  for (size_t label = 0; label < einsum.labels; ++label)
    if (!einsum.in_output(label)) {
      summed.labels.push_back(label);
      summed.extent *= extents[label];
    }
  const TensorDesc left(y.dtype, {batch.extent, rows.extent, summed.extent}),
      right(y.dtype, {batch.extent, summed.extent, columns.extent}),
      product(y.dtype, {batch.extent, rows.extent, columns.extent});
  auto kernel = std::make_shared<EinsumKernel>();
  for (size_t i = 0; i < count; ++i) {
    const std::vector<const Group*> order =
        i == 0 ? std::vector<const Group*>{&batch, &rows, &summed}
               : std::vector<const Group*>{&batch, &summed, &columns};
    const auto [shape, from] = view_of(request.in(i), einsum.inputs[i], order, extents);
    kernel->copies.emplace_back(size_of(y.dtype), shape, contiguous_strides(shape), from);
  }
  if (count == 1) kernel->ones = ones_of(y.dtype, summed.extent);
  // The product's axes are batch, rows, columns; the output may have them in another order.
  const auto [shape, to] = view_of(y, einsum.output, {&batch, &rows, &columns}, extents);
  kernel->result.emplace(size_of(y.dtype), shape, to, contiguous_strides(shape));
  kernel->sizes[0] = aligned(left.bytes());
  kernel->sizes[1] = count == 1 ? 0 : aligned(right.bytes());
  kernel->sizes[2] = aligned(product.bytes());
  KernelRequest inner;
  inner.op = &get_op("matmul");
  inner.attrs = Attrs(*inner.op, {});
  inner.node = request.node;
  inner.inputs = {left, right};
  inner.outputs = {product};
  inner.constants.resize(2);
  inner.contents.resize(2);
  inner.packed = request.packed;
  for (const KernelEntry& entry : kernel_list("cpu", "matmul"))
    if ((kernel->matmul = entry.make(inner, why))) return kernel;
  return nullptr;
}

}  // namespace

}  // namespace anymps::cpu
