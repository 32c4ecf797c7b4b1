// SPDX-License-Identifier: Apache-2.0
// What the machine can do at most, for scripts/bench ops: multiply-adds of each instruction set
// that is there, and bytes from each level of the memory, on one thread and on several. Prints
// JSON.
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTurns = 7;  // the best counts: others may take the core away
constexpr double kTurnSeconds = 0.03;
constexpr int kChains = 10;  // independent sums: more than an FMA's latency times its ports

// A piece of work, done `times` times over; what it gives keeps the compiler from leaving it out.
using Work = std::function<float(int64_t times)>;

struct Probe {
  std::string name, unit;
  double each;                 // operations or bytes of one time
  std::function<Work()> make;  // for one thread
};

#if defined(__x86_64__)

// Each sum in a register of its own: an array of them may end up in memory.
#define EACH(DO) \
  DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13)
#define KEEP(SUM) asm volatile("" : "+v"(SUM));
#define CHAINS(NAME, TARGET, VECTOR, ZERO, FACTOR, NEXT)                               \
  [[gnu::target(TARGET)]] float NAME(int64_t times) {                                  \
    const auto a = FACTOR;                                                             \
    VECTOR s0 = ZERO, s1 = s0, s2 = s0, s3 = s0, s4 = s0;                              \
    VECTOR s5 = s0, s6 = s0, s7 = s0, s8 = s0, s9 = s0;                                \
    VECTOR s10 = s0, s11 = s0, s12 = s0, s13 = s0;                                     \
    for (int64_t i = 0; i < times; ++i) {                                              \
      EACH(NEXT)                                                                       \
    }                                                                                  \
    const VECTOR all[] = {s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13}; \
    float first;                                                                       \
    std::memcpy(&first, all, sizeof(first));                                           \
    return first;                                                                      \
  }

#define NEXT_SSE4(I)                         \
  s##I = _mm_add_ps(_mm_mul_ps(s##I, a), a); \
  KEEP(s##I)
CHAINS(chains_sse4, "sse4.1", __m128, _mm_setzero_ps(), _mm_set1_ps(0.5f), NEXT_SSE4)
#define NEXT_AVX2(I)                  \
  s##I = _mm256_fmadd_ps(s##I, a, a); \
  KEEP(s##I)
CHAINS(chains_avx2, "avx2,fma", __m256, _mm256_setzero_ps(), _mm256_set1_ps(0.5f), NEXT_AVX2)
#define NEXT_AVX512(I)                \
  s##I = _mm512_fmadd_ps(s##I, a, a); \
  KEEP(s##I)
CHAINS(chains_avx512, "avx512f", __m512, _mm512_setzero_ps(), _mm512_set1_ps(0.5f), NEXT_AVX512)
#define NEXT_VNNI(I)                      \
  s##I = _mm512_dpbusd_epi32(s##I, a, a); \
  KEEP(s##I)
CHAINS(chains_vnni, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(), _mm512_set1_epi8(1),
       NEXT_VNNI)
#define NEXT_BF16(I)                   \
  s##I = _mm512_dpbf16_ps(s##I, a, a); \
  KEEP(s##I)
CHAINS(chains_bf16, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(),
       reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f80)), NEXT_BF16)

#endif

std::vector<Probe> peaks() {
  std::vector<Probe> list;
#if defined(__x86_64__)
  const auto add = [&](const char* name, bool there, int lanes, int per_lane,
                       float (*chains)(int64_t)) {
    if (there)
      list.push_back({name, "flops", 2.0 * kChains * lanes * per_lane, [=] { return chains; }});
  };
  __builtin_cpu_init();
  add("sse4 f32", __builtin_cpu_supports("sse4.1"), 4, 1, chains_sse4);
  add("avx2 f32", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), 8, 1,
      chains_avx2);
  add("avx512 f32", __builtin_cpu_supports("avx512f"), 16, 1, chains_avx512);
  add("avx512 i8", __builtin_cpu_supports("avx512vnni"), 16, 4, chains_vnni);
  add("avx512 bf16", __builtin_cpu_supports("avx512bf16"), 16, 2, chains_bf16);
#endif
  return list;
}

// Compiled for the least that is there: a cache line a cycle does not need wider registers, but the
// L1 cache gives more than 16 bytes a load.
#if defined(__x86_64__)
#define ANYMPS_WIDE [[gnu::target_clones("avx512f", "avx2", "default")]]
#else
#define ANYMPS_WIDE
#endif

typedef float Lanes __attribute__((vector_size(64)));

ANYMPS_WIDE float read_all(const Lanes* data, int64_t count) {
  Lanes s0 = {}, s1 = {}, s2 = {}, s3 = {}, s4 = {}, s5 = {}, s6 = {}, s7 = {};
  for (const Lanes* end = data + count; data < end; data += 8) {
    s0 += data[0], s1 += data[1], s2 += data[2], s3 += data[3];
    s4 += data[4], s5 += data[5], s6 += data[6], s7 += data[7];
  }
  return (s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7)[0];
}

ANYMPS_WIDE void copy_all(const Lanes* from, Lanes* to, int64_t count) {
  for (const Lanes* end = from + count; from < end; from += 4, to += 4)
    to[0] = from[0], to[1] = from[1], to[2] = from[2], to[3] = from[3];
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

std::shared_ptr<Lanes> memory_of(size_t bytes) {
  std::shared_ptr<Lanes> memory(static_cast<Lanes*>(std::aligned_alloc(4096, bytes)), Free());
  if (!memory) std::exit(1);
  std::memset(memory.get(), 0, bytes);
  return memory;
}

// `bytes`: of the working set of one thread.
std::vector<Probe> bandwidths(const std::string& level, size_t bytes) {
  bytes = bytes / 8192 * 8192;
  const auto count = static_cast<int64_t>(bytes / sizeof(Lanes));
  return {{level + " read", "bytes", static_cast<double>(bytes),
           [=]() -> Work {
             return [=, data = memory_of(bytes)](int64_t times) {
               float sum = 0;
               for (int64_t i = 0; i < times; ++i) {
                 sum += read_all(data.get(), count);
                 asm volatile("" ::: "memory");
               }
               return sum;
             };
           }},
          {level + " copy", "bytes", static_cast<double>(bytes), [=]() -> Work {
             return [=, data = memory_of(bytes)](int64_t times) {
               for (int64_t i = 0; i < times; ++i) {
                 copy_all(data.get(), data.get() + count / 2, count / 2);
                 asm volatile("" ::: "memory");
               }
               return (*data)[0];
             };
           }}};
}

double seconds_of(const Work& work, int64_t times) {
  const auto start = Clock::now();
  float result = work(times);
  asm volatile("" : "+m"(result));
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Operations or bytes a second of all threads together, in stretches of time in which all work.
double measure(const Probe& probe, int threads) {
  std::barrier together(threads);
  std::vector<double> rates(static_cast<size_t>(threads));
  double most = 0;
  const auto member = [&](size_t number) {
    const Work work = probe.make();
    int64_t times = 1;
    while (seconds_of(work, times) < kTurnSeconds / 4) times *= 2;
    for (int turn = 0; turn < kTurns; ++turn) {
      together.arrive_and_wait();
      rates[number] = static_cast<double>(4 * times) * probe.each / seconds_of(work, 4 * times);
      together.arrive_and_wait();
      if (number == 0) most = std::max(most, std::accumulate(rates.begin(), rates.end(), 0.0));
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(member, static_cast<size_t>(t));
  member(0);
  for (std::thread& thread : others) thread.join();
  return most;
}

size_t cache_bytes(int name, size_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<size_t>(bytes) : otherwise;
}

std::vector<int> numbers_of(const char* list) {
  std::vector<int> numbers;
  for (const char* at = list; *at; ++at) {
    numbers.push_back(std::max(1, std::atoi(at)));
    at = std::strchr(at, ',');
    if (!at) break;
  }
  return numbers;
}

}  // namespace

// roofline THREADS[,THREADS…]
int main(int count, char** words) {
  const std::vector<int> teams = numbers_of(count > 1 ? words[1] : "1");
  const size_t l1 = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
  const size_t l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
  const size_t l3 = cache_bytes(_SC_LEVEL3_CACHE_SIZE, 16 << 20);
  std::printf("{\"caches\": {\"L1\": %zu, \"L2\": %zu, \"L3\": %zu},\n \"limits\": [", l1, l2, l3);
  const char* comma = "";
  for (const int threads : teams) {
    // The last cache may be shared with other guests of the machine: a part of it is surely there.
    const auto team = static_cast<size_t>(threads);
    const size_t far = std::max(2 * l2, std::min<size_t>(l3, 32 << 20) / 4 / team);
    const size_t memory = std::min<size_t>(std::max<size_t>(4 * l3, 256 << 20), 1 << 30) / team;
    std::vector<Probe> probes = peaks();
    for (const auto& [level, bytes] : {std::pair("L1", l1 / 2), std::pair("L2", l2 / 2),
                                       std::pair("L3", far), std::pair("memory", memory)})
      for (Probe& probe : bandwidths(level, bytes)) probes.push_back(std::move(probe));
    for (const Probe& probe : probes) {
      std::printf(
          "%s\n  {\"name\": \"%s\", \"threads\": %d, \"unit\": \"%s\", \"per_second\": %.4g}",
          comma, probe.name.c_str(), threads, probe.unit.c_str(), measure(probe, threads));
      comma = ",";
    }
  }
  std::printf("]}\n");
}
