// SPDX-License-Identifier: Apache-2.0
// Recurrent layers that oneDNN's kernels refuse: weights that change from run to run and a reserve,
// as in training, sequences of several lengths, peepholes, clipping, other activations, f64.
#include "drivers/cpu/layers/recurrent/recurrent_layer.h"

namespace anymps::cpu {

namespace {

template <typename T>
class RecurrentSteps final : public RecurrentLayer<T> {
  using Base = RecurrentLayer<T>;

 public:
  RecurrentSteps(const KernelRequest& request, RecurrentKind kind)
      : Base(request, kind, request.outputs.size() > request.op->main_outputs()) {
    if (!this->keeps_)
      records_ = this->plan_.template take<T>(this->steps * this->batch * this->directions *
                                              this->record_);
  }

  size_t scratch_bytes() const override { return this->plan_.bytes(); }

  void run(const KernelArgs& args) const override {
    this->read_lengths(args);
    const auto output = [&](size_t i) {
      return i < this->outputs_ ? static_cast<T*>(args.outputs[i]) : nullptr;
    };
    const size_t reserve = this->kind_ == RecurrentKind::kLstm ? 3 : 2;
    T *y = output(0), *records = this->keeps_ ? output(reserve) : this->at(args, records_);
    this->forward(args, records, y, output(1),
                  this->kind_ == RecurrentKind::kLstm ? output(2) : nullptr);
    if (this->has(4)) clear_ends(args, y, this->keeps_ ? records : nullptr);
  }

 private:
  // What lies behind the last step of a sequence.
  void clear_ends(const KernelArgs& args, T* y, T* reserve) const {
    for (int64_t n = 0; n < this->batch; ++n)
      for (int64_t when = this->length(args, n); when < this->steps; ++when)
        for (int64_t d = 0; d < this->directions; ++d) {
          std::fill_n(y + this->y_at(d, n, when), this->hidden, T(0));
          if (reserve)
            std::fill_n(this->record(reserve, d, this->row_of(n, when)), this->record_, T(0));
        }
  }

  int64_t records_ = 0;
};

const KernelFamily kRecurrentSteps = recurrent_family<RecurrentSteps>(20, "lstm", "gru", "rnn");

}  // namespace

}  // namespace anymps::cpu
