// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of ExecuTorch: a program, a bundle of one or the payload of a delegate, by
// their content. They become a graph or give an Error, and nothing else ever happens. Every view
// that the readers give out is read to its last byte, so that ASan sees one that points outside.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "importers/executorch/import.h"
#include "importers/executorch/payload.h"
#include "importers/executorch/program_text.h"

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Weights are used where they lie, and files are mapped at a page.
  std::shared_ptr<char[]> memory(
      static_cast<char*>(::operator new[](size ? size : 1, std::align_val_t(64))),
      [](char* p) { ::operator delete[](p, std::align_val_t(64)); });
  std::memcpy(memory.get(), data, size);
  const Source source{{memory.get(), size}, memory, false, "fuzz"};
  volatile uint8_t sink = 0;
  if (is_payload(source.bytes)) {
    answer([&] { verify(*import_payload(source)); });
    return 0;
  }
  answer([&] {
    const Bundle bundle = read_bundle(source);
    sink = touch(bundle);
    answer([&] { program_text(bundle, "text"); });
    answer([&] { program_text(bundle, "json"); });
    for (const Method& method : bundle.program.methods)
      answer([&] { verify(*import_method(bundle.program, method)); });
  });
  (void)sink;
  return 0;
}
