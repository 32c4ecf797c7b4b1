// SPDX-License-Identifier: Apache-2.0
// Steps of optimizers with their states: tiles of all tensors at once, so that each is read and
// written once. An output may be the memory of its input.
#include <atomic>
#include <cmath>
#include <cstring>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/dense_rows.h"
#include "drivers/cpu/learning/optimizer_steps_simd.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

size_t input_of(const Op& op, std::string_view name) {
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (op.inputs[i].name == name) return i;
  return op.inputs.size();
}

template <typename A>
class StepKernel final : public Kernel {
 public:
  using Fn = void (*)(const StepRun<A>&);
  // What the step needs of its attributes, and of the learning rate and the number of the step.
  using Prepare = void (*)(const Attrs& attrs, double rate, double step, StepRun<A>& run);

  StepKernel(const KernelRequest& request, Fn fn, Prepare prepare)
      : attrs_(request.attrs), fn_(fn), prepare_(prepare), count_(request.in(0).count()) {
    const Op& op = *request.op;
    const auto scalar = [&](const char* name) {
      const size_t i = input_of(op, name);
      return request.has(i) ? std::optional(Scalar{i, request.in(i).dtype}) : std::nullopt;
    };
    rate_ = scalar("learning_rate");
    step_ = scalar("step");
    scale_ = scalar("grad_scale");
    found_ = scalar("found_inf");
    gradient_ = DenseRows<A>(request.in(1).dtype);
    values_ = DenseRows<A>(request.in(0).dtype);
    bytes_ = {request.in(0).bytes()};
    const size_t master = input_of(op, "master");
    if (request.has(master)) {
      master_ = master;
      wide_ = DenseRows<A>(request.in(master).dtype);
    }
    // The states are the inputs for which there are outputs, in their order.
    for (size_t o = 1; o < op.outputs.size(); ++o) {
      const size_t i = input_of(op, op.outputs[o].name.substr(4));
      const bool wanted = o < request.outputs.size() && request.out(o).count() > 0;
      if (i == master) {
        if (wanted && master_) new_master_ = o;
        continue;
      }
      State& state = states_[state_count_++];
      if (request.has(i)) state = {i, 0, true, false, DenseRows<A>(request.in(i).dtype), 0};
      if (!wanted) continue;
      state.output = o;
      state.written = true;
      state.rows = DenseRows<A>(request.out(o).dtype);
      state.bytes = request.out(o).bytes();
    }
    makes_ = op.name == "sgd_step" && attrs_.f("momentum") != 0;
    direct_ = !master_ && values_.direct() && gradient_.direct();
    for (size_t k = 0; k < state_count_; ++k) {
      const State& state = states_[k];
      const bool unused = !state.given && !makes_;
      direct_ = direct_ && (state.written || unused) && state.rows.direct();
    }
  }

  void run(const KernelArgs& args) const override {
    if (found_ && found_->of(args) != 0) return keep(args);
    StepRun<A> run;
    run.sign = static_cast<A>((attrs_.b("maximize") ? -1 : 1) / (scale_ ? scale_->of(args) : 1));
    run.decay = static_cast<A>(attrs_.f("weight_decay"));
    const double rate = rate_->of(args);
    run.rate = static_cast<A>(rate);
    prepare_(attrs_, rate, step_ ? step_->of(args) : 1, run);
    const int64_t tiles = (count_ + kRowTile - 1) / kRowTile;
    parallel_for(0, tiles, 0.7 * static_cast<double>(kRowTile), [&](int64_t begin, int64_t end) {
      // Without conversions there are no tiles.
      const int64_t step = direct_ ? end - begin : 1;
      for (int64_t t = begin; t < end; t += step)
        run_tile(args, t * kRowTile, std::min(step * kRowTile, count_ - t * kRowTile), run);
    });
  }
  // Each element is read before it is written.
  bool in_place(size_t i, size_t) const override {
    if (i < 2 || i == master_) return true;
    for (size_t k = 0; k < state_count_; ++k)
      if (states_[k].given && states_[k].input == i) return true;
    return false;
  }

 private:
  struct Scalar {
    size_t input;
    DType dtype;
    double of(const KernelArgs& args) const {
      double value = 0;
      read_numbers(dtype, args.inputs[input], 1, &value);
      return value;
    }
  };
  struct State {
    size_t input = 0, output = 0;
    bool given = false, written = false;
    DenseRows<A> rows;
    size_t bytes = 0;
  };

  void run_tile(const KernelArgs& args, int64_t first, int64_t n, StepRun<A> run) const {
    alignas(64) A in[kMostStates + 2][kRowTile], out[kMostStates + 1][kRowTile];
    const DenseRows<A>& own = master_ ? wide_ : values_;
    run.n = n;
    run.values = own.read(args.inputs[master_ ? *master_ : 0], first, n, in[0]);
    run.gradient = gradient_.read(args.inputs[1], first, n, in[1]);
    void* const target = !master_      ? args.outputs[0]
                         : new_master_ ? args.outputs[*new_master_]
                                       : nullptr;
    run.new_values = target ? own.target(target, first, out[kMostStates]) : out[kMostStates];
    for (size_t k = 0; k < state_count_; ++k) {
      const State& state = states_[k];
      if (state.given)
        run.states[k] = state.rows.read(args.inputs[state.input], first, n, in[k + 2]);
      if (state.written)
        run.new_states[k] = state.rows.target(args.outputs[state.output], first, out[k]);
      else if (state.given || makes_)
        run.new_states[k] = out[k];
    }
    fn_(run);
    if (target) own.write(target, first, n, run.new_values);
    if (master_) {
      A* const low = values_.target(args.outputs[0], first, out[kMostStates]);
      if (low != run.new_values) std::copy_n(run.new_values, n, low);
      values_.write(args.outputs[0], first, n, low);
    }
    for (size_t k = 0; k < state_count_; ++k)
      if (states_[k].written)
        states_[k].rows.write(args.outputs[states_[k].output], first, n, run.new_states[k]);
  }

  // The gradients are not finite: everything stays as it is.
  void keep(const KernelArgs& args) const {
    const auto copy = [&](size_t input, size_t output, size_t bytes) {
      if (bytes && args.outputs[output] != args.inputs[input])
        std::memcpy(args.outputs[output], args.inputs[input], bytes);
    };
    copy(0, 0, bytes_);
    if (new_master_) copy(*master_, *new_master_, static_cast<size_t>(count_) * wide_.element());
    for (size_t k = 0; k < state_count_; ++k)
      if (const State& s = states_[k]; s.written && s.given) copy(s.input, s.output, s.bytes);
  }

  Attrs attrs_;
  Fn fn_;
  Prepare prepare_;
  int64_t count_;
  std::optional<Scalar> rate_, step_, scale_, found_;
  DenseRows<A> values_, gradient_, wide_;
  std::optional<size_t> master_, new_master_;
  size_t bytes_ = 0, state_count_ = 0;
  bool direct_ = false;  // every tensor is read and written in place
  bool makes_ = false;   // the first step of sgd makes its momentum, even for nobody
  State states_[kMostStates];
};

// A running mean keeps the part `name` of what it was and takes the rest of what is new.
template <typename A>
void set_mean(const Attrs& attrs, const char* name, A& keeps, A& takes) {
  keeps = static_cast<A>(attrs.f(name));
  takes = static_cast<A>(1 - attrs.f(name));
}

template <typename A>
void prepare_sgd(const Attrs& attrs, double, double, StepRun<A>& run) {
  run.a = static_cast<A>(attrs.f("momentum"));
  run.a1 = static_cast<A>(1 - attrs.f("dampening"));
  run.nesterov = attrs.b("nesterov");
}

template <typename A>
void prepare_adam(const Attrs& attrs, double rate, double step, StepRun<A>& run) {
  const double beta1 = attrs.f("beta1"), beta2 = attrs.f("beta2");
  if (attrs.b("decoupled")) {
    run.keep = static_cast<A>(1 - rate * attrs.f("weight_decay"));
    run.decay = 0;
  }
  run.a1 = static_cast<A>(1 - beta1);
  set_mean(attrs, "beta2", run.b, run.b1);
  run.rate = static_cast<A>(rate / (1 - std::pow(beta1, step)));
  run.root = static_cast<A>(1 / std::sqrt(1 - std::pow(beta2, step)));
  run.epsilon = static_cast<A>(attrs.f("epsilon"));
}

template <typename A>
void prepare_adagrad(const Attrs& attrs, double rate, double step, StepRun<A>& run) {
  run.rate = static_cast<A>(rate / (1 + (step - 1) * attrs.f("decay")));
  run.epsilon = static_cast<A>(attrs.f("epsilon"));
}

template <typename A>
void prepare_rmsprop(const Attrs& attrs, double, double, StepRun<A>& run) {
  set_mean(attrs, "alpha", run.a, run.a1);
  run.b = static_cast<A>(attrs.f("momentum"));
  run.epsilon = static_cast<A>(attrs.f("epsilon"));
}

template <typename A>
void prepare_adadelta(const Attrs& attrs, double, double, StepRun<A>& run) {
  set_mean(attrs, "rho", run.a, run.a1);
  run.epsilon = static_cast<A>(attrs.f("epsilon"));
}

template <typename A>
void prepare_lion(const Attrs& attrs, double rate, double, StepRun<A>& run) {
  run.keep = static_cast<A>(1 - rate * attrs.f("weight_decay"));
  set_mean(attrs, "beta1", run.a, run.a1);
  set_mean(attrs, "beta2", run.b, run.b1);
}

template <typename A>
KernelPtr make_step_of(const KernelRequest& request) {
  const StepOps<A>& ops = step_ops<A>();
  const std::string& name = request.op->name;
  const auto make = [&](auto fn, auto prepare) -> KernelPtr {
    return std::make_shared<StepKernel<A>>(request, fn, prepare);
  };
  if (name == "sgd_step") return make(ops.sgd, prepare_sgd<A>);
  if (name == "adam_step") return make(ops.adam, prepare_adam<A>);
  if (name == "adagrad_step") return make(ops.adagrad, prepare_adagrad<A>);
  if (name == "rmsprop_step") return make(ops.rmsprop, prepare_rmsprop<A>);
  if (name == "adadelta_step") return make(ops.adadelta, prepare_adadelta<A>);
  return make(ops.lion, prepare_lion<A>);
}

KernelPtr make_step(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  if (request.op->name == "sgd_step" && request.attrs.f("momentum") == 0 && request.has(3))
    return refuse(why, "a momentum that is not used");
  const size_t master = input_of(*request.op, "master");
  const bool wide = request.in(0).dtype == DType::kF64 ||
                    (request.has(master) && request.in(master).dtype == DType::kF64);
  return with_computed(wide ? DType::kF64 : DType::kF32,
                       [&]<typename A>() { return make_step_of<A>(request); });
}

template <typename A>
class Unscale final : public Kernel {
 public:
  explicit Unscale(const KernelRequest& request)
      : rows_(request.in(0).dtype),
        count_(request.in(0).count()),
        scale_(request.in(1).dtype),
        found_(request.in(2).dtype),
        tells_(request.outputs.size() > 1) {}

  void run(const KernelArgs& args) const override {
    A scale = 0;
    double found = 0;
    read_numbers(scale_, args.inputs[1], 1, &scale);
    read_numbers(found_, args.inputs[2], 1, &found);
    std::atomic<bool> finite{true};
    const int64_t tiles = (count_ + kRowTile - 1) / kRowTile;
    parallel_for(0, tiles, 0.2 * static_cast<double>(kRowTile), [&](int64_t begin, int64_t end) {
      alignas(64) A in[kRowTile], out[kRowTile];
      for (int64_t t = begin; t < end; ++t) {
        const int64_t first = t * kRowTile, n = std::min(kRowTile, count_ - first);
        A* const y = rows_.target(args.outputs[0], first, out);
        if (!step_ops<A>().unscale(rows_.read(args.inputs[0], first, n, in), scale, y, n))
          finite.store(false, std::memory_order_relaxed);
        rows_.write(args.outputs[0], first, n, y);
      }
    });
    if (!finite) found = 1;
    if (tells_) write_numbers(found_, args.outputs[1], 1, &found);
  }
  bool in_place(size_t i, size_t output) const override { return i == 2 * output; }

 private:
  DenseRows<A> rows_;
  int64_t count_;
  DType scale_, found_;
  bool tells_;
};

KernelPtr make_unscale(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  return with_computed(request.in(0).dtype, [&]<typename A>() -> KernelPtr {
    return std::make_shared<Unscale<A>>(request);
  });
}

const KernelRegistrar kSgdStep("cpu", "sgd_step", "simd", 10, make_step);
const KernelRegistrar kAdamStep("cpu", "adam_step", "simd", 10, make_step);
const KernelRegistrar kAdagradStep("cpu", "adagrad_step", "simd", 10, make_step);
const KernelRegistrar kRmspropStep("cpu", "rmsprop_step", "simd", 10, make_step);
const KernelRegistrar kAdadeltaStep("cpu", "adadelta_step", "simd", 10, make_step);
const KernelRegistrar kLionStep("cpu", "lion_step", "simd", 10, make_step);
const KernelRegistrar kAmpUnscale("cpu", "amp_unscale", "simd", 10, make_unscale);

}  // namespace

}  // namespace anymps::cpu
