// SPDX-License-Identifier: Apache-2.0
// Ops on strings, and those that turn strings and labels into numbers.
#include "formats/onnx/read/import.h"
#include "formats/onnx/read/registry.h"
#include "memory/string_constant.h"

namespace anymps::onnx {

namespace {

template <typename T>
Value* vector_of(Call& c, const std::vector<T>& values) {
  const Shape shape{std::ssize(values)};
  if constexpr (std::is_same_v<T, std::string>)
    return c.graph.constant(string_constant(shape, values));
  else
    return c.graph.constant(anymps::Constant::of<T>(shape, values));
}

ONNX_READ(StringSplit) {
  const NamedAttrs attrs = {{"delimiter", c.s("delimiter", "")},
                            {"max_split", c.i("maxsplit", -1)}};
  return c.add_all("string_split", {c.in(0)}, attrs, 2);
}

ONNX_READ(StringNormalizer) {
  const std::string change = c.s("case_change_action", "NONE");
  c.check(change == "NONE" || change == "LOWER" || change == "UPPER",
          "attribute 'case_change_action' is \"{}\"", change);
  const auto stopwords = c.strings("stopwords");
  Values inputs = {c.in(0)};
  if (stopwords && !stopwords->empty()) inputs.push_back(vector_of(c, *stopwords));
  return {c.add("string_normalizer", inputs,
                {{"case_change", change == "NONE"    ? "none"
                                 : change == "LOWER" ? "lower"
                                                     : "upper"},
                 {"case_sensitive", c.flag("is_case_sensitive", false)},
                 {"locale", c.s("locale", "")}})};
}

ONNX_READ(RegexFullMatch) {
  return {c.add("regex_full_match", {c.in(0)}, {{"pattern", c.s("pattern")}})};
}

ONNX_READ(TfIdfVectorizer) {
  Value* x = c.in(0);
  const auto strings = c.strings("pool_strings");
  const auto numbers = c.ints("pool_int64s");
  c.check(strings.has_value() != numbers.has_value(),
          "needs one of the attributes 'pool_strings' and 'pool_int64s'");
  if (numbers) x = c.cast(x, DType::kI64);
  const auto starts = c.ints("ngram_counts"), indexes = c.ints("ngram_indexes");
  c.check(starts && indexes, "attribute 'ngram_counts' or 'ngram_indexes' is missing");
  const std::string mode = c.s("mode");
  c.check(mode == "TF" || mode == "IDF" || mode == "TFIDF", "attribute 'mode' is \"{}\"", mode);
  const auto weights = c.floats("weights");
  return {c.add("tfidf",
                {x, strings ? vector_of(c, *strings) : vector_of(c, *numbers),
                 weights && !weights->empty() ? vector_of(c, *weights) : nullptr},
                {{"mode", mode == "TF"    ? "tf"
                          : mode == "IDF" ? "idf"
                                          : "tfidf"},
                 {"min_length", c.i("min_gram_length")},
                 {"max_length", c.i("max_gram_length")},
                 {"max_skip", c.i("max_skip_count")},
                 {"starts", *starts},
                 {"indexes", *indexes}})};
}

// The list under one of the four names that it may have.
struct LabelNames {
  const char *strings, *int64s, *floats, *tensor;
};
constexpr LabelNames kKeys = {"keys_strings", "keys_int64s", "keys_floats", "keys_tensor"};
constexpr LabelNames kValues = {"values_strings", "values_int64s", "values_floats",
                                "values_tensor"};

Value* labels(Call& c, const LabelNames& names) {
  if (auto values = c.strings(names.strings)) return vector_of(c, *values);
  if (auto values = c.ints(names.int64s)) return vector_of(c, *values);
  if (auto values = c.floats(names.floats)) return vector_of(c, *values);
  if (const Tensor* tensor = c.tensor(names.tensor)) return c.graph.constant(to_constant(*tensor));
  c.unsupported("it has none of the attributes {}, {}, {}, {}", names.strings, names.int64s,
                names.floats, names.tensor);
}

// Defaults of the other types may be there too and say nothing.
Value* default_label(Call& c, DType dtype) {
  Value* result = nullptr;
  if (dtype == DType::kString)
    result = c.graph.constant(string_constant({}, {c.s("default_string", "_Unused")}));
  else if (dtype == DType::kI64)
    result = c.graph.constant(anymps::Constant::of<int64_t>({}, {c.i("default_int64", -1)}));
  else if (dtype == DType::kF32)
    result = c.graph.scalar(dtype, c.f("default_float", -0.0));
  else
    result = c.graph.scalar(dtype, is_float(dtype) ? -0.0 : -1.0);
  if (const Tensor* tensor = c.tensor("default_tensor"))
    result = c.graph.constant(to_constant(*tensor));
  c.ignore({"default_string", "default_int64", "default_float"});
  return result;
}

// In version 1 the labels are strings, and their places are the numbers.
Values encode_classes(Call& c) {
  Value* x = c.in(0);
  const auto classes = c.strings("classes_strings");
  c.check(classes.has_value(), "attribute 'classes_strings' is missing");
  std::vector<int64_t> places(classes->size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
  Value *texts = vector_of(c, *classes), *numbers = vector_of(c, places);
  if (x->dtype() == DType::kString)
    return {c.add("label_encode", {x, texts, numbers, default_label(c, DType::kI64)})};
  return {c.add("label_encode", {x, numbers, texts, default_label(c, DType::kString)})};
}

ONNX_READ_IN(kMl, LabelEncoder) {
  if (c.opset < 2) return encode_classes(c);
  Value *keys = labels(c, kKeys), *values = labels(c, kValues);
  return {c.add("label_encode", {c.in(0), keys, values, default_label(c, values->dtype())})};
}

}  // namespace

}  // namespace anymps::onnx
