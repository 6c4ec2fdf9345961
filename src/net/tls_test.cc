#include "net/tls.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/unique_fd.h"
#include "net/certificate.h"
#include "net/http_client.h"
#include "net/http_listener.h"
#include "net/http_server.h"
#include "net/tls_handshakes.h"

namespace fairlead::net {
namespace {

namespace fs = std::filesystem;
using Step = TlsSession::Step;

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

// A folder with a certificate for localhost and 127.0.0.1, and what writes others into it.
class Files {
 public:
  Files() {
    std::string pattern = (fs::temp_directory_path() / "fairlead-tls-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    renew();
  }
  ~Files() { fs::remove_all(folder_); }

  void renew() {
    const auto made = make_certificate({.hosts = {"localhost", "127.0.0.1"}});
    write(certificate(), made->certificate);
    write(key(), made->key);
  }
  std::string certificate() const { return folder_ + "/certificate.pem"; }
  std::string key() const { return folder_ + "/key.pem"; }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  TlsFiles files() const { return {.certificate = certificate(), .key = key()}; }

 private:
  std::string folder_;
};

// Two ends of a connection, stepped by hand: no thread, no wait.
class Pair {
 public:
  Pair(TlsIdentity& identity, const TlsTrust& trust, const std::string& host) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    server_fd = UniqueFd(ends[0]);
    client_fd = UniqueFd(ends[1]);
    server = *identity.accept(ends[0]);
    client = *trust.connect(ends[1], host);
  }

  // Whether both ends come to an agreement.
  bool shake_hands() {
    Step at_client = Step::kNeedsWrite;
    Step at_server = Step::kNeedsRead;
    for (int turn = 0; turn < 10 && (at_client != Step::kDone || at_server != Step::kDone); ++turn) {
      if (at_client != Step::kDone) at_client = client->handshake();
      if (at_server != Step::kDone) at_server = server->handshake();
      if (at_client == Step::kFailed || at_server == Step::kFailed) return false;
    }
    return at_client == Step::kDone && at_server == Step::kDone;
  }

  UniqueFd server_fd;
  UniqueFd client_fd;
  std::unique_ptr<TlsSession> server;
  std::unique_ptr<TlsSession> client;
};

std::string read_all(TlsSession& session, std::size_t want) {
  std::string text;
  char data[5000];
  while (text.size() < want) {
    const auto moved = session.read(data, sizeof data);
    if (moved.step != Step::kDone) break;
    text.append(data, moved.count);
  }
  return text;
}

TEST(TlsSession, MovesBytesBothWaysAndEnds) {
  const Files files;
  const auto identity = TlsIdentity::load(files.files());
  ASSERT_TRUE(identity) << identity.error().message;
  Pair pair(**identity, *TlsTrust::load({.ca = files.certificate()}), "localhost");
  ASSERT_TRUE(pair.shake_hands()) << pair.client->last_error() << pair.server->last_error();
  EXPECT_EQ(pair.client->write("ping").count, 4U);
  EXPECT_EQ(read_all(*pair.server, 4), "ping");
  EXPECT_EQ(pair.server->write("pong").count, 4U);
  EXPECT_EQ(read_all(*pair.client, 4), "pong");
  char byte = 0;
  EXPECT_EQ(pair.server->read(&byte, 1).step, Step::kNeedsRead);
  pair.client->end_output();
  EXPECT_EQ(pair.server->read(&byte, 1).step, Step::kEnd);
}

// Records that hold no data are cheap to send: one call looks at few of them. The client is OpenSSL's own, since ours sends none.
TEST(TlsSession, RecordsWithoutDataKeepNobodyWaiting) {
  const Files files;
  const auto identity = TlsIdentity::load(files.files());
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const UniqueFd server_fd(ends[0]), client_fd(ends[1]);
  const auto server = *(*identity)->accept(ends[0]);
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> client(SSL_new(context.get()), SSL_free);
  SSL_set_fd(client.get(), ends[1]);
  SSL_set_connect_state(client.get());
  bool agreed = false;
  for (int turn = 0; turn < 10 && !agreed; ++turn) {
    const bool at_client = SSL_do_handshake(client.get()) == 1;
    agreed = server->handshake() == Step::kDone && at_client;
  }
  ASSERT_TRUE(agreed);
  // All at once, as a client that means harm would send them.
  BIO* const sent = BIO_new(BIO_s_mem());
  SSL_set0_wbio(client.get(), sent);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(SSL_key_update(client.get(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(client.get()), 1);
  }
  ASSERT_EQ(SSL_write(client.get(), "x", 1), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(sent, &data);
  ASSERT_EQ(::send(ends[1], data, static_cast<std::size_t>(size), 0), size);
  char byte = 0;
  int calls = 1;
  while (server->read(&byte, 1).step == Step::kNeedsRead && calls < 1000) ++calls;
  EXPECT_EQ(byte, 'x');
  EXPECT_GE(calls, size / (32 << 10)) << "one call read on and on";
}

// With read-ahead a session holds bytes that make no socket ready.
TEST(TlsSession, SaysThatItHoldsInput) {
  const Files files;
  const auto identity = TlsIdentity::load(files.files());
  Pair pair(**identity, *TlsTrust::load({.ca = files.certificate()}), "localhost");
  ASSERT_TRUE(pair.shake_hands());
  pair.client->write("first");
  pair.client->write("second");
  char data[5];
  EXPECT_FALSE(pair.server->has_input());
  EXPECT_EQ(pair.server->read(data, sizeof data).count, 5U);
  EXPECT_TRUE(pair.server->has_input());
  pollfd ready{pair.server_fd.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  EXPECT_EQ(read_all(*pair.server, 6), "second");
  EXPECT_FALSE(pair.server->has_input());
}

TEST(TlsSession, ReaderThatTakesNothingStopsTheWriter) {
  const Files files;
  const auto identity = TlsIdentity::load(files.files());
  Pair pair(**identity, *TlsTrust::load({.ca = files.certificate()}), "localhost");
  ASSERT_TRUE(pair.shake_hands());
  const std::string block(100'000, 'x');
  std::size_t sent = 0;
  for (;;) {
    const auto moved = pair.server->write(block);
    if (moved.step != Step::kDone) {
      EXPECT_EQ(moved.step, Step::kNeedsWrite);
      break;
    }
    sent += moved.count;
    ASSERT_LT(sent, 64U << 20);
  }
  EXPECT_EQ(read_all(*pair.client, sent).size(), sent);
  EXPECT_EQ(pair.server->write(block).step, Step::kDone);
}

TEST(TlsTrust, AnotherNameIsRefused) {
  const Files files;
  const auto identity = TlsIdentity::load(files.files());
  const auto trust = TlsTrust::load({.ca = files.certificate()});
  for (const std::string host : {"example.com", "127.0.0.2", "localhost.example.com"}) {
    Pair pair(**identity, *trust, host);
    EXPECT_FALSE(pair.shake_hands()) << host;
    EXPECT_NE(pair.client->last_error().find("mismatch"), std::string::npos) << pair.client->last_error();
  }
  Pair pair(**identity, *trust, "127.0.0.1");
  EXPECT_TRUE(pair.shake_hands());
}

TEST(TlsTrust, AnotherAuthorityIsRefused) {
  const Files files;
  const Files others;
  const auto identity = TlsIdentity::load(files.files());
  Pair pair(**identity, *TlsTrust::load({.ca = others.certificate()}), "localhost");
  EXPECT_FALSE(pair.shake_hands());
}

// As nodes of one machine have them, and as a renewed certificate and the one before it are.
TEST(TlsTrust, EachOfSeveralForOneHostIsBelieved) {
  const Files first;
  const Files second;
  const std::string both = first.at("both.pem");
  std::ofstream(both) << std::ifstream(first.certificate()).rdbuf() << std::ifstream(second.certificate()).rdbuf();
  for (const Files* shown : {&first, &second}) {
    Pair pair(**TlsIdentity::load(shown->files()), *TlsTrust::load({.ca = both}), "localhost");
    EXPECT_TRUE(pair.shake_hands()) << pair.client->last_error();
  }
}

TEST(TlsIdentity, AsksForCertificatesOfClients) {
  const Files files;
  const Files clients;
  TlsFiles mutual = files.files();
  mutual.client_ca = clients.certificate();
  const auto identity = TlsIdentity::load(mutual);
  ASSERT_TRUE(identity) << identity.error().message;
  const auto trust = [&](const Files& shown) {
    return *TlsTrust::load({.ca = files.certificate(), .certificate = shown.certificate(), .key = shown.key()});
  };
  Pair nothing_shown(**identity, *TlsTrust::load({.ca = files.certificate()}), "localhost");
  EXPECT_FALSE(nothing_shown.shake_hands());
  Pair another_shown(**identity, trust(files), "localhost");
  EXPECT_FALSE(another_shown.shake_hands());
  Pair known(**identity, trust(clients), "localhost");
  EXPECT_TRUE(known.shake_hands());
}

TEST(TlsIdentity, FilesThatDoNotFitAreNamed) {
  const Files files;
  const Files others;
  const auto load = [](TlsFiles wanted) { return TlsIdentity::load(std::move(wanted)); };
  const auto no_file = load({.certificate = files.at("none"), .key = files.key()});
  ASSERT_FALSE(no_file);
  EXPECT_NE(no_file.error().message.find("TLS certificate"), std::string::npos) << no_file.error().message;
  const auto of_another = load({.certificate = files.certificate(), .key = others.key()});
  ASSERT_FALSE(of_another);
  EXPECT_NE(of_another.error().message.find("TLS key"), std::string::npos);
  EXPECT_FALSE(load({.certificate = files.certificate(), .key = files.key(), .client_ca = files.at("none")}));
}

TEST(TlsIdentity, FilesWrittenAnewAreTaken) {
  Files files;
  const auto identity = TlsIdentity::load(files.files());
  const auto old_trust = TlsTrust::load({.ca = files.certificate()});
  Instant now = Instant(std::chrono::hours(1));
  EXPECT_FALSE(*(*identity)->look_again(now));
  files.renew();
  EXPECT_FALSE(*(*identity)->look_again(now + std::chrono::seconds(1)));  // looked just now
  now += std::chrono::seconds(10);
  EXPECT_TRUE(*(*identity)->look_again(now));
  Pair old_pair(**identity, *old_trust, "localhost");
  EXPECT_FALSE(old_pair.shake_hands());
  Pair pair(**identity, *TlsTrust::load({.ca = files.certificate()}), "localhost");
  EXPECT_TRUE(pair.shake_hands());
}

TEST(TlsIdentity, FilesThatCannotBeUsedLeaveTheOldOnes) {
  const Files files;
  const auto identity = TlsIdentity::load(files.files());
  const auto trust = TlsTrust::load({.ca = files.certificate()});
  write(files.certificate(), "not a certificate");
  Instant now = Instant(std::chrono::hours(1));
  EXPECT_FALSE((*identity)->look_again(now));
  now += std::chrono::seconds(10);
  const auto again = (*identity)->look_again(now);  // said once
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again);
  Pair pair(**identity, *trust, "localhost");
  EXPECT_TRUE(pair.shake_hands());
}

TEST(Certificate, HostsAndDaysAreChecked) {
  EXPECT_FALSE(make_certificate({.hosts = {}}));
  EXPECT_FALSE(make_certificate({.hosts = {"a b"}}));
  EXPECT_FALSE(make_certificate({.hosts = {"a,DNS:b"}}));
  EXPECT_FALSE(make_certificate({.hosts = {""}}));
  EXPECT_FALSE(make_certificate({.hosts = {"a"}, .days = 0}));
  EXPECT_FALSE(make_certificate({.hosts = {"a"}, .days = 4000}));
  EXPECT_TRUE(make_certificate({.hosts = {"*.example.com", "::1", "10.0.0.1"}, .days = 1}));
}

// ---- a server, its thread, and clients that block

class TlsServer : public ::testing::Test {
 protected:
  void SetUp() override {
    auto identity = TlsIdentity::load(files_.files());
    ASSERT_TRUE(identity) << identity.error().message;
    handshakes_ = std::make_unique<TlsHandshakes>(*identity, [](const Status&) {});
    server_ =
        std::make_unique<HttpServer>(io_, HttpLimits{}, [](HttpExchange exchange) { answer(std::move(exchange)); });
    const auto bound = server_->listen("127.0.0.1:0", *handshakes_);
    ASSERT_TRUE(bound) << bound.error().message;
    address_ = *bound;
    thread_ = std::thread([this] { io_.run(); });
  }

  void TearDown() override {
    boost::asio::post(io_, [this] {
      server_->close();
      io_.stop();
    });
    thread_.join();
    server_.reset();
    handshakes_.reset();
  }

  static void answer(HttpExchange exchange) {
    std::string body = exchange.request().take_body();
    if (exchange.request().target() == "/large") body.assign(3'000'000, 'y');
    exchange.respond({.body = std::move(body)});
  }

  HttpClient client(const std::string& host = "localhost") {
    return HttpClient("https://" + host + address_.substr(address_.rfind(':')),
                      {.trust = {.ca = files_.certificate()}});
  }

  UniqueFd connect_plain() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
    const auto where = parse_socket_address(address_);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(where->storage), where->size), 0);
    return fd;
  }

  Files files_;
  boost::asio::io_context io_{1};
  std::unique_ptr<TlsHandshakes> handshakes_;
  std::unique_ptr<HttpServer> server_;
  std::string address_;
  std::thread thread_;
};

TEST_F(TlsServer, AnswersOnOneConnection) {
  HttpClient tls = client();
  for (const std::size_t size : {0U, 1U, 16U << 10, 1U << 20, 5U << 20}) {
    const std::string body(size, 'z');
    const auto answer = tls.send({.method = "POST", .body = body});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 200U);
    EXPECT_EQ(answer->body, body);
  }
  const auto large = tls.send({.target = "/large"});
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_EQ(large->body.size(), 3'000'000U);
}

TEST_F(TlsServer, WhoSpeaksHttpIsToldSo) {
  HttpClient plain("http://" + address_);
  const auto answer = plain.send({});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 400U);
  EXPECT_NE(answer->body.find("https"), std::string::npos);
}

TEST_F(TlsServer, WhoSaysNothingKeepsNobodyOut) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connect_plain());
  const UniqueFd noise = connect_plain();
  EXPECT_GT(::send(noise.get(), "\x16\x03\x01\xff\xff garbage", 13, MSG_NOSIGNAL), 0);
  const auto answer = client().send({.method = "POST", .body = "hello"});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "hello");
}

TEST_F(TlsServer, UntrustedServerIsNamedBeforeAnythingIsSent) {
  HttpClient stranger("https://localhost" + address_.substr(address_.rfind(':')));
  const auto answer = stranger.send({.body = "secret"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::kUnauthenticated);
}

}  // namespace
}  // namespace fairlead::net
