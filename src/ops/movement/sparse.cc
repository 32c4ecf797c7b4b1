// SPDX-License-Identifier: Apache-2.0
// Sparse matrices, given as values and two index vectors, made dense.
#include "ops/expect.h"
#include "ops/gradient_parts.h"

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
    .sample(
        {"coo", {{4}, {4}, {4}}, {{"shape", Ints{3, 5}}}, {{1, {0, 4, 2, 4}}, {2, {0, 2, 1, 2}}}})
    .sample({"csr",
             {{4}, {4}, {4}},
             {{"storage", "csr"}, {"shape", Ints{3, 5}}},
             {{1, {0, 4, 2, 3}}, {2, {0, 2, 2, 4}}}})
    .sample({"csc",
             {{4}, {4}, {4}},
             {{"storage", "csc"}, {"shape", Ints{5, 3}}},
             {{1, {0, 4, 2, 3}}, {2, {0, 2, 2, 4}}}})
    .sample({"no_values", {{0}, {0}, {0}}, {{"shape", Ints{2, 3}}}, {{1, {}}, {2, {}}}});

COMPLEX_GRADIENT(sparse_to_dense) {
  const std::string& storage = ctx.attrs().s("storage");
  const auto wide = [](const Term& list) { return list.op("cast", {{"dtype", DType::kI64}}); };
  Term index0 = wide(ctx.x(1)), index1 = wide(ctx.x(2));
  if (storage !=
      "coo") {  // the line of value k: how many lines after the first start at k or before
    const Term places = ctx.add(
        "range", {ctx.scalar(0, DType::kI64), index0.op("size"), ctx.scalar(1, DType::kI64)});
    const Term starts =
        index1.op("slice", {{"starts", Ints{1}}, {"ends", Ints{INT64_MAX}}, {"axes", Ints{0}}});
    const Term passed = places.op("unsqueeze", {{"axes", Ints{1}}}) >= starts;
    index1 = ctx.sum(wide(passed), {1}, false);
  }
  const bool rows_first = storage == "csc";
  const Term pairs = ctx.add("stack", {rows_first ? index0 : index1, rows_first ? index1 : index0},
                             {{"axis", -1}});
  ctx.set(0, ctx.add("gather_nd", {ctx.dy(), pairs}));
}

}  // namespace anymps
