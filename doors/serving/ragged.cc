// SPDX-License-Identifier: Apache-2.0
#include "serving/ragged.h"

#include <algorithm>

#include "serving/datatype.h"

namespace anymps::serving {
namespace {

int64_t elements(std::span<const int64_t> shape) {
  int64_t count = 1;  // the bytes of the request were checked: no overflow
  for (const int64_t extent : shape) count *= extent;
  return count;
}

// The last axes, one less than the rank of the graph's input.
std::span<const int64_t> tail(const Item& item, size_t input, int64_t rank) {
  const std::span<const int64_t> shape = item.shape(input);
  return shape.last(std::clamp<int64_t>(rank - 1, 0, std::ssize(shape)));
}

}  // namespace

bool same_tail(const Item& a, const Item& b, size_t input, int64_t rank) {
  return std::ranges::equal(tail(a, input, rank), tail(b, input, rank));
}

std::vector<int64_t> ragged_shape(const Settings& settings, size_t input, int64_t rank,
                                  std::span<Item* const> items) {
  const std::span<const int64_t> rest = tail(*items[0], input, rank);
  int64_t total = 0;
  for (const Item* item : items) {
    const std::span<const int64_t> shape = item->shape(input);
    total += elements(shape.first(shape.size() - rest.size()));
    if (!same_tail(*items[0], *item, input, rank))
      throw Error(Code::kInvalidArgument, "ragged input '" + settings.inputs[input].name +
                                              "' of model '" + settings.name + "': the shapes " +
                                              shape_text(items[0]->shape(input)) + " and " +
                                              shape_text(shape) + " cannot be laid together");
  }
  std::vector<int64_t> shape{total};
  shape.insert(shape.end(), rest.begin(), rest.end());
  return shape;
}

BatchInput make_batch_input(const BatchInputSettings& batch, size_t source,
                            std::span<Item* const> items) {
  BatchInput made;
  std::vector<int64_t>& values = made.values;
  if (batch.kind == "BATCH_ITEM_SHAPE" || batch.kind == "BATCH_ITEM_SHAPE_FLATTEN") {
    int64_t rows = 0, width = 0;
    for (const Item* item : items) {
      const std::span<const int64_t> shape = item->shape(source);
      rows += shape[0];
      width = std::ssize(shape) - 1;
      for (int64_t row = 0; row < shape[0]; ++row)
        values.insert(values.end(), shape.begin() + 1, shape.end());
    }
    made.dims = {rows, width};
    if (batch.kind == "BATCH_ITEM_SHAPE_FLATTEN") made.dims = {std::ssize(values)};
    return made;
  }
  if (batch.kind == "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE") {
    int64_t largest = 0;
    for (const Item* item : items) largest = std::max(largest, elements(item->shape(source)));
    made.dims = {largest};
    values.resize(largest);
    return made;
  }
  const bool accumulate = batch.kind != "BATCH_ELEMENT_COUNT";
  if (batch.kind == "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO") values.push_back(0);
  int64_t sum = 0;
  for (const Item* item : items) {
    const int64_t count = elements(item->shape(source));
    sum += count;
    values.push_back(accumulate ? sum : count);
  }
  made.dims = {std::ssize(values)};
  return made;
}

std::vector<int64_t> scattered_shape(const Settings& settings, const TensorSettings& output,
                                     size_t source, const Item& item) {
  std::vector<int64_t> shape = output.dims;
  if (settings.max_batch_size > 0) shape.insert(shape.begin(), -1);
  const std::span<const int64_t> from = item.shape(source);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != -1) continue;
    if (i >= from.size())
      throw Error(Code::kInvalidArgument,
                  "output '" + output.name + "' of model '" + settings.name + "' with the dims " +
                      shape_text(output.dims) + " cannot be cut like input '" +
                      settings.inputs[source].name + "', which has the shape " + shape_text(from));
    shape[i] = from[i];
  }
  return shape;
}

}  // namespace anymps::serving
