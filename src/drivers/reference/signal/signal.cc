// SPDX-License-Identifier: Apache-2.0
// Fourier transforms by their definition, in double, and the windows and filter banks around them.
#include <cmath>
#include <numbers>

#include "drivers/reference/dense.h"
#include "ops/signal/signal.h"

namespace anymps {

namespace {

using std::numbers::pi;
using Number = Cx<double>;

// The sum of the definition, for one line.
std::vector<Number> transform(const std::vector<Number>& x, bool inverse) {
  const auto n = std::ssize(x);
  std::vector<Number> y(x.size());
  for (int64_t k = 0; k < n; ++k)
    for (int64_t j = 0; j < n; ++j) {
      const double turn = 2 * pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      const double c = std::cos(turn), s = inverse ? std::sin(turn) : -std::sin(turn);
      const Number& a = x[j];
      Number& b = y[k];
      b.re += a.re * c - a.im * s;
      b.im += a.re * s + a.im * c;
    }
  return y;
}

std::vector<Number> run(const SpectrumPlan& plan, std::vector<Number> data) {
  for (const SpectrumPass& pass : plan.passes) {
    std::vector<Number> next(pass.outer * pass.out * pass.inner);
    std::vector<Number> line(pass.n);
    for (int64_t i = 0; i < pass.lines(); ++i) {
      pass.read(data.data(), i, line.data());
      pass.write(next.data(), i, transform(line, pass.inverse).data());
    }
    data = std::move(next);
  }
  for (Number& value : data) value = {value.re * plan.scale, value.im * plan.scale};
  return data;
}

std::vector<Number> read_complex(const View& x) {
  std::vector<Number> data;
  if (is_complex(x.dtype)) {
    for (const WideComplex& value : read_dense<WideComplex>(x))
      data.push_back({value.real(), value.imag()});
  } else {
    for (const double value : read_dense<double>(x)) data.push_back({value, 0});
  }
  return data;
}

void write_complex(const View& y, const std::vector<Number>& data) {
  if (is_complex(y.dtype)) {
    std::vector<WideComplex> wide;
    for (const Number& value : data) wide.emplace_back(value.re, value.im);
    return write_dense(y, wide);
  }
  std::vector<double> real;
  for (const Number& value : data) real.push_back(value.re);
  write_dense(y, real);
}

// Numbers whose last axis holds one or two components.
std::vector<Number> read_components(const View& x) {
  const std::vector<double> values = read_dense<double>(x);
  const size_t step = x.shape().back();
  std::vector<Number> data;
  for (size_t i = 0; i < values.size(); i += step)
    data.push_back({values[i], step == 2 ? values[i + 1] : 0});
  return data;
}

void write_components(const View& y, const std::vector<Number>& data) {
  std::vector<double> values;
  for (const Number& value : data) {
    values.push_back(value.re);
    if (y.shape().back() == 2) values.push_back(value.im);
  }
  write_dense(y, values);
}

Shape without_last(const Shape& shape) { return Shape(shape.begin(), shape.end() - 1); }

int64_t scalar_int(const ReferenceArgs& args, size_t i, const char* attr) {
  if (!args.has(i)) return args.attrs.i(attr);
  require(args.in[i].count() == 1, "[{}] {} must be a scalar", args.op.name,
          args.op.inputs[i].name);
  return load_int(args.in[i], 0);
}

void reference_transform(const ReferenceArgs& args) {
  const View &x = args.in[0], &y = args.out[0];
  const SpectrumPlan plan = fft_plan(args.attrs, x.shape(), y.shape(), args.ints(1, "axes"));
  if (y.count() > 0) write_complex(y, run(plan, read_complex(x)));
}

}  // namespace

REFERENCE(fft) { reference_transform(args); }
REFERENCE(real_to_hermitean_fft) { reference_transform(args); }
REFERENCE(hermitean_to_real_fft) { reference_transform(args); }

REFERENCE(dft) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t axis = normalize_axis(scalar_int(args, 2, "axis"), x.rank(), "dft");
  require(axis < x.rank() - 1, "[dft] axis {} is that of the components", axis);
  if (y.count() == 0) return;
  const SpectrumPlan plan = dft_plan(args.attrs, without_last(x.shape()), without_last(y.shape()),
                                     axis, scalar_int(args, 1, "length"));
  write_components(y, run(plan, read_components(x)));
}

REFERENCE(stft) {
  const View &signal = args.in[0], &y = args.out[0];
  if (y.count() == 0) return;
  const int64_t samples = signal.extent(1), step = scalar_int(args, 1, "frame_step");
  const std::vector<Number> all =
      signal.rank() == 2 ? read_complex(signal) : read_components(signal);
  int64_t length = scalar_int(args, 3, "frame_length");
  if (length == 0) length = args.has(2) ? args.in[2].extent(0) : samples;
  const std::vector<double> window =
      args.has(2) ? read_dense<double>(args.in[2]) : std::vector<double>(length, 1.0);
  const auto width = std::ssize(window);
  std::vector<Number> frames;
  for (int64_t n = 0; n < y.extent(0); ++n)
    for (int64_t f = 0; f < y.extent(1); ++f)
      for (int64_t j = 0; j < width; ++j) {
        const int64_t at = f * step + j;
        const double weight = window[j];
        const Number value = at < samples ? all[n * samples + at] : Number{};
        frames.push_back({value.re * weight, value.im * weight});
      }
  write_components(
      y, run(SpectrumPlan::frames({y.extent(0), y.extent(1), width}, y.extent(2), length), frames));
}

namespace {

// Any real type from double, as a C++ conversion.
void write_reals(const View& y, const std::vector<double>& values) {
  dispatch<kReal>(y.dtype, [&]<typename T>() {
    size_t next = 0;
    for_each_index(y.shape(), [&](const Shape& at) {
      y.at<T>(at) = static_cast<T>(static_cast<Compute<T>>(values[next++]));
    });
  });
}

}  // namespace

REFERENCE(window) {
  const std::string& kind = args.attrs.s("kind");
  const int64_t size = args.out[0].extent(0);
  const auto span = static_cast<double>(args.attrs.b("periodic") ? size : size - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double turn = span == 0 ? pi : 2 * pi * static_cast<double>(i) / span;  // one element: 1
    if (kind == "hann") values.push_back(0.5 - 0.5 * std::cos(turn));
    if (kind == "hamming") values.push_back(25.0 / 46 - 21.0 / 46 * std::cos(turn));
    if (kind == "blackman")
      values.push_back(0.42 - 0.5 * std::cos(turn) + 0.08 * std::cos(2 * turn));
  }
  write_reals(args.out[0], values);
}

REFERENCE(mel_weight_matrix) {
  const View& y = args.out[0];
  const int64_t bins = y.extent(1), rows = y.extent(0);
  const int64_t length = scalar_int(args, 1, ""), rate = scalar_int(args, 2, "");
  require(rate > 0, "[mel_weight_matrix] sample_rate is {}", rate);
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(load_double(args.in[3], 0)), high = mel(load_double(args.in[4], 0));
  const double step = (high - low) / static_cast<double>(bins + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + low) / 2595) - 1);
    const double place =
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    require(place >= 0 && place < static_cast<double>(rows) + 1,
            "[mel_weight_matrix] frequency {} is not in a spectrum of {} at a rate of {}", hertz,
            length, rate);
    edges.push_back(static_cast<int64_t>(place));
  }
  std::vector<double> values(y.count(), 0.0);
  const auto put = [&](int64_t row, int64_t bin, double value) {
    require(row < rows, "[mel_weight_matrix] bin {} reaches beyond the spectrum", bin);
    values[row * bins + bin] = value;
  };
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t left = edges[i], centre = edges[static_cast<size_t>(i) + 1],
                  right = edges[static_cast<size_t>(i) + 2];
    if (centre == left) put(centre, i, 1);
    for (int64_t j = left; centre > left && j <= centre; ++j)
      put(j, i, static_cast<double>(j - left) / static_cast<double>(centre - left));
    for (int64_t j = centre; j < right; ++j)
      put(j, i, static_cast<double>(right - j) / static_cast<double>(right - centre));
  }
  write_reals(y, values);
}

}  // namespace anymps
