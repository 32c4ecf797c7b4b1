// SPDX-License-Identifier: Apache-2.0
// Running the ops of src/ops/control/sequence.cc and src/ops/control/optional.cc. Lists share their
// tensors; a list that nobody else has is changed in place, so that a loop that builds one takes
// linear time.
#include "runtime/structural.h"

namespace anymps {

namespace {

using Tensors = std::vector<Tensor>;

const Tensors& items_of(const Tensor& list, const char* op) {
  require(list.items != nullptr, "[{}] the list is missing", op);
  return *list.items;
}

// The items to be changed: those of the input if it is the only owner, or else a copy.
std::shared_ptr<Tensors> items_to_change(Tensor& list, const char* op) {
  items_of(list, op);
  if (list.items.use_count() == 1) {
    auto items = std::const_pointer_cast<Tensors>(std::move(list.items));
    list.items.reset();
    return items;
  }
  return std::make_shared<Tensors>(*list.items);
}

// A position in [-count, count) or, for an insertion, [-count, count], as one from the start.
size_t position_of(const StructuralCall& call, size_t input, size_t count, bool insert) {
  const auto last = static_cast<int64_t>(count);
  const int64_t given = call.number(call.inputs[input]);
  const int64_t at = given < 0 ? given + last : given;
  require(at >= 0 && (at < last || (insert && at == last)),
          "[{}] position {} is out of range for a list of {}", call.node.op->name, given, count);
  return at;
}

Tensor with_items(const Tensor& like, std::shared_ptr<Tensors> items) {
  Tensor list;
  list.desc.dtype = like.desc.dtype;
  list.container = Container::kSequence;
  list.items = std::move(items);
  return list;
}

}  // namespace

STRUCTURAL(sequence_construct) {
  return {list_of(call.node.output()->dtype(), std::move(call.inputs))};
}

STRUCTURAL(sequence_empty) { return {list_of(call.node.attrs.dtype("dtype"), {})}; }

STRUCTURAL(sequence_at) {
  const Tensors& items = items_of(call.inputs[0], "sequence_at");
  return {items[position_of(call, 1, items.size(), false)]};
}

STRUCTURAL(sequence_insert) {
  auto items = items_to_change(call.inputs[0], "sequence_insert");
  const size_t at = call.has(2) ? position_of(call, 2, items->size(), true) : items->size();
  items->insert(items->begin() + static_cast<std::ptrdiff_t>(at), call.inputs[1]);
  return {with_items(call.inputs[0], std::move(items))};
}

STRUCTURAL(sequence_erase) {
  auto items = items_to_change(call.inputs[0], "sequence_erase");
  require(!items->empty(), "[sequence_erase] the list is empty");
  const size_t at = call.has(1) ? position_of(call, 1, items->size(), false) : items->size() - 1;
  items->erase(items->begin() + static_cast<std::ptrdiff_t>(at));
  return {with_items(call.inputs[0], std::move(items))};
}

STRUCTURAL(sequence_length) {
  const Tensors& items = items_of(call.inputs[0], "sequence_length");
  return {call.scalar(DType::kI64, std::ssize(items))};
}

STRUCTURAL(split_to_sequence) {
  const Tensor& x = call.inputs[0];
  const int64_t axis =
      normalize_axis(call.node.attrs.i("axis"), x.desc.rank(), "split_to_sequence");
  const int64_t extent = x.desc.shape[axis];
  Tensors pieces;
  if (!call.has(1)) {
    const bool keep = call.node.attrs.b("keep_dims");
    for (int64_t i = 0; i < extent; ++i)
      pieces.push_back(keep ? piece(x, axis, i, 1) : slice_at(x, axis, i));
    return {list_of(x.desc.dtype, std::move(pieces))};
  }
  std::vector<int64_t> sizes = call.numbers(call.inputs[1]);
  if (call.inputs[1].desc.rank() == 0) {
    const int64_t size = sizes[0];
    require(size > 0, "[split_to_sequence] pieces of {} elements are asked for", size);
    sizes.clear();
    for (int64_t left = extent; left > 0; left -= size) sizes.push_back(std::min(left, size));
  }
  int64_t first = 0;
  for (const int64_t size : sizes) {
    require(size >= 0 && size <= extent - first,
            "[split_to_sequence] the pieces are larger than the axis, which has {} elements",
            extent);
    pieces.push_back(piece(x, axis, first, size));
    first += size;
  }
  require(first == extent, "[split_to_sequence] the pieces have {} elements in all, the axis {}",
          first, extent);
  return {list_of(x.desc.dtype, std::move(pieces))};
}

STRUCTURAL(concat_from_sequence) {
  const Tensors& items = items_of(call.inputs[0], "concat_from_sequence");
  require(!items.empty(), "[concat_from_sequence] the list is empty");
  return {join(call, items, call.node.attrs.i("axis"), call.node.attrs.b("new_axis"), {})};
}

STRUCTURAL(sequence_map, [](const Node& node, const std::string&) {
  return Captures{1, node.inputs.empty() ? size_t{0} : size_t{1}};
}) {
  const size_t count = items_of(call.inputs[0], "sequence_map").size();
  for (size_t i = 1; i < call.inputs.size(); ++i)
    require(call.inputs[i].container == Container::kTensor ||
                items_of(call.inputs[i], "sequence_map").size() == count,
            "[sequence_map] the lists have {} and {} tensors", count,
            call.inputs[i].items ? call.inputs[i].items->size() : 0);
  std::vector<Tensors> lists(call.node.outputs.size());
  for (size_t n = 0; n < count; ++n) {
    Tensors feeds;
    for (const Tensor& input : call.inputs)
      feeds.push_back(input.container == Container::kTensor ? input : (*input.items)[n]);
    Tensors results = call.run("body", std::move(feeds));
    for (size_t k = 0; k < lists.size(); ++k) lists[k].push_back(std::move(results[k]));
  }
  Tensors outputs;
  for (size_t k = 0; k < lists.size(); ++k)
    outputs.push_back(list_of(call.node.outputs[k]->dtype(), std::move(lists[k])));
  return outputs;
}

STRUCTURAL(optional) {
  Tensor result;
  result.container = call.node.output()->type.container;
  result.desc.dtype = call.node.output()->dtype();
  if (!call.has(0)) return {result};
  result.items = call.inputs[0].container == Container::kSequence
                     ? call.inputs[0].items
                     : std::make_shared<const Tensors>(Tensors{call.inputs[0]});
  return {result};
}

STRUCTURAL(optional_has_element) {
  const bool has = call.has(0) && (call.inputs[0].container == Container::kTensor ||
                                   call.inputs[0].items != nullptr);
  return {call.scalar(DType::kBool, has)};
}

STRUCTURAL(optional_get_element) {
  Tensor& x = call.inputs[0];
  if (!(kOptionals & bit(x.container))) return {x};
  require(x.items != nullptr, "[optional_get_element] the optional holds nothing");
  if (x.container == Container::kOptional) {
    require(x.items->size() == 1, "[optional_get_element] the optional holds {} tensors",
            x.items->size());
    return {(*x.items)[0]};
  }
  x.container = Container::kSequence;
  return {x};
}

STRUCTURAL(container_identity) { return {call.inputs[0]}; }

}  // namespace anymps
