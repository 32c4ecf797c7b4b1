// SPDX-License-Identifier: Apache-2.0
// Fourier ops on the CPU: the tensor is read into complex numbers, the lines of each axis are
// transformed in parallel, and the result is written in its own type. Complex numbers of floats are
// transformed in float and all others in double, so that the sums of a real signal that must vanish
// do, as they do in NumPy.
#include <cmath>
#include <functional>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/signal/real_fft.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"
#include "ops/signal/signal.h"

namespace anymps::cpu {

namespace {

// How the elements of a dense tensor hold numbers.
struct Elements {
  DType dtype = DType::kF32;
  int64_t components = 1;  // 2: real and imaginary parts side by side

  static Elements of(DType dtype, int64_t components) {
    return {real_dtype(dtype), is_complex(dtype) ? 2 : components};
  }
  // Whether they lie in memory as the transform has them.
  template <typename F>
  bool holds() const {
    return components == 2 && dtype == dtype_of<F>;
  }
};

template <typename T, typename F>
void read_as(const void* data, int64_t components, int64_t begin, int64_t end, Cx<F>* to) {
  const T* from = static_cast<const T*>(data);
  for (int64_t i = begin; i < end; ++i)
    to[i] = {static_cast<F>(from[i * components]),
             components == 2 ? static_cast<F>(from[i * 2 + 1]) : F{0}};
}

template <typename T, typename F>
void write_as(void* data, int64_t components, int64_t begin, int64_t end, const Cx<F>* from,
              F scale) {
  T* to = static_cast<T*>(data);
  for (int64_t i = begin; i < end; ++i) {
    to[i * components] = static_cast<T>(static_cast<Compute<T>>(from[i].re * scale));
    if (components == 2)
      to[i * 2 + 1] = static_cast<T>(static_cast<Compute<T>>(from[i].im * scale));
  }
}

template <typename F>
class SpectrumKernel : public Kernel {
 public:
  SpectrumKernel(SpectrumPlan plan, Elements in, Elements out)
      : plan_(std::move(plan)), in_(in), out_(out) {
    for (size_t i = 0; i < plan_.passes.size(); ++i) {
      const SpectrumPass& pass = plan_.passes[i];
      const bool even = pass.n > 0 && pass.n % 2 == 0, last = i + 1 == plan_.passes.size();
      if (even && i == 0 && in.components == 1 && !pass.hermitean && pass.out <= pass.n / 2 + 1)
        add<RealFft<F>>(pass, &RealFft<F>::forward);
      else if (even && last && out.components == 1 && pass.hermitean && pass.out == pass.n)
        add<RealFft<F>>(pass, &RealFft<F>::backward);
      else
        add<ComplexLines>(pass, &ComplexLines::run);
    }
  }
  size_t scratch_bytes() const override {
    return 2 * static_cast<size_t>(plan_.most) * sizeof(Cx<F>);
  }
  void run(const KernelArgs& args) const override {
    auto* buffer = static_cast<Cx<F>*>(args.scratch);
    Cx<F>* other = buffer + plan_.most;
    const Cx<F>* from = load(args, buffer);
    auto* result = static_cast<Cx<F>*>(args.outputs[0]);
    const bool direct = out_.holds<F>() && plan_.scale == 1;
    for (size_t i = 0; i < plan_.passes.size(); ++i) {
      Cx<F>* to = direct && i + 1 == plan_.passes.size() ? result : other;
      transform(plan_.passes[i], steps_[i], from, to);
      from = to;
      std::swap(buffer, other);
    }
    if (from == result) return;
    dispatch<kFloat>(out_.dtype, [&]<typename T>() {
      parallel_for(0, element_count(plan_.shape()), 2, [&](int64_t begin, int64_t end) {
        write_as<T, F>(args.outputs[0], out_.components, begin, end, from,
                       static_cast<F>(plan_.scale));
      });
    });
  }

 protected:
  // The numbers that are transformed: in `to`, or where they lie.
  virtual const Cx<F>* load(const KernelArgs& args, Cx<F>* to) const {
    if (in_.holds<F>()) return static_cast<const Cx<F>*>(args.inputs[0]);
    dispatch<kFloat>(in_.dtype, [&]<typename T>() {
      parallel_for(0, element_count(plan_.start), 2, [&](int64_t begin, int64_t end) {
        read_as<T, F>(args.inputs[0], in_.components, begin, end, to);
      });
    });
    return to;
  }

  SpectrumPlan plan_;
  Elements in_, out_;

 private:
  // How a pass transforms some of its lines, and how many numbers of memory one needs for that.
  struct Step {
    int64_t numbers = 0;
    std::function<void(const Cx<F>* from, Cx<F>* to, int64_t first, int64_t count, Cx<F>* memory)>
        run;
  };

  struct ComplexLines {
    explicit ComplexLines(const SpectrumPass& p) : pass(p), fft(p.n, p.inverse) {}
    int64_t numbers() const { return pass.n + fft.work_size(); }
    void run(const Cx<F>* from, Cx<F>* to, int64_t first, int64_t count, Cx<F>* lines) const {
      for (int64_t i = 0; i < count; ++i) pass.read(from, first + i, lines + i, count);
      fft.run(lines, lines + pass.n * count, count);
      for (int64_t i = 0; i < count; ++i) pass.write(to, first + i, lines + i, count);
    }
    SpectrumPass pass;
    Fft<F> fft;
  };

  template <typename Lines, typename Run>
  void add(const SpectrumPass& pass, Run run) {
    auto lines = std::make_shared<const Lines>(pass);
    steps_.push_back({lines->numbers(), [lines, run](const Cx<F>* from, Cx<F>* to, int64_t first,
                                                     int64_t count, Cx<F>* memory) {
                        ((*lines).*run)(from, to, first, count, memory);
                      }});
  }

  // Lines are transformed side by side while they fit into the cache that a core has to itself.
  static void transform(const SpectrumPass& pass, const Step& step, const Cx<F>* from, Cx<F>* to) {
    constexpr int64_t kMost = 8, kCache = 256 << 10;
    const int64_t fit = kCache / (step.numbers * static_cast<int64_t>(sizeof(Cx<F>)));
    const int64_t width = std::clamp<int64_t>(std::min(fit, pass.lines()), 1, kMost);
    const auto n = static_cast<double>(pass.n);
    const double cost = 2 * n * std::log2(n + 2) * static_cast<double>(width);
    parallel_for(0, (pass.lines() + width - 1) / width, cost, [&](int64_t begin, int64_t end) {
      thread_local std::vector<Cx<F>> memory;  // kept: a thread transforms many lines
      const size_t need = step.numbers * width;
      if (memory.size() < need) memory.resize(need);
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * width, count = std::min(width, pass.lines() - first);
        step.run(from, to, first, count, memory.data());
      }
    });
  }

  std::vector<Step> steps_;
};

// The tables of a length can be larger than the result.
void check_tables(const KernelRequest& request, const SpectrumPlan& plan) {
  double numbers = 2 * static_cast<double>(plan.most);
  for (const SpectrumPass& pass : plan.passes)
    numbers += static_cast<double>(Fft<double>::most_numbers(pass.n));
  check_room(request, static_cast<size_t>(numbers) * sizeof(Cx<double>));
}

template <template <typename> typename K, typename... Args>
KernelPtr make_in(const KernelRequest& request, const Elements& in, SpectrumPlan plan,
                  Args&&... args) {
  check_tables(request, plan);
  if (in.dtype == DType::kF64 || in.components == 1)
    return std::make_shared<K<double>>(std::move(plan), std::forward<Args>(args)...);
  return std::make_shared<K<float>>(std::move(plan), std::forward<Args>(args)...);
}

CPU_KERNEL(fft, "stockham") {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (!dense(request, why)) return nullptr;
  if (y.count() == 0) return make_kernel([](const KernelArgs&) {});
  const auto axes = request.ints(1, "axes");
  if (!axes) return refuse(why, "axes are not known");
  const Elements in = Elements::of(x.dtype, 1);
  return make_in<SpectrumKernel>(request, in, fft_plan(request.attrs, x.shape, y.shape, *axes), in,
                                 Elements::of(y.dtype, 1));
}

Shape without_last(const Shape& shape) { return Shape(shape.begin(), shape.end() - 1); }

CPU_KERNEL(dft, "stockham") {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (!dense(request, why)) return nullptr;
  if (y.count() == 0) return make_kernel([](const KernelArgs&) {});
  const auto length = known_int(request, 1, "length"), axis = known_int(request, 2, "axis");
  if (!length || !axis) return refuse(why, "length or axis are not known");
  const Elements in = Elements::of(x.dtype, x.shape.back());
  return make_in<SpectrumKernel>(
      request, in,
      dft_plan(request.attrs, without_last(x.shape), without_last(y.shape),
               normalize_axis(*axis, x.rank(), "dft"), *length),
      in, Elements::of(y.dtype, y.shape.back()));
}

template <typename F>
class Stft final : public SpectrumKernel<F> {
  using Base = SpectrumKernel<F>;
  using Base::in_;
  using Base::plan_;

 public:
  Stft(SpectrumPlan plan, Elements in, Elements out, int64_t samples, int64_t step, bool window)
      : Base(std::move(plan), in, out), samples_(samples), step_(step), window_(window) {}

 protected:
  const Cx<F>* load(const KernelArgs& args, Cx<F>* to) const override {
    const int64_t frames = plan_.start[1], width = plan_.start[2];
    dispatch<kFloat>(in_.dtype, [&]<typename T>() {
      const T* signal = static_cast<const T*>(args.inputs[0]);
      const T* window = window_ ? static_cast<const T*>(args.inputs[2]) : nullptr;
      parallel_for(0, plan_.start[0] * frames, 4 * static_cast<double>(width),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i)
                       frame(signal, window, i / frames, i % frames, width, to + i * width);
                   });
    });
    return to;
  }

 private:
  template <typename T>
  void frame(const T* signal, const T* window, int64_t n, int64_t f, int64_t width,
             Cx<F>* to) const {
    for (int64_t j = 0; j < width; ++j) {
      const int64_t at = f * step_ + j;
      Cx<F> value;
      if (at < samples_)
        read_as<T, F>(signal + (n * samples_ + at) * in_.components, in_.components, 0, 1, &value);
      const F weight = window ? static_cast<F>(window[j]) : F{1};
      to[j] = {value.re * weight, value.im * weight};
    }
  }

  int64_t samples_, step_;
  bool window_;
};

CPU_KERNEL(stft, "stockham") {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (!dense(request, why)) return nullptr;
  if (y.count() == 0) return make_kernel([](const KernelArgs&) {});
  const auto step = known_int(request, 1, "frame_step");
  auto length = known_int(request, 3, "frame_length");
  if (!step || !length) return refuse(why, "frame_step or frame_length are not known");
  if (*length == 0) length = request.has(2) ? request.in(2).shape[0] : x.shape[1];
  const int64_t width = request.has(2) ? request.in(2).shape[0] : *length;
  const Elements in = Elements::of(x.dtype, x.rank() == 3 ? x.shape[2] : 1);
  return make_in<Stft>(request, in,
                       SpectrumPlan::frames({y.shape[0], y.shape[1], width}, y.shape[2], *length),
                       in, Elements::of(y.dtype, 2), x.shape[1], *step, request.has(2));
}

const KernelRegistrar kRealFft("cpu", "real_to_hermitean_fft", "stockham", 10, make_fft);
const KernelRegistrar kHermitean("cpu", "hermitean_to_real_fft", "stockham", 10, make_fft);

}  // namespace

}  // namespace anymps::cpu
