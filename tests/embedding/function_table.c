/* SPDX-License-Identifier: Apache-2.0
 * The engine as a guest sees it that loads it by hand: one symbol is looked up, all else goes
 * through the table. A program of its own, and a library that a process with another framework in
 * it loads (test_beside_frameworks.py). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "anymps/anymps.h"

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
              api ? api->last_error() : "");                                          \
      return 1;                                                                       \
    }                                                                                 \
  } while (0)

static int product(const amps_api* api, amps_device* device) {
  enum { kSize = 64 };
  static float ones[kSize * kSize], result[kSize * kSize];
  static uint16_t half_ones[kSize * kSize], half_result[kSize * kSize];
  const int64_t dims[] = {kSize, kSize};
  amps_tensor *x[2] = {NULL, NULL}, *y = NULL;
  for (int i = 0; i < kSize * kSize; ++i) {
    ones[i] = 1;
    half_ones[i] = 0x3f80; /* 1 in bf16 */
  }
  CHECK(api->tensor_from_host(device, AMPS_F32, 2, dims, NULL, ones, &x[0]) == AMPS_OK);
  x[1] = x[0];
  CHECK(api->eager(device, api->op_find("matmul"), x, 2, NULL, 0, &y, 1) == AMPS_OK);
  CHECK(api->tensor_to_host(y, result, sizeof(result)) == AMPS_OK);
  api->tensor_release(y);
  api->tensor_release(x[0]);
  y = NULL;
  CHECK(api->tensor_from_host(device, AMPS_BF16, 2, dims, NULL, half_ones, &x[0]) == AMPS_OK);
  x[1] = x[0];
  CHECK(api->eager(device, api->op_find("matmul"), x, 2, NULL, 0, &y, 1) == AMPS_OK);
  CHECK(api->tensor_to_host(y, half_result, sizeof(half_result)) == AMPS_OK);
  api->tensor_release(y);
  api->tensor_release(x[0]);
  for (int i = 0; i < kSize * kSize; ++i) CHECK(result[i] == kSize && half_result[i] == 0x4280);
  return 0;
}

static int convolution(const amps_api* api, amps_device* device) {
  static float image[16 * 32 * 32], weights[16 * 16 * 3 * 3], result[16 * 30 * 30];
  const int64_t image_dims[] = {1, 16, 32, 32}, weight_dims[] = {16, 16, 3, 3};
  amps_tensor *x[2] = {NULL, NULL}, *y = NULL;
  for (size_t i = 0; i < sizeof(image) / sizeof(float); ++i) image[i] = 1;
  for (size_t i = 0; i < sizeof(weights) / sizeof(float); ++i) weights[i] = 2;
  CHECK(api->tensor_from_host(device, AMPS_F32, 4, image_dims, NULL, image, &x[0]) == AMPS_OK);
  CHECK(api->tensor_from_host(device, AMPS_F32, 4, weight_dims, NULL, weights, &x[1]) == AMPS_OK);
  CHECK(api->eager(device, api->op_find("conv"), x, 2, NULL, 0, &y, 1) == AMPS_OK);
  CHECK(api->tensor_to_host(y, result, sizeof(result)) == AMPS_OK);
  for (size_t i = 0; i < sizeof(result) / sizeof(float); ++i) CHECK(result[i] == 2 * 16 * 9);
  api->tensor_release(y);
  api->tensor_release(x[1]);
  api->tensor_release(x[0]);
  return 0;
}

static int singular_values(const amps_api* api, amps_device* device) {
  const double matrix[] = {0, 3, 4, 0};
  const int64_t dims[] = {2, 2};
  double values[2];
  amps_tensor *x = NULL, *y[3] = {NULL, NULL, NULL};
  CHECK(api->tensor_from_host(device, AMPS_F64, 2, dims, NULL, matrix, &x) == AMPS_OK);
  CHECK(api->eager(device, api->op_find("svd"), &x, 1, NULL, 0, y, 3) == AMPS_OK);
  CHECK(api->tensor_to_host(y[1], values, sizeof(values)) == AMPS_OK);
  CHECK(fabs(values[0] - 4) < 1e-12 && fabs(values[1] - 3) < 1e-12);
  for (int i = 0; i < 3; ++i) api->tensor_release(y[i]);
  api->tensor_release(x);
  return 0;
}

/* 0 when all is well. `deep`: with RTLD_DEEPBIND, so that the engine's own scope comes first. */
__attribute__((visibility("default"))) int check_function_table(const char* path, int deep) {
  const amps_api* api = NULL;
  const amps_api* (*get)(int) = NULL;
  amps_device* device = NULL;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL | (deep ? RTLD_DEEPBIND : 0));
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  *(void**)&get = dlsym(library, "amps_get_api");
  CHECK(get != NULL);
  CHECK(get(0) == NULL && get(AMPS_ABI_VERSION + 1) == NULL && get(-1) == NULL);
  api = get(AMPS_ABI_VERSION);
  CHECK(api != NULL && api->size == sizeof(amps_api));
#define FILLED(name) CHECK(api->name != NULL && (void*)api->name == dlsym(library, "amps_" #name));
  AMPS_API_FUNCTIONS(FILLED)
#undef FILLED
  CHECK(api->abi_version() == AMPS_ABI_VERSION);
  CHECK(api->device_get("no such device", &device) == AMPS_NOT_FOUND);
  CHECK(strstr(api->last_error(), "no such device") != NULL);
  CHECK(api->device_get("cpu", &device) == AMPS_OK);
  return product(api, device) || convolution(api, device) || singular_values(api, device);
}

int main(int count, char** arguments) {
  const int failed = count < 2 || check_function_table(
                                      arguments[1], count > 2 && strcmp(arguments[2], "deep") == 0);
  puts(failed ? "failed" : "all through the table");
  return failed;
}
