// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/read/registry.h"

#include <algorithm>
#include <unordered_map>

#include "formats/onnx/read/import.h"

namespace anymps::onnx {

namespace {

using ConverterTable = std::unordered_map<std::string, Converter>;  // by full name

ConverterTable& registered() {
  static auto* table = new ConverterTable();
  return *table;
}

// With the ops whose records have ONNX's name and that no converter is registered for.
const ConverterTable& converters() {
  static const auto* complete = [] {
    auto* table = new ConverterTable(registered());
    for (const Op* op : all_ops()) {
      if (op->onnx.empty() || registered().contains(op->onnx)) continue;
      if (!table->emplace(op->onnx, Converter{.same_as = op}).second)
        fail(Code::kInternal, "[onnx] two records have the name {}", op->onnx);
    }
    return table;
  }();
  return *complete;
}

}  // namespace

ConverterRegistrar::ConverterRegistrar(const char* domain, const char* op, Converter converter) {
  if (!registered().emplace(full_name(domain, op), converter).second)
    fail(Code::kInternal, "[onnx] {} has two converters", full_name(domain, op));
}

bool is_onnx(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

std::string full_name(std::string_view domain, std::string_view op) {
  return is_onnx(domain) ? std::string(op) : fmt::format("{}.{}", domain, op);
}

const Converter* find_converter(std::string_view domain, std::string_view op) {
  const std::string name = full_name(domain, op);
  const auto found = converters().find(name);
  return found == converters().end() ? custom_converter(name) : &found->second;
}

std::vector<std::string> supported_ops() {
  std::vector<std::string> names;
  for (const auto& [name, converter] : converters()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace anymps::onnx
