// SPDX-License-Identifier: Apache-2.0
#include "runtime/eager/key.h"

#include <atomic>

namespace anymps {

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

NamedAttr to_named(const EagerAttr& attr) {
  switch (attr.kind) {
    case AttrKind::kFloat:
      return {attr.name, attr.f};
    case AttrKind::kString:
      return {attr.name, attr.s};
    case AttrKind::kInts:
      return {attr.name, std::vector<int64_t>(attr.ints.begin(), attr.ints.end())};
    case AttrKind::kFloats:
      return {attr.name, std::vector<double>(attr.floats.begin(), attr.floats.end())};
    default:
      return {attr.name, attr.i};
  }
}

Attrs complete(const Op& op, std::span<const EagerAttr> attrs) {
  NamedAttrs given;
  for (const EagerAttr& attr : attrs) given.push_back(to_named(attr));
  return Attrs(op, given);
}

EagerKey::EagerKey(const Op& op, std::span<const EagerAttr> attrs) {
  add(reinterpret_cast<uintptr_t>(&op));
  for (const EagerAttr& attr : attrs) {
    add_text(attr.name);
    add(static_cast<uint64_t>(attr.kind));
    switch (attr.kind) {
      case AttrKind::kFloat:
        add(std::bit_cast<uint64_t>(attr.f));
        break;
      case AttrKind::kString:
        add_text(attr.s);
        break;
      case AttrKind::kInts:
        add(attr.ints.size());
        add(attr.ints);
        break;
      case AttrKind::kFloats:
        add(attr.floats.size());
        for (const double value : attr.floats) add(std::bit_cast<uint64_t>(value));
        break;
      default:
        add(static_cast<uint64_t>(attr.i));
    }
  }
}

BoundOp::BoundOp(const Op& which, std::span<const EagerAttr> given,
                 std::vector<std::string> parameter_names)
    : id(next_id()),
      op(which),
      parameters(std::move(parameter_names)),
      attrs(complete(which, given)),
      key(which, given) {
  if (!parameters.empty()) key.add(~uint64_t{0});  // no attribute's name begins so
  for (const std::string& name : parameters) {
    const int index = op.attr_index(name);
    require(index >= 0 && op.attrs[index].kind == AttrKind::kFloat,
            "[{}] '{}' is no attribute that is a number: it cannot be a parameter", op.name, name);
    key.add(static_cast<uint64_t>(index));
  }
}

Attrs BoundOp::attrs_with(std::span<const double> values) const {
  Attrs result = attrs;
  for (size_t i = 0; i < parameters.size(); ++i) result.set({parameters[i], values[i]});
  return result;
}

void EagerKey::add(std::span<const int64_t> numbers) {
  for (const int64_t number : numbers) add(static_cast<uint64_t>(number));
}

void EagerKey::add(const TensorView& view) {
  if (view.absent()) return add(0);
  const bool plain = row_major(view);
  const size_t rank = view.rank;
  add(1u | static_cast<uint64_t>(view.dtype) << 8 | static_cast<uint64_t>(plain) << 16 |
      static_cast<uint64_t>(rank) << 32);
  add({view.dims, rank});
  if (!plain) add({view.strides, rank});
}

void EagerKey::add_output(const TensorView& view) {
  if (view.absent() || row_major(view)) return add(0);
  add(view);
}

void EagerKey::add_text(const char* text) {
  uint64_t word = 0;
  int filled = 0;
  for (; *text; ++text) {
    word = word << 8 | static_cast<unsigned char>(*text);
    if (++filled < 8) continue;
    add(word);
    word = 0;
    filled = 0;
  }
  add(word << 8 | static_cast<uint64_t>(filled));
}

}  // namespace anymps
