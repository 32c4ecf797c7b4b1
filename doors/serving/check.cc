// SPDX-License-Identifier: Apache-2.0
#include "serving/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "serving/datatype.h"
#include "serving/strings.h"

namespace anymps::serving {
namespace {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(Code::kInvalidArgument, fmt::format(text, std::forward<Args>(args)...));
}

bool fits(std::span<const int64_t> shape, const std::vector<int64_t>& dims) {
  if (shape.size() != dims.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i)
    if (shape[i] < 0 || (dims[i] != -1 && dims[i] != shape[i])) return false;
  return true;
}

// `from` has the extents of `shape` at its variable places: they go to those of `to`.
std::vector<int64_t> refill(std::span<const int64_t> shape, const std::vector<int64_t>& from,
                            std::vector<int64_t> to) {
  size_t next = 0;
  for (int64_t& extent : to) {
    if (extent != -1) continue;
    while (next < from.size() && from[next] != -1) ++next;
    if (next < from.size()) extent = shape[next++];
  }
  return to;
}

[[noreturn]] void refuse_shape(const Settings& settings, const TensorSettings& expected,
                               std::span<const int64_t> shape) {
  std::vector<int64_t> dims = expected.dims;
  if (settings.max_batch_size > 0) dims.insert(dims.begin(), -1);
  refuse("unexpected shape for input '{}' for model '{}'. Expected {}, got {}.{}", expected.name,
         settings.name, shape_text(dims), shape_text(shape),
         settings.max_batch_size == 0
             ? ""
             : " NOTE: Setting a non-zero max_batch_size in the model config requires a batch "
               "dimension to be prepended to each input shape. If you want to specify the full "
               "shape including the batch dim in your input dims config, try setting "
               "max_batch_size to zero. See the model configuration docs for more info on "
               "max_batch_size.");
}

// Adds the extents that the model sees.
void check_shape(const Settings& settings, const TensorSettings& expected, const Input& input,
                 Item& item, bool first) {
  std::span<const int64_t> shape = input.shape;
  if (settings.max_batch_size > 0) {
    if (shape.empty() || shape[0] < 0) refuse_shape(settings, expected, input.shape);
    if (first) item.rows = shape[0];
    if (shape[0] != item.rows)
      refuse("input '{}' batch size does not match other inputs for '{}'", expected.name,
             settings.name);
    if (item.rows > settings.max_batch_size)
      refuse("inference request batch-size must be <= {} for '{}'", settings.max_batch_size,
             settings.name);
    item.dims.push_back(item.rows);
    shape = shape.subspan(1);
  }
  const auto add = [&](std::span<const int64_t> extents) {
    item.dims.insert(item.dims.end(), extents.begin(), extents.end());
  };
  if (!expected.reshape && fits(shape, expected.dims)) return add(shape);
  if (expected.reshape && fits(shape, expected.dims))
    return add(refill(shape, expected.dims, *expected.reshape));
  refuse_shape(settings, expected, input.shape);
}

void check_bytes(const Settings& settings, const Input& input) {
  size_t given = 0;
  for (const Piece& piece : input.pieces) given += piece.bytes;
  if (input.dtype == AMPS_STRING) {
    const std::optional<int64_t> expected = element_count(input.shape);
    const std::optional<int64_t> found = count_strings(input.pieces);
    if (!found)
      refuse(
          "incomplete string data for inference input '{}' for model '{}': a string reaches "
          "past the end of the {} bytes",
          input.name, settings.name, given);
    if (!expected || *found != *expected)
      refuse("expected {} string elements for inference input '{}' for model '{}', got {}",
             expected.value_or(-1), input.name, settings.name, *found);
    return;
  }
  const std::optional<size_t> expected = byte_count(input.dtype, input.shape);
  if (!expected)
    refuse("the shape {} of input '{}' for model '{}' is too large", shape_text(input.shape),
           input.name, settings.name);
  if (*expected != given)
    refuse("input byte size mismatch for input '{}' for model '{}'. Expected {}, got {}",
           input.name, settings.name, *expected, given);
}

[[noreturn]] void refuse_missing(const Settings& settings, const Item& item) {
  std::string got, missing;
  size_t count = 0, expected = 0;
  for (size_t i = 0; i < item.inputs.size(); ++i) {
    if (!item.inputs[i] && settings.inputs[i].optional) continue;
    ++expected;
    count += item.inputs[i] != nullptr;
    std::string& list = item.inputs[i] ? got : missing;
    list += fmt::format("{}'{}'", list.empty() ? "" : ",", settings.inputs[i].name);
  }
  refuse(
      "expected {} inputs but got {} inputs for model '{}'. Got input(s) [{}], but missing "
      "required input(s) [{}]. Please provide all required input(s).",
      expected, count, settings.name, got, missing);
}

}  // namespace

Item check_request(const Settings& settings, Request& request, std::pmr::memory_resource* memory) {
  Item item(memory);
  item.request = &request;
  item.inputs.resize(settings.inputs.size());
  for (const Input& input : request.inputs()) {
    const auto expected = std::find_if(settings.inputs.begin(), settings.inputs.end(),
                                       [&](const auto& known) { return known.name == input.name; });
    if (expected == settings.inputs.end())
      refuse("unexpected inference input '{}' for model '{}'", input.name, settings.name);
    const Input*& place = item.inputs[expected - settings.inputs.begin()];
    if (place) refuse("input '{}' already exists in request", input.name);
    if (input.dtype != expected->dtype)
      refuse("inference input '{}' data-type is '{}', but model '{}' expects '{}'", input.name,
             datatype_name(input.dtype), settings.name, datatype_name(expected->dtype));
    place = &input;
  }
  bool first = true, complete = true;
  uint64_t optional = 1;
  for (size_t i = 0; i < item.inputs.size(); ++i) {
    item.offsets.push_back(static_cast<uint32_t>(item.dims.size()));
    const TensorSettings& expected = settings.inputs[i];
    if (expected.optional) {
      if (item.inputs[i]) item.given |= optional;
      optional <<= 1;
    }
    if (!item.inputs[i]) {
      complete = complete && expected.optional;
      continue;
    }
    check_shape(settings, expected, *item.inputs[i], item, first);
    check_bytes(settings, *item.inputs[i]);
    first = false;
  }
  item.offsets.push_back(static_cast<uint32_t>(item.dims.size()));
  if (!complete) refuse_missing(settings, item);
  return item;
}

std::vector<int64_t> client_shape(const Settings& settings, const TensorSettings& output,
                                  std::span<const int64_t> shape) {
  if (!output.reshape) return {shape.begin(), shape.end()};
  const bool rows = settings.max_batch_size > 0 && !shape.empty();
  std::vector<int64_t> dims = refill(rows ? shape.subspan(1) : shape, *output.reshape, output.dims);
  if (rows) dims.insert(dims.begin(), shape[0]);
  if (element_count(dims) != element_count(shape))
    throw Error(
        Code::kInternal,
        fmt::format("output '{}' of model '{}' has the shape {}, which cannot be sent as {}",
                    output.name, settings.name, shape_text(shape), shape_text(dims)));
  return dims;
}

}  // namespace anymps::serving
