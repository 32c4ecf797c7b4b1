// SPDX-License-Identifier: Apache-2.0
// The window of a convolution of bytes with the channels last, over three axes whatever the image
// has.
#pragma once

#include <string>

#include "drivers/kernel.h"
#include "ops/layers/window.h"

namespace anymps::cpu {

struct ImageWindow {
  int64_t images = 1;
  Triple in{}, out{}, taps{}, strides{}, dilations{}, pads{};

  int64_t count() const { return taps[0] * taps[1] * taps[2]; }
  int64_t places() const { return images * out[0] * out[1] * out[2]; }
  // Whether each pixel has a result and nothing else is looked at for it.
  bool pixels() const {
    return count() == 1 && strides == Triple{1, 1, 1} && in == out && pads == Triple{};
  }

  // Whether the window nowhere reaches over the border.
  bool stays_inside() const {
    for (size_t i = 0; i < 3; ++i)
      if (pads[i] != 0 || (out[i] - 1) * strides[i] + (taps[i] - 1) * dilations[i] >= in[i])
        return false;
    return true;
  }

  // False, with the reason, for a request that is not of this kind: dense and channels last.
  bool init(const KernelRequest& request, std::string& why) {
    if (request.attrs.s("layout") != "channels_last") return refuse<bool>(why, "channels first");
    const TensorDesc &x = request.in(0), &w = request.in(1), &y = request.out();
    if (!x.contiguous() || !w.contiguous()) return refuse<bool>(why, "x or w is not contiguous");
    if (request.has(3) && !request.in(3).contiguous())
      return refuse<bool>(why, "the zero points are not contiguous");
    if (y.count() == 0) return refuse<bool>(why, "the result is empty");
    const Shape image(x.shape.begin() + 1, x.shape.end() - 1);
    const Window window =
        resolve_window(request.attrs, image, Shape(w.shape.begin() + 2, w.shape.end()));
    images = x.shape[0];
    in = lift(image, 1);
    out = lift(Shape(y.shape.begin() + 1, y.shape.end() - 1), 1);
    taps = lift(window.kernel, 1);
    strides = lift(window.strides, 1);
    dilations = lift(window.dilations, 1);
    pads = lift(window.pads_begin, 0);
    return true;
  }
};

}  // namespace anymps::cpu
