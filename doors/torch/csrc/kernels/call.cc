// SPDX-License-Identifier: Apache-2.0
#include "kernels/call.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include "device/allocator.h"
#include "device/written.h"
#include "engine.h"
#include "kernels/elements.h"
#include "kernels/given_results.h"
#include "kernels/places.h"
#include "types.h"

namespace anymps::aten {

namespace {

using lowering::Argument;

bool on_device(const at::Tensor& tensor) { return tensor.device().is_mps(); }

at::ScalarType type_of(const at::Scalar& number) {
  if (number.isBoolean()) return at::kBool;
  if (number.isIntegral(false)) return at::kLong;
  const at::ScalarType floats = c10::get_default_dtype_as_scalartype();
  return number.isComplex() ? c10::toComplexType(floats) : floats;
}

}  // namespace

// Results whose shapes depend on elements.
class Call::Memory final : public lowering::Prepared::Memory {
 public:
  Memory(Call& call, std::vector<size_t> outputs) : call_(call), outputs_(std::move(outputs)) {}
  void* allocate(size_t result, const amps_type& type) override {
    at::Tensor& output = call_.outputs_[outputs_[result]];
    if (!output.defined())
      output = call_.make(type);
    else
      at::native::resize_output(output, {type.dims, static_cast<size_t>(type.rank)});
    note_write(output);
    if (output.is_contiguous()) return output.mutable_data_ptr();
    copies_.emplace_back(output, call_.make(type));
    return copies_.back().second.mutable_data_ptr();
  }
  void write_back() const {
    for (const auto& [output, made] : copies_) output.copy_(made);
  }

 private:
  Call& call_;
  std::vector<size_t> outputs_;                            // of each result
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // of outputs with strides
};

Call::Call(const Signature& signature, const lowering::Kernel& kernel,
           c10::ArrayRef<c10::IValue> arguments)
    : signature_(signature), kernel_(kernel), given_(arguments) {
  find_written();
  if (signature_.common) find_common_type();
  for (size_t i = 0; i < given_.size(); ++i)
    if (!signature_.slots[i].out) add(given_[i], signature_.slots[i]);
  if (signature_.common) add_type(common_);
  if (signature_.state) add_state();
  if (signature_.out_type) {
    // Of a derived call it is what is not known yet.
    const bool known = outputs_.size() > signature_.made && outputs_[signature_.made].defined();
    const auto type = known ? to_engine(outputs_[signature_.made].scalar_type()) : std::nullopt;
    add_kind(type ? Argument::Kind::kDType : Argument::Kind::kNothing).i = type.value_or(AMPS_F32);
  }
  if (signature_.out_dims) {
    const bool known = outputs_.size() > signature_.made && outputs_[signature_.made].defined();
    Argument& dims = add_kind(known ? Argument::Kind::kInts : Argument::Kind::kNothing);
    if (known)
      dims.ints = {outputs_[signature_.made].sizes().data(),
                   outputs_[signature_.made].sizes().size()};
  }
}

Argument& Call::add_kind(Argument::Kind kind) {
  Argument& made = arguments_.push_back({});
  made.kind = kind;
  return made;
}

void Call::find_written() {
  for (size_t i = 0; i < signature_.made; ++i) outputs_.emplace_back();
  for (const size_t i : signature_.written) {
    const c10::IValue& value = given_[i];
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) outputs_.push_back(to_write(tensor));
    else
      outputs_.push_back(value.isTensor() ? to_write(value.toTensor()) : at::Tensor());
  }
}

// What usually is: tensors of one floating type, beside numbers that are real.
bool Call::find_plain_common_type() {
  at::ScalarType type = at::ScalarType::Undefined;
  for (size_t i = 0; i < given_.size(); ++i) {
    if (!signature_.slots[i].common || given_[i].isNone()) continue;
    if (!given_[i].isTensor()) {
      if (given_[i].isDouble() || given_[i].isInt()) continue;
      return false;
    }
    const at::Tensor& tensor = given_[i].toTensor();
    if (!tensor.defined()) continue;
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      if (tensor.is_complex()) return false;
      continue;
    }
    if (!on_device(tensor) || !tensor.is_floating_point() ||
        (type != at::ScalarType::Undefined && tensor.scalar_type() != type))
      return false;
    type = tensor.scalar_type();
  }
  if (type == at::ScalarType::Undefined) return false;
  common_ = type;
  device_in_common_ = true;
  return true;
}

void Call::find_common_type() {
  if (find_plain_common_type()) return;
  at::native::ResultTypeState state;
  for (size_t i = 0; i < given_.size(); ++i) {
    if (!signature_.slots[i].common) continue;
    const c10::IValue& value = given_[i];
    if (value.isTensor()) {
      if (!value.toTensor().defined()) continue;
      state = at::native::update_result_type_state(value.toTensor(), state);
      device_in_common_ = device_in_common_ || on_device(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) {
        state = at::native::update_result_type_state(tensor, state);
        device_in_common_ = device_in_common_ || on_device(tensor);
      }
    } else if (!value.isNone()) {
      const at::ScalarType type = type_of(value.toScalar());
      state.wrappedResult = state.wrappedResult == at::ScalarType::Undefined
                                ? type
                                : c10::promoteTypes(state.wrappedResult, type);
    }
  }
  common_ = at::native::result_type(state);
  if (signature_.common_float && c10::isIntegralType(common_, true))
    common_ = c10::get_default_dtype_as_scalartype();
}

// A number that Python made a tensor of, or another one of the CPU that has no extents.
bool Call::is_number(const at::Tensor& tensor) const {
  return tensor.dim() == 0 && tensor.device().is_cpu() && !tensor.is_complex();
}

// Of a derived call, where nothing is written yet, it is that of its first tensor.
at::ScalarType Call::type_written() const {
  const bool known = outputs_.size() > signature_.made;
  return (known ? outputs_[signature_.made] : given_[0].toTensor()).scalar_type();
}

void Call::check_elements(const at::Tensor& tensor, const Slot& slot) const {
  if (slot.probabilities) check_probabilities(tensor, kernel_.name());
  if (slot.not_negative) check_not_negative(tensor, kernel_.name());
  if (slot.held) check_held(type_written(), tensor, kernel_.name());
}

void Call::add_tensor(const at::Tensor& tensor, const Slot& slot) {
  if (!tensor.defined()) {
    add_kind(Argument::Kind::kNothing);
    return;
  }
  check_elements(tensor, slot);
  if (is_number(tensor) && (!slot.common || device_in_common_)) {
    const bool whole = c10::isIntegralType(tensor.scalar_type(), true);
    Argument& number = add_kind(whole ? Argument::Kind::kInt : Argument::Kind::kFloat);
    number.at_run = true;
    if (whole)
      number.i = tensor.item<int64_t>();
    else
      number.f = tensor.item<double>();
    return;
  }
  TORCH_CHECK(
      on_device(tensor) || slot.on_cpu || (tensor.dim() == 0 && tensor.device().is_cpu()),
      "Expected all tensors to be on the same device, but found at least two devices, mps:0 and ",
      tensor.device(), "! (when checking arguments of ", kernel_.name(), ")");
  if (slot.counts_from_zero) check_from_zero(tensor);
  if (!first_ && on_device(tensor)) first_ = &tensor;
  const std::span<amps_view> views = views_.take(1);
  views[0] = view_of(as_stored(tensor));
  add_kind(Argument::Kind::kTensor).views = views;
}

// A tensor whose elements are what is in memory. Ops that could conjugate for themselves get views
// that are marked instead.
const at::Tensor& Call::as_stored(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kComplexHalf) return resolved_.emplace_front(wide(tensor));
  if (!tensor.is_conj() && !tensor.is_neg()) return tensor;
  return resolved_.emplace_front(tensor.resolve_conj().resolve_neg());
}

void Call::add_tensors(const c10::IValue& list, const Slot& slot) {
  const c10::ArrayRef<c10::IValue> items = list.toListRef();
  const std::span<amps_view> views = views_.take(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const bool given = items[i].isTensor() && items[i].toTensor().defined();
    views[i] = given ? view_of(as_stored(items[i].toTensor())) : lowering::kAbsent;
    if (!given) continue;
    const at::Tensor& tensor = items[i].toTensor();
    TORCH_CHECK(
        on_device(tensor) || slot.on_cpu || tensor.dim() == 0,
        "Expected all tensors to be on the same device, but found at least two devices, mps:0 and ",
        tensor.device(), "! (when checking arguments of ", kernel_.name(), ")");
    if (!first_ && on_device(tensor)) first_ = &tensor;
  }
  add_kind(Argument::Kind::kTensors).views = views;
}

void Call::add_indices(const c10::IValue& list) {
  const at::Tensor& self = given_[0].toTensor();
  if (signature_.in_place)
    TORCH_CHECK_INDEX(given_[2].toTensor().scalar_type() == self.scalar_type(),
                      "Index put requires the source and destination dtypes match, got ",
                      self.scalar_type(), " for the destination and ",
                      given_[2].toTensor().scalar_type(), " for the source.");
  indices_ = places_of(self, list);
  const std::span<amps_view> views = views_.take(indices_.size());
  for (size_t i = 0; i < indices_.size(); ++i)
    views[i] = indices_[i].defined() ? view_of(indices_[i]) : lowering::kAbsent;
  add_kind(Argument::Kind::kTensors).views = views;
}

void Call::add_number(const at::Scalar& number, const Slot& slot) {
  if (slot.held) check_held(type_written(), number);
  if (number.isComplex()) {
    Argument& added = add_kind(Argument::Kind::kComplex);
    added.f = number.toComplexDouble().real();
    added.imaginary = number.toComplexDouble().imag();
  } else if (number.isFloatingPoint())
    add_kind(Argument::Kind::kFloat).f = number.toDouble();
  else
    add_kind(number.isBoolean() ? Argument::Kind::kFlag : Argument::Kind::kInt).i = number.toLong();
}

void Call::add_ints(const c10::IValue& list) {
  if (list.isInt() || list.isBool()) {
    const std::span<int64_t> copies = ints_.take(1);
    copies[0] = list.isInt() ? list.toInt() : list.toBool();
    add_kind(Argument::Kind::kInts).ints = copies;
    return;
  }
  const std::span<int64_t> copies = ints_.take(list.toListRef().size());
  size_t at = 0;
  for (const c10::IValue& item : list.toListRef())
    copies[at++] = item.isBool() ? item.toBool() : item.toInt();
  add_kind(Argument::Kind::kInts).ints = copies;
}

void Call::add_floats(const c10::IValue& list) {
  const c10::ArrayRef<c10::IValue> items = list.toListRef();
  const std::span<double> copies = floats_.take(items.size());
  for (size_t i = 0; i < items.size(); ++i) copies[i] = items[i].toScalar().toDouble();
  add_kind(Argument::Kind::kFloats).floats = copies;
}

void Call::add_state() {
  state_ = generator_or_default(generator_).draw();
  static constexpr int64_t kDims[] = {Generator::kStateWords};
  const std::span<amps_view> views = views_.take(1);
  views[0] = {state_.data(), kDims, nullptr, AMPS_I32, 1};
  add_kind(Argument::Kind::kTensor).views = views;
}

void Call::add(const c10::IValue& value, const Slot& slot) {
  using Kind = Slot::Kind;
  if (value.isNone()) {
    add_kind(Argument::Kind::kNothing);
    return;
  }
  switch (slot.kind) {
    case Kind::kTensor:
      return add_tensor(value.toTensor(), slot);
    case Kind::kTensors:
      return slot.masks ? add_indices(value) : add_tensors(value, slot);
    case Kind::kNumber:
      add_number(value.toScalar(), slot);
      if (Argument& added = arguments_.back();
          slot.bound != Bound::kNone && added.kind == Argument::Kind::kInt)
        added.i = bound_within(common_, slot.bound, added.i);
      return;
    case Kind::kInt:
      add_kind(Argument::Kind::kInt).i = value.toInt();
      return;
    case Kind::kFloat:
      add_kind(Argument::Kind::kFloat).f = value.toDouble();
      return;
    case Kind::kFlag:
      add_kind(Argument::Kind::kFlag).i = value.toBool();
      return;
    case Kind::kInts:
      return add_ints(value);
    case Kind::kFloats:
      return add_floats(value);
    case Kind::kText:
      add_kind(Argument::Kind::kText).text = value.toStringView();
      return;
    case Kind::kDType:
      return add_type(value.toScalarType());
    case Kind::kGenerator:
      if (value.isGenerator()) generator_ = value.toGenerator();
      [[fallthrough]];
    default:
      add_kind(Argument::Kind::kNothing);
  }
}

// How a result of this rank lies in memory.
at::MemoryFormat Call::format_of(int64_t rank) const {
  const auto of = [&](const at::Tensor& tensor) {
    return tensor.defined() && tensor.dim() == rank ? tensor.suggest_memory_format()
                                                    : at::MemoryFormat::Contiguous;
  };
  if (!signature_.format || !first_) return at::MemoryFormat::Contiguous;
  at::MemoryFormat format = of(*first_);
  for (size_t i = 0; i < given_.size() && signature_.any_format; ++i)
    if (format == at::MemoryFormat::Contiguous && given_[i].isTensor())
      format = of(given_[i].toTensor());
  return format;
}

at::Tensor Call::make(const amps_type& type) const {
  return at::detail::empty_generic({type.dims, static_cast<size_t>(type.rank)}, &allocator(), kKeys,
                                   to_torch(type.dtype), format_of(type.rank));
}

void Call::make_sized(const lowering::Prepared& prepared) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const int place = prepared.places()[i];
    if (place < 0) continue;
    const amps_type& type = prepared.results()[place];
    const at::IntArrayRef sizes(type.dims, static_cast<size_t>(type.rank));
    at::Tensor& output = outputs_[i];
    if (!output.defined()) {
      output = make(type);
    } else if (output.sizes() != sizes) {
      TORCH_CHECK(!signature_.in_place, "output with shape ", output.sizes(),
                  " doesn't match the broadcast shape ", sizes);
      at::native::resize_output(output, sizes);
    }
  }
}

const lowering::Prepared& Call::prepare() const {
  lowering::Few<lowering::Wanted, 8> wanted;
  const bool plain =
      format_of(4) == at::MemoryFormat::Contiguous && format_of(5) == at::MemoryFormat::Contiguous;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const at::Tensor& output = outputs_[i];
    if (!output.defined()) {
      wanted.push_back({i < signature_.made, std::nullopt, plain});
      continue;
    }
    TORCH_CHECK(
        on_device(output),
        "Expected all tensors to be on the same device, but found at least two devices, mps:0 and ",
        output.device(), "! (when checking the result of ", kernel_.name(), ")");
    TORCH_CHECK_NOT_IMPLEMENTED(!output.is_conj() && !output.is_neg(), "[", kernel_.name(),
                                "] does not write to conjugated or negated views on mps");
    const auto type = to_engine(output.scalar_type());
    TORCH_CHECK_NOT_IMPLEMENTED(type, "tensors of ", output.scalar_type(),
                                " are not supported on mps");
    wanted.push_back({true, *type, output.is_contiguous(), output.const_data_ptr()});
  }
  return kernel_.prepare(engine(), device(), arguments_, wanted);
}

void Call::run(const GivenResults* given) {
  const lowering::Prepared& prepared = prepare();
  if (given) given->check(prepared);
  if (!prepared.sized()) {
    std::vector<size_t> outputs(prepared.results().size());
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (prepared.places()[i] >= 0) outputs[prepared.places()[i]] = i;
    Memory memory(*this, std::move(outputs));
    prepared.run(arguments_, memory);
    memory.write_back();
  } else {
    make_sized(prepared);
    run(prepared);
  }
  give_back(prepared);
}

void Call::run(const lowering::Prepared& prepared) {
  lowering::Few<amps_view, 8> views(prepared.results().size());
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (const int place = prepared.places()[i]; place >= 0)
      views[place] = view_to_write(outputs_[i]);
  if (!views.empty()) prepared.run(arguments_, views, nullptr);
}

// PyTorch refuses to write to a tensor that shares some of its memory, but not all, with an input.
bool Call::overlaps_what_is_written() const {
  for (const size_t i : signature_.written) {
    const at::Tensor& target = given_[i].toTensor();
    for (size_t j = 0; j < given_.size(); ++j)
      if (j != i && given_[j].isTensor() && given_[j].toTensor().defined() &&
          given_[j].toTensor().is_alias_of(target))
        return true;
  }
  return false;
}

bool Call::run_as_before() {
  if (narrow_) return false;
  const lowering::Recalled* known = kernel_.recall(device(), arguments_, signature_.in_place);
  if (!known || (signature_.in_place && overlaps_what_is_written())) return false;
  for (size_t i = 0; i < signature_.made; ++i) {
    const lowering::Recalled::Output& output = known->outputs[i];
    outputs_[i] = at::detail::empty_strided_generic(output.dims, output.strides, &allocator(),
                                                    kKeys, to_torch(output.dtype));
  }
  run(*known->prepared);
  return true;
}

void Call::remember(const Call& out, c10::ArrayRef<c10::IValue> results) const {
  if (narrow_) return;
  const lowering::Prepared& prepared = out.prepare();
  if (!prepared.sized()) return;
  lowering::Recalled what{prepared.shared_from_this(), {}};
  for (const c10::IValue& result : results) {
    if (!result.isTensor() || !result.toTensor().defined()) return;
    const at::Tensor& tensor = result.toTensor();
    what.outputs.push_back(
        {to_engine(tensor.scalar_type()).value(), tensor.sizes().vec(), tensor.strides().vec()});
  }
  kernel_.remember(device(), arguments_, signature_.in_place, std::move(what));
}

at::Tensor Call::take_made() { return signature_.made > 0 ? std::move(outputs_[0]) : at::Tensor(); }

void Call::replace_arguments(torch::jit::Stack& stack) {
  c10::SmallVector<c10::IValue, 4> results;
  if (signature_.flag)
    results.push_back(outputs_[0].item<bool>());
  else if (signature_.made > 0)
    for (size_t i = 0; i < signature_.made; ++i) results.push_back(std::move(outputs_[i]));
  else
    for (size_t i = 0; i < signature_.returns; ++i)
      results.push_back(given_[signature_.written[i]]);
  torch::jit::drop(stack, signature_.slots.size());
  for (c10::IValue& result : results) stack.push_back(std::move(result));
}

}  // namespace anymps::aten
