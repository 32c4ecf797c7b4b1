// SPDX-License-Identifier: Apache-2.0
// The content of a constant: a view of memory kept alive by an owner (a mapped file, a buffer), or
// a recipe that makes it on demand. Drivers pack weights once and then need the plain bytes no
// more: a mapped constant gives its pages back, and one with a recipe is dropped and made again in
// the rare case that somebody asks. So a folded model costs no second copy of its weights.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/shape.h"

namespace anymps {

class Constant {
 public:
  using Bytes = std::shared_ptr<const std::byte>;
  using Recipe = std::function<void(std::byte* out)>;

  // Copies `bytes`, which must have the size of desc.
  static std::shared_ptr<Constant> copy(DType dtype, Shape shape, std::span<const std::byte> bytes);
  // Refers to memory that `owner` keeps alive. `mapped`: file pages that may be given back.
  static std::shared_ptr<Constant> view(DType dtype, Shape shape, const void* data,
                                        std::shared_ptr<const void> owner, bool mapped = false);
  static std::shared_ptr<Constant> lazy(DType dtype, Shape shape, Recipe recipe);
  template <typename T>
  static std::shared_ptr<Constant> of(Shape shape, const std::vector<T>& values) {
    return copy(dtype_of<T>, std::move(shape), std::as_bytes(std::span(values)));
  }

  DType dtype() const { return desc_.dtype; }
  const Shape& shape() const { return desc_.shape; }
  const TensorDesc& desc() const { return desc_; }  // always contiguous
  size_t bytes() const { return desc_.bytes(); }
  uint64_t id() const { return id_; }  // unique in the process: a key for packed weights

  ~Constant();

  // The elements; whoever needs them holds the pointer as long as needed.
  Bytes data() const;
  // For those who have memory of their own: whether there is a recipe, and what it makes.
  bool is_lazy() const { return made_ != nullptr; }
  void make(std::byte* out) const;
  // The plain bytes are not needed for now.
  void release() const;

  // What weights of a convolution or product may be: others, times a factor for each output
  // channel. Who packs them can multiply on the way.
  struct Scaled {
    std::shared_ptr<const Constant> plain;
    std::vector<double> factors;
  };
  const Scaled* scaled() const { return scaled_.get(); }  // null: they are not
  void set_scaled(Scaled scaled) { scaled_ = std::make_unique<const Scaled>(std::move(scaled)); }

 private:
  Constant(DType dtype, Shape shape);

  TensorDesc desc_;
  uint64_t id_;
  const std::byte* view_ = nullptr;
  std::shared_ptr<const void> owner_;
  bool mapped_ = false;
  struct Made;
  std::unique_ptr<Made> made_;  // by a recipe; null: there is none
  std::unique_ptr<const Scaled> scaled_;
};
using ConstantPtr = std::shared_ptr<Constant>;

}  // namespace anymps
