// SPDX-License-Identifier: Apache-2.0
// Calls an op's inference in one line, with symbolic shapes: for tests that read as a table.
//   EXPECT_EQ(inferred("transpose", {f32({N, 3})}), "f32[3, N]");
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/infer.h"

namespace anymps::testing {

using TypeList = std::vector<std::optional<ValueType>>;  // nullopt: absent

inline const Dim N = sym("N"), S = sym("S");
inline ValueType f32(Dims shape) { return {DType::kF32, true, std::move(shape), std::nullopt}; }
inline ValueType i64(Dims shape) { return {DType::kI64, true, std::move(shape), std::nullopt}; }
inline ValueType unranked() { return {DType::kF32, false, {}, std::nullopt}; }
// An i64 vector, and a scalar, whose elements are known (as numbers or symbols).
inline ValueType vec(Dims content) {
  return {DType::kI64, true, {static_cast<int64_t>(content.size())}, content};
}
inline ValueType scalar(Dim content) { return {DType::kI64, true, {}, Dims{content}}; }

inline std::vector<ValueType> infer_all(const char* name, const TypeList& inputs,
                                        const NamedAttrs& attrs = {}, size_t outputs = 0) {
  const Op& op = get_op(name);
  std::vector<const ValueType*> types;
  for (const auto& input : inputs) types.push_back(input ? &*input : nullptr);
  const Attrs values(op, attrs);
  return InferContext::run(op, values, types, outputs ? outputs : op.outputs.size(), "node \"n\"");
}
inline ValueType infer(const char* name, const TypeList& inputs, const NamedAttrs& attrs = {}) {
  return infer_all(name, inputs, attrs, 1).at(0);
}
inline std::string inferred(const char* name, const TypeList& inputs,
                            const NamedAttrs& attrs = {}) {
  return to_string(infer(name, inputs, attrs));
}
// The content of the output, "-" while it is not known.
inline std::string content(const char* name, const TypeList& inputs, const NamedAttrs& attrs = {}) {
  const ValueType type = infer(name, inputs, attrs);
  return type.content ? to_string(*type.content) : "-";
}

using Ints = std::vector<int64_t>;

}  // namespace anymps::testing
