// SPDX-License-Identifier: Apache-2.0
// The gradients of activations that a training step calls, a million elements each.
#include <deque>

#include "cases.h"

namespace bench {

namespace {

using Values = std::vector<amps_value*>;

amps_value* node(amps_graph* graph, const char* op, Values in,
                 const std::vector<Attr>& attrs = {}) {
  const std::vector<amps_attr> plain(attrs.begin(), attrs.end());
  amps_value* result = nullptr;
  check(api->graph_op(graph, find_op(op), in.data(), in.size(), plain.data(), plain.size(), nullptr,
                      &result, 1));
  return result;
}

// A gradient of an activation as a graph of dy and of x, or of the activation's result where torch
// has it from there.
using Build = std::function<amps_value*(amps_graph* graph, amps_value* dy, amps_value* x)>;
using Backward = std::function<void(at::Tensor& dx, const at::Tensor& dy, const at::Tensor& x)>;

Case gradient(const std::string& name, at::ScalarType dtype, const Build& build,
              const Backward& torch) {
  static std::deque<std::string> names;
  const at::Tensor x = random({kMillion}).mul(3).to(dtype), dy = random({kMillion}).to(dtype);
  at::Tensor dx = at::empty_like(x), z = at::empty_like(x);
  const int64_t dims[] = {kMillion};
  amps_graph* graph = nullptr;
  amps_value* in[2];
  amps_executable* made = nullptr;  // lives as long as the benchmark
  check(api->graph_create("gradient", &graph));
  check(api->graph_input(graph, "dy", dtype_of(dtype), 1, dims, nullptr, &in[0]));
  check(api->graph_input(graph, "x", dtype_of(dtype), 1, dims, nullptr, &in[1]));
  amps_value* result = build(graph, in[0], in[1]);
  check(api->graph_set_outputs(graph, &result, 1));
  check(api->compile_cached(device, graph, nullptr, &made));
  api->graph_release(graph);
  const char* type = dtype == at::kFloat ? "" : dtype == at::kDouble ? ", f64" : ", bf16";
  return {names.emplace_back(name + "_backward, 1 M" + type).c_str(),
          [=] {
            const amps_view from[] = {view_of(dy), view_of(x)}, to = view_of(dx);
            check(api->executable_run_views(made, from, 2, &to, 1, nullptr));
          },
          [=]() mutable { torch(z, dy, x); },
          {{dx, z}}};
}

// The engine's own rule.
Build rule(const char* op, std::vector<Attr> attrs = {}) {
  return [=](amps_graph* graph, amps_value* dy, amps_value* x) {
    amps_value* dx = nullptr;
    check(api->graph_gradient_seeded(graph, node(graph, op, {x}, attrs), dy, &x, 1, &dx));
    return dx;
  };
}

}  // namespace

void add_gradients(const AddCase& add) {
  struct Row {
    const char* name;
    Build build;
    Backward torch;
  };
  using T = at::Tensor;
  static const std::vector<Row> rows = {
      {"gelu", rule("gelu"),
       [](T& z, const T& dy, const T& x) { at::gelu_backward_out(z, dy, x); }},
      {"gelu_tanh", rule("gelu", {Attr("approximate", "tanh")}),
       [](T& z, const T& dy, const T& x) { at::gelu_backward_out(z, dy, x, "tanh"); }},
      {"silu", rule("silu"),
       [](T& z, const T& dy, const T& x) { at::silu_backward_out(z, dy, x); }},
      {"mish", rule("mish"),
       [](T& z, const T& dy, const T& x) { z.set_(at::mish_backward(dy, x)); }},
      {"sigmoid",
       [](amps_graph* g, amps_value* dy, amps_value* y) {
         return node(g, "sigmoid_result_gradient", {dy, y});
       },
       [](T& z, const T& dy, const T& y) { at::sigmoid_backward_out(z, dy, y); }},
      {"tanh",
       [](amps_graph* g, amps_value* dy, amps_value* y) {
         return node(g, "tanh_result_gradient", {dy, y});
       },
       [](T& z, const T& dy, const T& y) { at::tanh_backward_out(z, dy, y); }},
      {"hardswish", rule("hard_swish"),
       [](T& z, const T& dy, const T& x) { at::hardswish_backward_out(z, dy, x); }},
      {"hardsigmoid", rule("hard_sigmoid", {Attr("alpha", 1.0 / 6)}),
       [](T& z, const T& dy, const T& x) { at::hardsigmoid_backward_out(z, dy, x); }},
      {"leaky_relu", rule("leaky_relu", {Attr("alpha", 0.1)}),
       [](T& z, const T& dy, const T& x) { at::leaky_relu_backward_out(z, dy, x, 0.1, false); }},
      {"elu", rule("elu"),
       [](T& z, const T& dy, const T& x) { at::elu_backward_out(z, dy, 1, 1, 1, false, x); }},
      {"softplus", rule("softplus"),
       [](T& z, const T& dy, const T& x) { at::softplus_backward_out(z, dy, x, 1, 20); }},
      {"log_sigmoid", rule("log_sigmoid"),
       [](T& z, const T& dy, const T& x) {
         static const T buffer = std::get<1>(at::log_sigmoid_forward(x));
         at::log_sigmoid_backward_out(z, dy, x, buffer);
       }},
      {"hardtanh",
       [](amps_graph* g, amps_value* dy, amps_value* x) {
         return node(g, "hardtanh_gradient", {dy, x});
       },
       [](T& z, const T& dy, const T& x) { at::hardtanh_backward_out(z, dy, x, -1, 1); }},
      {"threshold", rule("relu"),
       [](T& z, const T& dy, const T& x) { at::threshold_backward_out(z, dy, x, 0); }},
  };
  for (const Row& row : rows)
    add([&row] { return gradient(row.name, at::kFloat, row.build, row.torch); });
  for (const at::ScalarType dtype : {at::kBFloat16, at::kDouble})
    add([=] { return gradient(rows[0].name, dtype, rows[0].build, rows[0].torch); });
}

}  // namespace bench
