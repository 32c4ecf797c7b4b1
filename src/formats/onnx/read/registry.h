// SPDX-License-Identifier: Apache-2.0
// Which function converts which ONNX op. A converter registers itself:
//   ONNX_READ(Conv) { return {c.add("conv", {c.in(0), c.in(1), c.opt(2)}, …)}; }
// with the node at hand as `c`. Ops of other domains: ONNX_READ_IN(kMicrosoft, BiasGelu) { … }
// An op that the op table has alike needs none: its record has ONNX's name.
#pragma once

#include <string>
#include <string_view>

#include "formats/onnx/read/call.h"

namespace anymps::onnx {

class Importer;
struct Scope;

// The domains; ONNX's own goes by two names in files.
inline constexpr const char *kOnnx = "", *kMicrosoft = "com.microsoft", *kMl = "ai.onnx.ml",
                            *kPreview = "ai.onnx.preview", *kTraining = "ai.onnx.preview.training";
bool is_onnx(std::string_view domain);
// "Conv", "com.microsoft.BiasGelu"
std::string full_name(std::string_view domain, std::string_view op);

using Convert = Values (*)(Call&);
// Of an op that holds graphs or looks at the graph around it.
using ConvertInside = Values (Importer::*)(const Node&, const Values&, Scope&);

// One of these is set.
struct Converter {
  Convert convert = nullptr;
  ConvertInside inside = nullptr;
  const Op* same_as = nullptr;  // see read_same
};

const Converter* find_converter(std::string_view domain, std::string_view op);  // null: none
const Converter* custom_converter(std::string_view name);  // of an op of the user's own, or null

struct ConverterRegistrar {
  ConverterRegistrar(const char* domain, const char* op, Converter converter);
};

#define ONNX_READ_IN(domain, op)                                          \
  static ::anymps::Values read_##domain##_##op(::anymps::onnx::Call& c);  \
  static const ::anymps::onnx::ConverterRegistrar reader_##domain##_##op( \
      domain, #op, {.convert = read_##domain##_##op});                    \
  static ::anymps::Values read_##domain##_##op([[maybe_unused]] ::anymps::onnx::Call& c)
#define ONNX_READ(op) ONNX_READ_IN(kOnnx, op)
// Another op that `of` converts, given as domain and name like those above.
#define ONNX_READ_ALSO(domain, op, of_domain, of)                         \
  static const ::anymps::onnx::ConverterRegistrar reader_##domain##_##op( \
      domain, #op, {.convert = read_##of_domain##_##of})
#define ONNX_READ_INSIDE(domain, op, member)                              \
  static const ::anymps::onnx::ConverterRegistrar reader_##domain##_##op( \
      domain, #op, {.inside = &::anymps::onnx::Importer::member})

}  // namespace anymps::onnx
