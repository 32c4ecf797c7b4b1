// SPDX-License-Identifier: Apache-2.0
// What an op's inference function sees and says. It runs on symbolic shapes when a graph is built,
// and again on numbers when the feeds are known; it need not care which.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace anymps {

// The type of a value: dtype, shape (unless even the rank is unknown) and, for small integer
// tensors such as shapes, the elements themselves as far as they are known.
struct ValueType {
  DType dtype = DType::kF32;
  bool ranked = true;
  Dims shape;
  std::optional<Dims> content;  // row-major, only for integer tensors of at most kMaxContent
  Container container = Container::kTensor;  // of others, dtype and shape are the elements'

  static constexpr int64_t kMaxContent = 64;
  bool static_shape() const { return ranked && all_known(shape); }
};
std::string to_string(const ValueType& type);  // "f32[N, 3]"

class InferContext {
 public:
  InferContext(const Op& op, const Attrs& attrs, std::vector<const ValueType*> inputs,
               size_t outputs, std::string node)
      : op(op),
        attrs(attrs),
        inputs_(std::move(inputs)),
        outputs_(outputs),
        node_(std::move(node)) {}

  const Op& op;
  const Attrs& attrs;

  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const ValueType& type(size_t i) const { return *inputs_[i]; }
  DType dtype(size_t i) const { return inputs_[i]->dtype; }
  // The shape of input i. When its rank is unknown, inference of this node ends here and its
  // outputs become unranked.
  const Dims& shape(size_t i) const;
  int64_t rank(size_t i) const { return std::ssize(shape(i)); }
  // The elements of integer input i, or nullptr while they are not known.
  const Dims* content(size_t i) const {
    return has(i) && inputs_[i]->content ? &*inputs_[i]->content : nullptr;
  }
  // Integers that come from input i if it is present, else from the attribute; nothing while the
  // input's elements are not known.
  std::optional<Dims> ints(size_t i, const char* attr) const;
  int64_t axis(const char* attr, size_t input) const;  // normalised, checked

  // Sets output i; its dtype comes from the record unless given.
  void set(size_t i, Dims shape) { set(i, std::nullopt, std::move(shape)); }
  void set(size_t i, std::optional<DType> dtype, Dims shape);
  void set_unranked(size_t i, std::optional<DType> dtype = std::nullopt);
  void set_type(size_t i, ValueType type);  // all at once: containers, results of a body
  void set_content(size_t i, Dims content);
  Dim fresh(const std::string& hint) const;  // a dimension that only running can tell

  template <typename... Args>
  void check(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (!condition) [[unlikely]]
      fail_here(fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void fail_here(const std::string& reason) const;  // adds "[op]" and the node

  // Runs the record's checks (arity, dtypes) and its infer function, and returns the outputs.
  static std::vector<ValueType> run(const Op& op, const Attrs& attrs,
                                    std::vector<const ValueType*> inputs, size_t outputs,
                                    const std::string& node);

 private:
  struct Unranked {};
  DType output_dtype(size_t i) const;

  std::vector<const ValueType*> inputs_;
  std::vector<ValueType> outputs_;
  std::string node_;
};

// Inference functions that many ops share.
void infer_same(InferContext& ctx);       // output 0 like input 0
void infer_broadcast(InferContext& ctx);  // output 0: all inputs broadcast together

}  // namespace anymps
