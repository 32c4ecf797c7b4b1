// SPDX-License-Identifier: Apache-2.0
// Einstein's summation.
#include "semantics/einsum.h"
#include "ops/expect.h"

namespace anymps {

namespace {

void infer_einsum(InferContext& ctx) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < ctx.input_count(); ++i) ranks.push_back(ctx.shape(i).size());
  const Einsum einsum = Einsum::parse(ctx.attrs.s("equation"), ranks);
  Dims extents(einsum.labels, Dim(1));
  for (size_t i = 0; i < ranks.size(); ++i)
    for (size_t k = 0; k < ranks[i]; ++k) {
      const Dim& extent = ctx.shape(i)[k];
      Dim& known = extents[einsum.inputs[i][k]];
      ctx.check(extent.is(1) || known.is(1) || may_equal(extent, known),
                "'{}' gives axis {} of input {}, of extent {}, a label of extent {}",
                ctx.attrs.s("equation"), k, i, extent.str(), known.str());
      if (known.is(1) || (!known.known() && extent.known() && !extent.is(1))) known = extent;
    }
  Dims y;
  for (const size_t label : einsum.output) y.push_back(extents[label]);
  ctx.set(0, std::move(y));
}

}  // namespace

OP(einsum)
    .doc(
        "Einstein's summation: products of elements, summed over the labels that the output does "
        "not have. An ellipsis stands for any number of axes, a repeated label for a diagonal, "
        "axes of extent 1 broadcast. Without an arrow the output has the labels that come once, "
        "in alphabetical order.")
    .formula("'ij,jk->ik': y[i,k] = sum over j of a[i,j] * b[j,k]")
    .variadic("xs", kNumber)
    .output("y")
    .required("equation", AttrKind::kString)
    .facts(kProduct)
    .infer(infer_einsum)
    .tolerance({.f32 = 5e-5, .f16 = 5e-3, .bf16 = 4e-2, .f64 = 1e-10})
    .no_layout_tests()
    .sample({"product", {{3, 5}, {5, 4}}, {{"equation", "ij,jk->ik"}}})
    .sample({"batch", {{2, 3, 5}, {2, 4, 5}}, {{"equation", "bij, bkj -> bik"}}})
    .sample({"transpose", {{3, 4, 5}}, {{"equation", "ijk->kij"}}})
    .sample({"sum", {{3, 4}}, {{"equation", "ij->i"}}})
    .sample({"diagonal", {{2, 5, 5}}, {{"equation", "...ii->...i"}}})
    .sample({"trace", {{4, 4}}, {{"equation", "ii"}}})
    .sample({"batch trace", {{2, 4, 4}, {4}}, {{"equation", "bii,i->b"}}})
    .sample({"cube", {{3, 3, 3}, {3, 2}}, {{"equation", "iii,ij->ij"}}})
    .sample({"diagonal and one", {{1, 4, 1}, {4}}, {{"equation", "iii,i->i"}}})
    .sample({"ellipsis summed", {{2, 3, 4}, {4, 3, 5}}, {{"equation", "...ij,jik->k..."}}})
    .sample({"inner", {{5}, {5}}, {{"equation", "i,i"}}})
    .sample({"outer", {{3}, {4}}, {{"equation", "i,j"}}})
    .sample({"ellipsis", {{2, 1, 3, 4}, {5, 4, 2}}, {{"equation", "...ij,...jk->...ik"}}})
    .sample({"summed on one side", {{3, 4}, {5, 3}}, {{"equation", "ij,ki->k"}}})
    .sample({"three", {{2, 3}, {3, 4}, {4, 2}}, {{"equation", "ij,jk,kl->il"}}})
    .sample({"heads", {{2, 3, 4, 5}, {2, 6, 4, 5}}, {{"equation", "bqhd,bkhd->bhqk"}}})
    .sample({"scalar", {{}, {3}}, {{"equation", ",i->i"}}})
    .sample({"nothing to sum", {{2, 0}, {0, 3}}, {{"equation", "ij,jk->ik"}}})
    .sample({"empty", {{0, 3}}, {{"equation", "ij->ji"}}});

}  // namespace anymps
