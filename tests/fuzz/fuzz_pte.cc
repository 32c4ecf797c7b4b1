// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of ExecuTorch: a program, a bundle of one or the payload of a delegate, by
// their content. They become a graph or give an Error, and nothing else ever happens. Every view
// that the readers give out is read to its last byte, so that ASan sees one that points outside.
// Seeds are made by make_pte_seeds; inputs are changed field by field (flat_mutator.h).
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "flat_mutator.h"
#include "formats/executorch/import.h"
#include "formats/executorch/payload/payload.h"
#include "formats/executorch/program/program_text.h"

namespace {

using namespace anymps;
using namespace anymps::executorch;

uint8_t touch(std::string_view bytes) {
  uint8_t sum = 0;
  for (char c : bytes) sum ^= static_cast<uint8_t>(c);
  return sum;
}

uint8_t touch(const std::vector<EValue>& values) {
  uint8_t sum = 0;
  for (const EValue& value : values)
    if (const auto* tensor = std::get_if<executorch::Tensor>(&value); tensor && tensor->data)
      sum ^= touch(*tensor->data);
  return sum;
}

uint8_t touch(const Bundle& bundle) {
  uint8_t sum = 0;
  for (const Method& method : bundle.program.methods) {
    sum ^= touch(method.values);
    for (const Delegate& delegate : method.delegates) sum ^= touch(delegate.payload);
  }
  for (const auto& [key, data] : bundle.program.named_data) sum ^= touch(data);
  for (const TestSuite& suite : bundle.suites)
    for (const TestCase& test : suite.cases) sum ^= touch(test.inputs) ^ touch(test.outputs);
  return sum;
}

// Runs `fn`; an Error is an answer, unless it is our fault.
template <typename Fn>
void answer(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    if (error.code() == Code::kInternal) throw;
  }
}

// What costs much and finds little is done for a part of the inputs; which part they tell, so that
// a finding can be repeated.
uint32_t hash(std::string_view bytes) {
  uint32_t sum = 2166136261u;
  for (char c : bytes) sum = (sum ^ static_cast<uint8_t>(c)) * 16777619u;
  return sum >> 16;
}

// Loops are unrolled, into thousands of nodes.
bool has_loop(const Method& method) {
  for (size_t pc = 0; pc < method.instructions.size(); ++pc)
    if (const auto* jump = std::get_if<JumpFalse>(&method.instructions[pc]);
        jump && static_cast<size_t>(jump->destination) <= pc)
      return true;
  return false;
}

}  // namespace

// Most of an execution's time is spent in malloc. Set ASAN_OPTIONS=malloc_context_size=30 to see
// where a block of a finding comes from.
extern "C" const char* __asan_default_options() {
  return "malloc_context_size=1:max_malloc_fill_size=0:quarantine_size_mb=1:"
         "thread_local_quarantine_size_kb=128";
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return mutate_flat(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Weights are used where they lie, and files are mapped at a page.
  std::shared_ptr<char[]> memory(
      static_cast<char*>(::operator new[](size ? size : 1, std::align_val_t(64))),
      [](char* p) { ::operator delete[](p, std::align_val_t(64)); });
  std::memcpy(memory.get(), data, size);
  const Source source{{memory.get(), size}, memory, false, "fuzz"};
  const uint32_t choice = hash(source.bytes);
  const auto check = [&](const Graph& graph) {
    if (choice % 4 == 0) verify(graph);
  };
  volatile uint8_t sink = 0;
  if (is_payload(source.bytes)) {
    answer([&] { check(*import_payload(source)); });
    return 0;
  }
  answer([&] {
    const Bundle bundle = read_bundle(source);
    sink = touch(bundle);
    if (choice % 16 == 1) answer([&] { program_text(bundle, "text"); });
    if (choice % 16 == 2) answer([&] { program_text(bundle, "json"); });
    for (const Method& method : bundle.program.methods)
      if (choice % 256 == 3 || !has_loop(method))
        answer([&] { check(*import_method(bundle.program, method)); });
  });
  (void)sink;
  return 0;
}
