// SPDX-License-Identifier: Apache-2.0
// The elements of flags are made once and shared by all requests; only ids are made for each.
#include "server/scheduling/sequence_controls.h"

#include <set>

#include "serving/datatype.h"
#include "serving/string_bytes.h"

namespace anymps::server {
namespace {

using Wish = inference::ModelSequenceBatching::Control;

constexpr size_t kMaxIdLength = 128;

template <class T>
Buffer element(T value) {
  return own(std::string(reinterpret_cast<const char*>(&value), sizeof value));
}

}  // namespace

std::string sequence_text(const SequenceId& id) {
  const uint64_t* number = std::get_if<uint64_t>(&id);
  return number ? std::to_string(*number) : std::get<std::string>(id);
}

SequenceControls::SequenceControls(const inference::ModelConfig& config)
    : shape_(config.max_batch_size() > 0 ? 2 : 1, 1) {
  std::set<Kind> kinds;
  std::set<std::string> names;
  for (const auto& input : config.sequence_batching().control_input()) {
    if (input.name().empty())
      refuse("sequence batching control tensor must have a name for " + config.name());
    if (!names.insert(input.name()).second || input.control_size() > 1)
      refuse("sequence batching control tensor '" + input.name() +
             "' is specified for multiple control kinds for " + config.name());
    for (const Wish& control : input.control()) {
      const std::string where = Wish::Kind_Name(control.kind()) + " for " + config.name();
      if (!kinds.insert(control.kind()).second)
        refuse("sequence batching specifies multiple " + Wish::Kind_Name(control.kind()) +
               " tensors for " + config.name());
      const int ints = control.int32_false_true_size(), floats = control.fp32_false_true_size(),
                bools = control.bool_false_true_size();
      const int given = (ints > 0) + (floats > 0) + (bools > 0);
      if (control.kind() == Wish::CONTROL_SEQUENCE_CORRID) {
        if (given > 0)
          refuse(
              "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or "
              "'bool_false_true' for " +
              where);
        switch (control.data_type()) {
          case inference::TYPE_UINT64:
          case inference::TYPE_INT64:
          case inference::TYPE_UINT32:
          case inference::TYPE_INT32:
          case inference::TYPE_STRING:
            break;
          default:
            refuse("unexpected data type " + inference::DataType_Name(control.data_type()) +
                   " of sequence batching control " + where);
        }
        const auto dtype = serving::numbered_datatype(control.data_type());
        controls_.push_back({input.name(), control.kind(), dtype.value_or(AMPS_U64), {}, {}});
        continue;
      }
      if (given == 0)
        refuse(
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or "
            "'bool_false_true' for " +
            where);
      if (given > 1)
        refuse(
            "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' "
            "and 'bool_false_true' for " +
            where);
      const char* field = ints     ? "int32_false_true"
                          : floats ? "fp32_false_true"
                                   : "bool_false_true";
      if (ints + floats + bools != 2)
        refuse("sequence batching control '" + std::string(field) +
               "' must have exactly 2 entries for " + where);
      if (ints)
        controls_.push_back({input.name(), control.kind(), AMPS_I32,
                             element<int32_t>(control.int32_false_true(0)),
                             element<int32_t>(control.int32_false_true(1))});
      else if (floats)
        controls_.push_back({input.name(), control.kind(), AMPS_F32,
                             element<float>(control.fp32_false_true(0)),
                             element<float>(control.fp32_false_true(1))});
      else
        controls_.push_back({input.name(), control.kind(), AMPS_BOOL,
                             element<uint8_t>(control.bool_false_true(0)),
                             element<uint8_t>(control.bool_false_true(1))});
    }
  }
}

std::string SequenceControls::refusal(const Request& request) const {
  const std::string* text = std::get_if<std::string>(&request.sequence);
  if (text && text->size() > kMaxIdLength)
    return "string correlation ID cannot be longer than " + std::to_string(kMaxIdLength) +
           " characters";
  for (const Control& control : controls_)
    if (control.kind == Wish::CONTROL_SEQUENCE_CORRID &&
        (control.dtype == AMPS_STRING) != (text != nullptr))
      return "inference request for sequence " + sequence_text(request.sequence) + " to model '" +
             request.model + "' must specify a correlation ID of type " +
             std::string(serving::datatype_name(control.dtype));
  return "";
}

// Numbers are cut to the type of the input.
Buffer SequenceControls::id_of(const Request& request, amps_dtype dtype) const {
  if (dtype == AMPS_STRING) {
    const std::string* text =
        request.filler ? nullptr : std::get_if<std::string>(&request.sequence);
    std::string bytes;
    serving::append_string(bytes, text ? *text : "");
    return own(std::move(bytes));
  }
  const uint64_t* number = request.filler ? nullptr : std::get_if<uint64_t>(&request.sequence);
  const uint64_t value = number ? *number : 0;
  if (dtype == AMPS_U32 || dtype == AMPS_I32) return element(static_cast<uint32_t>(value));
  return element(value);
}

void SequenceControls::add(Request& request) const {
  for (const Control& control : controls_) {
    bool flag = false;
    switch (control.kind) {
      case Wish::CONTROL_SEQUENCE_CORRID:
        request.inputs.push_back(
            {control.name, control.dtype, shape_, {id_of(request, control.dtype)}});
        continue;
      case Wish::CONTROL_SEQUENCE_START:
        flag = request.sequence_start;
        break;
      case Wish::CONTROL_SEQUENCE_END:
        flag = request.sequence_end;
        break;
      default:
        flag = true;
    }
    flag = flag && !request.filler;
    request.inputs.push_back(
        {control.name, control.dtype, shape_, {flag ? control.yes : control.no}});
  }
}

}  // namespace anymps::server
