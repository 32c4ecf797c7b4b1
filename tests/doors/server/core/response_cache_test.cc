// SPDX-License-Identifier: Apache-2.0
// The response cache: what is the same request, what is kept, what goes first.
#include "server/core/response_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "scheduling/fake_instance.h"

namespace anymps::server {
namespace {

using test::Answers;
using test::bytes_of;
using test::floats;

Request make(std::vector<InputTensor> inputs) {
  Request request;
  request.model = "m";
  request.inputs = std::move(inputs);
  return request;
}

Response answer(float value, size_t count = 4) {
  const std::vector<float> data(count, value);
  Response response;
  response.model = "m";
  response.id = "first";
  response.outputs.push_back(
      {"y", AMPS_F32, {1, static_cast<int64_t>(count)}, bytes_of(data.data(), 4 * count)});
  return response;
}

TEST(ResponseCache, FindsTheSameContent) {
  ResponseCache cache(1 << 20);
  const std::string key = cache.key(make({floats("a", {1, 2}, 1), floats("b", {1, 2}, 2)}));
  ASSERT_FALSE(key.empty());
  EXPECT_FALSE(cache.find(key));
  cache.insert(key, answer(7));
  // The order of the inputs and the pieces they come in do not matter.
  InputTensor a = floats("a", {1, 2}, 1);
  const Buffer whole = a.buffers[0];
  a.buffers = {{whole.owner, whole.data, 3}, {whole.owner, whole.data + 3, 5}};
  const std::string again = cache.key(make({floats("b", {1, 2}, 2), a}));
  const std::optional<Response> found = cache.find(again);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id, "");
  EXPECT_EQ(found->outputs[0].name, "y");
  float value = 0;
  std::memcpy(&value, found->outputs[0].data.data + 12, 4);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(cache.usage().hits, 1u);
  EXPECT_EQ(cache.usage().misses, 1u);
}

TEST(ResponseCache, DifferentRequestsHaveDifferentKeys) {
  const ResponseCache cache(1 << 20);
  std::vector<Request> requests;
  requests.push_back(make({floats("a", {1, 2}, 1)}));
  requests.push_back(make({floats("a", {1, 2}, 2)}));
  requests.push_back(make({floats("a", {2, 1}, 1)}));
  requests.push_back(make({floats("b", {1, 2}, 1)}));
  requests.push_back(make({floats("a", {1, 2}, 1), floats("b", {1, 0}, 1)}));
  requests.push_back(make({floats("a", {1, 2}, 1)}));
  requests.back().model = "n";
  requests.push_back(make({floats("a", {1, 2}, 1)}));
  requests.back().version = 3;
  requests.push_back(make({floats("a", {1, 2}, 1)}));
  requests.back().inputs[0].dtype = AMPS_I32;
  requests.push_back(make({floats("a", {1, 2}, 1)}));
  requests.back().outputs.push_back({"y", 0, {}});
  requests.push_back(make({floats("a", {1, 2}, 1)}));
  requests.back().outputs.push_back({"y", 3, {}});
  std::set<std::string> keys;
  for (const Request& request : requests) keys.insert(cache.key(request));
  EXPECT_EQ(keys.size(), requests.size());
  // What does not change the answer is not part of the key.
  Request other = make({floats("a", {1, 2}, 1)});
  other.id = "other", other.priority = 2;
  EXPECT_EQ(cache.key(other), cache.key(requests[0]));
}

TEST(ResponseCache, SequencesAndSharedMemoryHaveNoKey) {
  const ResponseCache cache(1 << 20), off(0);
  Request sequence = make({floats("a", {1, 2}, 1)});
  sequence.sequence = uint64_t{5};
  EXPECT_EQ(cache.key(sequence), "");
  Request shared = make({floats("a", {1, 2}, 1)});
  float target = 0;
  shared.outputs.push_back({"y", 0, bytes_of(&target, 4)});
  EXPECT_EQ(cache.key(shared), "");
  EXPECT_EQ(off.key(make({floats("a", {1, 2}, 1)})), "");
}

TEST(ResponseCache, TheLeastRecentlyUsedGoesFirst) {
  ResponseCache cache(4096);
  const auto key = [&](float value) { return cache.key(make({floats("a", {1, 2}, value)})); };
  cache.insert(key(1), answer(1, 256));
  cache.insert(key(2), answer(2, 256));
  EXPECT_EQ(cache.usage().entries, 2u);
  EXPECT_TRUE(cache.find(key(1)));
  cache.insert(key(3), answer(3, 256));  // no room for three
  EXPECT_EQ(cache.usage().evictions, 1u);
  EXPECT_TRUE(cache.find(key(1)));
  EXPECT_FALSE(cache.find(key(2)));
  EXPECT_TRUE(cache.find(key(3)));
  EXPECT_LE(cache.usage().bytes, 4096u);
  cache.insert(key(4), answer(4, 4096));  // larger than the cache
  EXPECT_FALSE(cache.find(key(4)));
  EXPECT_TRUE(cache.find(key(1)));
}

TEST(ResponseCache, ErrorsAreNotKept) {
  ResponseCache cache(4096);
  const std::string key = cache.key(make({floats("a", {1, 2}, 1)}));
  Response response = answer(1);
  response.error = Error(Code::kInternal, "no");
  cache.insert(key, response);
  EXPECT_FALSE(cache.find(key));
}

TEST(ResponseCache, AModelIsForgotten) {
  ResponseCache cache(1 << 20);
  Request other = make({floats("a", {1, 2}, 1)});
  other.model = "n";
  Response of_other = answer(2);
  of_other.model = "n";
  cache.insert(cache.key(make({floats("a", {1, 2}, 1)})), answer(1));
  cache.insert(cache.key(other), of_other);
  const std::optional<Response> kept = cache.find(cache.key(make({floats("a", {1, 2}, 1)})));
  cache.forget_model("m");
  EXPECT_FALSE(cache.find(cache.key(make({floats("a", {1, 2}, 1)}))));
  EXPECT_TRUE(cache.find(cache.key(other)));
  EXPECT_EQ(cache.usage().entries, 1u);
  float value = 0;  // an answer outlives its entry
  std::memcpy(&value, kept->outputs[0].data.data, 4);
  EXPECT_EQ(value, 1);
}

TEST(ResponseCache, ThreadsGetTheAnswerOfTheirKey) {
  ResponseCache cache(16 << 10);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 400; ++i) {
        const float value = static_cast<float>((i * 7 + t) % 40);
        const std::string key = cache.key(make({floats("a", {1, 2}, value)}));
        if (const auto found = cache.find(key)) {
          float got = -1;
          std::memcpy(&got, found->outputs[0].data.data, 4);
          if (got != value) ++wrong;
        } else {
          cache.insert(key, answer(value, 128));
        }
        if (i % 100 == 99) cache.forget_model("m");
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache.usage().bytes, cache.usage().capacity);
}

}  // namespace
}  // namespace anymps::server
