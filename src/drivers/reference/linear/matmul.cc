// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication by its definition, with NumPy's rules for batches and vectors.
#include "drivers/reference/dense.h"
#include "drivers/reference/layers/fused_tail.h"

namespace anymps {

namespace {

// An operand as a stack of matrices: batch axes, then rows and columns, dense.
template <typename A>
struct Stack {
  Shape batch;
  int64_t rows = 1, columns = 1;
  std::vector<A> values;

  const A* matrix(const Shape& at) const {  // `at` may have more axes; extents of 1 are repeated
    int64_t which = 0;
    for (size_t i = 0; i < batch.size(); ++i)
      which = which * batch[i] + (batch[i] == 1 ? 0 : at[at.size() - batch.size() + i]);
    return values.data() + which * rows * columns;
  }
};

template <typename A>
Stack<A> read_stack(const View& view, bool transposed, bool vector_is_row) {
  Stack<A> stack;
  const size_t rank = view.shape().size();
  if (rank == 1) {
    (vector_is_row ? stack.columns : stack.rows) = view.extent(0);
    stack.values = read_dense<A>(view);
    return stack;
  }
  std::vector<size_t> order;
  for (size_t i = 0; i + 2 < rank; ++i) order.push_back(i);
  order.push_back(transposed ? rank - 1 : rank - 2);
  order.push_back(transposed ? rank - 2 : rank - 1);
  const Permuted permuted(view, order);
  stack.batch = Shape(permuted.shape().begin(), permuted.shape().end() - 2);
  stack.rows = permuted.shape()[rank - 2];
  stack.columns = permuted.shape()[rank - 1];
  stack.values = read_dense<A>(permuted.view());
  return stack;
}

template <typename A>
void scale(std::vector<A>& values, double alpha) {
  if constexpr (!std::is_same_v<A, uint64_t>)
    for (A& value : values) value *= alpha;
}

template <typename A>
void add(std::vector<A>& values, const View& addend, const Shape& shape) {
  const std::vector<A> dense = read_dense<A>(addend);
  const Strides strides = contiguous_strides(addend.shape());
  const View plain{addend.dtype, addend.data, addend.dims, &strides};
  const BroadcastOffset offset(plain, shape);
  size_t next = 0;
  for_each_index(shape, [&](const Shape& at) { values[next++] += dense[offset(at)]; });
}

}  // namespace

REFERENCE(matmul) {
  const View& y = args.out[0];
  with_accumulator(y.dtype, [&]<typename A>() {
    const auto a = read_stack<A>(args.in[0], args.attrs.b("transpose_a"), true);
    const auto b = read_stack<A>(args.in[1], args.attrs.b("transpose_b"), false);
    std::vector<A> sums;
    for_each_index(broadcast(a.batch, b.batch, "matmul"), [&](const Shape& at) {
      const A *left = a.matrix(at), *right = b.matrix(at);
      for (int64_t i = 0; i < a.rows; ++i)
        for (int64_t j = 0; j < b.columns; ++j) {
          A sum{};
          for (int64_t k = 0; k < a.columns; ++k)
            sum += left[i * a.columns + k] * right[k * b.columns + j];
          sums.push_back(sum);
        }
    });
    scale(sums, args.attrs.f("alpha"));
    if (args.has(2)) add(sums, args.in[2], y.shape());
    if (args.has(3)) add(sums, args.in[3], y.shape());
    activate(sums, y.dtype, args.attrs, "act_alpha", "act_beta");
    write_dense(y, sums);
  });
}

}  // namespace anymps
