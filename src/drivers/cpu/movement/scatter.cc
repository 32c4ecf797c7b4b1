// SPDX-License-Identifier: Apache-2.0
// Scatters on the CPU. Updates that may hit the same element stay in order on one thread: lines
// of scatter_along_axis are shared out, and for the others the elements of a slice.
#include <cstring>

#include "drivers/cpu/common/by_size.h"
#include "drivers/cpu/common/copy.h"
#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"
#include "semantics/scatter_modes.h"

namespace anymps::cpu {

namespace {

struct Component {
  int64_t axis = 0, extent = 0, stride = 0;
};

int64_t place(const char* op, int64_t index, const Component& component) {
  if (index < -component.extent || index >= component.extent) [[unlikely]]
    fail(Code::kInvalidArgument, "[{}] index {} is out of range for axis {} of extent {}", op,
         index, component.axis, component.extent);
  return index < 0 ? index + component.extent : index;
}

// What the result starts as.
class Start {
 public:
  explicit Start(const KernelRequest& request)
      : data_(request.has(2)),
        copy_(size_of(request.out().dtype), request.out().shape, request.out().strides,
              request.has(2) ? request.in(2).strides
                             : Strides(request.out().shape.size(), int64_t{0})) {}
  void run(const KernelArgs& args) const {
    static constexpr std::byte kZero[16] = {};
    copy_.run(args.outputs[0], data_ ? args.inputs[2] : static_cast<const void*>(kZero));
  }

 private:
  bool data_;
  StridedCopy copy_;
};

int64_t read_index(const void* indices, DType dtype, int64_t offset) {
  return dtype == DType::kI32 ? static_cast<const int32_t*>(indices)[offset]
                              : static_cast<const int64_t*>(indices)[offset];
}

// Types with arithmetic by themselves, the others by the size of their elements.
template <typename Fn>
KernelPtr with_type(const KernelRequest& request, ScatterMode mode, Fn&& fn) {
  if (mode != ScatterMode::kSet)
    return dispatch<kNumber>(request.out().dtype, std::forward<Fn>(fn));
  return by_size(size_of(request.out().dtype), std::forward<Fn>(fn));
}

CPU_KERNEL(scatter_along_axis, "lines") {
  const TensorDesc &updates = request.in(0), &indices = request.in(1), &y = request.out();
  const auto axis = known_axis(request, 3, y.rank(), why);
  if (!axis) return nullptr;
  const ScatterMode mode = parse_scatter_mode(request.attrs.s("mode"));
  const int64_t length = updates.shape[*axis];
  const Component component{static_cast<int64_t>(*axis), y.shape[*axis], y.strides[*axis]};
  const int64_t from_step = updates.strides[*axis], index_step = indices.strides[*axis];
  const DType index_type = indices.dtype;
  const Loops lines =
      line_starts(updates.shape, *axis, {updates.strides, indices.strides, y.strides});
  const bool empty = updates.count() == 0;
  return with_type(request, mode, [&]<typename T>() {
    return make_kernel([=, start = Start(request)](const KernelArgs& args) {
      start.run(args);
      if (empty) return;
      parallel_for(
          0, lines.count(), 3.0 * static_cast<double>(length), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const T* from = static_cast<const T*>(args.inputs[0]) + lines.offset(0, i);
              const int64_t index = lines.offset(1, i);
              T* to = static_cast<T*>(args.outputs[0]) + lines.offset(2, i);
              for (int64_t k = 0; k < length; ++k) {
                const int64_t at = place(
                    "scatter_along_axis",
                    read_index(args.inputs[1], index_type, index + k * index_step), component);
                scatter_join(to[at * component.stride], from[k * from_step], mode);
              }
            }
          });
    });
  });
}

// Slices: tuples of indices, each with a dense run of elements behind it.
struct Slices {
  Loops tuples;  // operands updates, indices, y (without the named axes)
  std::vector<Component> components;
  int64_t component_step = 0;
  int64_t run = 1;
};

bool dense(const TensorDesc& desc, size_t first) {
  int64_t step = 1;
  for (size_t i = desc.shape.size(); i-- > first; step *= desc.shape[i])
    if (desc.shape[i] != 1 && desc.strides[i] != step) return false;
  return true;
}

KernelPtr make_slices(const KernelRequest& request, const Slices& slices) {
  const ScatterMode mode = parse_scatter_mode(request.attrs.s("mode"));
  const DType index_type = request.in(1).dtype;
  const bool empty = request.in(0).count() == 0;
  return with_type(request, mode, [&]<typename T>() {
    return make_kernel([=, op = request.op->name, start = Start(request)](const KernelArgs& args) {
      start.run(args);
      if (empty) return;
      const int64_t count = slices.tuples.count();
      parallel_for(
          0, slices.run, 2.0 * static_cast<double>(count), [&](int64_t begin, int64_t end) {
            for (int64_t i = 0; i < count; ++i) {
              int64_t index = slices.tuples.offset(1, i), to = slices.tuples.offset(2, i);
              for (const Component& component : slices.components) {
                to += place(op.c_str(), read_index(args.inputs[1], index_type, index), component) *
                      component.stride;
                index += slices.component_step;
              }
              const T* from = static_cast<const T*>(args.inputs[0]) + slices.tuples.offset(0, i);
              T* target = static_cast<T*>(args.outputs[0]) + to;
              if (mode == ScatterMode::kSet)
                std::memcpy(target + begin, from + begin,
                            static_cast<size_t>(end - begin) * sizeof(T));
              else
                for (int64_t k = begin; k < end; ++k) scatter_join(target[k], from[k], mode);
            }
          });
    });
  });
}

CPU_KERNEL(scatter_nd, "slices") {
  const TensorDesc &updates = request.in(0), &indices = request.in(1), &y = request.out();
  const auto batch = static_cast<size_t>(request.attrs.i("batch_dims"));
  const size_t tuples = indices.shape.size() - 1;
  const auto depth = static_cast<size_t>(indices.shape[tuples]);
  if (!dense(updates, tuples) || !dense(y, batch + depth))
    return refuse(why, "the slices are not dense");
  Slices slices;
  Shape shape;
  Strides from, index, to;
  for (size_t i = 0; i < tuples; ++i) {
    shape.push_back(updates.shape[i]);
    from.push_back(updates.strides[i]);
    index.push_back(indices.strides[i]);
    to.push_back(i < batch ? y.strides[i] : 0);
  }
  for (size_t i = batch; i < batch + depth; ++i)
    slices.components.push_back({static_cast<int64_t>(i), y.shape[i], y.strides[i]});
  for (size_t i = batch + depth; i < y.shape.size(); ++i) slices.run *= y.shape[i];
  slices.component_step = indices.strides[tuples];
  slices.tuples = merge_loops(shape, {from, index, to});
  return make_slices(request, slices);
}

CPU_KERNEL(scatter, "slices") {
  const TensorDesc &updates = request.in(0), &indices = request.in(1), &y = request.out();
  const size_t axis = normalize_axis(request.attrs.i("axis"), y.rank(), "scatter");
  if (!dense(updates, axis + 1) || !dense(y, axis + 1))
    return refuse(why, "the slices are not dense");
  Slices slices;
  Shape shape;
  Strides from, index, to;
  for (size_t i = 0; i <= axis; ++i) {
    shape.push_back(updates.shape[i]);
    from.push_back(updates.strides[i]);
    index.push_back(i == axis ? indices.strides[0] : 0);
    to.push_back(i == axis ? 0 : y.strides[i]);
  }
  slices.components = {{static_cast<int64_t>(axis), y.shape[axis], y.strides[axis]}};
  for (size_t i = axis + 1; i < y.shape.size(); ++i) slices.run *= y.shape[i];
  slices.tuples = merge_loops(shape, {from, index, to});
  return make_slices(request, slices);
}

}  // namespace

}  // namespace anymps::cpu
