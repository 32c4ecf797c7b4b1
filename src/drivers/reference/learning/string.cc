// SPDX-License-Identifier: Apache-2.0
// Reference kernels of strings, and of strings and labels as numbers.
#include <re2/re2.h>

#include <map>

#include "drivers/reference/move.h"
#include "semantics/elements.h"
#include "semantics/string_rules.h"

namespace anymps {

namespace {

const std::string& text_at(const View& view, const Shape& index) {
  return text_of(view.at<Text>(index));
}

std::vector<std::string> texts(const View& view) {
  std::vector<std::string> all;
  for_each_index(view.shape(), [&](const Shape& index) { all.push_back(text_at(view, index)); });
  return all;
}

// The n-grams of a pool as a tree: one level per element.
template <typename Key>
struct Grams {
  std::map<Key, Grams> next;
  int64_t index = -1;  // of the n-gram that ends here
};

template <typename Key>
Grams<Key> read_pool(const ReferenceArgs& args, const std::vector<Key>& pool) {
  const auto& starts = args.attrs.ints("starts");
  const auto shortest = args.attrs.i("min_length"), longest = args.attrs.i("max_length");
  const auto count = static_cast<int64_t>(args.attrs.ints("indexes").size());
  Grams<Key> root;
  int64_t index = 0;
  for (size_t k = 0; k < starts.size(); ++k) {
    const int64_t length = static_cast<int64_t>(k) + 1, first = starts[k];
    const int64_t last = k + 1 < starts.size() ? starts[k + 1] : std::ssize(pool);
    require(first >= 0 && first <= last && last <= std::ssize(pool) && (last - first) % length == 0,
            "[tfidf] n-grams of length {} lie at {} to {} of a pool of {}", length, first, last,
            pool.size());
    for (int64_t at = first; at < last; at += length, ++index) {
      require(index < count, "[tfidf] the pool has more n-grams than the {} indexes", count);
      if (length < shortest || length > longest) continue;
      Grams<Key>* place = &root;
      for (int64_t i = 0; i < length; ++i) place = &place->next[pool[at + i]];
      place->index = index;
    }
  }
  return root;
}

// How often each n-gram occurs in a row.
template <typename Key>
std::vector<int64_t> count_grams(const ReferenceArgs& args, const Grams<Key>& root,
                                 const std::vector<Key>& row) {
  const auto shortest = args.attrs.i("min_length"), longest = args.attrs.i("max_length");
  const auto size = std::ssize(row);
  std::vector<int64_t> counts(args.attrs.ints("indexes").size(), 0);
  for (int64_t distance = 1; distance <= args.attrs.i("max_skip") + 1 && distance <= size;
       ++distance) {
    for (int64_t first = 0; first < size; ++first) {
      const Grams<Key>* place = &root;
      for (int64_t length = 1; length <= longest; ++length) {
        const int64_t at = first + (length - 1) * distance;
        if (at >= size) break;
        const auto found = place->next.find(row[at]);
        if (found == place->next.end()) break;
        place = &found->second;
        // Single elements have nothing between them to skip: they count once.
        if (place->index >= 0 && length >= shortest && (length > 1 || distance == 1))
          ++counts[place->index];
      }
    }
  }
  return counts;
}

template <typename Key, typename Read>
void run_tfidf(const ReferenceArgs& args, Read read) {
  const View &x = args.in[0], &y = args.out[0];
  const Grams<Key> root = read_pool<Key>(args, read(args.in[1]));
  const std::vector<Key> elements = read(x);
  const auto& indexes = args.attrs.ints("indexes");
  const int64_t rows = x.rank() == 2 ? x.extent(0) : 1, width = y.extent(y.rank() - 1);
  const int64_t columns = rows == 0 ? 0 : std::ssize(elements) / rows;
  const std::string& mode = args.attrs.s("mode");
  if (args.has(2))
    require(args.in[2].rank() == 1 && args.in[2].count() >= width,
            "[tfidf] there are {} weights for {} columns", args.in[2].count(), width);
  for (int64_t row = 0; row < rows; ++row) {
    const auto first = elements.begin() + row * columns;
    const auto counts = count_grams(args, root, std::vector<Key>(first, first + columns));
    std::vector<int64_t> sums(width, 0);
    for (size_t k = 0; k < counts.size(); ++k) sums[indexes[k]] += counts[k];
    for (int64_t i = 0; i < width; ++i) {
      const double count = static_cast<double>(sums[i]);
      const double weight = args.has(2) ? double{args.in[2].at<float>({i})} : 1.0;
      const double value = mode == "tf"    ? count
                           : mode == "idf" ? (count > 0 ? weight : 0.0)
                                           : weight * count;
      (x.rank() == 2 ? y.at<float>({row, i}) : y.at<float>({i})) = static_cast<float>(value);
    }
  }
}

// Whether two elements of one dtype are the same label.
bool same_label(const View& a, int64_t at_a, const View& b, int64_t at_b) {
  const auto size = static_cast<int64_t>(size_of(a.dtype));
  if (a.dtype == DType::kString) return text_of(a.as<Text>()[at_a]) == text_of(b.as<Text>()[at_b]);
  const char *x = a.data + at_a * size, *y = b.data + at_b * size;
  if (is_int(a.dtype)) return std::memcmp(x, y, size) == 0;
  const double first = load_number(a.dtype, x), second = load_number(b.dtype, y);
  return first == second || (std::isnan(first) && std::isnan(second));
}

}  // namespace

REFERENCE(string_concat) {
  const View &a = args.in[0], &b = args.in[1], &y = args.out[0];
  const BroadcastOffset from_a(a, y.shape()), from_b(b, y.shape());
  for_each_index(y.shape(), [&](const Shape& index) {
    y.at<Text>(index) =
        args.text(text_of(a.as<Text>()[from_a(index)]) + text_of(b.as<Text>()[from_b(index)]));
  });
}

REFERENCE(string_split) {
  const View &x = args.in[0], &y = args.out[0];
  require_shape(args, y.rank() == x.rank() + 1);
  const int64_t width = y.extent(y.rank() - 1);
  for_each_index(x.shape(), [&](const Shape& index) {
    const auto parts =
        split_text(text_at(x, index), args.attrs.s("delimiter"), args.attrs.i("max_split"));
    require_shape(args, std::ssize(parts) <= width);
    if (args.out.size() > 1) args.out[1].at<int64_t>(index) = std::ssize(parts);
    Shape place = index;
    place.push_back(0);
    for (int64_t i = 0; i < width; ++i) {
      place.back() = i;
      const size_t k = i;
      y.at<Text>(place) = k < parts.size() ? args.text(parts[k]) : nullptr;
    }
  });
}

REFERENCE(string_normalizer) {
  const View& y = args.out[0];
  const TextNormalizer normalizer(args.attrs.s("case_change"), args.attrs.b("case_sensitive"),
                                  args.attrs.s("locale"),
                                  args.has(1) ? texts(args.in[1]) : std::vector<std::string>{});
  const std::vector<std::string> kept = normalizer.run(texts(args.in[0]));
  require_shape(args, y.count() == std::ssize(kept));
  size_t next = 0;
  for_each_index(y.shape(),
                 [&](const Shape& index) { y.at<Text>(index) = args.text(kept[next++]); });
}

REFERENCE(regex_full_match) {
  const View &x = args.in[0], &y = args.out[0];
  const std::string& pattern = args.attrs.s("pattern");
  const RE2 expression(pattern, RE2::Quiet);
  require(expression.ok(), "[regex_full_match] \"{}\" is not a regular expression: {}", pattern,
          expression.error());
  for_each_index(x.shape(), [&](const Shape& index) {
    y.at<bool>(index) = RE2::FullMatch(text_at(x, index), expression);
  });
}

REFERENCE(tfidf) {
  if (args.in[0].dtype == DType::kString)
    return run_tfidf<std::string>(args, [](const View& view) { return texts(view); });
  run_tfidf<int64_t>(args, [](const View& view) {
    std::vector<int64_t> all;
    for_each_index(view.shape(),
                   [&](const Shape& index) { all.push_back(load_int(view, view.offset(index))); });
    return all;
  });
}

REFERENCE(label_encode) {
  const View &x = args.in[0], &keys = args.in[1], &values = args.in[2], &y = args.out[0];
  require_shape(args, keys.count() == values.count() && args.in[3].count() == 1);
  for_each_index(y.shape(), [&](const Shape& index) {
    int64_t k = 0;
    while (k < keys.count() && !same_label(x, x.offset(index), keys, k * keys.stride(0))) ++k;
    if (k < keys.count())
      move_element(y, y.offset(index), values, k * values.stride(0));
    else
      move_element(y, y.offset(index), args.in[3], 0);
  });
}

}  // namespace anymps
