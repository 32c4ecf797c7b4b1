// SPDX-License-Identifier: Apache-2.0
// The part of Triton's backend interface that is used here. No package ships Triton's headers, so
// the declarations are our own; the values of the enumerations are part of the binary interface.
// The functions are found in the process when the backend is loaded: the server may be a program
// or a library inside another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "serving/error.h"

extern "C" {
struct TRITONSERVER_Error;
struct TRITONSERVER_Message;
struct TRITONBACKEND_Backend;
struct TRITONBACKEND_BackendAttribute;
struct TRITONBACKEND_Model;
struct TRITONBACKEND_ModelInstance;
struct TRITONBACKEND_Request;
struct TRITONBACKEND_Input;
struct TRITONBACKEND_Response;
struct TRITONBACKEND_Output;
struct TRITONBACKEND_State;
}

namespace anymps::triton {

inline constexpr uint32_t kApiMajor = 1;
inline constexpr uint32_t kApiMinor = 4;  // the lowest that has all required functions

using DataType = int;  // serving/datatype.h has the numbers
enum MemoryType : int { kCpu, kCpuPinned, kGpu };
enum InstanceKind : int { kKindAuto, kKindCpu, kKindGpu, kKindModel };
enum LogLevel : int { kLogInfo, kLogWarning, kLogError, kLogVerbose };
enum ArtifactType : int { kFilesystem };
inline constexpr uint32_t kReleaseAll = 1;
inline constexpr uint32_t kResponseFinal = 1;

using Failure = TRITONSERVER_Error*;  // null: success

// REQUIRED and OPTIONAL (return type, name, parameters). Optional ones are null in older servers.
#define TRITON_FUNCTIONS(REQUIRED, OPTIONAL)                                                       \
  REQUIRED(Failure, TRITONSERVER_ErrorNew, (int code, const char* message))                        \
  REQUIRED(void, TRITONSERVER_ErrorDelete, (TRITONSERVER_Error * error))                           \
  REQUIRED(int, TRITONSERVER_ErrorCode, (TRITONSERVER_Error * error))                              \
  REQUIRED(const char*, TRITONSERVER_ErrorMessage, (TRITONSERVER_Error * error))                   \
  REQUIRED(bool, TRITONSERVER_LogIsEnabled, (LogLevel level))                                      \
  REQUIRED(Failure, TRITONSERVER_LogMessage,                                                       \
           (LogLevel level, const char* file, int line, const char* message))                      \
  REQUIRED(Failure, TRITONSERVER_MessageNewFromSerializedJson,                                     \
           (TRITONSERVER_Message * *message, const char* base, size_t bytes))                      \
  REQUIRED(Failure, TRITONSERVER_MessageSerializeToJson,                                           \
           (TRITONSERVER_Message * message, const char** base, size_t* bytes))                     \
  REQUIRED(Failure, TRITONSERVER_MessageDelete, (TRITONSERVER_Message * message))                  \
  REQUIRED(Failure, TRITONBACKEND_ApiVersion, (uint32_t * major, uint32_t * minor))                \
  REQUIRED(Failure, TRITONBACKEND_BackendConfig,                                                   \
           (TRITONBACKEND_Backend * backend, TRITONSERVER_Message * *config))                      \
  REQUIRED(Failure, TRITONBACKEND_BackendState, (TRITONBACKEND_Backend * backend, void** state))   \
  REQUIRED(Failure, TRITONBACKEND_BackendSetState, (TRITONBACKEND_Backend * backend, void* state)) \
  OPTIONAL(Failure, TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup,                       \
           (TRITONBACKEND_BackendAttribute * attributes, InstanceKind kind, uint64_t count,        \
            const uint64_t* device_ids, uint64_t id_count))                                        \
  OPTIONAL(Failure, TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading,                 \
           (TRITONBACKEND_BackendAttribute * attributes, bool enabled))                            \
  REQUIRED(Failure, TRITONBACKEND_ModelBackend,                                                    \
           (TRITONBACKEND_Model * model, TRITONBACKEND_Backend * *backend))                        \
  REQUIRED(Failure, TRITONBACKEND_ModelName, (TRITONBACKEND_Model * model, const char** name))     \
  REQUIRED(Failure, TRITONBACKEND_ModelVersion, (TRITONBACKEND_Model * model, uint64_t * version)) \
  REQUIRED(Failure, TRITONBACKEND_ModelRepository,                                                 \
           (TRITONBACKEND_Model * model, ArtifactType * type, const char** location))              \
  REQUIRED(Failure, TRITONBACKEND_ModelConfig,                                                     \
           (TRITONBACKEND_Model * model, uint32_t version, TRITONSERVER_Message * *config))        \
  REQUIRED(Failure, TRITONBACKEND_ModelAutoCompleteConfig,                                         \
           (TRITONBACKEND_Model * model, bool* complete))                                          \
  REQUIRED(Failure, TRITONBACKEND_ModelSetConfig,                                                  \
           (TRITONBACKEND_Model * model, uint32_t version, TRITONSERVER_Message * config))         \
  REQUIRED(Failure, TRITONBACKEND_ModelState, (TRITONBACKEND_Model * model, void** state))         \
  REQUIRED(Failure, TRITONBACKEND_ModelSetState, (TRITONBACKEND_Model * model, void* state))       \
  REQUIRED(Failure, TRITONBACKEND_ModelInstanceName,                                               \
           (TRITONBACKEND_ModelInstance * instance, const char** name))                            \
  REQUIRED(Failure, TRITONBACKEND_ModelInstanceKind,                                               \
           (TRITONBACKEND_ModelInstance * instance, InstanceKind * kind))                          \
  REQUIRED(Failure, TRITONBACKEND_ModelInstanceModel,                                              \
           (TRITONBACKEND_ModelInstance * instance, TRITONBACKEND_Model * *model))                 \
  REQUIRED(Failure, TRITONBACKEND_ModelInstanceState,                                              \
           (TRITONBACKEND_ModelInstance * instance, void** state))                                 \
  REQUIRED(Failure, TRITONBACKEND_ModelInstanceSetState,                                           \
           (TRITONBACKEND_ModelInstance * instance, void* state))                                  \
  REQUIRED(Failure, TRITONBACKEND_ModelInstanceReportStatistics,                                   \
           (TRITONBACKEND_ModelInstance * instance, TRITONBACKEND_Request * request, bool success, \
            uint64_t start, uint64_t compute_start, uint64_t compute_end, uint64_t end))           \
  REQUIRED(Failure, TRITONBACKEND_ModelInstanceReportBatchStatistics,                              \
           (TRITONBACKEND_ModelInstance * instance, uint64_t batch_size, uint64_t start,           \
            uint64_t compute_start, uint64_t compute_end, uint64_t end))                           \
  OPTIONAL(Failure, TRITONBACKEND_RequestIsCancelled,                                              \
           (TRITONBACKEND_Request * request, bool* cancelled))                                     \
  REQUIRED(Failure, TRITONBACKEND_RequestInputCount,                                               \
           (TRITONBACKEND_Request * request, uint32_t * count))                                    \
  REQUIRED(Failure, TRITONBACKEND_RequestInputByIndex,                                             \
           (TRITONBACKEND_Request * request, uint32_t index, TRITONBACKEND_Input * *input))        \
  REQUIRED(Failure, TRITONBACKEND_RequestOutputCount,                                              \
           (TRITONBACKEND_Request * request, uint32_t * count))                                    \
  REQUIRED(Failure, TRITONBACKEND_RequestOutputName,                                               \
           (TRITONBACKEND_Request * request, uint32_t index, const char** name))                   \
  REQUIRED(Failure, TRITONBACKEND_RequestRelease,                                                  \
           (TRITONBACKEND_Request * request, uint32_t flags))                                      \
  REQUIRED(Failure, TRITONBACKEND_InputProperties,                                                 \
           (TRITONBACKEND_Input * input, const char** name, DataType* datatype,                    \
            const int64_t** shape, uint32_t* dims_count, uint64_t* bytes, uint32_t* buffers))      \
  REQUIRED(Failure, TRITONBACKEND_InputBuffer,                                                     \
           (TRITONBACKEND_Input * input, uint32_t index, const void** buffer, uint64_t* bytes,     \
            MemoryType* memory, int64_t* memory_id))                                               \
  REQUIRED(Failure, TRITONBACKEND_ResponseNew,                                                     \
           (TRITONBACKEND_Response * *response, TRITONBACKEND_Request * request))                  \
  REQUIRED(Failure, TRITONBACKEND_ResponseOutput,                                                  \
           (TRITONBACKEND_Response * response, TRITONBACKEND_Output * *output, const char* name,   \
            DataType datatype, const int64_t* shape, uint32_t dims_count))                         \
  REQUIRED(Failure, TRITONBACKEND_ResponseSend,                                                    \
           (TRITONBACKEND_Response * response, uint32_t flags, TRITONSERVER_Error * error))        \
  REQUIRED(Failure, TRITONBACKEND_OutputBuffer,                                                    \
           (TRITONBACKEND_Output * output, void** buffer, uint64_t bytes, MemoryType* memory,      \
            int64_t* memory_id))                                                                   \
  OPTIONAL(Failure, TRITONBACKEND_StateNew,                                                        \
           (TRITONBACKEND_State * *state, TRITONBACKEND_Request * request, const char* name,       \
            DataType datatype, const int64_t* shape, uint32_t dims_count))                         \
  OPTIONAL(Failure, TRITONBACKEND_StateUpdate, (TRITONBACKEND_State * state))                      \
  OPTIONAL(Failure, TRITONBACKEND_StateBuffer,                                                     \
           (TRITONBACKEND_State * state, void** buffer, uint64_t bytes, MemoryType* memory,        \
            int64_t* memory_id))

// clang-format off
struct Api {
#define TRITON_MEMBER(type, name, parameters) type(*name) parameters = nullptr;
  TRITON_FUNCTIONS(TRITON_MEMBER, TRITON_MEMBER)
#undef TRITON_MEMBER
};
// clang-format on

// The functions of the server that runs this backend; filled by load_api.
extern Api api;

// Finds all functions and checks the version. Returns what is wrong; "": nothing.
std::string load_api();

// Throws serving::Error for an error of Triton, which is deleted.
void check(Failure failure);
// For calls whose failure changes nothing: to the log.
void log_failure(Failure failure, const char* what);
void log(LogLevel level, const std::string& message);
Failure to_failure(const serving::Error& error);

}  // namespace anymps::triton
