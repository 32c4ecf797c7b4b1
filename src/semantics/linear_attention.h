// SPDX-License-Identifier: Apache-2.0
// Linear attention, one head at a time, forward and back: the state of a head, [depth, width],
// decays, is asked what it knows of a key, gets the key with the (corrected) value, and is read by
// the queries that share the head. Kernels differ in T and in which heads run at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "semantics/vectors.h"

namespace anymps {

// Dense tensors; those that are absent are null.
template <typename T>
struct LinearAttentionInputs {
  const T *q = nullptr, *k = nullptr, *v = nullptr;
  const T *past = nullptr, *decay = nullptr, *beta = nullptr;
};
template <typename T>
struct LinearAttentionGradients {
  const T *dy = nullptr, *dstate = nullptr;
  // Heads may share elements of the last two, which must be 0 at first.
  T *dq = nullptr, *dk = nullptr, *dv = nullptr, *dpast = nullptr, *ddecay = nullptr,
    *dbeta = nullptr;
};

struct LinearAttention {
  int64_t batches = 1, length = 1, queries = 1, heads = 1, depth = 1, width = 1;
  int64_t decays = 0, betas = 0;  // for each place
  double scale = 1;

  int64_t size() const { return depth * width; }  // of a state
  // Elements of scratch memory for a head.
  int64_t forward_scratch() const { return 2 * width; }
  int64_t gradient_scratch() const { return length * (depth + 2) * width + width; }

  // Head i of batches * heads; `state` becomes the one after the last place.
  template <typename T>
  void forward(const LinearAttentionInputs<T>& in, int64_t i, T* state, T* y, T* scratch) const {
    const int64_t h = i % heads;
    T *known = scratch, *value = scratch + width;
    start(in.past, i, state);
    for (int64_t t = 0; t < length; ++t) {
      const int64_t place = i / heads * length + t;
      decay(in, place, h, state);
      correct(in, place, h, state, known, value);
      add(key(in, place, h), value, state);
      for (int64_t n = h * shared(); n < (h + 1) * shared(); ++n) {
        const T* query = in.q + (place * queries + n) * depth;
        T* to = y + (place * queries + n) * width;
        std::fill_n(to, width, T(0));
        for (int64_t d = 0; d < depth; ++d)
          add_scaled(to, static_cast<T>(scale) * query[d], state + d * width, width);
      }
    }
  }

  // The gradients of head i: a walk forward that keeps the states, and then one back.
  template <typename T>
  void gradient(const LinearAttentionInputs<T>& in, int64_t i,
                const LinearAttentionGradients<T>& out, T* scratch) const {
    const int64_t h = i % heads, first = i / heads * length;
    T *known = scratch + length * size(), *values = known + length * width,
      *spare = values + length * width;
    const auto state = [&](int64_t t) { return scratch + t * size(); };
    for (int64_t t = 0; t < length; ++t) {
      if (t == 0) {
        start(in.past, i, state(0));
      } else {
        std::copy_n(state(t - 1), size(), state(t));
        add(key(in, first + t - 1, h), values + (t - 1) * width, state(t));
      }
      decay(in, first + t, h, state(t));
      correct(in, first + t, h, state(t), known + t * width, values + t * width);
    }
    T* ds = out.dpast + i * size();
    start(out.dstate, i, ds);
    for (int64_t t = length; t-- > 0;)
      back(in, first + t, h, state(t), known + t * width, values + t * width, out, ds, spare);
  }

 private:
  int64_t shared() const { return queries / heads; }
  int64_t decay_at(int64_t place, int64_t h, int64_t d) const {
    return place * decays + (decays == heads ? h : h * depth + d);
  }
  int64_t beta_at(int64_t place, int64_t h) const {
    return place * betas + (betas == heads ? h : 0);
  }
  template <typename T>
  const T* key(const LinearAttentionInputs<T>& in, int64_t place, int64_t h) const {
    return in.k + (place * heads + h) * depth;
  }
  template <typename T>
  void start(const T* given, int64_t i, T* state) const {
    given ? std::copy_n(given + i * size(), size(), state) : std::fill_n(state, size(), T(0));
  }
  template <typename T>
  void decay(const LinearAttentionInputs<T>& in, int64_t place, int64_t h, T* state) const {
    for (int64_t d = 0; d < depth && decays > 0; ++d) {
      const T share = std::exp(in.decay[decay_at(place, h, d)]);
      for (int64_t m = 0; m < width; ++m) state[d * width + m] *= share;
    }
  }
  // The value that is added at a place, and what the state gave for its key.
  template <typename T>
  void correct(const LinearAttentionInputs<T>& in, int64_t place, int64_t h, const T* state,
               T* known, T* value) const {
    const T* v = in.v + (place * heads + h) * width;
    if (betas == 0) {
      std::copy_n(v, width, value);
      return;
    }
    const T rate = in.beta[beta_at(place, h)];
    std::fill_n(known, width, T(0));
    for (int64_t d = 0; d < depth; ++d)
      add_scaled(known, key(in, place, h)[d], state + d * width, width);
    for (int64_t m = 0; m < width; ++m) value[m] = rate * (v[m] - known[m]);
  }
  template <typename T>
  void add(const T* key, const T* value, T* state) const {
    for (int64_t d = 0; d < depth; ++d) add_scaled(state + d * width, key[d], value, width);
  }

  // `ds`: the gradient of the state after the place, which becomes that of the state before it.
  template <typename T>
  void back(const LinearAttentionInputs<T>& in, int64_t place, int64_t h, const T* state,
            const T* known, const T* value, const LinearAttentionGradients<T>& out, T* ds,
            T* spare) const {
    const int64_t at = place * heads + h;
    const T *k = key(in, place, h), *v = in.v + at * width;
    T *dk = out.dk + at * depth, *dv = out.dv + at * width;
    for (int64_t n = h * shared(); n < (h + 1) * shared(); ++n) {
      const T* q = in.q + (place * queries + n) * depth;
      T* dq = out.dq + (place * queries + n) * depth;
      std::fill_n(dq, depth, T(0));
      if (!out.dy) continue;
      const T* dy = out.dy + (place * queries + n) * width;
      for (int64_t d = 0; d < depth; ++d) {
        std::copy_n(state + d * width, width, spare);  // the row with the place's key and value
        add_scaled(spare, k[d], value, width);
        dq[d] = static_cast<T>(scale) * dot(spare, dy, width);
        add_scaled(ds + d * width, static_cast<T>(scale) * q[d], dy, width);
      }
    }
    T* dvalue = spare;
    std::fill_n(dvalue, width, T(0));
    for (int64_t d = 0; d < depth; ++d) {
      add_scaled(dvalue, k[d], ds + d * width, width);
      dk[d] = dot(ds + d * width, value, width);
    }
    const T rate = betas > 0 ? in.beta[beta_at(place, h)] : T(1);
    for (int64_t m = 0; m < width; ++m) dv[m] = rate * dvalue[m];
    if (betas > 0) {
      T& dbeta = out.dbeta[beta_at(place, h)];
      for (int64_t m = 0; m < width; ++m) dbeta += dvalue[m] * (v[m] - known[m]);
      for (int64_t d = 0; d < depth; ++d) {
        dk[d] -= dot(dv, state + d * width, width);
        add_scaled(ds + d * width, -k[d], dv, width);
      }
    }
    for (int64_t d = 0; d < depth && decays > 0; ++d)
      out.ddecay[decay_at(place, h, d)] += dot(ds + d * width, state + d * width, width);
    decay(in, place, h, ds);
  }
};

}  // namespace anymps
