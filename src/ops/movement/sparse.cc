// SPDX-License-Identifier: Apache-2.0
// Sparse matrices, given as values and two index vectors, made dense.
#include "ops/expect.h"

namespace anymps {

OP(sparse_to_dense)
    .doc(
        "The dense matrix of a sparse one; values that fall on one place are added. coo: the "
        "indices are the columns and the rows of the values. csr: the columns, and where each row "
        "starts. csc: the rows, and where each column starts. The starts have one entry more than "
        "there are rows or columns.")
    .formula("y = 0, y[row(k), column(k)] += values[k]")
    .mps("sparseTensorWithType:tensors:shape:dataType:name:")
    .mps("sparseTensorWithDescriptor:tensors:shape:name:")
    .input("values", kNumber)
    .input("index0", kIndex, "I", "coo and csr: columns; csc: rows")
    .input("index1", kIndex, "I", "coo: rows; csr, csc: starts")
    .output("y")
    .attr("storage", "coo", {"coo", "csc", "csr"})
    .required("shape", AttrKind::kInts, "rows and columns")
    .infer([](InferContext& ctx) {
      const std::vector<int64_t>& shape = ctx.attrs.ints("shape");
      ctx.check(shape.size() == 2 && shape[0] >= 0 && shape[1] >= 0,
                "shape [{}] must be rows and columns", fmt::join(shape, ", "));
      expect_rank(ctx, 0, 1, 1);
      expect_shape(ctx, 1, ctx.shape(0));
      const std::string& storage = ctx.attrs.s("storage");
      if (storage == "coo")
        expect_shape(ctx, 2, ctx.shape(0));
      else
        expect_shape(ctx, 2, {shape[storage == "csr" ? 0 : 1] + 1});
      ctx.set(0, {shape[0], shape[1]});
    })
    .sample({"coo",
             {{4}, {4}, {4}},
             {{"shape", std::vector<int64_t>{3, 5}}},
             {{1, {0, 4, 2, 4}}, {2, {0, 2, 1, 2}}}})
    .sample({"csr",
             {{4}, {4}, {4}},
             {{"storage", "csr"}, {"shape", std::vector<int64_t>{3, 5}}},
             {{1, {0, 4, 2, 3}}, {2, {0, 2, 2, 4}}}})
    .sample({"csc",
             {{4}, {4}, {4}},
             {{"storage", "csc"}, {"shape", std::vector<int64_t>{5, 3}}},
             {{1, {0, 4, 2, 3}}, {2, {0, 2, 2, 4}}}})
    .sample({"no_values",
             {{0}, {0}, {0}},
             {{"shape", std::vector<int64_t>{2, 3}}},
             {{1, {}}, {2, {}}}});

}  // namespace anymps
