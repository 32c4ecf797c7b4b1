// SPDX-License-Identifier: Apache-2.0
#include "ops/shape_rules.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace anymps {

namespace {

// A product taken apart. Symbols are what cannot be split further.
struct Product {
  Dim number = 1;
  std::vector<std::string> symbols;

  Dim value() const {
    Dim result = 1;
    for (const std::string& symbol : symbols) result = result * Dim::symbol(symbol);
    return result * number;
  }
};

// The places of '*' outside all parentheses; nothing when the text is not a plain product.
std::optional<std::vector<size_t>> splits(std::string_view text) {
  std::vector<size_t> places;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    depth += c == '(';
    depth -= c == ')';
    if (depth < 0) return std::nullopt;
    if (depth > 0) continue;
    if (c == '*') places.push_back(i);
    if (c == '+' || c == '-' || c == '/' || c == ',' || c == ' ') return std::nullopt;
  }
  if (depth != 0) return std::nullopt;
  return places;
}

bool enclosed(std::string_view text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return false;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(';
    depth -= text[i] == ')';
    if (depth <= 0 && i + 1 < text.size()) return false;
  }
  return depth == 0;
}

void take_apart(std::string_view text, Product& product) {
  while (enclosed(text)) text = text.substr(1, text.size() - 2);
  int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && number >= 0) {
    product.number = product.number * Dim(number);
    return;
  }
  const auto places = splits(text);
  if (!places || places->empty()) {
    product.symbols.emplace_back(text);
    return;
  }
  size_t from = 0;
  for (size_t at : *places) {
    take_apart(text.substr(from, at - from), product);
    from = at + 1;
  }
  take_apart(text.substr(from), product);
}

Product factors(const Dims& dims) {
  Product product;
  for (const Dim& dim : dims) {
    if (dim.known())
      product.number = product.number * dim;
    else
      take_apart(dim.str(), product);
  }
  std::sort(product.symbols.begin(), product.symbols.end());
  return product;
}

void cancel_equal(Dims& a, Dims& b) {
  for (size_t i = 0; i < b.size();) {
    auto it = std::find(a.begin(), a.end(), b[i]);
    if (it == a.end()) {
      ++i;
    } else {
      a.erase(it);
      b.erase(b.begin() + static_cast<int64_t>(i));
    }
  }
}

}  // namespace

std::vector<int64_t> normalize_axes(const std::vector<int64_t>& axes, int64_t rank,
                                    const char* who) {
  std::vector<int64_t> result;
  std::vector<bool> seen(rank, false);
  for (int64_t axis : axes) {
    const int64_t at = normalize_axis(axis, rank, who);
    require(!seen[at], "[{}] axis {} is given twice", who, axis);
    seen[at] = true;
    result.push_back(at);
  }
  return result;
}

Dim ordered_product(const Dims& dims) { return factors(dims).value(); }

Quotient quotient(const Dims& total, const Dims& part, const char* who) {
  Dims above = total, below = part;
  cancel_equal(above, below);
  Product n = factors(above), d = factors(below);
  if (n.number.is(0) && !d.number.is(0)) return {0, true};
  require(!d.number.is(0), "[{}] an extent cannot be inferred beside an extent of 0", who);
  std::vector<std::string> rest_n, rest_d;
  std::set_difference(n.symbols.begin(), n.symbols.end(), d.symbols.begin(), d.symbols.end(),
                      std::back_inserter(rest_n));
  std::set_difference(d.symbols.begin(), d.symbols.end(), n.symbols.begin(), n.symbols.end(),
                      std::back_inserter(rest_d));
  const int64_t common = std::gcd(n.number.value(), d.number.value());
  n = {n.number.value() / common, std::move(rest_n)};
  d = {d.number.value() / common, std::move(rest_d)};
  const bool exact = d.symbols.empty() && d.number.is(1);
  return {exact ? n.value() : floor_div(n.value(), d.value()), exact};
}

std::optional<Strides> reshape_strides(const TensorDesc& from, const Shape& to) {
  if (from.count() == 0 || from.contiguous()) return contiguous_strides(to);
  // Axes of `from` fall into runs that are dense among themselves; each run must be cut whole.
  Shape extents;
  Strides strides;
  for (size_t i = 0; i < from.shape.size(); ++i) {
    if (from.shape[i] == 1) continue;
    if (!extents.empty() && strides.back() == from.strides[i] * from.shape[i]) {
      extents.back() *= from.shape[i];
      strides.back() = from.strides[i];
    } else {
      extents.push_back(from.shape[i]);
      strides.push_back(from.strides[i]);
    }
  }
  Strides result(to.size(), 0);
  size_t run = extents.size();
  int64_t left = 1, step = 0;  // of the run that is being cut, from its end
  for (size_t i = to.size(); i-- > 0;) {
    if (to[i] == 1) {
      result[i] = left == 1 ? 1 : step;
      continue;
    }
    if (left == 1) {
      if (run == 0) return std::nullopt;
      left = extents[--run];
      step = strides[run];
    }
    if (left % to[i] != 0) return std::nullopt;
    result[i] = step;
    step *= to[i];
    left /= to[i];
  }
  return result;
}

std::vector<SliceRange> slice_ranges(const Shape& shape, const std::vector<int64_t>& starts,
                                     const std::vector<int64_t>& ends,
                                     const std::vector<int64_t>& axes,
                                     const std::vector<int64_t>& steps, const char* who) {
  const size_t count = starts.size();
  require(ends.size() == count && (axes.empty() || axes.size() == count) &&
              (steps.empty() || steps.size() == count),
          "[{}] {} starts, {} ends, {} axes and {} steps do not go together", who, count,
          ends.size(), axes.size(), steps.size());
  const auto rank = std::ssize(shape);
  require(count <= shape.size(), "[{}] {} starts for a tensor of rank {}", who, count, rank);
  std::vector<int64_t> at(axes);
  if (at.empty()) {
    at.resize(count);
    std::iota(at.begin(), at.end(), 0);
  }
  at = normalize_axes(at, rank, who);
  std::vector<SliceRange> ranges;
  for (int64_t extent : shape) ranges.push_back({0, 1, extent});
  for (size_t i = 0; i < count; ++i) {
    const int64_t extent = shape[at[i]];
    int64_t step = steps.empty() ? 1 : steps[i];
    require(step != 0, "[{}] the step along axis {} is 0", who, at[i]);
    step = std::max<int64_t>(step, -INT64_MAX);
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    auto clamped = [&](int64_t place) {
      return std::clamp(place < 0 ? place + extent : place, low, high);
    };
    const int64_t first = clamped(starts[i]), last = clamped(ends[i]);
    const int64_t span = step > 0 ? last - first : first - last;
    const int64_t stride = step > 0 ? step : -step;
    const int64_t length = span <= 0 ? 0 : (span - 1) / stride + 1;
    // An empty range starts anywhere and a range of one steps nowhere: keep both inside.
    ranges[at[i]] = {length == 0 ? 0 : first, length <= 1 ? 1 : step, length};
  }
  return ranges;
}

OpWriter& slice_range(OpWriter& op) {
  return op
      .ints("starts", "first place, for each of axes", "I",
            "inputs win over the attributes of the same name")
      .ints("ends", "the place after the last", "I", "")
      .ints("axes", "empty: the first axes", "I", "")
      .ints("steps", "empty: 1", "I", "");
}

std::optional<std::vector<int64_t>> numbers(const std::optional<Dims>& values) {
  if (!values || !all_known(*values)) return std::nullopt;
  std::vector<int64_t> result;
  for (const Dim& value : *values) result.push_back(value.value());
  return result;
}

std::optional<std::vector<int64_t>> view_ints(const ViewContext& ctx, size_t i, const char* attr) {
  if (i >= ctx.contents.size()) return ctx.attrs.ints(attr);
  const auto& content = ctx.contents[i];
  return content && content->empty() ? ctx.attrs.ints(attr) : content;
}

void set_view(InferContext& ctx, size_t output, Dims shape) {
  const Dims* content = ctx.content(0);
  const bool small = content && all_known(shape) && ctx.type(0).static_shape();
  ctx.set(output, shape);
  if (!small) return;
  const TensorDesc input(ctx.dtype(0), to_shape(ctx.shape(0)));
  std::vector<std::optional<std::vector<int64_t>>> contents(ctx.input_count());
  for (size_t i = 1; i < contents.size(); ++i)
    if (!ctx.has(i))
      contents[i].emplace();
    else if (ctx.content(i))
      contents[i] = numbers(*ctx.content(i));
  const Shape to = to_shape(shape);
  const int64_t count = element_count(to);
  ViewContext view{ctx.attrs, input, contents, output, to, {}, 0, ctx.output_count()};
  if (count > ValueType::kMaxContent || !ctx.op.view(view)) return;
  Dims result;
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n, at = view.offset;
    for (size_t axis = to.size(); axis-- > 0; rest /= to[axis])
      at += rest % to[axis] * view.strides[axis];
    result.push_back((*content)[at]);
  }
  ctx.set_content(output, std::move(result));
}

void set_fresh_shape(InferContext& ctx, size_t i, std::optional<DType> dtype) {
  const ValueType& type = ctx.type(i);
  const bool sized = type.ranked && type.shape.size() == 1 && type.shape[0].known() &&
                     type.shape[0].value() <= ValueType::kMaxContent;
  if (!sized) return ctx.set_unranked(0, dtype);
  Dims shape;
  for (int64_t axis = 0; axis < type.shape[0].value(); ++axis)
    shape.push_back(ctx.fresh(std::to_string(axis)));
  ctx.set(0, dtype, std::move(shape));
}

Dims common_shape(InferContext& ctx, std::optional<size_t> axis) {
  Dims shape = ctx.shape(0);
  for (size_t i = 1; i < ctx.input_count(); ++i) {
    const Dims& other = ctx.shape(i);
    ctx.check(other.size() == shape.size(), "input {} has rank {}, the first has rank {}", i,
              other.size(), shape.size());
    for (size_t k = 0; k < shape.size(); ++k)
      shape[k] = k == axis
                     ? shape[k] + other[k]
                     : same_extent(ctx, shape[k], other[k], "inputs", static_cast<int64_t>(k));
  }
  return shape;
}

Dim same_extent(InferContext& ctx, const Dim& a, const Dim& b, const char* what, int64_t axis) {
  ctx.check(!a.known() || !b.known() || a == b, "{} differ along axis {}: {} and {}", what, axis,
            a.str(), b.str());
  return a.known() ? a : b;
}

}  // namespace anymps
