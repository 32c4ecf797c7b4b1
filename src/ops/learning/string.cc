// SPDX-License-Identifier: Apache-2.0
// Ops on strings, and those that turn strings and labels into numbers.
#include <algorithm>

#include "base/string_store.h"
#include "ops/elementwise/elementwise_infer.h"
#include "ops/gradient_parts.h"
#include "ops/infer.h"
#include "semantics/string_rules.h"

namespace anymps {

namespace {

std::vector<std::string> texts(const MeasureInput& input) {
  std::vector<std::string> all;
  for (int64_t i = 0; i < input.desc.count(); ++i) all.push_back(text_of(input.as<Text>()[i]));
  return all;
}

void infer_string_split(InferContext& ctx) {
  Dims shape = ctx.shape(0);
  ctx.set(1, DType::kI64, shape);
  shape.push_back(ctx.fresh("parts"));
  ctx.set(0, std::move(shape));
}

std::vector<Shape> measure_split(const MeasureContext& ctx) {
  int64_t most = 0;
  for (const std::string& text : texts(ctx.inputs[0]))
    most = std::max(
        most, static_cast<int64_t>(
                  split_text(text, ctx.attrs.s("delimiter"), ctx.attrs.i("max_split")).size()));
  Shape shape = ctx.inputs[0].desc.shape;
  shape.push_back(most);
  return {shape, ctx.inputs[0].desc.shape};
}

void infer_normalizer(InferContext& ctx) {
  Dims shape = ctx.shape(0);
  ctx.check(shape.size() == 1 || (shape.size() == 2 && (!shape[0].known() || shape[0].is(1))),
            "x must be [C] or [1, C], it is {}", to_string(shape));
  if (ctx.has(1) && ctx.type(1).ranked)
    ctx.check(ctx.rank(1) == 1, "stopwords must have rank 1, they have rank {}", ctx.rank(1));
  if (ctx.has(1)) shape.back() = ctx.fresh("kept");
  if (shape.back().is(0)) shape.back() = 1;  // nothing is one empty string
  ctx.set(0, std::move(shape));
}

std::vector<Shape> measure_normalizer(const MeasureContext& ctx) {
  const TextNormalizer normalizer(ctx.attrs.s("case_change"), ctx.attrs.b("case_sensitive"),
                                  ctx.attrs.s("locale"),
                                  ctx.has(1) ? texts(ctx.inputs[1]) : std::vector<std::string>{});
  Shape shape = ctx.inputs[0].desc.shape;
  shape.back() = std::ssize(normalizer.run(texts(ctx.inputs[0])));
  return {shape};
}

void infer_tfidf(InferContext& ctx) {
  const Dims& x = ctx.shape(0);
  ctx.check(x.size() <= 2, "x must be [C] or [N, C], it is {}", to_string(x));
  const auto& places = ctx.attrs.ints("indexes");
  ctx.check(!places.empty(), "attribute 'indexes' is empty");
  for (const int64_t place : places)
    ctx.check(place >= 0 && place < (int64_t{1} << 31), "index {} is out of range", place);
  ctx.check(
      ctx.attrs.i("min_length") >= 1 && ctx.attrs.i("max_length") >= ctx.attrs.i("min_length"),
      "lengths must be 1 <= min_length <= max_length, they are {} and {}",
      ctx.attrs.i("min_length"), ctx.attrs.i("max_length"));
  ctx.check(ctx.attrs.i("max_skip") >= 0, "max_skip {} is negative", ctx.attrs.i("max_skip"));
  const int64_t width = *std::max_element(places.begin(), places.end()) + 1;
  if (x.size() == 2) return ctx.set(0, {x[0], width});
  ctx.set(0, {width});
}

void infer_label_encode(InferContext& ctx) {
  for (size_t i : {size_t{1}, size_t{2}})
    if (ctx.type(i).ranked)
      ctx.check(ctx.rank(i) == 1, "{} must have rank 1, they have rank {}",
                i == 1 ? "keys" : "values", ctx.rank(i));
  if (ctx.type(1).static_shape() && ctx.type(2).static_shape())
    ctx.check(ctx.shape(1)[0] == ctx.shape(2)[0], "there are {} keys and {} values",
              ctx.shape(1)[0].str(), ctx.shape(2)[0].str());
  if (ctx.type(3).static_shape())
    ctx.check(element_count(to_shape(ctx.shape(3))) == 1, "the default has the shape {}",
              to_string(ctx.shape(3)));
  ctx.set(0, ctx.shape(0));
}

}  // namespace

OP(string_concat)
    .doc("The text of b after that of a; both broadcast.")
    .formula("y = a + b")
    .onnx("StringConcat")
    .input("a", kText)
    .input("b", kText)
    .output("y")
    .facts(kElementwise)
    .reference_only("works on strings")
    .infer(infer_elementwise);

OP(string_split)
    .doc(
        "The parts of each text between the delimiters, along a new last axis; rows with fewer "
        "parts end in empty strings. An empty delimiter splits at runs of white space.")
    .formula("y[.., k] = part k of x[..]; counts[..] = how many")
    .input("x", kText)
    .output("y")
    .output("counts", "i64")
    .attr("delimiter", "", {}, "empty: white space")
    .attr("max_split", -1, "most cuts of a text; negative: no limit")
    .reference_only("works on strings")
    .infer(infer_string_split)
    .measure(measure_split)
    .no_tests("its shapes depend on the text: tests/drivers/reference/string_test.cc");

OP(string_normalizer)
    .doc(
        "Leaves out the strings that are stop words and changes the case of the rest. If none is "
        "left, the result is one empty string.")
    .formula("y = [change(x[i]) for x[i] not in stopwords]")
    .input("x", kText)
    .optional("stopwords", kText)
    .output("y")
    .attr("case_change", "none", {"none", "lower", "upper"})
    .attr("case_sensitive", false, "stop words must have the same case")
    .attr("locale", "", {}, "whose rules of case; empty: Unicode's")
    .reference_only("works on strings")
    .infer(infer_normalizer)
    .measure(measure_normalizer)
    .no_tests("its shapes depend on the text: tests/drivers/reference/string_test.cc");

OP(regex_full_match)
    .doc("True where the whole text matches a regular expression in RE2's syntax.")
    .formula("y = x matches pattern")
    .input("x", kText)
    .output("y", "bool")
    .attr("pattern", "", {}, "the expression")
    .reference_only("works on strings")
    .infer([](InferContext& ctx) { ctx.set(0, DType::kBool, ctx.shape(0)); })
    .sample({"digits", {{3, 4}}, {{"pattern", "-?[0-9]"}}, {}})
    .sample({"scalar", {{}}, {{"pattern", "1|2"}}, {}})
    .sample({"empty", {{0, 2}}, {{"pattern", ""}}, {}});

OP(tfidf)
    .doc(
        "Counts how often n-grams of a pool occur in each row: in runs of elements, and in runs "
        "that skip up to max_skip elements between two. The pool holds n-grams of length 1, then "
        "of length 2, ...; starts[n - 1] says where those of length n begin, indexes[k] in which "
        "column n-gram k is counted.")
    .formula("y[.., indexes[k]] = weights[k] * count of n-gram k (tfidf)")
    .input("x", bit(DType::kI32) | bit(DType::kI64) | kText)
    .input("pool", bit(DType::kI32) | bit(DType::kI64) | kText)
    .optional("weights", bit(DType::kF32), "W", "of each column; 1 if absent")
    .output("y", "f32")
    .attr("mode", "tf", {"tf", "idf", "tfidf"}, "the count; the weight if there is any; both")
    .attr("min_length", 1)
    .attr("max_length", 1)
    .attr("max_skip", 0)
    .required("starts", AttrKind::kInts, "where in the pool the n-grams of each length begin")
    .required("indexes", AttrKind::kInts, "the column of each n-gram")
    .reference_only("looks up n-grams, most often of strings")
    .infer(infer_tfidf)
    .sample({"bigrams",
             {{2, 6}, {7}},
             {{"min_length", 2},
              {"max_length", 2},
              {"max_skip", 1},
              {"starts", Ints{0, 3}},
              {"indexes", Ints{0, 1, 2, 3, 4}}},
             {{0, {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8}}, {1, {2, 3, 5, 5, 6, 7, 8}}}})
    .sample({"weights",
             {{9}, {3}, {3}},
             {{"mode", "tfidf"}, {"starts", Ints{0}}, {"indexes", Ints{2, 0, 1}}},
             {{0, {1, 2, 3, 1, 2, 1, 4, 3, 3}}, {1, {1, 2, 3}}}})
    .sample({"weights of what is there",
             {{2, 4}, {3}, {4}},
             {{"mode", "idf"}, {"starts", Ints{0}}, {"indexes", Ints{2, 0, 1}}},
             {{0, {1, 2, 1, 1, 4, 3, 3, 9}}, {1, {1, 2, 3}}}})
    .sample(
        {"empty", {{2, 0}, {1}}, {{"starts", Ints{0}}, {"indexes", Ints{0}}}, {{0, {}}, {1, {2}}}});

OP(label_encode)
    .doc(
        "The value that stands at the place of x among the keys, or the default. NaN is equal to "
        "NaN; of equal keys the first counts.")
    .formula("y = x == keys[k] ? values[k] : default")
    .input("x", kEvery & ~kComplex, "K")
    .input("keys", kEvery & ~kComplex, "K")
    .input("values", kEvery, "V")
    .input("default", kEvery, "V", "one element")
    .output("y", "V")
    .infer(infer_label_encode)
    .sample({"some", {{3, 4}, {3}, {3}, {}}, {}, {{1, {-1, 1, 0}}}})
    .sample({"found", {{2, 3}, {3}, {3}, {}}, {}, {{0, {1, -1, 5, 1, 0, 1}}, {1, {-1, 1, 0}}}})
    .sample({"scalar", {{}, {2}, {2}, {1}}, {}, {{1, {1, 2}}}})
    .sample({"no_keys", {{3}, {0}, {0}, {}}, {}, {{1, {}}}})
    .sample({"empty", {{0, 2}, {2}, {2}, {}}, {}, {{1, {1, 2}}}});

ZERO_GRADIENT(regex_full_match, "gives bool");
ZERO_GRADIENT(string_concat, "gives strings");
ZERO_GRADIENT(string_normalizer, "gives strings");
ZERO_GRADIENT(string_split, "gives strings");

// As in dequantize_lut; the place behind the last value is the default's.
COMPLEX_GRADIENT(label_encode) {
  const Term values = ctx.x(2), dy = ctx.dy();
  if (dy.type().static_shape() && element_count(to_shape(dy.shape())) == 0) return;
  const Term count = values.op("size"), zero = ctx.scalar(0, DType::kI64),
             one = ctx.scalar(1, DType::kI64);
  const Term places =
      ctx.add("label_encode", {ctx.x(0), ctx.x(1), ctx.add("range", {zero, count, one}), count});
  const Term room = ctx.add("fill", {ctx.reshape(count + 1, {1}), ctx.scalar(0, dy.dtype())});
  const Term sums = ctx.add("scatter", {ctx.reshape(dy, {-1}), ctx.reshape(places, {-1}), room},
                            {{"axis", 0}, {"mode", "add"}});
  const auto part = [&](int64_t first, int64_t last) {
    return sums.op("slice", {{"starts", Ints{first}}, {"ends", Ints{last}}, {"axes", Ints{0}}});
  };
  if (ctx.wants(2)) ctx.set(2, ctx.reshape_like(part(0, -1), values));
  if (ctx.wants(3)) ctx.set(3, ctx.reshape_like(part(-1, INT64_MAX), ctx.x(3)));
}

// The counts are what the weights, one per column, are multiplied with; they are 1 or 0 for idf.
GRADIENT(tfidf) {
  if (ctx.attrs().s("mode") == "tf") return;
  const Term weights = ctx.x(2), ones = ctx.fill_like(weights, 1);
  const Term counts = ctx.add("tfidf", {ctx.x(0), ctx.x(1), ones}, ctx.attrs().named());
  const Term sums = ctx.sum(ctx.dy() * counts, axes_from(0, ctx.y().rank() - 1), false);
  const Dim given = weights.shape().at(0), used = sums.shape().at(0);
  if (!given.known() || !used.known()) ctx.refuse("how many weights there are is not known");
  ctx.set(2, sums.op("pad", {{"pads", Ints{0, given.value() - used.value()}}}));
}

}  // namespace anymps
