// SPDX-License-Identifier: Apache-2.0
// Connections and loops with a service that echoes: what HTTP/1.1 asks of a server, and what
// happens to clients that are slow, greedy or gone.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "http/http_client.h"
#include "server/http/transport/listener.h"
#include "server/http/transport/loop.h"

namespace anymps::server::http {
namespace {

using test::Answer;
using test::Client;
using namespace std::chrono_literals;

constexpr size_t kMaxBody = 8 << 20;

// Answers with the body. /later: from another thread; /hold: when `release` is set; /align: where
// what follows the JSON lies.
class Echo {
 public:
  explicit Echo(unsigned loops = 1, TlsContext tls = nullptr) {
    auto service = std::make_shared<Service>();
    service->max_body_bytes = kMaxBody;
    service->check = [](const Head& head) -> std::optional<Reply> {
      if (head.path == "/forbidden") return error_reply(401, "no");
      return std::nullopt;
    };
    service->handle = [this](const ExchangePtr& exchange) { return handle(exchange); };
    for (unsigned i = 0; i < loops; ++i) loops_.push_back(std::make_unique<Loop>());
    const int fd = listen_on("127.0.0.1", 0, false);
    port = port_of(fd);
    loops_[0]->listen(fd, [this, service, tls](int connection) {
      loops_[next_++ % loops_.size()]->adopt(connection, service, tls);
    });
    for (const auto& loop : loops_) loop->start();
  }
  ~Echo() {
    release = true;
    for (const auto& loop : loops_) loop->finish(2000);
    for (std::thread& thread : threads_) thread.join();
  }
  void drain() {
    for (const auto& loop : loops_) loop->drain();
  }

  uint16_t port = 0;
  std::atomic<bool> release{false}, cancelled{false}, started{false};

 private:
  std::optional<Reply> handle(const ExchangePtr& exchange) {
    const std::string& path = exchange->head.path;
    if (path == "/later" || path == "/hold") {
      started = true;
      threads_.emplace_back([this, exchange] {
        if (exchange->head.path == "/hold")
          while (!release && !(cancelled = exchange->cancelled.load()))
            std::this_thread::sleep_for(1ms);
        exchange->reply.body.push_back(exchange->body);
        exchange->mailbox->post(exchange);
      });
      return std::nullopt;
    }
    if (path == "/align") {
      const std::string* json = exchange->head.header("Inference-Header-Content-Length");
      const auto at = reinterpret_cast<uintptr_t>(exchange->body.data) + std::stoul(*json);
      return text_reply(200, "text/plain", std::to_string(at % 64));
    }
    Reply reply;
    reply.chunked = path == "/chunked";
    reply.body.push_back(exchange->body);
    return reply;
  }
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<std::thread> threads_;
  size_t next_ = 0;
};

bool wait_for(const std::atomic<bool>& flag) {
  for (int i = 0; i < 5000 && !flag; ++i) std::this_thread::sleep_for(1ms);
  return flag;
}

TEST(HttpConnection, IsKeptAliveAndClosedWhenAsked) {
  Echo echo;
  Client client(echo.port);
  EXPECT_EQ(client.post("/", "one").body, "one");
  EXPECT_EQ(client.post("/later", "two").body, "two");
  EXPECT_EQ(client.get("/").status, 200);
  const Answer last = client.get("/", "Connection: close\r\n");
  EXPECT_EQ(last.status, 200);
  EXPECT_TRUE(last.has("Connection: close"));
  EXPECT_TRUE(client.at_end());
  Client old(echo.port);
  EXPECT_EQ(old.ask("GET / HTTP/1.0\r\n\r\n").status, 200);
  EXPECT_TRUE(old.at_end());
}

TEST(HttpConnection, PipelinedRequestsAreAnsweredInOrder) {
  Echo echo;
  Client client(echo.port);
  std::string all;
  for (int i = 0; i < 50; ++i)
    all += std::string("POST ") + (i % 3 ? "/" : "/later") +
           " HTTP/1.1\r\nContent-Length: 2\r\n\r\n" + std::to_string(10 + i);
  client.send(all);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.receive().body, std::to_string(10 + i));
}

TEST(HttpConnection, BodiesMayBeChunkedSlowOrExpected) {
  Echo echo;
  Client client(echo.port);
  const std::string chunked =
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  EXPECT_EQ(client.ask(chunked).body, "abcde");
  for (const char c : std::string("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyz")) {
    client.send({&c, 1});
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(client.receive().body, "xyz");
  const Answer go =
      client.ask("POST / HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(go.status, 100);
  EXPECT_EQ(client.ask("abc").body, "abc");
  EXPECT_EQ(client.post("/chunked", "abc").body, "abc");
}

TEST(HttpConnection, LargeBodiesLieInOneAlignedBlock) {
  Echo echo(2);
  Client client(echo.port);
  const std::string large(kMaxBody, 'x');
  EXPECT_EQ(client.post("/", large).body, large);
  EXPECT_EQ(client.post("/later", large).body, large);
  for (const int json : {0, 1, 63, 64, 97})
    EXPECT_EQ(client
                  .post("/align", std::string(200, 'x'),
                        "Inference-Header-Content-Length: " + std::to_string(json) + "\r\n")
                  .body,
              "0");
}

TEST(HttpConnection, TooLargeIsRefusedBeforeItComes) {
  Echo echo;
  Client client(echo.port);
  const Answer refused = client.ask(
      "POST / HTTP/1.1\r\nContent-Length: " + std::to_string(kMaxBody + 1) + "\r\n\r\nsome of it");
  EXPECT_EQ(refused.status, 413);
  EXPECT_TRUE(refused.has("Connection: close"));
  EXPECT_TRUE(client.at_end());
  Client chunks(echo.port);
  EXPECT_EQ(
      chunks.ask("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\nabc").status,
      413);
  Client heads(echo.port);
  EXPECT_EQ(heads.get("/", "X: " + std::string(kMaxHeadBytes, 'x') + "\r\n").status, 431);
  Client nonsense(echo.port);
  EXPECT_EQ(nonsense.ask("nonsense\r\n\r\n").status, 400);
  EXPECT_TRUE(nonsense.at_end());
}

TEST(HttpConnection, RefusalsBeforeTheBody) {
  Echo echo;
  Client client(echo.port);
  EXPECT_EQ(client.get("/forbidden").status, 401);
  EXPECT_EQ(client.get("/").status, 200);  // the same connection goes on
  const Answer refused = client.post("/forbidden", "body");
  EXPECT_EQ(refused.status, 401);
  EXPECT_TRUE(refused.has("Connection: close"));
}

TEST(HttpConnection, AClientThatLeavesCancelsItsRequest) {
  Echo echo;
  Client client(echo.port);
  client.send("POST /hold HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
  ASSERT_TRUE(wait_for(echo.started));
  EXPECT_FALSE(echo.cancelled);
  client.close();
  EXPECT_TRUE(wait_for(echo.cancelled));
}

TEST(HttpConnection, AClientThatClosesItsHalfIsStillAnswered) {
  Echo echo;
  Client client(echo.port);
  client.send("POST /later HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
  client.half_close();
  EXPECT_EQ(client.receive().body, "x");
  EXPECT_TRUE(client.at_end());
}

TEST(HttpConnection, DrainingAnswersWhatIsUnderWay) {
  Echo echo(2);
  Client idle(echo.port), busy(echo.port);
  EXPECT_EQ(idle.get("/").status, 200);
  busy.send("POST /hold HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
  ASSERT_TRUE(wait_for(echo.started));
  echo.drain();
  EXPECT_TRUE(idle.at_end());
  EXPECT_THROW(Client(echo.port).get("/"), std::runtime_error);
  echo.release = true;
  const Answer answer = busy.receive();
  EXPECT_EQ(answer.body, "x");
  EXPECT_TRUE(answer.has("Connection: close"));
  EXPECT_TRUE(busy.at_end());
}

TEST(HttpConnection, DrainingAnswersRequestsThatCross) {
  Echo echo(2);
  Client idle(echo.port), fresh(echo.port), two(echo.port);
  EXPECT_EQ(idle.get("/").status, 200);
  EXPECT_EQ(two.get("/").status, 200);
  echo.drain();
  const Answer last = idle.post("/", "x");
  EXPECT_EQ(last.body, "x");
  EXPECT_TRUE(last.has("Connection: close"));
  EXPECT_EQ(fresh.post("/later", "y").body, "y");  // connected, but not accepted perhaps
  two.send("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(two.receive().status, 200);
  EXPECT_TRUE(two.at_end() && idle.at_end() && fresh.at_end());
}

TEST(HttpConnection, TheLoopMayEndBeforeItsClients) {
  auto service = std::make_shared<Service>();
  service->max_body_bytes = kMaxBody;
  std::atomic<bool> started{false};
  ExchangePtr held;
  service->handle = [&](const ExchangePtr& exchange) -> std::optional<Reply> {
    held = exchange;
    started = true;
    return std::nullopt;
  };
  auto loop = std::make_unique<Loop>();
  const int fd = listen_on("127.0.0.1", 0, false);
  const uint16_t port = port_of(fd);
  loop->listen(fd, [&](int connection) { loop->adopt(connection, service, nullptr); });
  loop->start();
  Client idle(port), half(port), busy(port);
  half.send("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc");
  busy.send("GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(wait_for(started));
  loop->finish(50);
  loop.reset();
  EXPECT_TRUE(held->cancelled);
  held->mailbox->post(held);  // an answer that comes too late is dropped
  EXPECT_TRUE(idle.at_end() && half.at_end() && busy.at_end());
}

TEST(HttpConnection, ManyClientsAtOnce) {
  Echo echo(2);
  std::vector<std::thread> clients;
  std::atomic<int> right{0};
  for (int i = 0; i < 16; ++i)
    clients.emplace_back([&, i] {
      Client client(echo.port);
      for (int j = 0; j < 100; ++j) {
        const std::string body(static_cast<size_t>(i * 1000 + j), static_cast<char>('a' + i));
        if (client.post("/", body).body == body) ++right;
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, 1600);
}

// A certificate for 127.0.0.1 that signs itself, in PEM files.
class Certificate {
 public:
  Certificate() : folder(std::filesystem::temp_directory_path() / "anymps-http-tls") {
    folder += std::to_string(getpid());
    std::filesystem::create_directories(folder);
    EVP_PKEY* key = EVP_RSA_gen(2048);
    X509* cert = X509_new();
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -60);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME* name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(cert, name);
    X509_sign(cert, key, EVP_sha256());
    FILE* file = fopen(key_file().c_str(), "w");
    PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    fclose(file);
    file = fopen(cert_file().c_str(), "w");
    PEM_write_X509(file, cert);
    fclose(file);
    X509_free(cert);
    EVP_PKEY_free(key);
  }
  ~Certificate() { std::filesystem::remove_all(folder); }
  std::string key_file() const { return folder / "key.pem"; }
  std::string cert_file() const { return folder / "cert.pem"; }
  std::filesystem::path folder;
};

using Context = std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)>;

TEST(HttpConnection, Tls) {
  const Certificate certificate;
  const TlsOptions options{true, false, certificate.cert_file(), certificate.key_file(), ""};
  Echo echo(2, make_tls(options));
  const Context context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  ASSERT_EQ(SSL_CTX_load_verify_locations(context.get(), certificate.cert_file().c_str(), nullptr),
            1);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  Client client(echo.port, context.get());
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(client.post("/", "small").body, "small");
  EXPECT_EQ(client.post("/later", large).body, large);
  EXPECT_EQ(client.post("/chunked", large).body, large);
  Client plain(echo.port);
  EXPECT_EQ(plain.get("/").status, 0);
}

TEST(HttpConnection, TlsWithClientCertificates) {
  const Certificate certificate;
  const TlsOptions options{true, true, certificate.cert_file(), certificate.key_file(),
                           certificate.cert_file()};
  Echo echo(1, make_tls(options));
  const Context stranger(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  EXPECT_EQ(Client(echo.port, stranger.get()).get("/").status, 0);
  const Context friendly(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SSL_CTX_use_certificate_file(friendly.get(), certificate.cert_file().c_str(), SSL_FILETYPE_PEM);
  SSL_CTX_use_PrivateKey_file(friendly.get(), certificate.key_file().c_str(), SSL_FILETYPE_PEM);
  EXPECT_EQ(Client(echo.port, friendly.get()).get("/").status, 200);
}

TEST(HttpConnection, TlsNamesTheFileThatIsMissing) {
  const Certificate certificate;
  try {
    make_tls({true, false, "nowhere.pem", certificate.key_file(), ""});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nowhere.pem"), std::string::npos);
  }
}

TEST(HttpListener, NamesThePortThatIsTaken) {
  const int fd = listen_on("127.0.0.1", 0, false);
  try {
    listen_on("127.0.0.1", port_of(fd), false);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnavailable);
    EXPECT_NE(std::string(error.what()).find(std::to_string(port_of(fd))), std::string::npos);
  }
  close(fd);
}

}  // namespace
}  // namespace anymps::server::http
