#include "net/grpc/grpc_server.h"

#include <algorithm>
#include <boost/asio/basic_waitable_timer.hpp>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/acceptor.h"
#include "net/grpc/grpc_connection.h"

namespace fairlead::net {
namespace {

using Timer =
    boost::asio::basic_waitable_timer<std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>,
                                      boost::asio::io_context::executor_type>;

constexpr std::size_t kReservedConnections = 64;  // over Unix sockets, which are the operator's more often than not

}  // namespace

class GrpcServer::Impl : public std::enable_shared_from_this<GrpcServer::Impl> {
 public:
  Impl(boost::asio::io_context& io, const GrpcLimits& limits, HttpHandler handler, RequestMemory memory)
      : io_(io),
        state_(std::make_shared<GrpcServerState>(limits, std::move(handler), std::move(memory))),
        timer_(io.get_executor()),
        tick_(std::clamp<Duration>(std::min(limits.idle_timeout, limits.transfer_timeout) / 4,
                                   std::chrono::milliseconds(1), std::chrono::seconds(1))) {}

  Acceptor& acceptor() {
    if (!acceptor_) {
      acceptor_ = std::make_shared<Acceptor>(io_, [weak = weak_from_this()](Accepted accepted) {
        if (const auto self = weak.lock()) self->admit(std::move(accepted));
      });
    }
    return *acceptor_;
  }

  void stop_listening() {
    if (acceptor_) acceptor_->stop();
    for (const auto& connection : all()) connection->leave();
  }

  void close() {
    if (acceptor_) acceptor_->close();
    state_->open = false;
    timer_.cancel();
    for (const auto& connection : all()) connection->close();
  }

  std::size_t connections() const { return state_->connections; }

 private:
  std::vector<std::shared_ptr<GrpcConnection>> all() {
    std::vector<std::shared_ptr<GrpcConnection>> connections;
    for (GrpcConnection& connection : connections_) connections.push_back(connection.shared_from_this());
    return connections;
  }

  void admit(Accepted accepted) {
    const std::size_t reserved = accepted.peer.uid ? kReservedConnections : 0;
    if (state_->connections >= state_->limits.connections + reserved) make_room();
    state_->now = monotonic_now();
    if (state_->connections == 0) tick_later();
    const auto connection = std::make_shared<GrpcConnection>(state_, std::move(accepted.transport), accepted.peer);
    connections_.push_back(*connection);
    connection->start();
  }

  // Where one address has more than half of them, one of its own makes room. The one that has been idle for longest goes; where all
  // have calls, the newest.
  void make_room() {
    const auto most = std::ranges::max_element(state_->of_address, {}, [](const auto& entry) { return entry.second; });
    const bool is_flood = most->second > state_->connections / 2;
    GrpcConnection* goes = nullptr;
    GrpcConnection* newest = nullptr;
    for (GrpcConnection& connection : connections_) {
      const bool is_of_most = connection.address() == most->first;
      if (is_of_most) newest = &connection;
      const auto idle = connection.idle_since();
      if (idle && (is_of_most || !is_flood) && (goes == nullptr || *idle < *goes->idle_since())) goes = &connection;
    }
    if (goes == nullptr) goes = newest;
    if (goes != nullptr) goes->drop();
  }

  // The clock ticks only while there are connections: an idle server causes no wake-ups.
  void tick_later() {
    if (std::exchange(ticking_, true)) return;
    timer_.expires_after(tick_);
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (!self) return;
      self->ticking_ = false;
      if (!error) self->tick();
    });
  }

  void tick() {
    state_->now = monotonic_now();
    for (const auto& connection : all()) connection->on_tick(state_->now);
    if (state_->connections > 0) tick_later();
  }

  using Connections =
      boost::intrusive::list<GrpcConnection,
                             boost::intrusive::member_hook<GrpcConnection, GrpcConnectionHook, &GrpcConnection::hook>,
                             boost::intrusive::constant_time_size<false>>;

  boost::asio::io_context& io_;
  const std::shared_ptr<GrpcServerState> state_;  // shared with connections, which may outlive the server by an event
  std::shared_ptr<Acceptor> acceptor_;            // none: it never listened; takes nobody after close()
  Connections connections_;                       // the newest last
  Timer timer_;
  const Duration tick_;
  bool ticking_ = false;
};

GrpcServer::GrpcServer(boost::asio::io_context& io, const GrpcLimits& limits, HttpHandler handler, RequestMemory memory)
    : impl_(std::make_shared<Impl>(io, limits, std::move(handler), std::move(memory))) {}

GrpcServer::~GrpcServer() {
  close();
}

Result<std::string> GrpcServer::listen(std::string_view address, TlsHandshakes* handshakes) {
  return impl_->acceptor().listen(address, handshakes);
}

void GrpcServer::stop_listening() {
  impl_->stop_listening();
}
void GrpcServer::close() {
  impl_->close();
}
std::size_t GrpcServer::connections() const {
  return impl_->connections();
}

}  // namespace fairlead::net
