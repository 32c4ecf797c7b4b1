// SPDX-License-Identifier: Apache-2.0
// The gradients of linear attention by their definition: the states are kept on the way forward,
// and each place is undone on the way back.
#include <cmath>

#include "drivers/reference/dense.h"

namespace anymps {

namespace {

using Vector = std::vector<double>;

// A state of one head at one place: decayed, and with the place's key and value.
struct Place {
  Vector decayed, after;  // [depth, width]
  Vector known, value;    // what the state gave for the key, and what was added
};

}  // namespace

REFERENCE(linear_attention_gradient) {
  using Index = size_t;
  const Vector q = read_dense<double>(args.in[0]), k = read_dense<double>(args.in[1]),
               v = read_dense<double>(args.in[2]);
  const auto batches = static_cast<Index>(args.in[0].extent(0)),
             length = static_cast<Index>(args.in[0].extent(1));
  const auto queries = static_cast<Index>(args.attrs.i("query_heads")),
             heads = static_cast<Index>(args.attrs.i("heads"));
  const Index depth = static_cast<Index>(args.in[1].extent(2)) / heads,
              width = static_cast<Index>(args.in[2].extent(2)) / heads, shared = queries / heads;
  const double asked = args.attrs.f("scale");
  const double scale = asked != 0 ? asked : 1 / std::sqrt(static_cast<double>(depth));
  const auto count = static_cast<int64_t>(batches * heads * depth * width);
  const Vector past = read_or_zero(args, 3, count);
  const Vector decay = read_or_zero(args, 4, 0), beta = read_or_zero(args, 5, 0);
  const Vector dy = read_or_zero(args, 6, static_cast<int64_t>(batches * length * queries * width));
  Vector dstate = read_or_zero(args, 7, count);  // becomes dpast
  const Index decays = args.has(4) ? static_cast<Index>(args.in[4].extent(2)) : 0,
              betas = args.has(5) ? static_cast<Index>(args.in[5].extent(2)) : 0;
  Vector dq(q.size()), dk(k.size()), dv(v.size()), ddecay(static_cast<Index>(args.out[4].count())),
      dbeta(static_cast<Index>(args.out[5].count()));

  for (Index b = 0; b < batches; ++b)
    for (Index h = 0; h < heads; ++h) {
      const Index first = (b * heads + h) * depth * width;
      const auto key = [&](Index t, Index d) { return ((b * length + t) * heads + h) * depth + d; };
      const auto value = [&](Index t, Index m) {
        return ((b * length + t) * heads + h) * width + m;
      };
      const auto decay_at = [&](Index t, Index d) {
        return (b * length + t) * decays + (decays == heads ? h : h * depth + d);
      };
      const auto beta_at = [&](Index t) {
        return (b * length + t) * betas + (betas == heads ? h : 0);
      };
      Vector state(past.begin() + static_cast<std::ptrdiff_t>(first),
                   past.begin() + static_cast<std::ptrdiff_t>(first + depth * width));
      std::vector<Place> places(length);
      for (Index t = 0; t < length; ++t) {
        Place& place = places[t];
        for (Index d = 0; d < depth && decays > 0; ++d)
          for (Index m = 0; m < width; ++m) state[d * width + m] *= std::exp(decay[decay_at(t, d)]);
        place.decayed = state;
        place.known.assign(width, 0);
        place.value.assign(width, 0);
        for (Index m = 0; m < width; ++m) {
          for (Index d = 0; d < depth; ++d) place.known[m] += state[d * width + m] * k[key(t, d)];
          place.value[m] =
              betas > 0 ? beta[beta_at(t)] * (v[value(t, m)] - place.known[m]) : v[value(t, m)];
        }
        for (Index d = 0; d < depth; ++d)
          for (Index m = 0; m < width; ++m) state[d * width + m] += k[key(t, d)] * place.value[m];
        place.after = state;
      }
      double* ds = dstate.data() + first;
      for (Index t = length; t-- > 0;) {
        const Place& place = places[t];
        for (Index n = h * shared; n < (h + 1) * shared; ++n)
          for (Index d = 0; d < depth; ++d)
            for (Index m = 0; m < width; ++m) {
              const Index at = ((b * length + t) * queries + n) * depth + d;
              const double g = scale * dy[((b * length + t) * queries + n) * width + m];
              dq[at] += g * place.after[d * width + m];
              ds[d * width + m] += g * q[at];
            }
        for (Index m = 0; m < width; ++m) {
          double dvalue = 0;
          for (Index d = 0; d < depth; ++d) {
            dvalue += ds[d * width + m] * k[key(t, d)];
            dk[key(t, d)] += ds[d * width + m] * place.value[m];
          }
          if (betas == 0) {
            dv[value(t, m)] += dvalue;
            continue;
          }
          const double rate = beta[beta_at(t)];
          dbeta[beta_at(t)] += dvalue * (v[value(t, m)] - place.known[m]);
          dv[value(t, m)] += dvalue * rate;
          for (Index d = 0; d < depth; ++d) {
            dk[key(t, d)] -= dvalue * rate * place.decayed[d * width + m];
            ds[d * width + m] -= dvalue * rate * k[key(t, d)];
          }
        }
        for (Index d = 0; d < depth && decays > 0; ++d)
          for (Index m = 0; m < width; ++m) {
            ddecay[decay_at(t, d)] += ds[d * width + m] * place.decayed[d * width + m];
            ds[d * width + m] *= std::exp(decay[decay_at(t, d)]);
          }
      }
    }
  write_dense(args.out[0], dq);
  write_dense(args.out[1], dk);
  write_dense(args.out[2], dv);
  write_dense(args.out[3], dstate);
  write_dense(args.out[4], ddecay);
  write_dense(args.out[5], dbeta);
}

}  // namespace anymps
