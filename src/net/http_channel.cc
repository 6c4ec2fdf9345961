#include "net/http_channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/check.h"
#include "net/http_response_reader.h"
#include "net/transport.h"

namespace fairlead::net {

using boost::system::error_code;

bool Endpoint::is_local() const {
  return authority.starts_with("unix:") || is_loopback_host(authority);
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  Endpoint endpoint{.text = std::string(text), .authority = {}, .host = {}};
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    endpoint.speaks_tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  }
  while (!rest.empty() && rest.back() == '/' && !rest.starts_with("unix:")) rest.remove_suffix(1);
  endpoint.authority = std::string(rest);
  if (rest.starts_with("unix:")) {
    if (const auto path = parse_socket_address(rest); !path) return fail(path.error());
    if (!rest.starts_with("unix:/")) return fail(Errc::kInvalidArgument, "'{}': the path must begin with '/'", text);
    if (endpoint.speaks_tls) return fail(Errc::kInvalidArgument, "'{}': a Unix socket speaks no TLS", text);
    endpoint.host = "localhost";
    return endpoint;
  }
  const std::size_t colon = rest.rfind(':');
  const std::string_view port = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  std::string_view host = rest.substr(0, std::min(colon, rest.size()));
  const bool is_number = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos;
  const int number = is_number ? std::stoi(std::string(port)) : 0;
  if (host.empty() || number < 1 || number > 65535 || rest.find_first_of("/?#@ \t\r\n") != rest.npos) {
    return fail(Errc::kInvalidArgument,
                "'{}' is no address; it must be http://HOST:PORT, https://HOST:PORT or unix:/PATH",
                text.substr(0, 256));
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  endpoint.host = std::string(host);
  return endpoint;
}

Result<SocketAddress> resolve_endpoint(const Endpoint& endpoint) {
  auto literal = parse_socket_address(endpoint.authority);
  if (literal || endpoint.authority.starts_with("unix:")) return literal;
  const std::string port = endpoint.authority.substr(endpoint.authority.rfind(':') + 1);
  auto resolved = resolve_host(endpoint.host, port);
  if (!resolved) return fail(Errc::kUnavailable, "'{}': {}", endpoint.text, resolved.error().message);
  return resolved;
}

namespace {

constexpr std::size_t kReadBytes = 64 << 10;
constexpr std::size_t kTurnBytes = 64 << 10;  // of a request's body

class Channel final : public HttpChannel {
 public:
  Channel(boost::asio::io_context& io, Endpoint endpoint, SocketAddress address, const TlsTrust* trust,
          ChannelOptions options)
      : io_(io),
        endpoint_(std::move(endpoint)),
        address_(address),
        trust_(trust),
        options_(options),
        timer_(io),
        in_(options.response_bytes) {}
  ~Channel() override { drop(); }

  void send(ClientRequest request, std::string prefix, std::optional<Duration> patience, Done done,
            std::shared_ptr<BodyTaker> taker) override {
    FL_CHECK(!is_busy(), "a channel carries one request at a time");
    in_.taker = std::move(taker);
    in_.taking = Taking::kNotAsked;
    out_.done = std::move(done);
    out_.patience = patience;
    out_.body = std::move(request.body);
    out_.head = head_of(request, prefix.size() + out_.body.size());
    out_.head += prefix;
    out_.sent_head = out_.sent_body = 0;
    in_.reader.begin(in_.response);
    if (!is_usable()) drop();
    if (!transport_) return connect();
    begin_exchange();
  }

  bool is_busy() const override { return static_cast<bool>(out_.done); }
  bool is_connected() const override { return transport_ != nullptr; }
  bool is_usable() override { return !transport_ || !has_ended(); }
  void close() override {
    out_.done = nullptr;
    in_.taker.reset();
    drop();
  }

 private:
  enum class Taking { kNotAsked, kCollects, kTakes, kWaits };  // what becomes of the body, see BodyTaker

  std::string head_of(const ClientRequest& request, std::size_t bytes) const {
    const bool is_unix = endpoint_.authority.starts_with("unix:");
    std::string head = request.method;
    head.append(" ").append(request.target).append(" HTTP/1.1\r\nHost: ");
    head.append(is_unix ? std::string("localhost") : endpoint_.authority).append("\r\n");
    for (const Header& header : request.headers)
      head.append(header.name).append(": ").append(header.value).append("\r\n");
    if (bytes > 0 || request.method != "GET")
      head.append("Content-Length: ").append(std::to_string(bytes)).append("\r\n");
    return head.append("\r\n");
  }

  // Between requests a server says nothing but that it goes.
  bool has_ended() const {
    if (endpoint_.speaks_tls) return false;  // session tickets look like input; a write or read will tell
    char byte = 0;
    const ssize_t count = ::recv(transport_->native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count >= 0 || (errno != EAGAIN && errno != EINTR);
  }

  void drop() {
    ++generation_;
    timer_.cancel();
    connecting_.reset();
    session_.reset();
    if (transport_) transport_->close();
    transport_.reset();
  }

  void finish(Result<ClientResponse> answer) {
    Done done = std::exchange(out_.done, nullptr);
    const std::shared_ptr<BodyTaker> taker = std::exchange(in_.taker, nullptr);  // lives while it is called
    out_.body.clear();
    timer_.cancel();
    if (done) done(std::move(answer));
  }
  void give_up(Errc code, std::string_view what) {
    const bool was_sent = out_.sent_head > 0;
    drop();
    const Errc honest = code == Errc::kIo && !was_sent ? Errc::kUnavailable : code;
    finish(fail(honest, "{}: {}", endpoint_.text, what));
  }

  // A callback of an earlier connection finds another generation, and does nothing.
  template <typename Then>
  auto guarded(Then then) {
    return [self = std::static_pointer_cast<Channel>(shared_from_this()), at = generation_, then](auto... arguments) {
      if (self->generation_ == at) then(*self, arguments...);
    };
  }

  void limit(Duration patience, Errc code, const char* what) {
    timer_.expires_after(patience);
    timer_.async_wait(guarded([code, what](Channel& self, error_code error) {
      // One that expired just before it was cancelled, or set anew, is called all the same.
      if (error || !self.out_.done || self.timer_.expiry() > std::chrono::steady_clock::now()) return;
      self.give_up(code, what);
    }));
  }

  // ---- connecting

  void connect() {
    const int fd = ::socket(address_.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return post_failure(errno_error(errno, "socket").message);
    const int on = 1;
    if (address_.family != AF_UNIX) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int error = 0;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(address_.storage), address_.size) != 0) error = errno;
    if (error != 0 && error != EINPROGRESS) {
      ::close(fd);
      return post_failure(errno_error(error, "connect").message);
    }
    connecting_ = std::make_unique<Transport::Socket>(io_.get_executor());
    boost::asio::generic::stream_protocol protocol(address_.family, 0);
    error_code assigned;
    connecting_->assign(protocol, fd, assigned);
    if (assigned) {
      ::close(fd);
      return post_failure(assigned.message());
    }
    limit(options_.connect_timeout, Errc::kUnavailable, "no connection in time");
    if (error == 0) return connected();
    connecting_->async_wait(Transport::Socket::wait_write, guarded([](Channel& self, error_code waited) {
                              if (waited) return self.give_up(Errc::kUnavailable, waited.message());
                              self.connected();
                            }));
  }

  void post_failure(std::string what) {
    boost::asio::post(io_,
                      guarded([what = std::move(what)](Channel& self) { self.give_up(Errc::kUnavailable, what); }));
  }

  void connected() {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(connecting_->native_handle(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return give_up(Errc::kUnavailable, errno_error(error, "connect").message);
    if (!endpoint_.speaks_tls) return ready();
    if (trust_ == nullptr) return give_up(Errc::kUnavailable, "speaks TLS, and nobody says whom to trust");
    auto session = trust_->connect(connecting_->native_handle(), endpoint_.host);
    if (!session) return give_up(Errc::kUnavailable, session.error().message);
    session_ = *std::move(session);
    shake_hands();
  }

  void shake_hands() {
    const TlsSession::Step step = session_->handshake();
    if (step == TlsSession::Step::kDone) return ready();
    if (step == TlsSession::Step::kFailed || step == TlsSession::Step::kEnd) {
      return give_up(Errc::kUnavailable, "TLS: " + session_->last_error());
    }
    const auto wanted =
        step == TlsSession::Step::kNeedsWrite ? Transport::Socket::wait_write : Transport::Socket::wait_read;
    connecting_->async_wait(wanted, guarded([](Channel& self, error_code error) {
                              if (error) return self.give_up(Errc::kUnavailable, error.message());
                              self.shake_hands();
                            }));
  }

  void ready() {
    timer_.cancel();
    transport_ = std::make_shared<Transport>(std::move(*connecting_), std::move(session_));
    connecting_.reset();
    begin_exchange();
  }

  // ---- one request and its answer

  void begin_exchange() {
    if (out_.patience) limit(*out_.patience, Errc::kDeadlineExceeded, "no answer in time");
    in_.unread = 0;
    read();
    write();
  }

  // So much in a turn of the loop: others have theirs, also while the server reads as fast as this writes.
  void write() {
    for (std::size_t turn = 0; !out_.is_sent();) {
      if (turn >= kTurnBytes) return boost::asio::post(io_, guarded([](Channel& self) { self.write(); }));
      const Transport::Moved moved = transport_->send(std::string_view(out_.head).substr(out_.sent_head),
                                                      std::string_view(out_.body).substr(out_.sent_body, kTurnBytes));
      if (moved.sent == Transport::Sent::kBroken)
        return give_up(Errc::kIo, "the connection broke while it was written");
      if (moved.sent == Transport::Sent::kLater) {
        return transport_->await_output(guarded([](Channel& self, error_code error) {
          if (error) return self.give_up(Errc::kIo, error.message());
          self.write();
        }));
      }
      const std::size_t of_head = std::min(moved.count, out_.head.size() - out_.sent_head);
      out_.sent_head += of_head;
      out_.sent_body += moved.count - of_head;
      turn += moved.count;
    }
  }

  void read() {
    if (in_.buffer.empty()) in_.buffer.resize(kReadBytes);
    // The transport lives until its handler was called.
    transport_->async_read(in_.buffer.data() + in_.unread, in_.buffer.size() - in_.unread,
                           guarded([held = transport_](Channel& self, error_code error, std::size_t count) {
                             if (error) return self.give_up(Errc::kIo, "the connection ended before the answer did");
                             self.take(count);
                           }));
  }

  void take(std::size_t count) {
    in_.unread += count;
    const ResponseReader::Step step = in_.reader.feed({in_.buffer.data(), in_.unread});
    if (step.progress == ResponseReader::Progress::kFailed) return give_up(step.error.code, step.error.message);
    std::copy(in_.buffer.begin() + static_cast<std::ptrdiff_t>(step.consumed),
              in_.buffer.begin() + static_cast<std::ptrdiff_t>(in_.unread), in_.buffer.begin());
    in_.unread -= step.consumed;
    if (!hand_on()) return;
    if (step.progress == ResponseReader::Progress::kNeedMore) {
      if (in_.taking != Taking::kWaits) read();
      return;
    }
    if (!in_.reader.keeps_alive() || in_.unread > 0 || !out_.is_sent()) drop();
    finish(std::move(in_.response));
  }

  // What is there of a body goes to its taker. False: that has closed the channel.
  bool hand_on() {
    if (!in_.taker || in_.response.body.empty() || in_.taking == Taking::kCollects) return true;
    const std::shared_ptr<BodyTaker> taker = in_.taker;
    const std::uint64_t connection = generation_;
    if (in_.taking == Taking::kNotAsked) {
      in_.taking = taker->wants(in_.response) ? Taking::kTakes : Taking::kCollects;
      if (in_.taking == Taking::kCollects) return true;
      taker->on_resume([held = std::weak_ptr<HttpChannel>(shared_from_this()), connection] {
        const auto self = std::static_pointer_cast<Channel>(held.lock());
        if (self && self->generation_ == connection) self->resume();
      });
    }
    const bool wants_more = taker->take(std::exchange(in_.response.body, {}));
    if (generation_ != connection || !in_.taker) return false;
    if (!wants_more) in_.taking = Taking::kWaits;
    return true;
  }
  void resume() {
    if (in_.taking != Taking::kWaits) return;
    in_.taking = Taking::kTakes;
    read();
  }

  boost::asio::io_context& io_;
  const Endpoint endpoint_;
  const SocketAddress address_;
  const TlsTrust* const trust_;
  const ChannelOptions options_;
  boost::asio::steady_timer timer_;
  std::uint64_t generation_ = 0;                   // of the connection
  std::unique_ptr<Transport::Socket> connecting_;  // until it is a transport
  std::unique_ptr<TlsSession> session_;            // likewise
  std::shared_ptr<Transport> transport_;           // null: not connected. Shared with the read that is under way
  struct {
    std::string head, body;
    std::size_t sent_head = 0, sent_body = 0;  // of the two
    std::optional<Duration> patience;
    Done done;
    bool is_sent() const { return sent_head == head.size() && sent_body == body.size(); }
  } out_;
  struct In {
    explicit In(std::size_t most_bytes) : reader(most_bytes) {}
    std::vector<char> buffer;
    std::size_t unread = 0;
    ResponseReader reader;
    ClientResponse response;
    std::shared_ptr<BodyTaker> taker;  // null: nobody takes
    Taking taking = Taking::kNotAsked;
  } in_;
};

}  // namespace

std::shared_ptr<HttpChannel> HttpChannel::create(boost::asio::io_context& io, Endpoint endpoint, SocketAddress address,
                                                 const TlsTrust* trust, ChannelOptions options) {
  return std::make_shared<Channel>(io, std::move(endpoint), address, trust, options);
}

}  // namespace fairlead::net
