// libFuzzer: whatever a connection sends, the server stays up, holds nothing when it has gone, and a call that reaches the handler is
// whole.
//
// The input is a list of frames: a byte for the kind, one for the flags, one for the stream, one for the length, and the payload. What
// is told of a kind that is not known goes out as it is. Half of the heads are those of a call, so that there are calls.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_budget.h"
#include "net/grpc/grpc_server.h"
#include "net/http_listener.h"

namespace fairlead::net {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

std::string literal(std::string_view name, std::string_view value) {
  std::string field(1, '\0');
  (field += static_cast<char>(name.size())) += name;
  (field += static_cast<char>(value.size())) += value;
  return field;
}

std::string frame(unsigned kind, unsigned flags, unsigned stream, std::string_view payload) {
  std::string bytes(9, '\0');
  bytes[1] = static_cast<char>(payload.size() >> 8);
  bytes[2] = static_cast<char>(payload.size());
  bytes[3] = static_cast<char>(kind);
  bytes[4] = static_cast<char>(flags);
  bytes[8] = static_cast<char>(stream);
  return bytes.append(payload);
}

std::string connection_of(std::string_view input) {
  const std::string head = literal(":method", "POST") + literal(":scheme", "http") + literal(":path", "/s/m") +
                           literal(":authority", "localhost") + literal("content-type", "application/grpc");
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "");
  while (input.size() >= 4) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(input[i]); };
    const unsigned kind = at(0) % 12, flags = at(1), stream = at(2);
    const std::string_view payload = input.substr(4, at(3));
    if (kind == 10) {
      bytes += frame(1, flags | 4U, stream, head);
    } else if (kind == 11) {
      bytes += payload;
    } else {
      bytes += frame(kind, flags, stream, payload);
    }
    input.remove_prefix(4 + payload.size());
  }
  return bytes;
}

struct World {
  World() {
    const RequestMemory memory{
        .bytes = 1 << 20, .holder = [](HttpRequest&) { return std::string("a"); }, .shared = budget};
    server = std::make_unique<GrpcServer>(
        io, GrpcLimits{.message_bytes = 100'000},
        [this](HttpExchange exchange) {
          require(!exchange.request().target().empty());
          // The first byte says whether it is answered now, when its connection has gone, or never.
          const std::string body = exchange.request().take_body();
          if (body.starts_with('l')) return held.push_back(std::move(exchange));
          if (!body.starts_with('n')) exchange.respond({.body = body});
        },
        memory);
    const std::string path = "/tmp/grpc-calls-fuzz-" + std::to_string(::getpid());
    const auto bound = server->listen("unix:" + path);
    require(bound.has_value());
    address = *parse_socket_address(*bound);
  }

  void turn() {
    for (int i = 0; i < 4; ++i) {
      io.restart();
      io.poll();
    }
  }

  void connect(std::string_view bytes) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(::connect(fd, reinterpret_cast<const sockaddr*>(address.storage), address.size) == 0);
    turn();
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0 && errno != EAGAIN) break;
      bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      turn();
      char answers[4096];
      while (::recv(fd, answers, sizeof answers, MSG_DONTWAIT) > 0) {
      }
    }
    turn();
    ::close(fd);
    while (server->connections() > 0) turn();
    held.clear();
    turn();
    require(budget->used() == 0);
  }

  boost::asio::io_context io{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  std::shared_ptr<ByteBudget> budget = std::make_shared<ByteBudget>(1 << 20);
  std::vector<HttpExchange> held;
  std::unique_ptr<GrpcServer> server;
  SocketAddress address;
};

}  // namespace
}  // namespace fairlead::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fairlead::net;
  static World& world = *new World();
  world.connect(connection_of({reinterpret_cast<const char*>(data), size}));
  return 0;
}
