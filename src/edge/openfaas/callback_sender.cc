#include "edge/openfaas/callback_sender.h"

#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "net/http_channel.h"

namespace fairlead::openfaas {
namespace {

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

std::string text_of(const net::SocketAddress& address) {
  char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 1] = "?";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(address.storage), address.size, text, sizeof text, nullptr, 0,
                NI_NUMERICHOST);
  return text;
}

// What all tries of a sender share.
struct Shared {
  Shared(boost::asio::io_context& loop, RegistryRules allowed) : io(loop), rules(std::move(allowed)) {}

  boost::asio::io_context& io;
  const RegistryRules rules;
  Trust trust;
};

class Try : public std::enable_shared_from_this<Try> {
 public:
  Try(std::shared_ptr<Shared> shared, const Callback& callback, std::function<void(Status)> done)
      : shared_(std::move(shared)), callback_(callback), done_(std::move(done)), timer_(shared_->io) {}

  // Lives as long as its timer waits; what is found later finds nobody.
  void start(std::shared_ptr<net::HostResolver> resolver) {
    resolver_ = std::move(resolver);
    timer_.expires_after(kCallbackPatience);
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error)
        self->end(fail(Errc::kDeadlineExceeded, "it was not answered within {:.0f} s", to_seconds(kCallbackPatience)));
    });
    resolver_->ask(callback_.url.host.host, std::to_string(callback_.url.host.port),
                   [weak = weak_from_this()](const Result<std::vector<net::SocketAddress>>& found) {
                     if (const auto self = weak.lock()) self->resolved(found);
                   });
  }

 private:
  void resolved(const Result<std::vector<net::SocketAddress>>& found) {
    if (!done_) return;
    if (!found) return end(fail(Errc::kUnavailable, "its host is not found: {}", found.error().message));
    for (const net::SocketAddress& address : *found) {
      const bool may_be_any = !shared_->rules.needs_global_addresses(callback_.url.host);
      if (may_be_any || is_global(*reinterpret_cast<const sockaddr*>(address.storage))) continue;
      return end(fail(
          Errc::kForbidden,
          "{} has the address {}, which is not public; to allow it the operator adds '{}' to the setting callbacks",
          callback_.url.host.host, text_of(address), callback_.url.authority()));
    }
    send(found->front());
  }

  void send(const net::SocketAddress& address) {
    const net::TlsTrust* trust = nullptr;
    if (callback_.url.speaks_tls) {
      const auto loaded = shared_->trust.get();
      if (!loaded) return end(fail(loaded.error()));
      trust = *loaded;
    }
    const std::string scheme = callback_.url.speaks_tls ? "https://" : "http://";
    auto endpoint = net::parse_endpoint(scheme + callback_.url.authority());
    if (!endpoint) return end(fail(endpoint.error()));
    channel_ = net::HttpChannel::create(shared_->io, *std::move(endpoint), address, trust,
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
    if (channel_) channel_->close();
    // The channel may be what calls this.
    boost::asio::post(shared_->io,
                      [self = shared_from_this(), done = std::exchange(done_, nullptr), status = std::move(status)] {
                        self->channel_.reset();
                        done(status);
                      });
  }

  const std::shared_ptr<Shared> shared_;  // its trust outlives the channel
  const Callback callback_;
  std::function<void(Status)> done_;  // null: it was told
  boost::asio::steady_timer timer_;
  std::shared_ptr<net::HostResolver> resolver_;
  std::shared_ptr<net::HttpChannel> channel_;
};

}  // namespace

SendCallback callback_sender(boost::asio::io_context& io, RegistryRules rules, net::HostResolver::LookUp look_up) {
  return [shared = std::make_shared<Shared>(io, std::move(rules)),
          resolver = std::make_shared<net::HostResolver>(io, std::move(look_up))](const Callback& callback,
                                                                                  std::function<void(Status)> done) {
    std::make_shared<Try>(shared, callback, std::move(done))->start(resolver);
  };
}

}  // namespace fairlead::openfaas
