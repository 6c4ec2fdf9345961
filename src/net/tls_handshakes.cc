#include "net/tls_handshakes.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <list>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace fairlead::net {
namespace {

using Executor = boost::asio::io_context::executor_type;
using Descriptor = boost::asio::posix::basic_stream_descriptor<Executor>;

constexpr auto kLeastPatience = std::chrono::seconds(2);
constexpr auto kTick = std::chrono::seconds(1);
constexpr int kNicer = 5;  // than the thread that serves

constexpr std::string_view kSpeaksTls =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 42\r\n\r\n"
    "this address speaks TLS: write https://...";

}  // namespace

class TlsHandshakes::Impl {
 public:
  Impl(std::shared_ptr<TlsIdentity> identity, Renewed renewed)
      : identity_(std::move(identity)), renewed_(std::move(renewed)), tick_timer_(io_), thread_([this] { run(); }) {}

  ~Impl() {
    io_.stop();
    thread_.join();
  }

  void begin(int fd, Done done) {
    auto handshake = std::make_shared<Handshake>(io_.get_executor());
    boost::system::error_code error;
    handshake->socket.assign(fd, error);
    // Out of memory for one more, or the thread is far behind.
    if (error || queued_.load() >= kMost) {
      if (error) ::close(fd);
      return;
    }
    ++queued_;
    handshake->done = std::move(done);
    boost::asio::post(io_, [this, handshake = std::move(handshake)] {
      --queued_;
      admit(handshake);
    });
  }

 private:
  struct Handshake {
    explicit Handshake(const Executor& executor) : socket(executor) {}
    Descriptor socket;  // closed, or given away: the handshake is over
    std::unique_ptr<TlsSession> session;
    Done done;
    Instant since{};
    std::list<std::shared_ptr<Handshake>>::iterator place{};  // in open_
  };
  using Shared = std::shared_ptr<Handshake>;

  void run() {
    ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kNicer);  // 0: this thread
    io_.run();
  }

  void admit(const Shared& handshake) {
    const Instant now = monotonic_now();
    look_for_new_files(now);
    if (open_.size() >= kMost) {
      if (now < open_.front()->since + kLeastPatience) return;
      drop(*Shared(open_.front()));
    }
    auto session = identity_->accept(handshake->socket.native_handle());
    if (!session) return;
    handshake->session = *std::move(session);
    handshake->since = now;
    handshake->place = open_.insert(open_.end(), handshake);
    if (open_.size() == 1) tick_later();
    step(handshake);
  }

  void look_for_new_files(Instant now) {
    const auto renewed = identity_->look_again(now);
    if (!renewed) {
      renewed_(fail(renewed.error()));
    } else if (*renewed) {
      renewed_({});
    }
  }

  void step(const Shared& handshake) {
    if (!handshake->socket.is_open()) return;  // dropped while its wait ended
    switch (handshake->session->handshake()) {
      case TlsSession::Step::kDone: return finish(*handshake);
      case TlsSession::Step::kNeedsRead: return await(handshake, Descriptor::wait_read);
      case TlsSession::Step::kNeedsWrite: return await(handshake, Descriptor::wait_write);
      default: break;
    }
    if (handshake->session->is_plain_http()) {
      [[maybe_unused]] const ssize_t sent =
          ::send(handshake->socket.native_handle(), kSpeaksTls.data(), kSpeaksTls.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    drop(*handshake);
  }

  void await(const Shared& handshake, Descriptor::wait_type what) {
    handshake->socket.async_wait(what, [this, handshake](const boost::system::error_code& error) {
      if (!error) step(handshake);
    });
  }

  // `handshake` lives on in its caller.
  void finish(Handshake& handshake) {
    open_.erase(handshake.place);
    handshake.done(handshake.socket.release(), std::move(handshake.session));
  }

  void drop(Handshake& handshake) {
    boost::system::error_code ignored;
    handshake.socket.close(ignored);
    open_.erase(handshake.place);
  }

  void tick_later() {
    tick_timer_.expires_after(kTick);
    tick_timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      const Instant oldest = monotonic_now() - kPatience;
      while (!open_.empty() && open_.front()->since < oldest) drop(*Shared(open_.front()));
      if (!open_.empty()) tick_later();
    });
  }

  const std::shared_ptr<TlsIdentity> identity_;
  const Renewed renewed_;
  boost::asio::io_context io_{1};
  const boost::asio::executor_work_guard<Executor> work_{io_.get_executor()};
  boost::asio::basic_waitable_timer<std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>,
                                    Executor>
      tick_timer_;
  std::list<Shared> open_;             // in the order in which they began, which is that in which their time ends
  std::atomic<std::size_t> queued_{};  // for the thread
  std::thread thread_;                 // last: runs once the rest is there
};

TlsHandshakes::TlsHandshakes(std::shared_ptr<TlsIdentity> identity, Renewed renewed)
    : impl_(std::make_unique<Impl>(std::move(identity), std::move(renewed))) {}

TlsHandshakes::~TlsHandshakes() = default;

void TlsHandshakes::begin(int fd, Done done) {
  impl_->begin(fd, std::move(done));
}

}  // namespace fairlead::net
