// SPDX-License-Identifier: Apache-2.0
// Ops that make tensors.
#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

ONNX_WRITE(fill) {
  std::string value = e.has(1) ? e.in(1) : e.number(e.attrs().dtype("dtype"), e.attrs().f("value"));
  if (e.has(1)) e.attrs().dtype("dtype"), e.attrs().f("value");  // the input's win
  if (e.has(1) && e.rank(1) > 0) value = e.add("Reshape", {value, e.ints({})});
  return {e.add("Expand", {value, e.list(0, "shape")})};
}

}  // namespace

}  // namespace anymps::onnx
