// SPDX-License-Identifier: Apache-2.0
// Heads and chunks of HTTP/1.1, and the paths of the protocol.
#include "server/http/transport/message.h"

#include <gtest/gtest.h>

#include "server/http/base64.h"
#include "server/http/routes.h"

namespace anymps::server::http {
namespace {

int status_for(const std::string& text) {
  try {
    return parse_head(text) ? 200 : 0;
  } catch (const BadMessage& bad) {
    return bad.status;
  }
}

std::string repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(HttpMessage, ReadsHeads) {
  const std::string text =
      "POST /v2/models/a%20b/infer?x=1 HTTP/1.1\r\nhost: h\r\nCONTENT-Length: 12\r\n"
      "Expect: 100-continue\r\nX-Y:  z \r\n\r\nrest";
  const auto parsed = parse_head(text);
  ASSERT_TRUE(parsed);
  const Head& head = parsed->first;
  EXPECT_EQ(parsed->second, text.size() - 4);
  EXPECT_EQ(head.method, Method::kPost);
  EXPECT_EQ(head.path, "/v2/models/a%20b/infer");
  EXPECT_EQ(head.content_length, 12u);
  EXPECT_TRUE(head.keep_alive && head.expects_continue && !head.chunked);
  ASSERT_TRUE(head.header("x-y"));
  EXPECT_EQ(*head.header("x-y"), "z");
  EXPECT_EQ(head.header("x"), nullptr);
  EXPECT_FALSE(parse_head("GET / HTTP/1.0\r\n\r\n")->first.keep_alive);
  EXPECT_TRUE(parse_head("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")->first.keep_alive);
  EXPECT_FALSE(parse_head("GET / HTTP/1.1\r\nConnection: x, close\r\n\r\n")->first.keep_alive);
  EXPECT_EQ(parse_head("GET http://h/v2 HTTP/1.1\r\n\r\n")->first.path, "/v2");
}

TEST(HttpMessage, RefusesWhatIsMalformedOrAmbiguous) {
  const std::pair<std::string, int> cases[] = {
      {"GET / HTTP/1.1\r\nHost: h\r\n", 0},  // more must come
      {"GET / HTTP/1.1\r\n\r\n", 200},
      {"GET /\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\n\r\n", 505},
      {"G@T / HTTP/1.1\r\n\r\n", 400},
      {"GET nopath HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nA : b\r\n\r\n", 400},
      {std::string("GET / HTTP/1.1\r\nA: b\0\r\n\r\n", 25), 400},
      {"GET / HTTP/1.1\r\nA: b\nB: c\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 200},
      {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1x\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nExpect: wonders\r\n\r\n", 417},
      {"GET / HTTP/1.1\r\nA: " + std::string(kMaxHeadBytes, 'x') + "\r\n\r\n", 431},
      {"GET /" + std::string(kMaxHeadBytes, 'x'), 431},
      {"GET / HTTP/1.1\r\n" + repeated("A: b\r\n", kMaxFields) + "\r\n", 200},
      {"GET / HTTP/1.1\r\n" + repeated("A: b\r\n", kMaxFields + 1) + "\r\n", 431},
      {"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
  };
  for (const auto& [text, status] : cases)
    EXPECT_EQ(status_for(text), status) << text.substr(0, 80);
}

TEST(HttpMessage, TakesChunksApart) {
  const std::string text = "5;x=y\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\nnext";
  for (size_t step : {size_t{1}, size_t{3}, text.size()}) {
    ChunkReader reader;
    std::string body;
    size_t used = 0;
    while (!reader.done() && used < text.size())
      used += reader.feed(std::string_view(text).substr(used, step), body, 100);
    EXPECT_TRUE(reader.done());
    EXPECT_EQ(body, "hello 0123456789");
    EXPECT_EQ(text.substr(used), "next");
  }
  const auto fails = [](const std::string& chunks, uint64_t limit) {
    ChunkReader reader;
    std::string body;
    try {
      reader.feed(chunks, body, limit);
    } catch (const BadMessage& bad) {
      return bad.status;
    }
    return 200;
  };
  EXPECT_EQ(fails("5\r\nhello\r\n", 4), 413);
  EXPECT_EQ(fails("ffffffffffffffff\r\n", 100), 413);
  EXPECT_EQ(fails("5\r\nhelloX\r\n", 100), 400);
  EXPECT_EQ(fails("x\r\n", 100), 400);
  EXPECT_EQ(fails("5\nhello", 100), 400);
  EXPECT_EQ(fails(std::string(5000, '0'), 100), 400);
  EXPECT_EQ(fails("-1\r\n", 100), 400);
  EXPECT_EQ(fails("0x1\r\na\r\n", 100), 400);
  EXPECT_EQ(fails("fffffffffffffffff\r\n", 100), 400);  // 17 digits
  EXPECT_EQ(fails("0\r\n" + repeated("Trailer: field\r\n", kMaxHeadBytes / 10), 100), 431);
}

TEST(HttpMessage, WritesHeads) {
  EXPECT_EQ(head_of(text_reply(200, "text/plain", "abc"), true),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(head_of(error_reply(404, "no"), false),
            "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 14\r\n"
            "Connection: close\r\n\r\n");
}

TEST(HttpRoutes, OfTheProtocol) {
  const auto topic = [](const char* path) { return find_route(path).topic; };
  EXPECT_EQ(topic("/"), Topic::kStatusPage);
  EXPECT_EQ(topic("/v2"), Topic::kServerMetadata);
  EXPECT_EQ(topic("/v2/"), Topic::kUnknown);
  EXPECT_EQ(topic("/v2/health/live"), Topic::kLive);
  EXPECT_EQ(topic("/v2/health"), Topic::kUnknown);
  EXPECT_EQ(topic("/v2/models/stats"), Topic::kStatistics);
  EXPECT_EQ(topic("/v2/models/m"), Topic::kModelMetadata);
  EXPECT_EQ(topic("/v2/models/m/versions/1"), Topic::kModelMetadata);
  EXPECT_EQ(topic("/v2/models/m/versions/x"), Topic::kUnknown);
  EXPECT_EQ(topic("/v2/models/m/versions/1/infer"), Topic::kInfer);
  EXPECT_EQ(topic("/v2/models/m/generate_stream"), Topic::kGenerateStream);
  EXPECT_EQ(topic("/v2/models/m/trace/setting"), Topic::kTraceSetting);
  EXPECT_EQ(topic("/v2/models//infer"), Topic::kUnknown);
  EXPECT_EQ(topic("/v2/repository/index"), Topic::kRepositoryIndex);
  EXPECT_EQ(topic("/v2/repository/r/models/m/load"), Topic::kLoad);
  EXPECT_EQ(topic("/v2/systemsharedmemory/status"), Topic::kSystemMemory);
  EXPECT_EQ(topic("/v2/cudasharedmemory/region/r/register"), Topic::kCudaMemory);
  EXPECT_EQ(topic("/v2/cudasharedmemory/region/r/x"), Topic::kUnknown);
  EXPECT_EQ(topic("/v2/models/%zz"), Topic::kUnknown);
  const Route route = find_route("/v2/models/a%20b/versions/12/stats");
  EXPECT_EQ(route.model, "a b");
  EXPECT_EQ(route.version, "12");
  EXPECT_EQ(find_route("/v2/repository/r/models/m/unload").repository, "r");
  EXPECT_EQ(find_route("/v2/systemsharedmemory/region/r/register").region, "r");
}

TEST(Base64, Decodes) {
  for (const char* text :
       {"aGVsbG8=", "aGVsbG8", "aGVs\nbG8", " aGVs\r\n\tbG8 = ", "aGVsbG9=", "aGVsbG8===="})
    EXPECT_EQ(decode_base64(text), "hello") << text;
  EXPECT_EQ(decode_base64("/+8A"), std::string("\xff\xef\0", 3));
  EXPECT_EQ(decode_base64("AAAA"), std::string(3, 0));
  for (const char* text : {"", "=", " \n", "a"}) EXPECT_EQ(decode_base64(text), "") << text;
  EXPECT_EQ(decode_base64("aGVsb"), "hel");  // bits that are no byte are left out
  for (const char* text :
       {"a*b", "ab==cd", "-", "aGVsbG8-", "aGVs-bG8", "aGVs_bG8", "\vaGVs", "aGVs\xc3\xa4", "=a"})
    EXPECT_THROW(decode_base64(text), serving::Error) << text;
  EXPECT_THROW(decode_base64({"aGVs\0", 5}), serving::Error);
}

// Longer than what goes to the decoder at once.
TEST(Base64, DecodesManyBytes) {
  const size_t groups = (size_t{1} << 22) + 5;
  std::string text;
  for (size_t i = 0; i < groups; ++i) text += i % 2 ? "QUJD" : "REVG";
  const std::string decoded = decode_base64(text + "Rw==");
  ASSERT_EQ(decoded.size(), 3 * groups + 1);
  for (size_t i = 0; i < groups; ++i)
    ASSERT_EQ(decoded.compare(3 * i, 3, i % 2 ? "ABC" : "DEF"), 0) << i;
  EXPECT_EQ(decoded.back(), 'G');
}

}  // namespace
}  // namespace anymps::server::http
