#include "runtime/egress_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "model/ip_address.h"
#include "runtime/confinement.h"

namespace fairlead {
namespace {

constexpr int kPatienceMs = 60'000;

// What a process that has a network of its own, with a way out, finds there.
std::string in_a_network(const std::function<std::string(WayOutSockets&)>& look) {
  int said[2];
  EXPECT_EQ(::pipe2(said, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto found = [&]() -> std::string {
      if (::unshare(CLONE_NEWNET | (::geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) return "no network of its own";
      if (auto status = bring_loopback_up(); !status) return status.error().message;
      auto sockets = make_way_out_sockets();
      if (!sockets) return sockets.error().message;
      if (auto status = lay_way_out(); !status) return status.error().message;
      if (auto status = open_way_out(); !status) return status.error().message;
      return look(*sockets);
    }();
    (void)!::write(said[1], found.data(), found.size());
    ::_exit(0);
  }
  ::close(said[1]);
  std::string text(4096, '\0');
  const ssize_t size = ::read(said[0], text.data(), text.size());
  ::close(said[0]);
  ::waitpid(child, nullptr, 0);
  return text.substr(0, size > 0 ? static_cast<std::size_t>(size) : 0);
}

sockaddr_in place(const char* address, std::uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &to.sin_addr);
  return to;
}

std::string name_of(int socket) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size);
  return IpAddress::of(reinterpret_cast<sockaddr&>(name))->text() + ":" + std::to_string(ntohs(name.sin_port));
}

bool is_readable(int socket, int patience = kPatienceMs) {
  pollfd ready{socket, POLLIN, 0};
  return ::poll(&ready, 1, patience) > 0;
}

class EgressNetwork : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = try_way_out(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(EgressNetwork, AConnectionArrivesWithTheAddressThatItWasMadeTo) {
  EXPECT_EQ(in_a_network([](WayOutSockets& sockets) -> std::string {
              const sockaddr_in to = place("151.101.0.223", 443);
              const UniqueFd client(::socket(AF_INET, SOCK_STREAM, 0));
              if (::connect(client.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
                return strerror(errno);
              if (!is_readable(sockets.connections[0].get())) return "it did not arrive";
              const UniqueFd accepted(::accept(sockets.connections[0].get(), nullptr, nullptr));
              return name_of(accepted.get());
            }),
            "151.101.0.223:443");
}

TEST_F(EgressNetwork, AQuestionArrivesWhateverNameServerItIsFor) {
  EXPECT_EQ(in_a_network([](WayOutSockets& sockets) -> std::string {
              const sockaddr_in to = place("8.8.8.8", 53);
              const UniqueFd client(::socket(AF_INET, SOCK_DGRAM, 0));
              if (::sendto(client.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 1)
                return strerror(errno);
              return is_readable(sockets.questions[0].get()) ? "asked" : "not asked";
            }),
            "asked");
}

TEST_F(EgressNetwork, WhatTheSandboxSaysToItselfStaysThere) {
  EXPECT_EQ(in_a_network([](WayOutSockets& sockets) -> std::string {
              auto own = listen_on_loopback(8080);
              if (!own) return own.error().message;
              const sockaddr_in to = place("127.0.0.1", 8080);
              const UniqueFd client(::socket(AF_INET, SOCK_STREAM, 0));
              if (::connect(client.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
                return strerror(errno);
              if (!is_readable(own->get())) return "it did not arrive";
              return is_readable(sockets.connections[0].get(), 0) ? "taken" : "own";
            }),
            "own");
}

TEST_F(EgressNetwork, OtherDatagramsAreRefused) {
  EXPECT_EQ(in_a_network([](WayOutSockets&) -> std::string {
              const sockaddr_in to = place("8.8.8.8", 123);
              const UniqueFd client(::socket(AF_INET, SOCK_DGRAM, 0));
              ::connect(client.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
              ::send(client.get(), "x", 1, 0);
              char byte = 0;
              if (!is_readable(client.get())) return "nothing";
              return ::recv(client.get(), &byte, 1, 0) < 0 ? strerror(errno) : "answered";
            }),
            "Connection refused");
}

}  // namespace
}  // namespace fairlead
