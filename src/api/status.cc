// SPDX-License-Identifier: Apache-2.0
// Status, strings and dtypes of the C interface.
#include "api/handles.h"
#include "base/text.h"

namespace anymps::api {

namespace {
thread_local std::string last_error;
constexpr size_t kMaxRank = 64;
}  // namespace

amps_status record_error(Code code, const char* message) noexcept {
  try {
    last_error = shown(message);  // names in it may hold anything
  } catch (...) {
    last_error.clear();
  }
  return static_cast<amps_status>(code);
}

void clear_error() noexcept { last_error.clear(); }
const char* last_error_text() noexcept { return last_error.c_str(); }

DType checked_dtype(amps_dtype dtype) {
  const int code = static_cast<int>(dtype);
  require(code >= 0 && code < kDTypeCount, "[api] {} is not a dtype", code);
  return static_cast<DType>(code);
}

Shape checked_shape(size_t rank, const int64_t* dims) {
  require(rank <= kMaxRank, "[api] rank {} is too large", rank);
  require(rank == 0 || dims != nullptr, "[api] dims is NULL");
  return Shape(dims, dims + rank);
}

}  // namespace anymps::api

using namespace anymps;
using namespace anymps::api;

extern "C" {

const char* amps_last_error(void) { return last_error_text(); }
const char* amps_status_name(amps_status status) { return name(static_cast<Code>(status)); }
int amps_abi_version(void) { return AMPS_ABI_VERSION; }
const char* amps_version(void) { return ANYMPS_VERSION; }

const char* amps_string_data(const amps_string* string) {
  return string ? string->text.c_str() : "";
}
size_t amps_string_size(const amps_string* string) { return string ? string->text.size() : 0; }
void amps_string_release(amps_string* string) { delete string; }

const char* amps_dtype_name(amps_dtype dtype) { return name(static_cast<DType>(dtype)); }
size_t amps_dtype_size(amps_dtype dtype) {
  const int code = static_cast<int>(dtype);
  return code >= 0 && code < kDTypeCount ? size_of(static_cast<DType>(dtype)) : 0;
}
amps_status amps_dtype_parse(const char* text, amps_dtype* dtype) {
  return guard(
      [&] { need(dtype, "dtype") = static_cast<amps_dtype>(parse_dtype(&need(text, "name"))); });
}

}  // extern "C"
