// SPDX-License-Identifier: Apache-2.0
// How ONNX and the op table call the ways to pad a window.
#pragma once

#include <string_view>

namespace anymps::onnx {

struct AutoPad {
  const char *onnx, *mode;  // NOTSET and explicit: the pads are listed
};
inline constexpr AutoPad kAutoPads[] = {{"NOTSET", "explicit"},
                                        {"VALID", "valid"},
                                        {"SAME_UPPER", "same_upper"},
                                        {"SAME_LOWER", "same_lower"}};

// Both: null for a name that is not known.
constexpr const AutoPad* auto_pad_of_onnx(std::string_view onnx) {
  for (const AutoPad& entry : kAutoPads)
    if (onnx == entry.onnx) return &entry;
  return nullptr;
}
constexpr const AutoPad* auto_pad_of_mode(std::string_view mode) {
  for (const AutoPad& entry : kAutoPads)
    if (mode == entry.mode) return &entry;
  return nullptr;
}

}  // namespace anymps::onnx
