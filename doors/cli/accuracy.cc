// SPDX-License-Identifier: Apache-2.0
#include "accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace anymps::cli {

namespace {

bool is_real(amps::DType dtype) {
  return dtype == amps::DType::f32 || dtype == amps::DType::f64 || dtype == amps::DType::f16 ||
         dtype == amps::DType::bf16;
}

int64_t top_of(const Array& array, int64_t first, int64_t count) {
  int64_t top = first;
  for (int64_t i = first; i < first + count; ++i)
    if (element(array, i) > element(array, top)) top = i;
  return top;
}

}  // namespace

double Difference::part(double of, double whole) {
  if (of == 0) return 0;
  return whole == 0 ? INFINITY : of / whole;
}

double Difference::rms() const { return std::sqrt(part(errors_, squares_)); }
double Difference::snr_db() const { return rms() == 0 ? INFINITY : -20 * std::log10(rms()); }

double Difference::cosine() const {
  if (errors_ == 0) return 1;
  return part(products_, std::sqrt(squares_) * std::sqrt(other_squares_));
}

void Difference::add(const Array& expected, const Array& got) {
  if (expected.shape != got.shape || expected.dtype != got.dtype) {
    same_shape = false;
    return;
  }
  const size_t count = expected.count();
  if (!is_real(expected.dtype)) {
    const size_t size = count ? expected.data.size() / count : 0;
    exact += static_cast<int64_t>(count);
    for (size_t i = 0; i < count; ++i)
      same += expected.strings.empty()
                  ? std::equal(&expected.data[i * size], &expected.data[i * size] + size,
                               &got.data[i * size])
                  : expected.strings[i] == got.strings[i];
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const double a = element(expected, i), b = element(got, i);
    if (!std::isfinite(a) && (a == b || (std::isnan(a) && std::isnan(b)))) continue;
    const double error = std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : INFINITY;
    worst_ = std::max(worst_, error);
    errors_ += error * error;
    if (!std::isfinite(error)) continue;
    largest_ = std::max(largest_, std::abs(a));
    squares_ += a * a;
    other_squares_ += b * b;
    products_ += a * b;
  }
  if (expected.shape.size() == 2 && expected.shape[1] > 1) add_rows(expected, got);
}

void Difference::add_rows(const Array& expected, const Array& got) {
  const int64_t classes = expected.shape[1];
  rows += expected.shape[0];
  for (int64_t row = 0; row < expected.shape[0]; ++row)
    same_top += top_of(expected, row * classes, classes) == top_of(got, row * classes, classes);
}

Differences compare(const Session& expected, const Session& got, ModelOptions options,
                    int64_t samples) {
  options.random_inputs = true;
  Differences differences;
  const std::vector<amps::Value> outputs = expected.executable.outputs();
  for (int64_t sample = 0; sample < samples; ++sample, ++options.seed) {
    std::vector<amps::Tensor> right, others;
    expected.run(expected.feeds(options), right);
    got.run(got.feeds(options), others);
    for (size_t i = 0; i < right.size(); ++i) {
      const std::vector<Part> parts = expected.parts(outputs[i].name(), right[i]);
      const std::vector<Part> other = got.parts(outputs[i].name(), others[i]);
      for (size_t k = 0; k < parts.size(); ++k) {
        Difference& difference = differences[parts[k].name];
        if (k < other.size())
          difference.add(parts[k].array, other[k].array);
        else
          difference.same_shape = false;
      }
    }
  }
  return differences;
}

nlohmann::ordered_json to_json(const Differences& differences) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, d] : differences) {
    nlohmann::ordered_json& output = json[name];
    output["same_shape"] = d.same_shape;
    if (d.exact) {
      output.update({{"elements", d.exact}, {"same", d.same}});
      continue;
    }
    // JSON has no infinity: null where nothing differs.
    output.update({{"rms", d.rms()}, {"max", d.max()}, {"snr_db", d.snr_db()}});
    output["cosine"] = d.cosine();
    if (d.rows) output.update({{"rows", d.rows}, {"same_top", d.same_top}});
  }
  return json;
}

void print(const Differences& differences) {
  for (const auto& [name, d] : differences) {
    fmt::print("  {}: ", shown(name));
    if (d.exact)
      fmt::print("{} of {} elements are the same", d.same, d.exact);
    else
      fmt::print("error rms {:.3g} %, max {:.3g} % of the largest; SNR {:.1f} dB; cosine {:.6f}",
                 d.rms() * 100, d.max() * 100, d.snr_db(), d.cosine());
    if (d.rows) fmt::print("; the same first class in {} of {} rows", d.same_top, d.rows);
    fmt::print("{}\n", d.same_shape ? "" : "; of another shape in some runs");
  }
}

}  // namespace anymps::cli
