// SPDX-License-Identifier: Apache-2.0
// The op table: one record per op, and everything that must know the op reads it there: the
// builder, the verifier, inference, serialization, the generated reference and the generated tests.
// A record is written in src/ops/<family>/ as  OP(name).doc(…).input(…).output(…).infer(…);
#pragma once

#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/container.h"
#include "base/dim.h"
#include "ops/attr.h"

namespace anymps {

class Graph;
class InferContext;
struct Op;

// Facts that passes, drivers and doors use, as data: they ask for a fact, never for a list of
// names.
enum OpFact : uint32_t {
  kElementwise = 1u << 0,  // y[i] depends on the (broadcast) inputs at i alone
  kCommutative = 1u << 1,  // the first two inputs may be swapped
  kViewLike = 1u << 2,     // output may be a strided view of the first input
  kImpure = 1u << 3,       // not to be folded, merged or removed: random, state, control
  kShapeOnly = 1u << 4,    // reads its input's shape, never its elements
  kInternal = 1u << 5,     // made by passes only; hidden from the public builder
  // Run by the runtime itself, without a kernel: control flow, sequences, optionals.
  kStructural = 1u << 6,
  kMoves = 1u << 7,       // elements come out as they went in, or as one value that fills
  kNoRounding = 1u << 8,  // elementwise, and results are exact in the dtype of the inputs
  kProduct = 1u << 9,     // sums of products: what mixed precision computes in a half type
  kSteep = 1u << 10,      // elementwise, but a half type loses or overflows
  kStaysHalf = 1u << 11,  // neither elementwise nor a move, yet as good in its input's half type
  // The first output of its first body says whether to go on, the others are the node's.
  kPredicateFirst = 1u << 12,
  kSums = 1u << 13,  // adds up elements of its first input: terms may cancel to almost nothing
  // The result speaks of the dtype itself (its neighbours, its range, its bits): it is another one
  // in a wider type.
  kTypeBound = 1u << 14,
  // An element is rounded so few times that no kernel's result is better than another's.
  kRoundsLittle = 1u << 15,
};

// How an op follows its input to channels last (passes/layout.cc), by which attributes speak of
// axes. Elementwise ops follow by that fact.
enum class LayoutRule : uint8_t {
  kNone,
  kConvolution,  // asks for channels last: attribute `layout`; inputs 0 and 3 are images
  kImage,        // asks for channels last: attribute `layout`; input 0 is an image
  kLayout,       // attribute `layout`
  kElements,     // output 0 is like input 0, whatever its axes are; other outputs are numbers
  kAxis,         // attribute `axis`, of input 0; other inputs are vectors along it
  kJoin,         // attribute `axis`, of all inputs
  kSlice,        // attribute `axes`; empty: the first ones, as many as `starts`
  kPads,         // attribute `pads`: befores of all axes, then afters
  kSizes,        // attributes `sizes` and `scales`, of all axes; either may be empty
  kReduction,    // attribute `axes`, which are gone unless `keep_dims`
};

struct InputSpec {
  std::string name;
  DTypeSet dtypes = kAny;
  std::string type;  // inputs with the same type variable have the same dtype
  bool optional = false;
  bool variadic = false;  // the last input only: one or more
  std::string doc;
  ContainerSet containers = kTensors;  // more only for structural ops
};

struct OutputSpec {
  std::string name;
  // A type variable of an input, "real T" or "complex T": the dtype of the parts of T, or of
  // complex numbers of it; a dtype's name; or "": the op's dtype attribute.
  std::string type;
  std::string doc;
  bool by_product = false;  // optional, and given only to who asks for it
};

struct AttrSpec {
  std::string name;
  AttrKind kind = AttrKind::kInt;
  AttrValue default_value;
  bool required = false;
  std::vector<std::string> choices;  // of a string
  std::string doc;
};

// How the generated tests draw inputs and compare results.
struct Domain {
  double low = -2, high = 2;
};
struct Tolerance {
  double f32 = 1e-5, f16 = 2e-3, bf16 = 2e-2, f64 = 1e-10;
  double of(DType dtype) const;
};
inline constexpr Tolerance kExact{.f32 = 0, .f16 = 0, .bf16 = 0, .f64 = 0};
// One concrete use of an op: shapes of its inputs (in order; `absent` for an optional one) and its
// attributes. `values` fixes the content of integer inputs such as indices, shapes and axes.
struct Sample {
  std::string label;
  std::vector<Shape> shapes;
  NamedAttrs attrs;
  std::vector<std::pair<int, std::vector<int64_t>>> values;
  size_t outputs = 0;  // how many of an op with variadic outputs; 0: as many as the record has
  static inline const Shape absent = {-1};  // inline: records use it before main
};
struct TestSpec {
  Domain domain;
  std::vector<std::pair<std::string, Domain>> input_domains;  // per input name; integers included
  Tolerance tolerance;
  std::vector<Sample> samples;  // empty: shapes are made from the op's facts
  bool layouts = true;          // also run every sample with strided and offset inputs
  std::string skip;             // why there is no generated test
};

using InferFn = std::function<void(InferContext&)>;
// Shapes that depend on data (nonzero, unique, …): called with the elements of the inputs, in host
// memory and contiguous, when inference alone left a shape open. Returns the shape of each output.
struct MeasureInput {
  TensorDesc desc;
  const void* data = nullptr;  // null: an absent input

  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
};
struct MeasureContext {
  const Op& op;
  const Attrs& attrs;
  const std::vector<MeasureInput>& inputs;
  bool has(size_t i) const { return i < inputs.size() && inputs[i].data != nullptr; }
};
using MeasureFn = std::function<std::vector<Shape>(const MeasureContext&)>;
// How a view-like op's output lies in its first input's memory. The function sets strides and
// offset (in elements) and returns true, or returns false when the elements must be copied.
struct ViewContext {
  const Attrs& attrs;
  const TensorDesc& input;
  const std::vector<std::optional<std::vector<int64_t>>>& contents;  // of integer inputs, if known;
                                                                     // an empty list if absent
  size_t output;                                                     // which output
  const Shape& shape;                                                // of that output
  Strides strides;
  int64_t offset = 0;
  size_t outputs = 0;  // how many outputs the node has; 0: not given
};
using ViewFn = std::function<bool(ViewContext&)>;
// Floating-point operations of one evaluation (a multiply-add counts two).
using CostFn = std::function<double(const Attrs&, const std::vector<Shape>& in,
                                    const std::vector<Shape>& out)>;

struct Op {
  std::string name, doc, formula;
  std::string family, file;      // where its record is: src/ops/<family>/<file>.cc
  std::vector<std::string> mps;  // the MPSGraph selectors it covers
  // The ONNX op with the same inputs, and the attributes that both have, under the same name and
  // with the same default. "": there is none.
  std::string onnx;
  std::vector<std::string> onnx_attrs;
  std::string aten;  // torch's function of one tensor that is the same: "tanh"
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  bool variadic_outputs = false;
  std::vector<AttrSpec> attrs;
  uint32_t facts = 0;
  LayoutRule layout = LayoutRule::kNone;
  std::string reference_only;  // why no driver has a kernel of its own; empty: drivers must
  InferFn infer;
  MeasureFn measure;  // none: all shapes follow from shapes and small integers
  ViewFn view;
  CostFn cost;
  TestSpec test;

  bool is(uint32_t fact) const { return (facts & fact) == fact; }
  int attr_index(std::string_view name) const;  // -1: none
  size_t required_inputs() const;
  size_t main_outputs() const;  // those that are not by-products, which come last
  size_t max_inputs() const;
};

const Op* find_op(std::string_view name);  // nullptr: none
const Op& get_op(std::string_view name);   // fails, with near names in the message
const std::vector<const Op*>& all_ops();   // sorted by family, then name

// The fluent writer of a record.
class OpWriter {
 public:
  OpWriter(const char* name, const char* file);
  OpWriter& doc(std::string text);
  OpWriter& formula(std::string text);  // one line of pseudo code for the reference page
  OpWriter& mps(std::string selector);  // may be repeated
  OpWriter& onnx(std::string name, std::vector<std::string> attrs = {});
  OpWriter& aten(std::string name);
  OpWriter& input(std::string name, DTypeSet dtypes, std::string type = "T", std::string doc = "");
  OpWriter& optional(std::string name, DTypeSet dtypes, std::string type = "T",
                     std::string doc = "");
  OpWriter& variadic(std::string name, DTypeSet dtypes, std::string type = "T",
                     std::string doc = "");
  OpWriter& output(std::string name, std::string type = "T", std::string doc = "");
  OpWriter& outputs(std::initializer_list<const char*> names);  // of the dtype of T
  OpWriter& by_product(std::string name, std::string type = "T", std::string doc = "optional");
  OpWriter& variadic_outputs(std::string name, std::string type = "T", std::string doc = "");
  OpWriter& attr(std::string name, int64_t value, std::string doc = "");
  OpWriter& attr(std::string name, int value, std::string doc = "") {
    return attr(std::move(name), int64_t{value}, std::move(doc));
  }
  OpWriter& attr(std::string name, bool value, std::string doc = "");
  OpWriter& attr(std::string name, double value, std::string doc = "");
  OpWriter& attr(std::string name, DType value, std::string doc = "");
  OpWriter& attr(std::string name, const char* value, std::vector<std::string> choices,
                 std::string doc = "");
  OpWriter& attr(std::string name, std::vector<int64_t> value, std::string doc = "");
  OpWriter& attr(std::string name, std::vector<double> value, std::string doc = "");
  OpWriter& required(std::string name, AttrKind kind, std::string doc = "");
  // Integers, or one, that are an attribute or come as an input, which wins.
  OpWriter& ints(std::string name, std::string doc = "", std::string type = "I",
                 std::string input_doc = "wins over the attribute");
  OpWriter& integer(std::string name, int64_t value, std::string doc = "", std::string type = "I",
                    std::string input_doc = "a scalar; wins over the attribute");
  OpWriter& facts(uint32_t facts);
  OpWriter& layout(LayoutRule rule);
  // The reference kernel serves every driver, for this reason. A test fails for an op that has
  // neither this nor a kernel on the CPU.
  OpWriter& reference_only(std::string why);
  // What several records have in common, written once: a function that adds it.
  template <typename Part>
  OpWriter& with(const Part& part) {
    return part(*this);
  }
  OpWriter& containers(ContainerSet set);  // of the input written last
  OpWriter& infer(InferFn fn);
  OpWriter& measure(MeasureFn fn);
  OpWriter& view(ViewFn fn);  // implies kViewLike and kMoves
  OpWriter& cost(CostFn fn);
  OpWriter& domain(double low, double high);
  OpWriter& domain(std::string input, double low, double high);
  OpWriter& tolerance(Tolerance tolerance);
  OpWriter& sample(Sample sample);
  OpWriter& no_layout_tests();
  OpWriter& no_tests(std::string why);

 private:
  OpWriter& add_attr(AttrSpec spec);
  Op* op_;
};

using Ints = std::vector<int64_t>;
inline const Ints kNoInts;  // the default of a list of integers

#define ANYMPS_JOIN2(a, b) a##b
#define ANYMPS_JOIN(a, b) ANYMPS_JOIN2(a, b)
#define OP(op_name)                                                      \
  static const ::anymps::OpWriter ANYMPS_JOIN(op_record_, __COUNTER__) = \
      ::anymps::OpWriter(#op_name, __FILE__)

}  // namespace anymps
