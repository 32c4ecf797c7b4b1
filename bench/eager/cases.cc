// SPDX-License-Identifier: Apache-2.0
// What eager calls cost, case by case, through AnyMPS and through ATen, in one process and on the
// same memory. bench/eager/run_eager.py loads this library, takes turns and reports.
#include <c10/core/InferenceMode.h>

#include <chrono>
#include <cstring>

#include "cases.h"

namespace bench {

namespace {

Case binary(const char* name, at::Tensor a, at::Tensor b, at::Tensor y) {
  const Call add("add");
  const at::Tensor z = at::empty_strided(y.sizes(), y.strides(), y.options());
  return {name,
          [=] {
            add({&a, &b}, {&y});
          },
          [=]() mutable { at::add_out(const_cast<at::Tensor&>(z), a, b); },
          {{y, z}}};
}

Case product(const char* name, at::ScalarType dtype) {
  const Call matmul("matmul");
  const at::Tensor a = random({256, 256}, dtype), b = random({256, 256}, dtype);
  at::Tensor y = at::empty({256, 256}, a.options()), z = at::empty_like(y);
  return {name, [=] { matmul({&a, &b}, {&y}); }, [=]() mutable { at::mm_out(z, a, b); }, {{y, z}}};
}

using Reduce = void (*)(at::Tensor& y, const at::Tensor& x, int64_t axis);

void torch_sum(at::Tensor& y, const at::Tensor& x, int64_t axis) {
  at::sum_out(y, x, at::IntArrayRef{axis}, false, x.scalar_type());
}
void torch_max(at::Tensor& y, const at::Tensor& x, int64_t axis) {
  at::amax_out(y, x, at::IntArrayRef{axis});
}

// Of a million elements over rows (axis 1) or columns (axis 0).
Case reduction(const char* name, const char* op, at::ScalarType dtype, int64_t axis, Reduce torch) {
  const std::vector<int64_t> axes = {axis};
  const Call call(op, {Attr("axes", axes), Attr("keep_dims", int64_t{0})});
  const at::Tensor x = random({1024, 1024}, dtype);
  at::Tensor y = at::empty({1024}, x.options()), z = at::empty_like(y);
  return {name, [=] { call({&x}, {&y}); }, [=]() mutable { torch(z, x, axis); }, {{y, z}}};
}

Case argmax(const char* name, at::ScalarType dtype, int64_t axis) {
  const Call call("arg_max", {Attr("axis", axis), Attr("keep_dims", int64_t{0})});
  const at::Tensor x = at::randn({1024, 1024}).mul(1e6).to(dtype);  // hardly any equal ones
  at::Tensor y = at::empty({1024}, at::kLong), z = at::empty_like(y);
  return {name, [=] { call({&x}, {&y}); }, [=]() mutable { at::argmax_out(z, x, axis); }, {{y, z}}};
}

amps_stream* deferring() {
  amps_stream* stream = nullptr;  // lives as long as the benchmark
  check(api->stream_create(device, &stream));
  check(api->stream_defer(stream, AMPS_MAX_WINDOW));
  return stream;
}

// With a stream the calls wait there and run as one pass.
Case chain(const char* name, int64_t count, int length, amps_stream* stream = nullptr) {
  static const Call ops[] = {Call("mul"), Call("add"), Call("relu"), Call("sigmoid")};
  const at::Tensor x = random({count}), s = random({});
  at::Tensor y = at::empty_like(x), z = at::empty_like(x);
  return {name,
          [=] {
            for (int i = 0; i < length; ++i) {
              const at::Tensor& from = i == 0 ? x : y;
              if (i % 4 < 2)
                ops[i % 4]({&from, &s}, {&y}, stream);
              else
                ops[i % 4]({&from}, {&y}, stream);
            }
            if (stream) check(api->stream_flush(stream));
          },
          [=]() mutable {
            for (int i = 0; i < length; ++i) {
              const at::Tensor& from = i == 0 ? x : z;
              if (i % 4 == 0)
                at::mul_out(z, from, s);
              else if (i % 4 == 1)
                at::add_out(z, from, s);
              else if (i % 4 == 2)
                at::clamp_min_out(z, from, 0);
              else
                at::sigmoid_out(z, from);
            }
          },
          {{y, z}}};
}

Case adam() {
  const Call step("adam_step");
  const auto make = [] { return at::full({kMillion}, 0.5); };
  const at::Tensor grad = random({kMillion}), rate = at::scalar_tensor(1e-3), number = at::ones({});
  at::Tensor p = make(), m = make(), v = make(), p2 = make(), m2 = make(), v2 = make();
  return {"adam in place, 1 M",
          [=] {
            step({&p, &grad, &rate, &number, &m, &v}, {&p, &m, &v});
          },
          [=] {
            at::_fused_adam_({p2}, {grad}, {m2}, {v2}, {}, {number}, 1e-3, 0.9, 0.999, 0, 1e-8,
                             false, false);
          },
          {{p, p2}, {m, m2}, {v, v2}}};
}

Case resize() {
  const at::Tensor x = random({8, 64, 56, 16}).transpose(1, 3);  // [8, 16, 56, 64], strided
  at::Tensor y = at::empty({8, 16, 112, 128}), z = at::empty_like(y);
  static const std::vector<int64_t> sizes = {8, 16, 112, 128};
  const Call call("resize", {Attr("sizes", sizes), Attr("mode", "linear")});
  return {"resize, strided input",
          [=] { call({&x}, {&y}); },
          [=]() mutable {
            at::upsample_bilinear2d_out(z, x, {112, 128}, false);
          },
          {{y, z}}};
}

Case columns() {
  static const std::vector<int64_t> three = {3, 3}, ones = {1, 1, 1, 1};
  const Call call("im2col", {Attr("kernel", three), Attr("pads", ones)});
  const at::Tensor x = random({8, 56, 56, 16}).permute({0, 3, 1, 2});
  at::Tensor y = at::empty({8, 16 * 9, 56 * 56}), z = at::empty_like(y);
  return {"im2col 3x3, strided input",
          [=] { call({&x}, {&y}); },
          [=]() mutable {
            at::im2col_out(z, x, {3, 3}, {1, 1}, {1, 1}, {1, 1});
          },
          {{y, z}}};
}

// Where the gradient and x are all that is known, torch has to pool again for the places.
Case pool_gradient() {
  static const std::vector<int64_t> three = {3, 3}, two = {2, 2}, ones = {1, 1, 1, 1};
  const Call call("max_pool_gradient",
                  {Attr("kernel", three), Attr("strides", two), Attr("pads", ones)});
  const at::Tensor x = random({8, 112, 64, 112}).transpose(1, 2), dy = random({8, 64, 56, 56});
  at::Tensor y = at::empty({8, 64, 112, 112}), z = at::empty_like(y);
  return {"max_pool_gradient 3x3, strided input",
          [=] {
            call({&dy, &x}, {&y});
          },
          [=]() mutable {
            const auto places = std::get<1>(at::max_pool2d_with_indices(x, {3, 3}, {2, 2}, {1, 1}));
            at::max_pool2d_with_indices_backward_out(z, dy, x, {3, 3}, {2, 2}, {1, 1}, {1, 1},
                                                     false, places);
          },
          {{y, z}}};
}

// What frameworks do: the places are known from the pool.
Case pool_gradient_from_places() {
  static const std::vector<int64_t> three = {3, 3}, two = {2, 2}, ones = {1, 1, 1, 1},
                                    shape = {8, 64, 112, 112};
  const Call call("max_unpool",
                  {Attr("kernel", three), Attr("strides", two), Attr("pads", ones),
                   Attr("shape", shape), Attr("reduce", "add"), Attr("indices", "global_2d")});
  const at::Tensor x = random({8, 112, 64, 112}).transpose(1, 2), dy = random({8, 64, 56, 56});
  const at::Tensor places = std::get<1>(at::max_pool2d_with_indices(x, {3, 3}, {2, 2}, {1, 1}));
  at::Tensor y = at::empty({8, 64, 112, 112}), z = at::empty_like(y);
  return {"max_pool_gradient 3x3, from places",
          [=] {
            call({&dy, &places}, {&y});
          },
          [=]() mutable {
            at::max_pool2d_with_indices_backward_out(z, dy, x, {3, 3}, {2, 2}, {1, 1}, {1, 1},
                                                     false, places);
          },
          {{y, z}}};
}

std::vector<Case>& cases() {
  static std::vector<Case> all = [] {
    const c10::InferenceMode mode;
    at::manual_seed(0);
    std::vector<Case> made;
    const auto add = [&](const std::function<Case()>& make) {
      try {
        made.push_back(make());
      } catch (const std::exception& error) {
        std::fprintf(stderr, "left out: %s\n", error.what());
      }
    };
    add([] { return binary("add, 1 element", random({1}), random({1}), at::empty({1})); });
    add([] {
      return binary("add, 1 M", random({kMillion}), random({kMillion}), at::empty({kMillion}));
    });
    add([] {
      const auto last = [](at::Tensor x) { return x.contiguous(at::MemoryFormat::ChannelsLast); };
      const at::Tensor a = random({16, 64, 32, 32}), b = random({16, 64, 32, 32});
      return binary("add, 1 M, into channels last", a, b, last(at::empty({16, 64, 32, 32})));
    });
    add([] {
      const Call copy("identity");
      const at::Tensor x = random({1024, 1024});
      at::Tensor y = at::zeros({1024, 2048}).slice(1, 0, 2048, 2),
                 z = at::zeros({1024, 2048}).slice(1, 0, 2048, 2);
      return Case{"copy, 1 M, into a strided view",
                  [=] { copy({&x}, {&y}); },
                  [=]() mutable { z.copy_(x); },
                  {{y, z}}};
    });
    add([] {
      const Call copy("identity");
      const at::Tensor x = random({1024, 1024}).t();
      at::Tensor y = at::empty({1024, 1024}), z = at::empty({1024, 1024});
      return Case{"copy, 1 M, transposed",
                  [=] { copy({&x}, {&y}); },
                  [=]() mutable { z.copy_(x); },
                  {{y, z}}};
    });
    add(adam);
    add([] {
      static const Call add_rows("scatter_nd", {Attr("mode", "add")});
      const at::Tensor row = random({1, 1024}), index = at::full({1, 1}, 17, at::kLong),
                       flat = at::full({1}, 17, at::kLong);
      at::Tensor y = at::zeros({1024, 1024}), z = at::zeros({1024, 1024});
      return Case{"add 1 row into 1 M, in place",
                  [=] {
                    add_rows({&row, &index, &y}, {&y});
                  },
                  [=]() mutable { z.index_add_(0, flat, row); },
                  {{y, z}}};
    });
    add(resize);
    add(columns);
    add(pool_gradient);
    add(pool_gradient_from_places);
    add([] {
      static const std::vector<int64_t> two = {2, 2}, one = {1, 1}, none = {0, 0, 0, 0};
      const Call pool("max_pool",
                      {Attr("kernel", two), Attr("strides", two), Attr("dilations", one),
                       Attr("pads", none), Attr("ceil_mode", int64_t{0})});
      const at::Tensor x = random({1, 1, 2, 2});
      at::Tensor y = at::empty({1, 1, 1, 1});
      return Case{"max_pool, 1 element, 5 attributes", [=] { pool({&x}, {&y}); },
                  [=] {
                    at::max_pool2d(x, {2, 2}, {2, 2});
                  }};
    });
    add([] { return product("matmul 256^3, f32", at::kFloat); });
    add([] { return product("matmul 256^3, f64", at::kDouble); });
    add([] { return product("matmul 256^3, i64", at::kLong); });
    add([] { return product("matmul 256^3, c64", at::kComplexFloat); });
    add([] { return product("matmul 256^3, c128", at::kComplexDouble); });
    add([] { return reduction("sum of rows, 1 M, f64", "reduce_sum", at::kDouble, 1, torch_sum); });
    add([] {
      return reduction("sum of columns, 1 M, f64", "reduce_sum", at::kDouble, 0, torch_sum);
    });
    add([] { return reduction("sum of rows, 1 M, i32", "reduce_sum", at::kInt, 1, torch_sum); });
    add([] { return reduction("max of rows, 1 M, f64", "reduce_max", at::kDouble, 1, torch_max); });
    add([] {
      return reduction("max of columns, 1 M, i64", "reduce_max", at::kLong, 0, torch_max);
    });
    add([] { return argmax("argmax of rows, 1 M, f64", at::kDouble, 1); });
    add([] { return argmax("argmax of columns, 1 M, i32", at::kInt, 0); });
    add_layers(add);
    add_gradients(add);
    add([] { return chain("4 elementwise calls, 1 element", 1, 4); });
    add([] { return chain("4 elementwise calls, 1 M", kMillion, 4); });
    add([] { return chain("4 elementwise calls, 16 M", 16 * kMillion, 4); });
    add([] { return chain("10 elementwise calls, 1 element", 1, 10); });
    add([] { return chain("10 elementwise calls, 1 M", kMillion, 10); });
    add([] { return chain("4 elementwise calls put off, 1 element", 1, 4, deferring()); });
    add([] { return chain("4 elementwise calls put off, 1 M", kMillion, 4, deferring()); });
    add([] { return chain("4 elementwise calls put off, 16 M", 16 * kMillion, 4, deferring()); });
    add([] { return chain("10 elementwise calls put off, 1 element", 1, 10, deferring()); });
    add([] { return chain("10 elementwise calls put off, 1 M", kMillion, 10, deferring()); });
    return made;
  }();
  return all;
}

}  // namespace
}  // namespace bench

extern "C" {

// Returns the number of cases.
double bench_load(const char* library, int threads) {
  return bench::guarded([&] {
    bench::load(library, threads);
    return static_cast<double>(bench::cases().size());
  });
}

const char* bench_name(int which) { return bench::cases()[static_cast<size_t>(which)].name; }

// 0: the results agree.
double bench_verify(int which) {
  return bench::guarded([&] {
    const c10::InferenceMode mode;
    auto& item = bench::cases()[static_cast<size_t>(which)];
    item.anymps();
    item.torch();
    for (const auto& [a, b] : item.results) {
      const double tolerance = at::elementSize(a.scalar_type()) == 2 ? 2e-2 : 1e-4;
      if (!at::allclose(a, b, tolerance, tolerance))
        throw std::runtime_error(std::string(item.name) + ": the results differ");
    }
    return 0.0;
  });
}

// Nanoseconds of one call.
double bench_run(int which, int torch, int calls) {
  return bench::guarded([&] {
    const c10::InferenceMode mode;
    auto& item = bench::cases()[static_cast<size_t>(which)];
    const auto& fn = torch ? item.torch : item.anymps;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) fn();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    return took.count() / calls;
  });
}

}  // extern "C"
