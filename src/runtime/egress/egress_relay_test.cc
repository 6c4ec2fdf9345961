#include "runtime/egress/egress_relay.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace fairlead {
namespace {

using testing::HasSubstr;
using namespace std::string_literals;

constexpr int kPatienceMs = 60'000;

UniqueFd bound(int type, sockaddr_in& address) {
  UniqueFd socket(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return socket;
}

// A relay on loopback, where every connection wants to loopback itself; names are what the test says.
class EgressRelayTest : public testing::Test {
 protected:
  void serve(const std::string& list, LookUpName look_up) {
    EgressRelayOptions options{.terms = {EgressList::parse(list).value(), EgressList::parse(list).value()},
                               .sockets = {},
                               .log = log_[1],
                               .look_up = std::move(look_up)};
    UniqueFd listener = bound(SOCK_STREAM, connections_);
    ASSERT_EQ(::listen(listener.get(), 16), 0);
    UniqueFd questions = bound(SOCK_DGRAM, questions_);
    const int on = 1;
    ::setsockopt(questions.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
    options.sockets.connections.push_back(std::move(listener));
    options.sockets.questions.push_back(std::move(questions));
    auto relay = EgressRelay::create(std::move(options));
    ASSERT_TRUE(relay) << relay.error().message;
    relay_ = *std::move(relay);
    thread_ = std::thread([this] { relay_->run(stop_[0]); });
  }

  void SetUp() override {
    ASSERT_EQ(::pipe(stop_), 0);
    ASSERT_EQ(::pipe(log_), 0);
  }

  void TearDown() override {
    ::close(stop_[1]);
    if (thread_.joinable()) thread_.join();
    relay_.reset();
    for (const int fd : {stop_[0], log_[0], log_[1]}) ::close(fd);
  }

  static UniqueFd connected(int type, const sockaddr_in& to) {
    UniqueFd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return socket;
  }

  static std::string answer_on(int socket) {
    pollfd readable{socket, POLLIN, 0};
    if (::poll(&readable, 1, kPatienceMs) <= 0) return "no answer";
    std::string bytes(2048, '\0');
    const ssize_t size = ::recv(socket, bytes.data(), bytes.size(), 0);
    return size < 0 ? "an error" : bytes.substr(0, static_cast<std::size_t>(size));
  }

  // The verdict, and how many addresses.
  std::pair<int, int> ask(const std::string& labels) {
    const UniqueFd socket = connected(SOCK_DGRAM, questions_);
    const std::string question = "\x12\x34\x01\0\0\x01\0\0\0\0\0\0"s + labels + "\0\0\x01\0\x01"s;
    EXPECT_EQ(::send(socket.get(), question.data(), question.size(), 0), std::ssize(question));
    const std::string answer = answer_on(socket.get());
    return answer.size() < 12 ? std::pair(-1, -1) : std::pair(answer[3] & 15, static_cast<int>(answer[7]));
  }

  sockaddr_in connections_{}, questions_{};
  int stop_[2], log_[2];
  std::unique_ptr<EgressRelay> relay_;
  std::thread thread_;
};

NameFound nothing(const std::string&) {
  return {};
}

TEST_F(EgressRelayTest, AConnectionToTheNodeItselfIsResetAndTheLogSaysWhy) {
  serve("all,0.0.0.0/0", nothing);
  for (int time = 0; time < 2; ++time) {
    const UniqueFd socket = connected(SOCK_STREAM, connections_);
    EXPECT_EQ(answer_on(socket.get()), "an error");
  }
  std::string line(4096, '\0');
  line.resize(static_cast<std::size_t>(::read(log_[0], line.data(), line.size())));
  EXPECT_THAT(line, HasSubstr("a connection to 127.0.0.1:"));
  EXPECT_THAT(line, HasSubstr("no function reaches the node itself"));
  pollfd more{log_[0], POLLIN, 0};
  EXPECT_EQ(::poll(&more, 1, 0), 0) << "the same is said once";
}

TEST_F(EgressRelayTest, ANameThatTheListHasNotIsNobodysToAsk) {
  std::atomic<int> asked = 0;
  serve("pypi.org", [&](const std::string&) {
    ++asked;
    return NameFound{.outcome = LookUp::kFound, .addresses = {*IpAddress::parse("127.0.0.1")}};
  });
  EXPECT_EQ(ask("\x03org"), std::pair(3, 0));
  EXPECT_EQ(ask("\x04"
                "evil\x04pypi\x03org"),
            std::pair(3, 0));
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(ask("\x04pypi\x03org"), std::pair(0, 0)) << "the node's own address is not told";
  EXPECT_EQ(asked, 1);
}

TEST_F(EgressRelayTest, WhatTheMachineDoesNotFindIsSaidSo) {
  serve("*.example", [&](const std::string& name) {
    return NameFound{.outcome = name == "no.example" ? LookUp::kNoSuchName : LookUp::kFailed, .addresses = {}};
  });
  EXPECT_EQ(ask("\x02no\x07"
                "example"),
            std::pair(3, 0));
  EXPECT_EQ(ask("\x04"
                "fail\x07"
                "example"),
            std::pair(2, 0));
}

TEST_F(EgressRelayTest, ItsResolverGivesUpWhatIsTooMuch) {
  const auto open =
      std::make_shared<std::atomic<bool>>(false);  // questions that wait are looked up after the test's end
  serve("*.example", [open](const std::string&) {
    while (!*open) std::this_thread::yield();
    return NameFound{.outcome = LookUp::kNoSuchName, .addresses = {}};
  });
  const UniqueFd socket = connected(SOCK_DGRAM, questions_);
  const std::string question =
      "\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01"
      "a\x07"
      "example\0\0\x01\0\x01"s;
  for (std::size_t i = 0; i < NameResolver::kMostWaiting + NameResolver::kThreads + 1; ++i) {
    ASSERT_EQ(::send(socket.get(), question.data(), question.size(), 0), std::ssize(question));
  }
  const std::string answer = answer_on(socket.get());
  *open = true;
  ASSERT_GE(answer.size(), 12u);
  EXPECT_EQ(answer[3] & 15, 2);
}

TEST(LookUp, KnowsWhatTheMachineKnows) {
  const NameFound found = look_up_as_this_machine("localhost");
  EXPECT_EQ(found.outcome, LookUp::kFound);
  EXPECT_THAT(found.addresses, testing::Contains(*IpAddress::parse("127.0.0.1")));
}

TEST(MachineRoutes, KnowThisMachine) {
  auto routes = MachineRoutes::open();
  ASSERT_TRUE(routes);
  EXPECT_EQ(routes->to(*IpAddress::parse("127.0.0.1")), RouteKind::kThisMachine);
  EXPECT_EQ(routes->to(*IpAddress::parse("127.9.9.9")), RouteKind::kThisMachine);
  EXPECT_NE(routes->to(*IpAddress::parse("8.8.8.8")), RouteKind::kThisMachine);
  if (::access("/proc/self/net/if_inet6", F_OK) == 0) {
    EXPECT_EQ(routes->to(*IpAddress::parse("::1")), RouteKind::kThisMachine);
  }
}

}  // namespace
}  // namespace fairlead
