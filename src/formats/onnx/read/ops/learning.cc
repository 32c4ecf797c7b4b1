// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: scalers, encoders and linear models, written in ops of the table. Trees, support
// vectors and maps are in separate files.
#include "formats/onnx/read/ops/learning.h"

#include <cmath>
#include <numeric>

#include "formats/onnx/read/registry.h"
#include "memory/string_constant.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

ONNX_READ_IN(kMl, ArrayFeatureExtractor) {
  Value* x = c.in(0);
  Value* places = c.add("reshape", {c.in(1)}, {{"shape", Ints{-1}}});
  if (c.rank(x) == 1) x = c.add("unsqueeze", {x}, {{"axes", Ints{0}}});
  return {c.add("gather", {x, places}, {{"axis", -1}})};
}

ONNX_READ_IN(kMl, Binarizer) {
  Value* x = c.in(0);
  Value* above = c.add("greater", {x, c.scalar_like(x, c.f("threshold", 0.0))});
  return {c.cast(above, x->dtype())};
}

ONNX_READ_IN(kMl, CategoryMapper) {
  const auto integers = c.ints("cats_int64s");
  const auto strings = c.strings("cats_strings");
  c.check(integers && strings && integers->size() == strings->size(),
          "cats_int64s and cats_strings must be given, of one length");
  const auto count = std::ssize(*strings);
  Value* numbers = c.graph.ints(*integers);
  Value* texts = c.graph.constant(string_constant({count}, *strings));
  const int64_t other = c.i("default_int64", -1);
  const std::string other_text = c.s("default_string", "_Unused");
  Value* x = c.in(0);
  if (x->dtype() == DType::kString)
    return {c.add("label_encode", {x, texts, numbers,
                                   c.graph.constant(anymps::Constant::of<int64_t>({}, {other}))})};
  return {c.add("label_encode",
                {x, numbers, texts, c.graph.constant(string_constant({}, {other_text}))})};
}

ONNX_READ_IN(kMl, FeatureVectorizer) {
  const Ints widths = c.ints("inputdimensions").value_or(Ints{});
  Values parts;
  for (Value* x : c.all()) {
    if (c.rank(x) == 1) x = c.add("unsqueeze", {x}, {{"axes", Ints{1}}});
    c.check(c.rank(x) == 2, "input {} has rank {}", parts.size(), c.rank(x));
    x = c.cast(x, DType::kF32);
    if (parts.size() < widths.size() && !x->shape()[1].is(widths[parts.size()])) {
      // Cut or filled up with zeros to the width that is asked for.
      Value* more = c.add("sub", {c.graph.ints({widths[parts.size()]}),
                                  c.add("shape", {x}, {{"start", 1}, {"end", 2}})});
      Value* pads = c.add("concat", {c.graph.ints({0}), more}, {{"axis", 0}});
      x = c.add("pad", {x, pads, nullptr, c.graph.ints({1})});
    }
    parts.push_back(x);
  }
  return {parts.size() == 1 ? parts[0] : c.add("concat", parts, {{"axis", 1}})};
}

ONNX_READ_IN(kMl, Imputer) {
  Value* x = c.in(0);
  c.ignore({"replaced_value_float", "replaced_value_int64", "imputed_value_floats",
            "imputed_value_int64s"});
  if (is_float(x->dtype())) {
    const double replaced = c.f("replaced_value_float", 0.0);
    Value* value = float_list(c, x->dtype(), numbers_of(c, "imputed_value_floats"));
    Value* missing = std::isnan(replaced) ? c.add("is_nan", {x})
                                          : c.add("equal", {x, c.scalar_like(x, replaced)});
    return {c.add("where", {missing, value, x})};
  }
  const auto values = c.ints("imputed_value_int64s");
  c.check(values.has_value(), "attribute 'imputed_value_int64s' is missing");
  Value* replaced =
      c.graph.constant(anymps::Constant::of<int64_t>({}, {c.i("replaced_value_int64", 0)}));
  Value* missing = c.add("equal", {x, c.cast(replaced, x->dtype())});
  return {c.add("where", {missing, c.cast(c.graph.ints(*values), x->dtype()), x})};
}

// x W^T + b
Value* linear(Call& c, Value* x, const std::vector<double>& weights, int64_t targets) {
  c.check(targets > 0 && std::ssize(weights) % targets == 0, "{} coefficients for {} targets",
          weights.size(), targets);
  const int64_t features = std::ssize(weights) / targets;
  Value* w =
      c.add("reshape", {float_list(c, x->dtype(), weights)}, {{"shape", Ints{targets, features}}});
  const auto intercepts = numbers_of(c, "intercepts");
  Value* b = intercepts.empty() ? nullptr : float_list(c, x->dtype(), intercepts);
  return c.add("matmul", {x, w, b}, {{"transpose_b", true}});
}

ONNX_READ_IN(kMl, LinearRegressor) {
  Value* x = as_float(c, matrix(c, c.in(0)));
  Value* y = linear(c, x, numbers_of(c, "coefficients"), c.i("targets", 1));
  return {c.cast(transformed(c, y, c.s("post_transform", "NONE")), DType::kF32)};
}

ONNX_READ_IN(kMl, LinearClassifier) {
  c.ignore({"multi_class"});
  Value* x = as_float(c, matrix(c, c.in(0)));
  const auto weights = numbers_of(c, "coefficients");
  const auto rows = std::max<int64_t>(1, static_cast<int64_t>(numbers_of(c, "intercepts").size()));
  Value* labels = class_labels(c, "classlabels_ints", "classlabels_strings");
  c.check(labels != nullptr, "the labels of the classes are missing");
  const int64_t classes = labels->shape()[0].value();
  const std::string how = c.s("post_transform", "NONE");
  Value* scores = linear(c, x, weights, rows);
  if (rows > 1) {
    Value* best = c.add("arg_max", {scores}, {{"axis", 1}, {"keep_dims", false}});
    return {label_of(c, labels, best), c.cast(transformed(c, scores, how), DType::kF32)};
  }
  if (classes != 2) c.unsupported("one row of coefficients for {} classes", classes);
  Value* positive = c.add("greater", {scores, c.scalar_like(scores, 0)});
  Value* index = c.add("squeeze", {c.cast(positive, DType::kI64)}, {{"axes", Ints{1}}});
  if (how != "LOGISTIC" && how != "NONE")
    c.unsupported("post_transform {} of a single score is not supported", how);
  Value* both = c.add("concat", {c.add("neg", {scores}), scores}, {{"axis", 1}});
  return {label_of(c, labels, index), c.cast(transformed(c, both, how), DType::kF32)};
}

ONNX_READ_IN(kMl, Normalizer) {
  Value* x = as_float(c, c.in(0));
  const std::string norm = c.s("norm", "MAX");
  const char* op = norm == "MAX" ? "reduce_max" : norm == "L1" ? "reduce_l1" : "reduce_l2";
  c.check(norm == "MAX" || norm == "L1" || norm == "L2", "norm '{}' is not known", norm);
  const Ints axes{c.rank(x) == 1 ? 0 : 1};
  Value* from = norm == "MAX" ? c.add("abs", {x}) : x;
  Value* length = c.add(op, {from}, {{"axes", axes}, {"keep_dims", true}});
  // A row of zeros stays one.
  Value* zero = c.add("equal", {length, c.scalar_like(length, 0)});
  Value* divisor = c.add("where", {zero, c.scalar_like(length, 1), length});
  return {c.cast(c.add("div", {x, divisor}), DType::kF32)};
}

ONNX_READ_IN(kMl, OneHotEncoder) {
  Value* x = c.in(0);
  Value* labels = class_labels(c, "cats_int64s", "cats_strings");
  c.check(labels != nullptr, "the categories are missing");
  if (x->dtype() != labels->dtype()) x = c.cast(x, labels->dtype());
  if (c.i("zeros", 1) != 0) {
    x = c.add("unsqueeze", {x}, {{"axes", Ints{-1}}});
    return {c.cast(c.add("equal", {x, labels}), DType::kF32)};
  }
  // An unknown category is an error: its place is one behind the last row.
  const int64_t count = labels->shape()[0].value();
  Ints places(count);
  std::iota(places.begin(), places.end(), 0);
  Value* behind = c.graph.constant(anymps::Constant::of<int64_t>({}, {count}));
  Value* place = c.add("label_encode", {x, labels, c.graph.ints(places), behind});
  std::vector<float> rows(places.size() * places.size());
  for (size_t i = 0; i < places.size(); ++i) rows[i * places.size() + i] = 1;
  Value* table = c.graph.constant(anymps::Constant::of<float>({count, count}, rows));
  return {c.add("gather", {table, place}, {{"axis", 0}})};
}

ONNX_READ_IN(kMl, Scaler) {
  Value* x = as_float(c, c.in(0));
  const auto offset = numbers_of(c, "offset"), scale = numbers_of(c, "scale");
  if (!offset.empty()) x = c.add("sub", {x, float_list(c, x->dtype(), offset)});
  if (!scale.empty()) x = c.add("mul", {x, float_list(c, x->dtype(), scale)});
  return {c.cast(x, DType::kF32)};
}

ONNX_READ_IN(kMl, ZipMap) {
  Value* labels = class_labels(c, "classlabels_int64s", "classlabels_strings");
  c.check(labels != nullptr, "the labels of the classes are missing");
  return {c.add("zip_map", {labels, c.in(0)})};
}

// An approximation of the inverse of the error function, the one of the standard's reference.
Value* probit(Call& c, Value* p) {
  const auto number = [&](double value) { return c.scalar_like(p, value); };
  const auto times = [&](Value* a, double b) { return c.add("mul", {a, number(b)}); };
  Value* x = c.add("sub", {times(p, 2), number(1)});
  Value* log = c.add("log", {c.add("sub", {number(1), c.add("square", {x})})});
  Value* v = c.add("add", {times(log, 0.5), number(2 / (M_PI * 0.147))});
  Value* root = c.add("sqrt", {c.add("sub", {c.add("square", {v}), times(log, 1 / 0.147)})});
  Value* inverse = c.add("mul", {c.add("sign", {x}), c.add("sqrt", {c.add("sub", {root, v})})});
  return times(inverse, 1.41421356);
}

}  // namespace

Value* as_float(Call& c, Value* x) {
  return x->dtype() == DType::kF64 ? x : c.cast(x, DType::kF32);
}

Value* matrix(Call& c, Value* x) {
  if (c.rank(x) == 1) x = c.add("unsqueeze", {x}, {{"axes", Ints{0}}});
  c.check(c.rank(x) == 2, "the input must be a matrix, it has rank {}", c.rank(x));
  return x;
}

std::vector<double> numbers_of(Call& c, const char* attribute) {
  const auto floats = c.floats(attribute).value_or(std::vector<float>{});
  return {floats.begin(), floats.end()};
}

Value* float_list(Call& c, DType dtype, const std::vector<double>& numbers) {
  const Shape shape{std::ssize(numbers)};
  if (dtype == DType::kF64) return c.graph.constant(anymps::Constant::of<double>(shape, numbers));
  const std::vector<float> narrow(numbers.begin(), numbers.end());
  return c.cast(c.graph.constant(anymps::Constant::of<float>(shape, narrow)), dtype);
}

Value* transformed(Call& c, Value* scores, const std::string& how) {
  if (how == "NONE") return scores;
  if (how == "LOGISTIC") return c.add("sigmoid", {scores});
  if (how == "SOFTMAX") return c.add("softmax", {scores}, {{"axis", -1}});
  if (how == "PROBIT") return probit(c, scores);
  c.check(how == "SOFTMAX_ZERO", "post_transform '{}' is not known", how);
  // A softmax in which a score of 0 stays 0.
  const NamedAttrs row = {{"axes", Ints{-1}}, {"keep_dims", true}};
  Value* most = c.add("reduce_max", {scores}, row);
  Value* nothing = c.add("less_equal", {c.add("abs", {scores}), c.scalar_like(scores, 1e-7)});
  Value* small = c.add("mul", {scores, c.add("exp", {c.add("neg", {most})})});
  Value* e = c.add("where", {nothing, small, c.add("exp", {c.add("sub", {scores, most})})});
  Value* sum = c.add("reduce_sum", {e}, row);
  Value* empty = c.add("equal", {sum, c.scalar_like(sum, 0)});
  return c.add("where", {empty, c.scalar_like(sum, 0.5), c.add("div", {e, sum})});
}

Value* class_labels(Call& c, const char* integers, const char* strings) {
  const auto numbers = c.ints(integers);
  const auto texts = c.strings(strings);
  if (texts && !texts->empty())
    return c.graph.constant(string_constant({std::ssize(*texts)}, *texts));
  return numbers && !numbers->empty() ? c.graph.ints(*numbers) : nullptr;
}

Value* label_of(Call& c, Value* labels, Value* index) {
  return c.add("gather", {labels, index}, {{"axis", 0}});
}

}  // namespace anymps::onnx
