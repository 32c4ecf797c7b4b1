// SPDX-License-Identifier: Apache-2.0
// How reference kernels are written: one plain function per op over strided views, slow and
// obvious.
//   REFERENCE(relu) { … args.in[0], args.out[0] … }
// They are the oracle of every other driver, so nothing here is clever.
#pragma once

#include <span>
#include <vector>

#include "drivers/kernel.h"

namespace anymps {

struct View {
  DType dtype = DType::kF32;
  char* data = nullptr;  // null: an absent optional input
  const Shape* dims = nullptr;
  const Strides* steps = nullptr;

  const Shape& shape() const { return *dims; }
  const Strides& strides() const { return *steps; }
  int64_t rank() const { return std::ssize(*dims); }
  int64_t extent(int64_t axis) const { return (*dims)[axis]; }
  int64_t stride(int64_t axis) const { return (*steps)[axis]; }
  int64_t count() const { return element_count(*dims); }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  // The element's distance from the first, in elements.
  int64_t offset(std::span<const int64_t> index) const {
    int64_t sum = 0;
    for (size_t i = 0; i < index.size(); ++i) sum += index[i] * (*steps)[i];
    return sum;
  }
  template <typename T>
  T& at(std::span<const int64_t> index) const {
    return as<T>()[offset(index)];
  }
  template <typename T>
  T& at(std::initializer_list<int64_t> index) const {
    return at<T>(std::span<const int64_t>(index.begin(), index.size()));
  }
};

struct ReferenceArgs {
  const Op& op;
  const Attrs& attrs;
  std::span<const View> in, out;
  StringStore* strings = nullptr;  // of the run

  // A string that the op makes.
  Text text(std::string value) const {
    require(strings != nullptr, "[{}] this run has no place for strings", op.name);
    return strings->add(std::move(value));
  }
  bool has(size_t i) const { return i < in.size() && in[i].data != nullptr; }
  // Integers from input i if it is present, else from the attribute.
  std::vector<int64_t> ints(size_t i, const char* attr) const;
};
using ReferenceFn = void (*)(const ReferenceArgs&);

struct ReferenceRegistrar {
  ReferenceRegistrar(const char* op, ReferenceFn fn);
};

#define REFERENCE(op_name)                                                                      \
  static void reference_##op_name(const ::anymps::ReferenceArgs& args);                         \
  static const ::anymps::ReferenceRegistrar reference_registrar_##op_name(#op_name,             \
                                                                          reference_##op_name); \
  static void reference_##op_name(const ::anymps::ReferenceArgs& args)

// The reference kernel for a request; null if the op has none.
KernelPtr make_reference_kernel(const KernelRequest& request);
bool has_reference(const Op& op);

// Calls fn(index) for each index of a shape, last axis fastest; once for a scalar, never if empty.
template <typename Fn>
void for_each_index(const Shape& shape, Fn&& fn) {
  if (element_count(shape) == 0) return;
  Shape index(shape.size(), 0);
  for (;;) {
    fn(static_cast<const Shape&>(index));
    size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

// A view read as if it had `shape`, with NumPy broadcasting: gives element offsets.
class BroadcastOffset {
 public:
  BroadcastOffset(const View& view, const Shape& shape)
      : strides_(broadcast_strides_of(view, shape)) {}
  int64_t operator()(const Shape& index) const {
    int64_t sum = 0;
    for (size_t i = 0; i < index.size(); ++i) sum += index[i] * strides_[i];
    return sum;
  }

 private:
  static Strides broadcast_strides_of(const View& view, const Shape& shape);
  Strides strides_;
};

// Reads any real or bool element as double, and any integer as int64.
double load_double(const View& view, int64_t offset);
int64_t load_int(const View& view, int64_t offset);

}  // namespace anymps
