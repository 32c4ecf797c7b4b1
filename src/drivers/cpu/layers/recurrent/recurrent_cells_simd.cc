// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/isa.h"
#include "drivers/cpu/layers/recurrent/recurrent_cells.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/layers/recurrent/recurrent_cells_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/math-inl.h"
#include "drivers/cpu/common/runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

using runs::map;

HWY_INLINE V one() { return hn::Set(Tag(), 1.0f); }
HWY_INLINE V sum(V a, V b, V c) { return hn::Add(hn::Add(a, b), c); }
HWY_INLINE V sigmoid(V x) { return math::sigmoid(Tag(), x); }
HWY_INLINE V tanh(V x) { return math::tanh(Tag(), x); }
// How the functions move, by what they gave.
HWY_INLINE V sigmoid_slope(V y) { return hn::Mul(y, hn::Sub(one(), y)); }
HWY_INLINE V tanh_slope(V y) { return hn::NegMulAdd(y, y, one()); }

void lstm_cells_here(const CellRow<float>& r, int64_t units) {
  map<13, 6, float>(
      units,
      {r.z[0], r.h[0], r.bias[0], r.z[1], r.h[1], r.bias[1], r.z[2], r.h[2], r.bias[2], r.z[3],
       r.h[3], r.bias[3], r.c},
      {r.y[0], r.y[1], r.y[2], r.y[3], r.c, r.state}, [](const V* v, V* to) HWY_ATTR {
        const V in = sigmoid(sum(v[0], v[1], v[2])), out = sigmoid(sum(v[3], v[4], v[5]));
        const V forget = sigmoid(sum(v[6], v[7], v[8])), cell = tanh(sum(v[9], v[10], v[11]));
        const V c = hn::MulAdd(forget, v[12], hn::Mul(in, cell));
        to[0] = in;
        to[1] = out;
        to[2] = forget;
        to[3] = cell;
        to[4] = c;
        to[5] = hn::Mul(out, tanh(c));
      });
}

void lstm_back_here(const CellBack<float>& b, int64_t units) {
  map<7, 5, float>(units, {b.y[0], b.y[1], b.y[2], b.y[3], b.c, b.dh, b.dc},
                   {b.dz[0], b.dz[1], b.dz[2], b.dz[3], b.dc}, [](const V* v, V* to) HWY_ATTR {
                     const V in = v[0], out = v[1], forget = v[2], cell = v[3];
                     const V state = tanh(hn::MulAdd(forget, v[4], hn::Mul(in, cell)));
                     const V dc = hn::MulAdd(hn::Mul(v[5], out), tanh_slope(state), v[6]);
                     to[0] = hn::Mul(hn::Mul(dc, cell), sigmoid_slope(in));
                     to[1] = hn::Mul(hn::Mul(v[5], state), sigmoid_slope(out));
                     to[2] = hn::Mul(hn::Mul(dc, v[4]), sigmoid_slope(forget));
                     to[3] = hn::Mul(hn::Mul(dc, in), tanh_slope(cell));
                     to[4] = hn::Mul(dc, forget);
                   });
}

using Gru = GruUnit<float>;

void gru_reset_here(const CellRow<float>& r, float* scaled, int64_t units) {
  constexpr int kGate = Gru::kReset;
  if (!scaled)
    return map<3, 1, float>(units, {r.z[kGate], r.h[kGate], r.bias[kGate]}, {r.y[kGate]},
                            [](const V* v, V* to)
                                HWY_ATTR { to[0] = sigmoid(sum(v[0], v[1], v[2])); });
  map<4, 2, float>(units, {r.z[kGate], r.h[kGate], r.bias[kGate], r.state}, {r.y[kGate], scaled},
                   [](const V* v, V* to) HWY_ATTR {
                     to[0] = sigmoid(sum(v[0], v[1], v[2]));
                     to[1] = hn::Mul(to[0], v[3]);
                   });
}

void gru_update_here(const CellRow<float>& r, bool linear, int64_t units) {
  constexpr int kZ = Gru::kUpdate, kN = Gru::kNew;
  map<9, 4, float>(
      units,
      {r.z[kZ], r.h[kZ], r.bias[kZ], r.z[kN], r.h[kN], r.bias[kN], r.new_bias, r.y[Gru::kReset],
       r.state},
      {r.y[kZ], r.y[kN], r.recurrent, r.state}, [linear](const V* v, V* to) HWY_ATTR {
        const V z = sigmoid(sum(v[0], v[1], v[2])), recurrent = hn::Add(v[4], v[6]);
        const V from_x = hn::Add(v[3], v[5]);
        const V n = tanh(linear ? hn::MulAdd(v[7], recurrent, from_x) : hn::Add(recurrent, from_x));
        to[0] = z;
        to[1] = n;
        to[2] = recurrent;
        to[3] = hn::MulAdd(hn::Sub(one(), z), n, hn::Mul(z, v[8]));
      });
}

void gru_update_back_here(const CellBack<float>& b, bool linear, int64_t units) {
  constexpr int kZ = Gru::kUpdate, kN = Gru::kNew;
  map<5, 4, float>(units, {b.y[kZ], b.y[Gru::kReset], b.y[kN], b.h, b.dh},
                   {b.dz[kZ], b.dz[kN], b.dnew, b.dh}, [linear](const V* v, V* to) HWY_ATTR {
                     const V z = v[0], n = v[2], dh = v[4];
                     to[0] = hn::Mul(hn::Mul(dh, hn::Sub(v[3], n)), sigmoid_slope(z));
                     to[1] = hn::Mul(hn::Mul(dh, hn::Sub(one(), z)), tanh_slope(n));
                     to[2] = linear ? hn::Mul(to[1], v[1]) : to[1];
                     to[3] = hn::Mul(dh, z);
                   });
}

void gru_reset_back_here(const CellBack<float>& b, const float* dscaled, int64_t units) {
  constexpr int kR = Gru::kReset;
  if (!dscaled)
    return map<3, 1, float>(units, {b.y[kR], b.dz[Gru::kNew], b.recurrent}, {b.dz[kR]},
                            [](const V* v, V* to) HWY_ATTR {
                              to[0] = hn::Mul(hn::Mul(v[1], v[2]), sigmoid_slope(v[0]));
                            });
  map<4, 2, float>(units, {b.y[kR], dscaled, b.h, b.dh}, {b.dz[kR], b.dh},
                   [](const V* v, V* to) HWY_ATTR {
                     to[0] = hn::Mul(hn::Mul(v[1], v[2]), sigmoid_slope(v[0]));
                     to[1] = hn::MulAdd(v[1], v[0], v[3]);
                   });
}

void rnn_cells_here(const CellRow<float>& r, CellActivation::Kind activation, int64_t units) {
  const auto run = [&](const auto& f) HWY_ATTR {
    map<3, 2, float>(units, {r.z[0], r.h[0], r.bias[0]}, {r.y[0], r.state},
                     [&](const V* v, V* to) HWY_ATTR { to[0] = to[1] = f(sum(v[0], v[1], v[2])); });
  };
  if (activation == CellActivation::Kind::kSigmoid)
    return run([](V x) HWY_ATTR { return sigmoid(x); });
  // Max gives its second argument, x, if that is NaN.
  if (activation == CellActivation::Kind::kRelu)
    return run([](V x) HWY_ATTR { return hn::Max(hn::Zero(Tag()), x); });
  run([](V x) HWY_ATTR { return tanh(x); });
}

void rnn_back_here(const CellBack<float>& b, CellActivation::Kind activation, int64_t units) {
  const auto run = [&](const auto& slope) HWY_ATTR {
    map<2, 1, float>(units, {b.y[0], b.dh}, {b.dz[0]},
                     [&](const V* v, V* to) HWY_ATTR { to[0] = hn::Mul(v[1], slope(v[0])); });
  };
  if (activation == CellActivation::Kind::kSigmoid)
    return run([](V y) HWY_ATTR { return sigmoid_slope(y); });
  if (activation == CellActivation::Kind::kRelu)
    return run([](V y) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(y, hn::Zero(Tag())), one()); });
  run([](V y) HWY_ATTR { return tanh_slope(y); });
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(lstm_cells_here);
HWY_EXPORT(lstm_back_here);
HWY_EXPORT(gru_reset_here);
HWY_EXPORT(gru_update_here);
HWY_EXPORT(gru_update_back_here);
HWY_EXPORT(gru_reset_back_here);
HWY_EXPORT(rnn_cells_here);
HWY_EXPORT(rnn_back_here);

void lstm_cells(const CellRow<float>& r, int64_t units) {
  HWY_DYNAMIC_DISPATCH(lstm_cells_here)(r, units);
}
void lstm_back(const CellBack<float>& b, int64_t units) {
  HWY_DYNAMIC_DISPATCH(lstm_back_here)(b, units);
}
void gru_reset(const CellRow<float>& r, float* scaled, int64_t units) {
  HWY_DYNAMIC_DISPATCH(gru_reset_here)(r, scaled, units);
}
void gru_update(const CellRow<float>& r, bool linear, int64_t units) {
  HWY_DYNAMIC_DISPATCH(gru_update_here)(r, linear, units);
}
void gru_update_back(const CellBack<float>& b, bool linear, int64_t units) {
  HWY_DYNAMIC_DISPATCH(gru_update_back_here)(b, linear, units);
}
void gru_reset_back(const CellBack<float>& b, const float* dscaled, int64_t units) {
  HWY_DYNAMIC_DISPATCH(gru_reset_back_here)(b, dscaled, units);
}
void rnn_cells(const CellRow<float>& r, CellActivation::Kind activation, int64_t units) {
  HWY_DYNAMIC_DISPATCH(rnn_cells_here)(r, activation, units);
}
void rnn_back(const CellBack<float>& b, CellActivation::Kind activation, int64_t units) {
  HWY_DYNAMIC_DISPATCH(rnn_back_here)(b, activation, units);
}

}  // namespace anymps::cpu
#endif
