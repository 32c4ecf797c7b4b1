// SPDX-License-Identifier: Apache-2.0
// Reference kernels of conversions between element types.
#include "drivers/reference/elementwise/elementwise.h"
#include "drivers/reference/move.h"
#include "semantics/elements.h"

namespace anymps {

namespace {

char* at(const View& view, const Shape& index) {
  return view.data + view.offset(index) * static_cast<int64_t>(size_of(view.dtype));
}

// One element to a narrow type. Integers wrap, so they must not pass through a double.
uint8_t to_narrow(DType from, const char* in, DType to, bool saturate, NarrowRounding rounding) {
  if (contains(kNarrowInt, to) && is_int(from))
    return dispatch<kInt>(from, [&]<typename T>() {
      T value;
      std::memcpy(&value, in, sizeof value);
      return wrap_narrow(to, static_cast<int64_t>(value));
    });
  return encode_narrow(to, load_number(from, in), saturate, rounding);
}

}  // namespace

REFERENCE(cast) {
  const View &in = args.in[0], &out = args.out[0];
  if (in.dtype == out.dtype) return move_in_order(in, out);
  if (contains(kAny, in.dtype) && contains(kAny, out.dtype))
    return dispatch<kAny>(in.dtype, [&]<typename From>() {
      dispatch<kAny>(out.dtype, [&]<typename To>() {
        for_each_index(out.shape(), [&](const Shape& index) {
          out.as<To>()[out.offset(index)] = scalar::convert<To>(load<From>(in, in.offset(index)));
        });
      });
    });
  const bool saturate = args.attrs.b("saturate");
  const std::string& mode = args.attrs.s("round_mode");
  const NarrowRounding rounding = mode == "up"     ? NarrowRounding::kUp
                                  : mode == "down" ? NarrowRounding::kDown
                                                   : NarrowRounding::kNearest;
  for_each_index(out.shape(), [&](const Shape& index) {
    char *from = at(in, index), *to = at(out, index);
    if (in.dtype == DType::kString)
      parse_number(text_of(*reinterpret_cast<Text*>(from)), out.dtype, to, saturate, rounding);
    else if (out.dtype == DType::kString)
      *reinterpret_cast<Text*>(to) = args.text(number_text(in.dtype, from));
    else if (is_narrow(out.dtype))
      *reinterpret_cast<uint8_t*>(to) = to_narrow(in.dtype, from, out.dtype, saturate, rounding);
    else
      store_number(out.dtype, load_number(in.dtype, from), to);
  });
}

}  // namespace anymps
