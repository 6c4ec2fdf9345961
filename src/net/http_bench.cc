// Bare HTTP on loopback: what a request costs before anything happens with it. A single thread is client and server in
// turn for latency; a client thread with several keep-alive connections gives throughput.
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <thread>

#include "net/http_listener.h"
#include "net/http_server.h"

namespace fairlead::net {
namespace {

constexpr std::string_view kRequest =
    "POST /2015-03-31/functions/echo/invocations HTTP/1.1\r\nHost: 127.0.0.1:9001\r\n"
    "User-Agent: Boto3/1.43 md/Botocore#1.43 ua/2.1 os/linux md/arch#x86_64 lang/python#3.11\r\n"
    "X-Amz-Invocation-Type: RequestResponse\r\namz-sdk-invocation-id: 8f14e45f-ceea-467f-a0e7-2b6f1f2a7c11\r\n"
    "amz-sdk-request: attempt=1\r\nContent-Length: 2\r\n\r\n{}";

void answer(HttpExchange exchange) {
  exchange.respond(
      {.status = 200,
       .headers = {{"Content-Type", "application/json"}, {"x-amzn-RequestId", "8f14e45f-ceea-467f-a0e7-2b6f1f2a7c11"}},
       .body = exchange.request().take_body()});
}

int connect_to(std::string_view text) {
  const SocketAddress address = parse_socket_address(text).value();
  const int fd = ::socket(address.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(address.storage), address.size) != 0) std::abort();
  const int on = 1;
  if (address.family != AF_UNIX) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

class ServerThread {
 public:
  explicit ServerThread(const std::string& address) : server_(io_, {}, answer) {
    address_ = server_.listen(address).value();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~ServerThread() {
    io_.stop();
    thread_.join();
  }
  const std::string& address() const { return address_; }

 private:
  boost::asio::io_context io_{BOOST_ASIO_CONCURRENCY_HINT_1};
  HttpServer server_;
  std::string address_;
  std::thread thread_;
};

// One request at a time, client and server on their own threads: the round trip a caller sees.
void round_trip(benchmark::State& state, const std::string& address) {
  ServerThread server(address);
  const int fd = connect_to(server.address());
  char buffer[4096];
  for (auto _ : state) {
    if (::send(fd, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) < 0) std::abort();
    if (::recv(fd, buffer, sizeof buffer, 0) <= 0) std::abort();
  }
  state.SetItemsProcessed(state.iterations());
  ::close(fd);
}

void BM_RoundTripTcp(benchmark::State& state) {
  round_trip(state, "127.0.0.1:0");
}
BENCHMARK(BM_RoundTripTcp)->UseRealTime();

void BM_RoundTripUnix(benchmark::State& state) {
  round_trip(state, fmt::format("unix:/tmp/fairlead_http_bench.{}", ::getpid()));
}
BENCHMARK(BM_RoundTripUnix)->UseRealTime();

// Throughput of one server thread with `range` connections, each with one request under way.
void BM_Throughput(benchmark::State& state) {
  ServerThread server("127.0.0.1:0");
  std::vector<pollfd> connections;
  for (int i = 0; i < state.range(0); ++i) connections.push_back({connect_to(server.address()), POLLIN, 0});
  for (const pollfd& connection : connections) ::send(connection.fd, kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
  char buffer[4096];
  std::int64_t requests = 0;
  for (auto _ : state) {
    ::poll(connections.data(), connections.size(), -1);
    for (const pollfd& connection : connections) {
      if (connection.revents == 0) continue;
      if (::recv(connection.fd, buffer, sizeof buffer, 0) <= 0) std::abort();
      ::send(connection.fd, kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
      ++requests;
    }
  }
  state.SetItemsProcessed(requests);
  for (const pollfd& connection : connections) ::close(connection.fd);
}
BENCHMARK(BM_Throughput)->Arg(16)->UseRealTime();

// Server CPU alone: 16 pipelined requests per turn, no thread, one system call for all of them.
void BM_PipelinedServerCost(benchmark::State& state) {
  boost::asio::io_context io{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  HttpServer server(io, {}, answer);
  const int fd = connect_to(server.listen("127.0.0.1:0").value());
  std::string requests;
  for (int i = 0; i < 16; ++i) requests += kRequest;
  char buffer[65536];
  for (auto _ : state) {
    if (::send(fd, requests.data(), requests.size(), MSG_NOSIGNAL) < 0) std::abort();
    for (std::size_t answers = 0; answers < 16;) {
      io.poll();
      const ssize_t count = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
      for (ssize_t i = 0; i + 4 < count; ++i) answers += std::string_view(buffer + i, 5) == "HTTP/" ? 1 : 0;
    }
  }
  state.SetItemsProcessed(state.iterations() * 16);
  ::close(fd);
}
BENCHMARK(BM_PipelinedServerCost);

}  // namespace
}  // namespace fairlead::net
