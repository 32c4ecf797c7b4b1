// SPDX-License-Identifier: Apache-2.0
// Ops that choose, count and lay out data: those whose result is as long as the data say,
// diagonals, sequences and columns of windows.
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

// An axis that may be left out, as a list of one or none.
Ints axis_list(Call& c) { return c.has("axis") ? Ints{c.i("axis")} : Ints{}; }

ONNX_READ(NonZero) { return {c.add("nonzero", {c.in(0)})}; }

ONNX_READ(Unique) {
  return c.add_all("unique", {c.in(0)},
                   {{"sorted", c.flag("sorted", true)}, {"axes", axis_list(c)}}, 4);
}

ONNX_READ(Compress) { return {c.add("compress", {c.in(0), c.in(1)}, {{"axes", axis_list(c)}})}; }

ONNX_READ(EyeLike) {
  Value* x = c.in(0);
  const DType dtype = c.dtype("dtype", x->dtype());
  return {c.add("eye_like", {x}, {{"dtype", dtype}, {"k", c.i("k", 0)}})};
}

ONNX_READ(ReverseSequence) {
  return {c.add("reverse_sequence", {c.in(0), c.in(1)},
                {{"batch_axis", c.i("batch_axis", 1)}, {"time_axis", c.i("time_axis", 0)}})};
}

ONNX_READ(Col2Im) {
  NamedAttrs attrs;
  for (const char* name : {"strides", "dilations", "pads"})
    if (auto list = c.ints(name)) attrs.emplace_back(name, *list);
  return {c.add("col2im", {c.in(0), c.in(1), c.in(2)}, attrs)};
}

}  // namespace

}  // namespace anymps::onnx
