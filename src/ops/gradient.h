// SPDX-License-Identifier: Apache-2.0
// How the gradients of ops are written. A gradient belongs to its op like a kernel does: one
// function, named after the op and beside its record, that adds nodes to the graph:
//   GRADIENT(tanh) { ctx.set(0, ctx.dy() * (1 - ctx.y() * ctx.y())); }
// Every op of the table has either a gradient or a reason why it has none; a test makes sure.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer.h"

namespace anymps {

struct Node;
struct Value;

class GradientContext;

// A value of the graph that is being extended, with arithmetic: operators add nodes. An empty Term
// stands for a value that is absent, for example the gradient of an output nobody uses.
class Term {
 public:
  Term() = default;
  Term(GradientContext* ctx, Value* value) : ctx_(ctx), value_(value) {}

  explicit operator bool() const { return value_ != nullptr; }
  Value* value() const { return value_; }
  GradientContext& ctx() const { return *ctx_; }
  const ValueType& type() const;
  DType dtype() const { return type().dtype; }
  const Dims& shape() const;  // fails when the rank is not known
  int64_t rank() const { return std::ssize(shape()); }
  Term op(const char* name, const NamedAttrs& attrs = {}) const;  // of this alone

 private:
  GradientContext* ctx_ = nullptr;
  Value* value_ = nullptr;
};

Term operator-(const Term& a);
#define ANYMPS_TERM_OPERATOR(symbol)                  \
  Term operator symbol(const Term& a, const Term& b); \
  Term operator symbol(const Term& a, double b);      \
  Term operator symbol(double a, const Term& b);
ANYMPS_TERM_OPERATOR(+)
ANYMPS_TERM_OPERATOR(-)
ANYMPS_TERM_OPERATOR(*)
ANYMPS_TERM_OPERATOR(/)
ANYMPS_TERM_OPERATOR(<)
ANYMPS_TERM_OPERATOR(>)
ANYMPS_TERM_OPERATOR(<=)
ANYMPS_TERM_OPERATOR(>=)
ANYMPS_TERM_OPERATOR(==)
#undef ANYMPS_TERM_OPERATOR
Term both(const Term& a, const Term& b);  // of bools
Term either(const Term& a, const Term& b);
// Elements of a where the condition is true, else of b.
Term where(const Term& condition, const Term& a, const Term& b);
Term where(const Term& condition, const Term& a, double b);
Term where(const Term& condition, double a, const Term& b);

// One extent of a shape to be: a number, or an i64 vector of one element made when the graph runs.
struct Extent {
  Extent(int64_t n) : number(n) {}  // NOLINT: a number is an extent
  Extent(Term t) : term(t) {}       // NOLINT
  int64_t number = 0;
  Term term;
};
using Extents = std::vector<Extent>;

// The graph that gradients are added to, as far as their functions see it: src/graph/ has it.
class GradientBuilder {
 public:
  virtual ~GradientBuilder() = default;
  virtual const ValueType& type(const Value& value) const = 0;
  virtual const std::string& name(const Value& value) const = 0;
  // The elements of a value of integers; nothing if they are not known.
  virtual std::optional<std::vector<int64_t>> known_ints(const Value& value) const = 0;

  virtual std::vector<Value*> add(const Op& op, std::vector<Value*> inputs, const NamedAttrs& attrs,
                                  const std::string& name, size_t outputs) = 0;
  virtual Value* scalar(DType dtype, double number) = 0;
  virtual Value* ints(const std::vector<int64_t>& values) = 0;  // an i64 vector

  // The gradients of xs through the nodes that were added since the builder was made, where
  // `seeds` are values and their gradients; null for an x that has none.
  using Seeds = std::vector<std::pair<Value*, Value*>>;
  virtual std::vector<Value*> pull_back(const Seeds& seeds, const std::vector<Value*>& xs) = 0;
};

// The node whose gradient is made.
struct GradientNode {
  const Op& op;
  const Attrs& attrs;
  const std::vector<Value*>&inputs, &outputs;
  const std::string& name;
  std::string label;  // for messages
};

// What a gradient function sees of its node, and the ways to say the gradients of its inputs.
class GradientContext {
 public:
  GradientContext(GradientBuilder& builder, GradientNode node, std::vector<Value*> dys,
                  std::vector<bool> wanted);

  const Op& op() const { return node_.op; }
  const Attrs& attrs() const { return node_.attrs; }
  size_t input_count() const { return node_.inputs.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  bool has(size_t input) const { return input_at(input) != nullptr; }
  Term x(size_t i = 0);            // an input
  Term y(size_t i = 0);            // an output
  Term dy(size_t i = 0);           // the gradient of an output; empty: none
  Term dy_or_zero(size_t i);       // zeros instead
  bool wants(size_t input) const;  // somebody asks for the gradient of this input
  // Integers of input i if it is present and known, else of the attribute; nothing if not known.
  std::optional<std::vector<int64_t>> ints(size_t i, const char* attr) const;

  // The gradient of input i. What is larger because the input was broadcast is summed. An input
  // that nobody asks for is passed over.
  void set(size_t i, const Term& dx);
  // Says all gradients at once: `outputs` are the node's outputs written out in other ops, from
  // the node's inputs; they are differentiated instead of the node.
  void through(const std::vector<Term>& outputs);

  Term add(const char* op, const std::vector<Term>& inputs, const NamedAttrs& attrs = {});
  std::vector<Term> add_all(const char* op, const std::vector<Term>& inputs,
                            const NamedAttrs& attrs, size_t outputs);
  Term scalar(double value, DType dtype);
  Term ints(const std::vector<int64_t>& values);  // an i64 vector

  Term shape_of(const Term& value);  // as an i64 vector
  Extent extent(const Term& value, int64_t axis);
  Term fill_like(const Term& like, double value);  // of its shape and dtype
  Term reshape(const Term& value, const Extents& shape);
  Term reshape_like(const Term& value, const Term& like);
  Term expand_like(const Term& value, const Term& like);
  Term reduce_to_shape_of(const Term& value, const Term& like);  // sums what was broadcast
  Term sum(const Term& value, const std::vector<int64_t>& axes, bool keep_dims = true);
  Term mean(const Term& value, const std::vector<int64_t>& axes);
  // The number of elements of `value` over that of `part`, as a scalar of value's dtype.
  Term ratio(const Term& value, const Term& part);
  // A vector of one element for each channel, shaped to broadcast with a tensor of this rank.
  Term per_channel(const Term& vector, int64_t axis, int64_t rank);
  Term swap_last(const Term& value);  // the last two axes exchanged

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    refuse_text(fmt::format(format, std::forward<Args>(args)...));
  }

  GradientBuilder& builder() const { return builder_; }
  const std::vector<Value*>& results() const { return dxs_; }

 private:
  [[noreturn]] void refuse_text(const std::string& reason) const;
  Value* input_at(size_t i) const { return i < node_.inputs.size() ? node_.inputs[i] : nullptr; }

  GradientBuilder& builder_;
  GradientNode node_;
  std::vector<Value*> dys_, dxs_;
  std::vector<bool> wanted_;
};

using GradientFn = void (*)(GradientContext&);

// What the table of gradients says of an op.
struct GradientRule {
  enum class Kind {
    kFunction,  // fn adds its gradient
    kZero,      // it has none, or it is 0 wherever it exists: paths end here
    kRefused,   // differentiable, but not here: an error that gives the reason
  };
  Kind kind = Kind::kRefused;
  GradientFn fn = nullptr;
  std::string reason;
  bool complex = false;  // fn knows complex numbers
};
const GradientRule* find_gradient(const Op& op);  // null: nothing was said

struct GradientRegistrar {
  GradientRegistrar(const char* op, GradientRule rule);
};

#define ANYMPS_GRADIENT(op_name, complex)                                                    \
  static void gradient_##op_name(::anymps::GradientContext& ctx);                            \
  static const ::anymps::GradientRegistrar gradient_registrar_##op_name(                     \
      #op_name, {::anymps::GradientRule::Kind::kFunction, gradient_##op_name, "", complex}); \
  static void gradient_##op_name([[maybe_unused]] ::anymps::GradientContext& ctx)
#define GRADIENT(op_name) ANYMPS_GRADIENT(op_name, false)
// The same for an op on complex numbers too. The gradient of a real y to a complex x is
// dy/d(Re x) + i dy/d(Im x), so that -dx is the way down.
#define COMPLEX_GRADIENT(op_name) ANYMPS_GRADIENT(op_name, true)
#define ZERO_GRADIENT(op_name, why)                                      \
  static const ::anymps::GradientRegistrar gradient_registrar_##op_name( \
      #op_name, {::anymps::GradientRule::Kind::kZero, nullptr, why, false})
#define NO_GRADIENT(op_name, why)                                        \
  static const ::anymps::GradientRegistrar gradient_registrar_##op_name( \
      #op_name, {::anymps::GradientRule::Kind::kRefused, nullptr, why, false})

}  // namespace anymps
