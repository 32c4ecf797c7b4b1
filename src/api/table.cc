// SPDX-License-Identifier: Apache-2.0
// The C interface as one table, for those who load the library by hand: one symbol to look up,
// nothing to bind.
#include "anymps/anymps.h"

extern "C" const amps_api* amps_get_api(int version) {
#define AMPS_API_ENTRY(name) amps_##name,
  static constexpr amps_api kTable = {sizeof(amps_api), AMPS_API_FUNCTIONS(AMPS_API_ENTRY)};
#undef AMPS_API_ENTRY
  return version >= 1 && version <= AMPS_ABI_VERSION ? &kTable : nullptr;
}
