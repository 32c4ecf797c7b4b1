// SPDX-License-Identifier: Apache-2.0
#include "server/core/classification.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "server/memory/buffer_pool.h"
#include "serving/datatype.h"
#include "serving/string_bytes.h"

namespace anymps::server {
namespace {

template <typename T>
void add_row(const T* scores, int64_t count, int64_t classes,
             const std::vector<std::string>& labels, std::vector<int64_t>& order,
             std::string& text) {
  order.resize(count);
  std::iota(order.begin(), order.end(), int64_t{0});
  // What is not a number comes last; of equals the first comes first.
  const auto better = [&](int64_t a, int64_t b) {
    if constexpr (std::is_floating_point_v<T>) {
      const bool a_nan = std::isnan(scores[a]), b_nan = std::isnan(scores[b]);
      if (a_nan || b_nan) return a_nan != b_nan ? b_nan : a < b;
    }
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + classes, order.end(), better);
  for (int64_t k = 0; k < classes; ++k) {
    std::string item = std::to_string(scores[order[k]]) + ":" + std::to_string(order[k]);
    if (order[k] < std::ssize(labels)) item += ":" + labels[order[k]];
    serving::append_string(text, item);
  }
}

template <typename T>
std::string rows_of(const OutputTensor& scores, int64_t rows, int64_t count, int64_t classes,
                    const std::vector<std::string>& labels) {
  std::string text;
  std::vector<int64_t> order;
  for (int64_t row = 0; row < rows; ++row)
    add_row(reinterpret_cast<const T*>(scores.data.data) + row * count, count, classes, labels,
            order, text);
  return text;
}

std::string dispatch(const OutputTensor& scores, int64_t rows, int64_t count, int64_t classes,
                     const std::vector<std::string>& labels) {
  std::string text;
  const bool known = serving::with_number_type(
      scores.dtype, [&]<typename T>() { text = rows_of<T>(scores, rows, count, classes, labels); });
  if (!known)
    throw Error(Code::kInvalidArgument,
                "class result not available for output due to unsupported type '" +
                    std::string(serving::datatype_name(scores.dtype)) + "'");
  return text;
}

}  // namespace

Error too_small(const std::string& output, size_t given, size_t needed) {
  return Error(Code::kInternal, "shared memory size specified with the request for output '" +
                                    output + "' (" + std::to_string(given) +
                                    " bytes) should be at least " + std::to_string(needed) +
                                    " bytes to hold the results");
}

OutputTensor classify(const OutputTensor& scores, uint32_t classes, bool batched,
                      const std::vector<std::string>& labels, const Buffer& target) {
  batched = batched && !scores.shape.empty();
  const int64_t rows = batched ? scores.shape[0] : 1;
  const int64_t all = serving::element_count(scores.shape).value_or(0);
  const int64_t count = rows ? all / rows : 0;
  const int64_t wanted = std::min<int64_t>(classes, count);
  const std::string text = dispatch(scores, rows, count, wanted, labels);
  OutputTensor result{scores.name, AMPS_STRING, {}, {}};
  if (batched) result.shape.push_back(scores.shape[0]);
  result.shape.push_back(wanted);
  if (target.data && target.bytes < text.size())
    throw too_small(scores.name, target.bytes, text.size());
  result.data =
      target.data ? Buffer{target.owner, target.data, text.size()} : allocate_buffer(text.size());
  if (!text.empty()) std::memcpy(result.data.data, text.data(), text.size());
  return result;
}

}  // namespace anymps::server
