// SPDX-License-Identifier: Apache-2.0
// What the plain kernels of recurrent layers and of their gradients know of a layer: its extents,
// which inputs it has, and where a sequence's parts lie. Both take x, w, r, b, seq_lens, … first.
#pragma once

#include <string>
#include <vector>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/kernel.h"
#include "ops/layers/recurrent.h"

namespace anymps::cpu {

enum class RecurrentKind { kLstm, kGru, kRnn };

class RecurrentLayer : public Kernel, protected RecurrentExtents {
 protected:
  using Kind = RecurrentKind;

  RecurrentLayer(const KernelRequest& request, Kind kind)
      : RecurrentExtents(recurrent_extents(request.attrs, request.in(0).shape, gates_of(kind))),
        kind_(kind),
        outputs_(request.outputs.size()),
        op_(request.op->name),
        activations_(
            cell_activations(request.attrs, directions, usual_activations(request.attrs, gates))),
        clip_(request.attrs.f("clip")) {
    for (size_t i = 0; i < request.inputs.size(); ++i) has_.push_back(request.has(i));
    if (has(4)) wide_lengths_ = request.in(4).dtype == DType::kI64;
    if (kind == Kind::kGru) linear_ = request.attrs.b("linear_before_reset");
    if (kind == Kind::kLstm) input_forget_ = request.attrs.b("input_forget");
  }

  bool has(size_t i) const { return i < has_.size() && has_[i]; }
  int64_t length_of(const KernelArgs& args, int64_t n) const {
    if (!has(4)) return steps;
    const int64_t length = wide_lengths_ ? static_cast<const int64_t*>(args.inputs[4])[n]
                                         : static_cast<const int32_t*>(args.inputs[4])[n];
    require(length >= 0 && length <= steps, "[{}] seq_lens has the entry {}, must be 0 to {}", op_,
            length, steps);
    return length;
  }
  template <typename T>
  RecurrentActivations<T> act(int64_t d) const {
    const auto functions = std::ssize(activations_) / directions;
    return {activations_.data() + d * functions, static_cast<T>(clip_)};
  }
  // A unit of direction d, whose z lie at z[gate * hidden]; the peepholes are put into `peephole`.
  template <typename T>
  LstmUnit<T> lstm_unit(const KernelArgs& args, int64_t d, int64_t u, const T* z, const T* c,
                        T (&peephole)[3]) const {
    LstmUnit<T> unit{
        .c = c[u], .peephole = has(7) ? peephole : nullptr, .input_forget = input_forget_};
    for (int64_t gate = 0; gate < 4; ++gate) unit.z[gate] = z[gate * hidden + u];
    for (int64_t gate = 0; gate < 3 && has(7); ++gate)
      peephole[gate] = static_cast<const T*>(args.inputs[7])[(d * 3 + gate) * hidden + u];
    return unit;
  }
  template <typename T>
  GruUnit<T> gru_unit(int64_t u, const T* z, const T* h) const {
    GruUnit<T> unit{.h = h[u], .linear_before_reset = linear_};
    for (int64_t gate = 0; gate < 3; ++gate) unit.z[gate] = z[gate * hidden + u];
    return unit;
  }

  Kind kind_;
  size_t outputs_;
  bool linear_ = false;  // gru: linear_before_reset

 private:
  static int64_t gates_of(Kind kind) {
    return kind == Kind::kLstm ? 4 : kind == Kind::kGru ? 3 : 1;
  }

  std::string op_;
  std::vector<bool> has_;
  bool wide_lengths_ = false, input_forget_ = false;
  std::vector<CellActivation> activations_;  // of each direction
  double clip_;
};

// The kernel K<T> for floats or doubles; halves go through f32.
template <template <typename> class K, RecurrentKind kind>
KernelPtr make_recurrent(const KernelRequest& request, std::string& why) {
  const DType dtype = request.in(0).dtype;
  if (is_half(dtype)) return widened(request, make_recurrent<K, kind>, why);
  if (!dense(request, why)) return nullptr;
  if (dtype == DType::kF64) return std::make_shared<K<double>>(request, kind);
  return std::make_shared<K<float>>(request, kind);
}

}  // namespace anymps::cpu
