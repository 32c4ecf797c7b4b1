// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of any length over any axes, windows and filter banks.
#include "ops/signal/signal.h"

#include <algorithm>
#include <cmath>

#include "ops/expect.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

// The axes that are transformed; nothing while they are not known.
std::optional<Ints> fft_axes(const InferContext& ctx) {
  const std::optional<Ints> given = numbers(ctx.ints(1, "axes"));
  if (!given) return std::nullopt;
  ctx.check(!given->empty(), "axes must name at least one axis");
  return normalize_axes(*given, ctx.rank(0), ctx.op.name.c_str());
}

void infer_fft(InferContext& ctx) {
  const Dims& x = ctx.shape(0);
  fft_axes(ctx);
  ctx.set(0, complex_dtype(ctx.dtype(0)), x);
}

// The last of the axes is another one in y; which is open while the axes are not known.
template <typename Fn>
void infer_half_spectrum(InferContext& ctx, DType dtype, Fn change) {
  Dims y = ctx.shape(0);
  if (const std::optional<Ints> axes = fft_axes(ctx))
    change(y[axes->back()], axes->back());
  else
    for (size_t i = 0; i < y.size(); ++i) y[i] = ctx.fresh(std::to_string(i));
  ctx.set(0, dtype, std::move(y));
}

void infer_real_to_hermitean(InferContext& ctx) {
  infer_half_spectrum(ctx, complex_dtype(ctx.dtype(0)),
                      [](Dim& last, int64_t) { last = floor_div(last, 2) + 1; });
}

void infer_hermitean_to_real(InferContext& ctx) {
  infer_half_spectrum(ctx, real_dtype(ctx.dtype(0)), [&](Dim& last, int64_t axis) {
    ctx.check(!last.is(0), "axis {} is empty", axis);
    last = (last - 1) * 2 + (ctx.attrs.b("round_to_odd") ? 1 : 0);
    ctx.check(!last.known() || last.value() > 0,
              "axis {} of one element has no real signal of even length", axis);
  });
}

// An integer scalar: input i's, if it is there, else the attribute's.
std::optional<Dim> scalar_int(const InferContext& ctx, size_t i, const char* attr) {
  if (!ctx.has(i)) return Dim(ctx.attrs.i(attr));
  const Dims* content = ctx.content(i);
  if (!content || content->size() != 1) return std::nullopt;
  return (*content)[0];
}

void infer_dft(InferContext& ctx) {
  const Dims& x = ctx.shape(0);
  const int64_t rank = ctx.rank(0);
  ctx.check(rank >= 2, "x has shape {}, must have a signal axis and one of components",
            to_string(x));
  ctx.check(!x.back().known() || x.back().is(1) || x.back().is(2),
            "x {} must have 1 or 2 components in its last axis", to_string(x));
  const bool inverse = ctx.attrs.b("inverse"), onesided = ctx.attrs.b("onesided");
  Dims y = x;
  y.back() = inverse && onesided ? 1 : 2;
  const std::optional<Dim> axis = scalar_int(ctx, 2, "axis");
  if (!axis || !axis->known()) {
    for (size_t i = 0; i + 1 < y.size(); ++i) y[i] = ctx.fresh(std::to_string(i));
    return ctx.set(0, std::move(y));
  }
  const int64_t at = axis->value() < 0 ? axis->value() + rank : axis->value();
  ctx.check(at >= 0 && at < rank - 1, "axis {} is no signal axis of x {}", axis->value(),
            to_string(x));
  Dim& extent = y[at];
  const std::optional<Dim> length = scalar_int(ctx, 1, "length");
  const bool given = ctx.has(1) || ctx.attrs.i("length") != 0;
  if (given && !length)
    extent = ctx.fresh("length");
  else if (given)
    extent = *length;
  else if (inverse && onesided)
    extent = (extent - 1) * 2;
  ctx.check(!extent.known() || extent.value() >= 1, "the length is {}, must be at least 1",
            extent.str());
  if (onesided && !inverse) extent = floor_div(extent, 2) + 1;
  ctx.set(0, std::move(y));
}

void infer_stft(InferContext& ctx) {
  expect_rank(ctx, 0, 2, 3);
  const Dims& signal = ctx.shape(0);
  ctx.check(signal.size() == 2 || !signal[2].known() || signal[2].is(1) || signal[2].is(2),
            "signal {} must have 1 or 2 components in its last axis", to_string(signal));
  const std::optional<Dim> step = scalar_int(ctx, 1, "frame_step");
  std::optional<Dim> length = scalar_int(ctx, 3, "frame_length");
  if (!ctx.has(3) && ctx.attrs.i("frame_length") == 0)
    length = ctx.has(2) ? ctx.shape(2).at(0) : signal[1];
  if (step) ctx.check(!step->known() || step->value() >= 1, "frame_step is {}", step->str());
  if (length)
    ctx.check(!length->known() || length->value() >= 1, "frame_length is {}", length->str());
  if (step && length && length->known() && signal[1].known())
    ctx.check(length->value() <= signal[1].value(), "frames of {} do not fit into a signal of {}",
              length->str(), signal[1].str());
  Dim frames = ctx.fresh("frames"), bins = ctx.fresh("bins");
  if (step && length) frames = floor_div(signal[1] - *length, *step) + 1;
  if (length) bins = ctx.attrs.b("onesided") ? floor_div(*length, 2) + 1 : *length;
  ctx.set(0, {signal[0], frames, bins, 2});
}

void infer_window(InferContext& ctx) {
  const std::optional<Dim> size = scalar_int(ctx, 0, "size");
  ctx.check(!size || !size->known() || size->value() >= 0, "size is {}",
            size ? size->str() : std::string());
  ctx.set(0, ctx.attrs.dtype("dtype"), {size ? *size : ctx.fresh("size")});
}

void infer_mel(InferContext& ctx) {
  const std::optional<Dim> bins = scalar_int(ctx, 0, ""), length = scalar_int(ctx, 1, "");
  ctx.set(0, ctx.attrs.dtype("dtype"),
          {length ? floor_div(*length, 2) + 1 : ctx.fresh("frequencies"),
           bins ? *bins : ctx.fresh("bins")});
}

OpWriter& fft_attrs(OpWriter& op) {
  return op.optional("axes", kIndex, "I", "wins over the attribute")
      .output("y", "", "")
      .attr("axes", Ints{-1}, "the axes that are transformed")
      .attr("inverse", false, "the exponent is positive")
      .attr("scaling", "none", {"none", "size", "unitary"},
            "divided by nothing, the number of elements, or its root");
}

double fft_cost(const Attrs&, const std::vector<Shape>& in, const std::vector<Shape>& out) {
  double count = 1, more = 1;
  for (const int64_t extent : out[0]) count *= static_cast<double>(extent);
  for (const int64_t extent : in[0]) more *= static_cast<double>(extent);
  count = std::max(count, more);
  return 5 * count * std::log2(std::max(count, 2.0));
}

OpWriter& spectrum(OpWriter& op) {
  return op.cost(fft_cost).tolerance({.f32 = 1e-5, .f16 = 3e-3, .bf16 = 3e-2, .f64 = 1e-9});
}

OpWriter& fft_edges(OpWriter& op) {
  return op.sample({"axes input", {{4, 6}, {1}}, {}, {{1, {0}}}})
      .sample({"one", {{3, 1}}, {}})
      .sample({"empty", {{0, 4}}, {}});
}

}  // namespace

SpectrumPlan fft_plan(const Attrs& attrs, const Shape& x, const Shape& y, const Ints& axes) {
  const std::string &op = attrs.op()->name, &scaling = attrs.s("scaling");
  require(!axes.empty(), "[{}] axes must name at least one axis", op);
  std::vector<size_t> places;
  for (const int64_t axis : axes) places.push_back(normalize_axis(axis, std::ssize(x), op.c_str()));
  return SpectrumPlan::fft(x, y, places, attrs.b("inverse"), op == "hermitean_to_real_fft",
                           scaling == "size"      ? SpectrumScaling::kSize
                           : scaling == "unitary" ? SpectrumScaling::kUnitary
                                                  : SpectrumScaling::kNone);
}

SpectrumPlan dft_plan(const Attrs& attrs, const Shape& x, const Shape& y, int64_t axis,
                      int64_t length) {
  return SpectrumPlan::dft(x, y, axis, length, attrs.b("inverse"), attrs.b("onesided"));
}

OP(fft)
    .doc("The discrete Fourier transform over one or several axes of any lengths.")
    .formula("y[k] = scale * sum over j of x[j] * exp(-+2*pi*i*j*k/n)")
    .mps("fastFourierTransformWithTensor:axes:descriptor:name:")
    .mps("fastFourierTransformWithTensor:axesTensor:descriptor:name:")
    .input("x", kComplex | kPrecise, "T", "complex or real")
    .with(fft_attrs)
    .infer(infer_fft)
    .with(spectrum)
    .sample({"8", {{3, 8}}, {}})
    .sample({"7 inverse", {{2, 7}}, {{"inverse", true}, {"scaling", "size"}}})
    .sample({"60", {{60}}, {{"scaling", "unitary"}}})
    .sample({"prime", {{2, 37}}, {}})
    .sample({"large prime", {{263}}, {{"inverse", true}}})
    .sample({"first axis", {{6, 5}}, {{"axes", Ints{0}}}})
    .sample({"two axes", {{3, 4, 5}}, {{"axes", Ints{0, 2}}}})
    .with(fft_edges);

OP(real_to_hermitean_fft)
    .doc(
        "The Fourier transform of real numbers. Along the last of the axes only the "
        "first n/2+1 results are kept: the others are their conjugates.")
    .formula("y[k] = scale * sum over j of x[j] * exp(-+2*pi*i*j*k/n), k <= n/2")
    .mps("realToHermiteanFFTWithTensor:axes:descriptor:name:")
    .mps("realToHermiteanFFTWithTensor:axesTensor:descriptor:name:")
    .input("x", kPrecise)
    .with(fft_attrs)
    .infer(infer_real_to_hermitean)
    .with(spectrum)
    .sample({"8", {{3, 8}}, {}})
    .sample({"9", {{2, 9}}, {{"scaling", "unitary"}}})
    .sample({"two axes", {{4, 6}}, {{"axes", Ints{1, 0}}}})
    .sample({"three axes", {{3, 4, 5}}, {{"axes", Ints{0, 1, 2}}}})
    .with(fft_edges);

OP(hermitean_to_real_fft)
    .doc(
        "The real numbers whose Fourier transform, or inverse, x is: along the last "
        "of the axes x holds the first n/2+1 elements, the others being their "
        "conjugates. n is 2*(extent-1), or one more with round_to_odd.")
    .formula("y[k] = scale * sum over j of x'[j] * exp(-+2*pi*i*j*k/n)")
    .mps("HermiteanToRealFFTWithTensor:axes:descriptor:name:")
    .mps("HermiteanToRealFFTWithTensor:axesTensor:descriptor:name:")
    .input("x", kComplex)
    .with(fft_attrs)
    .attr("round_to_odd", false)
    .infer(infer_hermitean_to_real)
    .with(spectrum)
    .sample({"8", {{3, 5}}, {{"inverse", true}, {"scaling", "size"}}})
    .sample({"9", {{2, 5}}, {{"inverse", true}, {"round_to_odd", true}}})
    .sample({"two axes", {{4, 6}}, {{"axes", Ints{0, 1}}}})
    .sample({"axes input", {{4, 6}, {1}}, {}, {{1, {0}}}})
    .sample({"one", {{3, 1}}, {{"round_to_odd", true}}})
    .sample({"empty", {{0, 4}}, {}});

OP(dft)
    .doc(
        "ONNX's Fourier transform, of numbers whose components, the real one or both, are the last "
        "axis. The signal is cut or filled with 0 to `length`. The inverse is divided by the "
        "length. Onesided keeps the first n/2+1 results; the inverse of that is real, and its "
        "length even unless given.")
    .formula("y[k] = sum over j of x[j] * exp(-2*pi*i*j*k/n); 1/n * exp(+…) for the inverse")
    .input("x", kFloat, "T", "[…, signal, …, 1 or 2]")
    .integer("length", 0, "used without the input; 0: the signal's own", "I", "a scalar")
    .integer("axis", -2, "used without the input", "A", "a scalar")
    .output("y", "T", "[…, 2]; [..., 1] for the inverse of a onesided transform")
    .attr("inverse", false)
    .attr("onesided", false)
    .infer(infer_dft)
    .with(spectrum)
    .sample({"real", {{2, 10, 1}}, {}})
    .sample({"complex", {{2, 12, 2}}, {}})
    .sample({"axis 0 onesided", {{10, 3, 1}}, {{"axis", 0}, {"onesided", true}}})
    .sample({"inverse", {{1, 9, 2}}, {{"inverse", true}}})
    .sample({"inverse onesided", {{1, 6, 2}}, {{"inverse", true}, {"onesided", true}}})
    .sample({"inverse onesided odd",
             {{1, 6, 2}},
             {{"inverse", true}, {"onesided", true}, {"length", 11}}})
    .sample({"longer", {{2, 5, 1}, {}}, {}, {{1, {8}}}})
    .sample({"shorter", {{2, 9, 2}, {1}, {}}, {}, {{1, {6}}, {2, {1}}}})
    .sample({"empty", {{0, 5, 1}}, {}});

OP(stft)
    .doc(
        "Fourier transforms of frames of a signal, frame_step apart, each scaled by the window. "
        "frame_length is that of the window, or of the signal, unless given; a shorter window is "
        "filled up with 0.")
    .formula("y[n,f,k] = sum over j of signal[n,f*step+j] * window[j] * exp(-2*pi*i*j*k/length)")
    .input("signal", kFloat, "T", "[batch, samples, 1 or 2] or [batch, samples]")
    .integer("frame_step", 1, "used without the input", "I", "a scalar")
    .optional("window", kFloat, "T", "[window length]")
    .integer("frame_length", 0, "used without the input; 0: as said above", "L", "a scalar")
    .output("y", "T", "[batch, frames, bins, 2]")
    .attr("onesided", true, "the first length/2+1 bins")
    .infer(infer_stft)
    .with(spectrum)
    .sample({"window", {{2, 32, 1}, {}, {8}}, {}, {{1, {4}}}})
    .sample({"length", {{1, 33, 1}, {}, {-1}, {}}, {{"onesided", false}}, {{1, {5}}, {3, {9}}}})
    .sample({"complex",
             {{1, 20, 2}},
             {{"frame_step", 3}, {"frame_length", 7}, {"onesided", false}}})
    .sample({"window shorter than frame", {{1, 20}, {}, {5}, {}}, {}, {{1, {4}}, {3, {8}}}})
    .sample({"whole signal", {{1, 20, 1}}, {}});

OP(window)
    .doc(
        "A window function: Hann, Hamming or Blackman. A periodic one is the first n elements of "
        "the symmetric one of n+1.")
    .formula(
        "hann: sin(pi*i/n)^2; hamming: 25/46 - 21/46*cos(2*pi*i/n); blackman: "
        "0.42 - 0.5*cos(2*pi*i/n) + 0.08*cos(4*pi*i/n)")
    .integer("size", 0, "used without the input", "I", "a scalar")
    .output("y", "")
    .attr("kind", "hann", {"hann", "hamming", "blackman"})
    .attr("periodic", true)
    .attr("dtype", DType::kF32)
    .reference_only("small, and made once")
    .infer(infer_window)
    .no_layout_tests()
    .sample({"hann", {{}}, {}, {{0, {10}}}})
    .sample({"hann symmetric", {}, {{"size", 10}, {"periodic", false}}})
    .sample({"hamming", {}, {{"size", 7}, {"kind", "hamming"}}})
    .sample({"blackman", {}, {{"size", 8}, {"kind", "blackman"}, {"dtype", DType::kF64}}})
    .sample({"one", {}, {{"size", 1}, {"periodic", false}}})
    .sample({"empty", {}, {}});

OP(mel_weight_matrix)
    .doc(
        "The matrix that turns a spectrum of dft_length/2+1 frequencies into num_mel_bins bins of "
        "the mel scale between two frequencies, as ONNX defines it.")
    .formula("y[f,b] = the triangle of bin b at frequency f")
    .input("num_mel_bins", kIndex, "I", "a scalar")
    .input("dft_length", kIndex, "L", "a scalar")
    .input("sample_rate", kIndex, "R", "a scalar")
    .input("lower_edge_hertz", kFloat, "F", "a scalar")
    .input("upper_edge_hertz", kFloat, "F", "a scalar")
    .output("y", "", "[dft_length/2+1, num_mel_bins]")
    .attr("dtype", DType::kF32)
    .reference_only("small, and made once")
    .infer(infer_mel)
    .domain("lower_edge_hertz", 0, 100)
    .domain("upper_edge_hertz", 3000, 4000)
    .no_layout_tests()
    .sample({"8 bins", {{}, {}, {}, {}, {}}, {}, {{0, {8}}, {1, {64}}, {2, {8192}}}})
    .sample({"one element", {{1}, {1}, {1}, {1}, {1}}, {}, {{0, {3}}, {1, {16}}, {2, {16000}}}});

}  // namespace anymps
