// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/program_builder.h"

#include <bit>

#include "ops/elementwise/program_words.h"

namespace anymps {

namespace {

using program_words::AttrForm;
using program_words::WordWriter;

constexpr size_t kMaxByte = 0xff, kMaxIndex = 0xffff;

size_t text_words(std::string_view text) { return (text.size() + 7) / 8; }

int64_t arg_word(const ProgramArg& arg) {
  require(arg.index <= kMaxIndex && arg.element <= kMaxIndex,
          "[fused_elementwise] argument {}, element {} is too large for a program", arg.index,
          arg.element);
  return WordWriter()
      .field(static_cast<uint64_t>(arg.kind), 8)
      .field(arg.dtype ? static_cast<uint64_t>(*arg.dtype) + 1 : 0, 8)
      .field(arg.index, 16)
      .field(arg.element, 16)
      .word();
}

}  // namespace

ProgramAttr::ProgramAttr(const NamedAttr& attr) : name(attr.name) {
  if (const auto* i = std::get_if<int64_t>(&attr.value))
    value = *i;
  else if (const auto* f = std::get_if<double>(&attr.value))
    value = *f;
  else if (const auto* s = std::get_if<std::string>(&attr.value))
    value = std::string_view(*s);
  else
    fail(Code::kUnsupported, "[fused_elementwise] attribute '{}' is a list or a graph", attr.name);
}

void ElementwiseProgramBuilder::clear() {
  words_.assign(1, 0);
  outputs_.clear();
  instructions_ = finished_ = 0;
}

ProgramArg ElementwiseProgramBuilder::call(const Op& op, std::span<const ProgramArg> args,
                                           std::span<const ProgramAttr> attrs) {
  require(instructions_ < kMaxIndex && args.size() <= kMaxByte && attrs.size() <= kMaxByte,
          "[fused_elementwise] '{}' as instruction {}, with {} arguments: a program cannot hold it",
          op.name, instructions_, args.size());
  words_.resize(words_.size() - finished_);
  finished_ = 0;
  words_.push_back(WordWriter()
                       .field(text_words(op.name), 8)
                       .field(args.size(), 8)
                       .field(attrs.size(), 8)
                       .word());
  add_text(op.name);
  for (const ProgramArg& arg : args) add_arg(arg);
  for (const ProgramAttr& attr : attrs) add_attr(attr);
  return ProgramArg::result(instructions_++);
}

void ElementwiseProgramBuilder::output(const ProgramArg& result) {
  require(result.kind == ProgramArg::Kind::kResult && result.index < instructions_,
          "[fused_elementwise] an output must be the result of an instruction");
  require(outputs_.size() < kMaxIndex, "[fused_elementwise] too many outputs");
  words_.resize(words_.size() - finished_);
  finished_ = 0;
  outputs_.push_back(static_cast<int64_t>(result.index));
}

std::span<const int64_t> ElementwiseProgramBuilder::words() {
  if (finished_ == 0) {
    words_[0] = WordWriter()
                    .field(program_words::kVersion, 16)
                    .field(instructions_, 16)
                    .field(outputs_.size(), 16)
                    .word();
    words_.insert(words_.end(), outputs_.begin(), outputs_.end());
    finished_ = outputs_.size();
  }
  return words_;
}

void ElementwiseProgramBuilder::add_text(std::string_view text) {
  require(text_words(text) <= program_words::kMaxTextWords,
          "[fused_elementwise] '{}' is too long for a program", text);
  for (size_t at = 0; at < text.size(); at += 8) {
    WordWriter word;
    for (const char c : text.substr(at, 8)) word.field(static_cast<unsigned char>(c), 8);
    words_.push_back(word.word());
  }
}

void ElementwiseProgramBuilder::add_arg(const ProgramArg& arg) {
  words_.push_back(arg_word(arg));
  if (arg.kind == ProgramArg::Kind::kImmediate) words_.push_back(std::bit_cast<int64_t>(arg.value));
}

void ElementwiseProgramBuilder::add_attr(const ProgramAttr& attr) {
  const auto* text = std::get_if<std::string_view>(&attr.value);
  words_.push_back(WordWriter()
                       .field(attr.value.index(), 8)  // the order of AttrForm
                       .field(text_words(attr.name), 8)
                       .field(text ? text_words(*text) : 1, 8)
                       .word());
  add_text(attr.name);
  switch (static_cast<AttrForm>(attr.value.index())) {
    case AttrForm::kInt:
      words_.push_back(std::get<int64_t>(attr.value));
      break;
    case AttrForm::kFloat:
      words_.push_back(std::bit_cast<int64_t>(std::get<double>(attr.value)));
      break;
    case AttrForm::kString:
      add_text(*text);
      break;
    case AttrForm::kParameter:
      words_.push_back(arg_word(std::get<ProgramArg>(attr.value)));
      break;
  }
}

}  // namespace anymps
