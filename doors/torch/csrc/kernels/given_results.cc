// SPDX-License-Identifier: Apache-2.0
#include "kernels/given_results.h"

#include <algorithm>
#include <deque>

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/List.h>
#include "types.h"

namespace anymps::aten {

namespace {

using at::Tensor;
using c10::IValue;

// The same memory, seen in the same way.
bool same_view(const Tensor& a, const Tensor& b) {
  return a.const_data_ptr() == b.const_data_ptr() && a.scalar_type() == b.scalar_type() &&
         a.is_contiguous() && b.is_contiguous() && a.sizes() == b.sizes();
}

// Tensors of the device as the meta function takes them. Those that share memory still do.
class Metas {
 public:
  // `empty`: a result that is to grow, which says nothing of its own extents.
  Tensor of(const Tensor& tensor, bool empty) {
    if (!tensor.defined() || !tensor.device().is_mps()) return tensor;
    Tensor made = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(of(tensor.storage())), c10::DispatchKeySet(c10::DispatchKey::Meta),
        tensor.dtype());
    c10::TensorImpl* impl = made.unsafeGetTensorImpl();
    if (empty)
      impl->set_sizes_contiguous({0});
    else
      impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
    if (tensor.is_conj()) made._set_conj(true);
    if (tensor.is_neg()) made._set_neg(true);
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
    return made;
  }

 private:
  const c10::Storage& of(const c10::Storage& storage) {
    for (const auto& [own, meta] : storages_)
      if (own == storage.unsafeGetStorageImpl()) return meta;
    // The address alone: nothing is read or written there.
    c10::DataPtr address(const_cast<void*>(storage.data()), c10::Device(at::kMeta));
    storages_.emplace_back(storage.unsafeGetStorageImpl(),
                           c10::make_intrusive<c10::StorageImpl>(
                               c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
                               std::move(address), c10::GetAllocator(at::kMeta), true));
    return storages_.back().second;
  }

  std::deque<std::pair<const c10::StorageImpl*, c10::Storage>> storages_;
};

IValue as_meta(const IValue& value, bool empty, Metas& metas) {
  if (value.isTensor()) return metas.of(value.toTensor(), empty);
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorVector()) list.push_back(metas.of(tensor, false));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const std::optional<Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(metas.of(*tensor, false)) : std::nullopt);
    return list;
  }
  return value;
}

}  // namespace

GivenResults::GivenResults(const c10::OperatorHandle& op, const Signature& signature,
                           bool structured, c10::ArrayRef<IValue> arguments)
    : op_(op), signature_(signature), structured_(structured), arguments_(arguments) {
  const auto add = [&](const IValue& value, bool out) {
    if (!value.isTensor()) return;
    const Tensor& tensor = value.toTensor();
    if (tensor.defined() && tensor.device().is_mps()) (out ? written_ : read_).push_back(&tensor);
  };
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const bool out = signature_.slots[i].out;
    if (arguments_[i].isTensorList() || arguments_[i].isOptionalTensorList())
      for (const IValue& item : arguments_[i].toListRef()) add(item, out);
    else
      add(arguments_[i], out);
  }
}

bool GivenResults::shares_a_part() const {
  for (const Tensor* out : written_)
    for (const Tensor* in : read_)
      if (out->is_alias_of(*in) && !same_view(*out, *in)) return true;
  return false;
}

void GivenResults::ask_pytorch() const {
  if (!structured_) return;
  Metas metas;
  torch::jit::Stack stack;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const auto alone = [&](const Tensor& out) {
      return std::none_of(read_.begin(), read_.end(),
                          [&](const Tensor* in) { return in->is_alias_of(out); });
    };
    const IValue& value = arguments_[i];
    const bool empty = signature_.slots[i].out && value.isTensor() && alone(value.toTensor());
    stack.push_back(as_meta(value, empty, metas));
  }
  op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
}

void GivenResults::check_types(const lowering::Prepared& prepared) const {
  for (size_t i = 0; i < signature_.written.size(); ++i) {
    const size_t argument = signature_.written[i], output = signature_.made + i;
    if (!signature_.slots[argument].out || output >= prepared.found().size()) continue;
    const std::optional<amps_dtype> found = prepared.found()[output];
    if (!found || !arguments_[argument].isTensor()) continue;
    const at::ScalarType given = arguments_[argument].toTensor().scalar_type();
    TORCH_CHECK(c10::canCast(to_torch(*found), given), "result type ", to_torch(*found),
                " can't be cast to the desired output type ", given);
  }
}

void GivenResults::check_memory() const {
  for (const Tensor* out : written_)
    for (const Tensor* in : read_)
      if (!same_view(*out, *in)) at::assert_no_partial_overlap(*out, *in);
}

// What gets another size loses the elements that an argument has there.
void GivenResults::check_growth(const lowering::Prepared& prepared) const {
  for (size_t i = 0; i < signature_.written.size(); ++i) {
    const IValue& value = arguments_[signature_.written[i]];
    if (!signature_.slots[signature_.written[i]].out || !value.isTensor()) continue;
    const Tensor& out = value.toTensor();
    const int place = prepared.places()[signature_.made + i];
    if (!out.defined() || place < 0) continue;
    const amps_type& type = prepared.results()[place];
    if (prepared.sized() &&
        out.sizes() == at::IntArrayRef(type.dims, static_cast<size_t>(type.rank)))
      continue;
    for (const Tensor* in : read_) at::assert_no_overlap(out, *in);
  }
}

// PyTorch's kernels take a byte for a bool; of its meta functions those that are told in Python do
// not.
bool GivenResults::bytes_for_bools(const lowering::Prepared& prepared) const {
  return written_.size() == 1 && written_[0]->scalar_type() == at::kByte &&
         !prepared.found().empty() && prepared.found()[0] == AMPS_BOOL;
}

void GivenResults::check(const lowering::Prepared& prepared) const {
  for (const Tensor* out : written_) at::assert_no_internal_overlap(*out);
  check_growth(prepared);
  const bool part = shares_a_part();
  if (prepared.accepted && !part) return;
  if (part) check_memory();
  if (structured_ && !bytes_for_bools(prepared))
    ask_pytorch();
  else if (!signature_.out_type && !read_.empty())
    check_types(prepared);
  prepared.accepted = true;
}

}  // namespace anymps::aten
