// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: maps as inputs. A map comes as its keys and its values (map_items); what is looked up
// in it goes through label_encode.
#include <numeric>

#include "formats/onnx/read/ops/learning.h"
#include "formats/onnx/read/registry.h"
#include "memory/string_constant.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

struct Items {
  Value *keys, *values;  // [C]
};

Items items_of(Call& c, DType keys) {
  Value* map = c.in(0);
  c.check(map->type.container == Container::kMaps, "the input is a {}, must be a map",
          anymps::name(map->type.container));
  const Values items = c.add_all("map_items", {map}, {{"key_dtype", keys}}, 2);
  return {items[0], c.add("squeeze", {items[1]}, {{"axes", Ints{0}}})};
}

// 0, or the empty text.
Value* nothing(Call& c, DType dtype) {
  return dtype == DType::kString ? c.graph.constant(string_constant({}, {""}))
                                 : c.graph.scalar(dtype, 0);
}

Value* row(Call& c, Value* list) { return c.add("unsqueeze", {list}, {{"axes", Ints{0}}}); }

ONNX_READ_IN(kMl, DictVectorizer) {
  Value* vocabulary = class_labels(c, "int64_vocabulary", "string_vocabulary");
  c.check(vocabulary != nullptr, "the vocabulary is missing");
  const Items items = items_of(c, vocabulary->dtype());
  return {row(c, c.add("label_encode",
                       {vocabulary, items.keys, items.values, nothing(c, items.values->dtype())}))};
}

ONNX_READ_IN(kMl, CastMap) {
  const std::string to = c.s("cast_to", "TO_FLOAT"), form = c.s("map_form", "DENSE");
  c.check(to == "TO_FLOAT" || to == "TO_INT64" || to == "TO_STRING", "cast_to '{}' is not known",
          to);
  c.check(form == "DENSE" || form == "SPARSE", "map_form '{}' is not known", form);
  const int64_t most = c.i("max_map", 1);
  const DType dtype = to == "TO_FLOAT"   ? DType::kF32
                      : to == "TO_INT64" ? DType::kI64
                                         : DType::kString;
  const Items items = items_of(c, DType::kI64);
  if (dtype == DType::kString && items.values->dtype() != DType::kString)
    c.unsupported("the text of a number is not defined");
  if (form == "DENSE") {
    Value* order = c.add("argsort", {items.keys}, {{"axis", 0}});
    return {row(c, c.cast(c.add("gather", {items.values, order}, {{"axis", 0}}), dtype))};
  }
  if (dtype == DType::kString) c.unsupported("what stands for a missing text is not defined");
  c.check(most >= 0 && most <= INT32_MAX, "max_map is {}", most);
  Ints places(most);
  std::iota(places.begin(), places.end(), 0);
  Value* numbers = c.cast(items.values, dtype);
  return {row(
      c, c.add("label_encode", {c.graph.ints(places), items.keys, numbers, nothing(c, dtype)}))};
}

}  // namespace

}  // namespace anymps::onnx
