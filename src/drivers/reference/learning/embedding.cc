// SPDX-License-Identifier: Apache-2.0
// Gradients of tables of rows, and bags of rows.
#include <cmath>

#include "drivers/reference/dense.h"

namespace anymps {

namespace {

std::vector<size_t> rows_picked(const ReferenceArgs& args, const View& view, int64_t rows) {
  std::vector<size_t> all;
  for_each_index(view.shape(), [&](const Shape& at) {
    const int64_t row = load_int(view, view.offset(at));
    require(row >= 0 && row < rows, "[{}] index {} is out of range for {} rows", args.op.name, row,
            rows);
    all.push_back(row);
  });
  return all;
}

// Bags as ranges of the indices; padding is left out of what is picked.
struct Bags {
  Bags(const ReferenceArgs& args, size_t weight)
      : indices(rows_picked(args, args.in[weight + 1], args.in[weight].extent(0))),
        padding(args.attrs.i("padding_idx")) {
    const View& offsets = args.in[weight + 2];
    const auto count = std::ssize(indices);
    int64_t last = 0;
    for (int64_t i = 0; i < offsets.count(); ++i) {
      const int64_t at = load_int(offsets, i * offsets.stride(0));
      require(at >= last && at <= count && (i > 0 || at == 0),
              "[{}] offset {} is {}, must be from {} to {}", args.op.name, i, at, last,
              i > 0 ? count : 0);
      begin.push_back(last = at);
    }
    if (!args.attrs.b("include_last_offset")) begin.push_back(indices.size());
  }
  size_t count() const { return begin.size() - 1; }
  bool picks(size_t i) const { return static_cast<int64_t>(indices[i]) != padding; }
  template <typename Fn>
  void each(size_t bag, Fn fn) const {
    for (size_t i = begin[bag]; i < begin[bag + 1]; ++i)
      if (picks(i)) fn(i);
  }
  double size(size_t bag) const {
    double size = 0;
    each(bag, [&](size_t) { ++size; });
    return size;
  }
  std::vector<size_t> indices, begin;
  int64_t padding;
};

// 1 over how often each row is picked, where asked for.
std::vector<double> frequency_scale(const ReferenceArgs& args, const std::vector<size_t>& indices,
                                    size_t rows) {
  if (!args.attrs.b("scale_grad_by_freq")) return std::vector<double>(rows, 1.0);
  std::vector<double> scale(rows, 0.0);
  for (const size_t row : indices) ++scale[row];
  for (double& value : scale) value = 1 / value;
  return scale;
}

}  // namespace

REFERENCE(embedding_gradient) {
  const size_t rows = args.attrs.i("rows");
  const std::vector<size_t> indices = rows_picked(args, args.in[1], args.attrs.i("rows"));
  const std::vector<double> dy = read_dense<double>(args.in[0]),
                            scale = frequency_scale(args, indices, rows);
  const size_t width = args.out[0].extent(1);
  std::vector<double> dw(rows * width, 0.0);
  for (size_t i = 0; i < indices.size(); ++i)
    for (size_t d = 0; d < width; ++d)
      if (static_cast<int64_t>(indices[i]) != args.attrs.i("padding_idx"))
        dw[indices[i] * width + d] += dy[i * width + d] * scale[indices[i]];
  write_dense(args.out[0], dw);
}

REFERENCE(embedding_bag) {
  const Bags bags(args, 0);
  const std::vector<double> weight = read_dense<double>(args.in[0]);
  const std::vector<double> samples =
      args.has(3) ? read_dense<double>(args.in[3]) : std::vector<double>(bags.indices.size(), 1.0);
  const size_t width = args.in[0].extent(1);
  const std::string& mode = args.attrs.s("mode");
  std::vector<double> y(bags.count() * width, 0.0);
  std::vector<uint64_t> places(y.size(), static_cast<uint64_t>(-1));
  for (size_t b = 0; b < bags.count(); ++b)
    for (size_t d = 0; d < width; ++d) {
      double& out = y[b * width + d];
      uint64_t& place = places[b * width + d];
      bags.each(b, [&](size_t i) {
        const double value = weight[bags.indices[i] * width + d];
        if (mode != "max") {
          out += value * samples[i];
        } else if (place == static_cast<uint64_t>(-1) || value > out ||
                   (std::isnan(value) && !std::isnan(out))) {
          out = value;
          place = bags.indices[i];
        }
      });
      if (mode == "mean" && bags.size(b) > 0) out /= bags.size(b);
    }
  write_dense(args.out[0], y);
  if (args.out.size() > 1 && mode == "max") write_dense(args.out[1], places);
}

REFERENCE(embedding_bag_gradient) {
  const Bags bags(args, 1);
  const std::vector<double> dy = read_dense<double>(args.in[0]),
                            weight = read_dense<double>(args.in[1]);
  const size_t rows = args.in[1].extent(0), width = args.in[1].extent(1);
  const std::vector<double> samples = args.has(4) ? read_dense<double>(args.in[4])
                                                  : std::vector<double>(bags.indices.size(), 1.0),
                            scale = frequency_scale(args, bags.indices, rows);
  const std::string& mode = args.attrs.s("mode");
  std::vector<double> dw(weight.size(), 0.0), dsamples(bags.indices.size(), 0.0);
  for (size_t b = 0; b < bags.count(); ++b)
    for (size_t d = 0; d < width; ++d) {
      const double slope = dy[b * width + d];
      if (mode == "max") {
        const int64_t row = load_int(
            args.in[5], args.in[5].offset(Shape{static_cast<int64_t>(b), static_cast<int64_t>(d)}));
        require(row < static_cast<int64_t>(rows), "[{}] index {} is out of range for {} rows",
                args.op.name, row, rows);
        const size_t at = row;
        if (row >= 0) dw[at * width + d] += slope * scale[at];
        continue;
      }
      bags.each(b, [&](size_t i) {
        const size_t row = bags.indices[i];
        dw[row * width + d] +=
            slope * scale[row] * (mode == "mean" ? 1 / bags.size(b) : samples[i]);
        dsamples[i] += slope * weight[row * width + d];
      });
    }
  write_dense(args.out[0], dw);
  if (args.out.size() > 1 && args.has(4)) write_dense(args.out[1], dsamples);
}

}  // namespace anymps
