#include "edge/openfaas/callback_sender.h"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "net/http_channel.h"

namespace fairlead::openfaas {
namespace {

using boost::asio::ip::tcp;

constexpr std::size_t kMostAnswerBytes = 64 << 10;

// Whom to believe, for https; read at the first of them.
class Trust {
 public:
  Result<const net::TlsTrust*> get() {
    if (!trust_) {
      auto loaded = net::TlsTrust::load({});
      if (!loaded) return fail(loaded.error());
      trust_.emplace(*std::move(loaded));
    }
    return &*trust_;
  }

 private:
  std::optional<net::TlsTrust> trust_;
};

net::SocketAddress socket_address(const tcp::endpoint& endpoint) {
  net::SocketAddress address;
  address.size = static_cast<unsigned>(endpoint.size());
  address.family = endpoint.protocol().family();
  std::memcpy(address.storage, endpoint.data(), endpoint.size());
  return address;
}

class Try : public std::enable_shared_from_this<Try> {
 public:
  Try(boost::asio::io_context& io, const RegistryRules& rules, std::shared_ptr<Trust> trust, const Callback& callback,
      std::function<void(Status)> done)
      : io_(io),
        rules_(rules),
        trust_(std::move(trust)),
        callback_(callback),
        done_(std::move(done)),
        resolver_(io),
        timer_(io) {}

  void start() {
    timer_.expires_after(kCallbackPatience);
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error)
        self->end(fail(Errc::kDeadlineExceeded, "it was not answered within {:.0f} s", to_seconds(kCallbackPatience)));
    });
    resolver_.async_resolve(
        callback_.url.host.host, std::to_string(callback_.url.host.port), tcp::resolver::numeric_service,
        [self = shared_from_this()](const boost::system::error_code& error, const tcp::resolver::results_type& found) {
          self->resolved(error, found);
        });
  }

 private:
  void resolved(const boost::system::error_code& error, const tcp::resolver::results_type& found) {
    if (!done_) return;
    if (error || found.empty()) return end(fail(Errc::kUnavailable, "its host is not found: {}", error.message()));
    for (const auto& entry : found) {
      const tcp::endpoint endpoint = entry.endpoint();
      if (!rules_.needs_global_addresses(callback_.url.host) || is_global(*endpoint.data())) continue;
      return end(fail(
          Errc::kForbidden,
          "{} has the address {}, which is not public; to allow it the operator adds '{}' to the setting callbacks",
          callback_.url.host.host, endpoint.address().to_string(), callback_.url.authority()));
    }
    send(socket_address(found.begin()->endpoint()));
  }

  void send(const net::SocketAddress& address) {
    const net::TlsTrust* trust = nullptr;
    if (callback_.url.speaks_tls) {
      const auto loaded = trust_->get();
      if (!loaded) return end(fail(loaded.error()));
      trust = *loaded;
    }
    const std::string scheme = callback_.url.speaks_tls ? "https://" : "http://";
    auto endpoint = net::parse_endpoint(scheme + callback_.url.authority());
    if (!endpoint) return end(fail(endpoint.error()));
    channel_ = net::HttpChannel::create(io_, *std::move(endpoint), address, trust,
                                        {.connect_timeout = kCallbackPatience, .response_bytes = kMostAnswerBytes});
    channel_->send(
        callback_.request, {}, kCallbackPatience, [self = shared_from_this()](Result<net::ClientResponse> answer) {
          const bool was_heard = answer || answer.error().code == Errc::kTooLarge;  // what it said is not looked at
          self->end(was_heard ? Status() : fail(answer.error()));
        });
  }

  void end(Status status) {
    if (!done_) return;
    timer_.cancel();
    resolver_.cancel();
    if (channel_) channel_->close();
    // The channel may be what calls this.
    boost::asio::post(io_,
                      [self = shared_from_this(), done = std::exchange(done_, nullptr), status = std::move(status)] {
                        self->channel_.reset();
                        done(status);
                      });
  }

  boost::asio::io_context& io_;
  const RegistryRules& rules_;
  const std::shared_ptr<Trust> trust_;  // outlives the channel
  const Callback callback_;
  std::function<void(Status)> done_;  // null: it was told
  tcp::resolver resolver_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<net::HttpChannel> channel_;
};

}  // namespace

SendCallback callback_sender(boost::asio::io_context& io, RegistryRules rules) {
  const auto shared = std::make_shared<const RegistryRules>(std::move(rules));
  const auto trust = std::make_shared<Trust>();
  return [&io, shared, trust](const Callback& callback, std::function<void(Status)> done) {
    std::make_shared<Try>(io, *shared, trust, callback, [shared, done = std::move(done)](const Status& status) {
      done(status);
    })->start();
  };
}

}  // namespace fairlead::openfaas
