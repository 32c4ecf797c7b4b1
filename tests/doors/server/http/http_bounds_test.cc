// SPDX-License-Identifier: Apache-2.0
// What a client can take from the HTTP side: time, memory, connections, and the turn of others.
#include <gtest/gtest.h>
#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "http/http_client.h"
#include "server/http/transport/listener.h"
#include "server/http/transport/loop.h"

namespace anymps::server::http {
namespace {

using test::Answer;
using test::Client;
using namespace std::chrono_literals;

constexpr size_t kLargest = 32 << 20;

// Answers with the body; /hold: when `release` is set; /large: with the largest one.
class Bounded {
 public:
  explicit Bounded(const Patience& patience = {}, HeldBytes* held = nullptr,
                   std::shared_ptr<Gate> gate = nullptr) {
    auto service = std::make_shared<Service>();
    service->max_body_bytes = kLargest;
    service->patience = patience;
    service->held = held;
    service->gate = std::move(gate);
    service->handle = [this](const ExchangePtr& exchange) -> std::optional<Reply> {
      if (exchange->head.path == "/large")
        return text_reply(200, "text/plain", std::string(kLargest, 'x'));
      if (exchange->head.path == "/hold") {
        threads_.emplace_back([this, exchange] {
          while (!release) std::this_thread::sleep_for(1ms);
          exchange->mailbox->post(exchange);
        });
        return std::nullopt;
      }
      Reply reply;
      reply.body.push_back(exchange->body);
      return reply;
    };
    const int fd = listen_on("127.0.0.1", 0, false);
    port = port_of(fd);
    loop_.listen(fd,
                 [this, service](int connection) { loop_.adopt(connection, service, nullptr); });
    loop_.start();
  }
  ~Bounded() {
    release = true;
    loop_.finish(2000);
    for (std::thread& thread : threads_) thread.join();
  }
  size_t connections() const { return loop_.connections(); }

  uint16_t port = 0;
  std::atomic<bool> release{false};

 private:
  Loop loop_;
  std::vector<std::thread> threads_;
};

// Bytes of `text` with a pause after each `step` of them.
void trickle(Client& client, const std::string& text, size_t step, std::chrono::milliseconds pause,
             const std::atomic<bool>& over) {
  for (size_t at = 0; at < text.size() && !over; at += step) {
    client.send(std::string_view(text).substr(at, step));
    std::this_thread::sleep_for(pause);
  }
}

TEST(HttpBounds, DawdlersAreEnded) {
  const Bounded server({.idle = 300, .request = 300, .answer = 300, .bytes_per_second = 1000});
  const std::string head = "POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n";
  const std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  Client idle(server.port), half(server.port), body(server.port), chunks(server.port),
      steady(server.port), deaf(server.port);
  half.send("GET / HTT");
  deaf.send("GET /large HTTP/1.1\r\n\r\n");
  std::atomic<bool> over{false};
  std::thread drips([&] { trickle(body, head + std::string(2000, 'x'), 1, 5ms, over); });
  std::thread more([&] {
    std::string text = chunked;
    for (int i = 0; i < 500; ++i) text += "1;" + std::string(50, 'e') + "\r\nx\r\n";
    trickle(chunks, text, 11, 5ms, over);
  });
  // Three times what is asked, for longer than a request may take without that.
  std::thread slow([&] {
    trickle(steady, "POST / HTTP/1.1\r\nContent-Length: 9000\r\n\r\n" + std::string(9000, 'y'), 300,
            100ms, over);
  });
  EXPECT_TRUE(idle.at_end());
  const Answer late = half.receive();
  EXPECT_EQ(late.status, 408);
  EXPECT_TRUE(late.has("Connection: close"));
  EXPECT_EQ(body.receive().status, 408);
  EXPECT_EQ(chunks.receive().status, 408);
  EXPECT_EQ(steady.receive().body.size(), 9000u);
  while (server.connections() > 4) std::this_thread::sleep_for(10ms);  // four may linger
  EXPECT_EQ(deaf.receive().status, 0);  // the answer ends before its end
  over = true;
  drips.join();
  more.join();
  slow.join();
}

TEST(HttpBounds, BytesOfAllRequestsTogether) {
  HeldBytes held(1 << 20);
  const std::string most(700 << 10, 'x');
  {
    Bounded server({}, &held);
    Client first(server.port), second(server.port), chunked(server.port), later(server.port);
    first.send("POST /hold HTTP/1.1\r\nContent-Length: " + std::to_string(most.size()) +
               "\r\n\r\n" + most);
    while (held.held() < most.size()) std::this_thread::sleep_for(1ms);
    // Refused by its head.
    const Answer refused = second.ask(
        "POST / HTTP/1.1\r\nContent-Length: " + std::to_string(most.size()) + "\r\n\r\n");
    EXPECT_EQ(refused.status, 503);
    EXPECT_TRUE(refused.has("Retry-After: 1") && refused.has("Connection: close"));
    // Refused when it becomes too much: nobody knows its size before.
    EXPECT_EQ(chunked
                  .ask("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" +
                       [&] {
                         char size[16];
                         snprintf(size, sizeof size, "%zx\r\n", most.size());
                         return size + most;
                       }())
                  .status,
              503);
    server.release = true;
    EXPECT_EQ(first.receive().status, 200);
    while (held.held() > 0) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(later.post("/", most).body, most);
  }
  EXPECT_EQ(held.held(), 0u);
}

TEST(HttpBounds, AnswersThatNobodyTakesCountToo) {
  HeldBytes held(1 << 20);
  Bounded server({}, &held);
  Client deaf(server.port), other(server.port);
  EXPECT_EQ(other.post("/", "a").body, "a");  // both are there now
  deaf.send("GET /large HTTP/1.1\r\n\r\n");
  while (server.connections() > 1) std::this_thread::sleep_for(1ms);  // it is ended
  EXPECT_EQ(deaf.receive().status, 0);
  EXPECT_EQ(other.post("/", "a").body, "a");
  while (held.held() > 0)
    std::this_thread::sleep_for(1ms);  // an answer may be here before it is counted out
  EXPECT_EQ(held.held(), 0u);
}

TEST(HttpBounds, ABodyThatDoesNotComeHoldsNothing) {
  HeldBytes held(1 << 20);
  Bounded server({}, &held);
  Client silent(server.port), other(server.port);
  silent.send("POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
  const std::string body(900 << 10, 'x');
  EXPECT_EQ(other.post("/", body).body, body);
}

TEST(HttpBounds, Connections) {
  const auto gate = std::make_shared<Gate>(2);
  Bounded server({}, nullptr, gate);
  Client one(server.port), two(server.port);
  EXPECT_EQ(one.post("/", "a").body, "a");
  EXPECT_EQ(two.post("/", "b").body, "b");
  Client three(server.port);
  const Answer refused = three.post("/", "c");
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Connection: close"));
  three.close();
  one.close();
  Answer answer;
  for (int i = 0; i < 500 && answer.status != 200; ++i) {
    std::this_thread::sleep_for(10ms);
    answer = Client(server.port).post("/", "d");
  }
  EXPECT_EQ(answer.body, "d");
}

TEST(HttpBounds, RequestsOfWhoDoesNotReadStayWithHim) {
  const Bounded server;
  Client client(server.port);
  const timeval limit{0, 300'000};
  setsockopt(client.fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  std::string requests;
  while (requests.size() < (64 << 20)) requests += "GET /large HTTP/1.1\r\n\r\n";
  EXPECT_LT(client.send(requests), size_t{32} << 20);
}

TEST(HttpBounds, AGreedyClientLeavesOthersTheirTurn) {
  const Bounded server;
  Client greedy(server.port), other(server.port);
  EXPECT_EQ(other.post("/", "a").body, "a");
  std::atomic<bool> over{false};
  std::string requests;
  for (int i = 0; i < 10000; ++i) requests += "GET / HTTP/1.1\r\n\r\n";
  std::thread sends([&] {
    while (!over) greedy.send(requests);
    greedy.half_close();
  });
  std::thread reads([&] {
    while (greedy.receive().status != 0) {
    }
  });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(other.post("/", "b").body, "b");
  over = true;
  sends.join();
  reads.join();
}

}  // namespace
}  // namespace anymps::server::http
