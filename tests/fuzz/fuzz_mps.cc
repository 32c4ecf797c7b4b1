// SPDX-License-Identifier: Apache-2.0
// Any bytes as an .mps file: they give a graph that holds together, or an Error. Checksums are not
// looked at, or nothing would get past them; every constant is read to its last byte. A graph that
// was read is written to memory and read from there.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "formats/mps/mps.h"
#include "graph/printer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr std::align_val_t kAlignment{64};
  const std::shared_ptr<char> copy(static_cast<char*>(::operator new(size + 1, kAlignment)),
                                   [](char* p) { ::operator delete(p, kAlignment); });
  std::memcpy(copy.get(), data, size);
  volatile uint8_t sink = 0;
  try {
    anymps::Metadata metadata;
    const auto graph = anymps::load_mps({copy.get(), size}, copy, false, "fuzz.mps", &metadata,
                                        {.verify_constants = false, .verify_structure = false});
    anymps::verify(*graph);
    sink = static_cast<uint8_t>(anymps::to_text(*graph).size() + anymps::to_json(*graph).size() +
                                metadata.size());
    // What was read can be written to memory, and is read from there again.
    const auto bytes = std::make_shared<const std::string>(anymps::mps_bytes(*graph, metadata));
    const auto again = anymps::load_mps(*bytes, bytes, false, "again.mps");
    if (anymps::to_text(*again) != anymps::to_text(*graph)) std::abort();
    for (const anymps::Value* value : graph->values()) {
      if (!value->is_constant()) continue;
      const auto bytes = value->constant->data();
      for (size_t i = 0; i < value->constant->bytes(); ++i)
        sink = sink ^ static_cast<uint8_t>(bytes.get()[i]);
    }
  } catch (const anymps::Error&) {
  }
  (void)sink;
  return 0;
}
