// SPDX-License-Identifier: Apache-2.0
// What the reference kernels of recurrent layers and of their gradients read: both take x, w, r, b
// and seq_lens first, and the same attributes. What cells do with it is in semantics/recurrent.h.
#pragma once

#include <algorithm>
#include <vector>

#include "drivers/reference/dense.h"
#include "ops/layers/recurrent.h"
#include "semantics/quantization_rules.h"
#include "semantics/recurrent.h"

namespace anymps {

using RecurrentVector = std::vector<double>;

struct RecurrentInputs : RecurrentExtents {
  RecurrentInputs(const ReferenceArgs& args, int64_t gate_count)
      : RecurrentExtents(recurrent_extents(args.attrs, args.in[0].shape(), gate_count)),
        args(args),
        parts(recurrent_parts(args.attrs, gates)),
        activations(cell_activations(args.attrs, directions, usual_activations(args.attrs, gates))),
        x(read_dense<double>(args.in[0])),
        w(read_dense<double>(args.in[1])),
        r(read_dense<double>(args.in[2])),
        b(read_or_zero(args, 3, directions * 2 * gates * hidden)) {}

  RecurrentActivations<double> act(int64_t d) const {
    const auto functions = std::ssize(activations) / directions;
    return {activations.data() + d * functions, args.attrs.f("clip")};
  }
  // A row of w or r for one gate and unit, and its bias; `half` 1: that of r.
  size_t row(int64_t d, size_t gate, int64_t unit) const {
    return (d * gates + order[gate]) * hidden + unit;
  }
  int64_t reserve_at(int64_t d, int64_t n, int64_t place) const {
    return (row_of(n, place) * directions + d) * parts.count() * hidden;
  }
  size_t bias(int64_t d, int64_t half, size_t gate, int64_t unit) const {
    return row(2 * d + half, gate, unit);
  }
  // What comes from the inputs at x_at, or from a state, with its bias.
  double from_x(int64_t d, size_t gate, int64_t unit, int64_t first) const {
    return dot(x.data() + first, w.data() + row(d, gate, unit) * static_cast<size_t>(width),
               width) +
           b[bias(d, 0, gate, unit)];
  }
  double from_h(int64_t d, size_t gate, int64_t unit, const RecurrentVector& h) const {
    return dot(h.data(), r.data() + row(d, gate, unit) * static_cast<size_t>(hidden), hidden) +
           b[bias(d, 1, gate, unit)];
  }
  int64_t states() const { return directions * batch * hidden; }
  int64_t length_of(int64_t n) const {
    if (!args.has(4)) return steps;
    const int64_t length = load_int(args.in[4], n * args.in[4].stride(0));
    require(length >= 0 && length <= steps, "[{}] seq_lens has the entry {}, must be 0 to {}",
            args.op.name, length, steps);
    return length;
  }

  // lstm with dynamic_bytes: as the products see it.
  void round_x() {
    float low = 0, high = 0;
    const auto each = [&](const auto& fn) {
      for (int64_t n = 0; n < batch; ++n)
        for (int64_t t = 0; t < length_of(n); ++t)
          for (int64_t i = 0; i < width; ++i) fn(x[x_at(n, t) + i]);
    };
    each([&](double v) {
      low = std::min(low, static_cast<float>(v));
      high = std::max(high, static_cast<float>(v));
    });
    const DynamicSteps of_x(low, high);
    each([&](double& v) { v = of_x.rounded(static_cast<float>(v)); });
  }

  const ReferenceArgs& args;
  RecurrentParts parts;
  std::vector<CellActivation> activations;  // of each direction
  RecurrentVector x, w, r, b;

 private:
  static double dot(const double* a, const double* b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
    return sum;
  }
};

// A state of an lstm with dynamic_bytes, as the products see it.
inline void round_state(RecurrentVector& h) {
  float low = 0, high = 0;
  for (const double v : h) {
    low = std::min(low, static_cast<float>(v));
    high = std::max(high, static_cast<float>(v));
  }
  const DynamicSteps steps(low, high);
  for (double& v : h) v = steps.rounded(static_cast<float>(v));
}

// The peepholes of an lstm, input 7 of the layer and of its gradient; none where it is absent.
struct Peepholes {
  explicit Peepholes(const RecurrentInputs& layer)
      : hidden(layer.hidden),
        all(layer.args.has(7) ? read_dense<double>(layer.args.in[7]) : RecurrentVector()) {}

  size_t at(int64_t d, size_t gate, int64_t unit) const {
    return (d * 3 + static_cast<int64_t>(gate)) * hidden + unit;
  }
  // Those of one unit, put into `to`; null where there are none.
  const double* of(int64_t d, int64_t unit, double (&to)[3]) const {
    for (size_t gate = 0; gate < 3 && !all.empty(); ++gate) to[gate] = all[at(d, gate, unit)];
    return all.empty() ? nullptr : to;
  }

  int64_t hidden;
  RecurrentVector all;
};

}  // namespace anymps
