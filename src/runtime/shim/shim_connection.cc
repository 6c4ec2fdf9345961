#include "runtime/shim/shim_connection.h"

#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/lifetime.h"
#include "runtime/fd_socket.h"
#include "wire/shim_codec.h"

namespace fairlead {
namespace {

constexpr int kFramesPerTurn = 32;  // then the others have theirs
constexpr auto kFloodPause = std::chrono::milliseconds(50);

using Descriptor = boost::asio::posix::stream_descriptor;

}  // namespace

ShimConnection::ShimConnection(boost::asio::io_context& io, UniqueFd socket, Events events)
    : events_(std::move(events)), io_(io), socket_(io, socket.release()), pause_(io) {}

void ShimConnection::start() {
  wait_read();
}

// One wait at a time: the read side stops for a flood, and while the shim does not read what it was sent.
void ShimConnection::wait_read() {
  if (closed_ || std::exchange(reading_, true)) return;
  socket_.async_wait(Descriptor::wait_read, life_.on_success([this] {
    reading_ = false;
    on_readable();
  }));
}

void ShimConnection::on_readable() {
  const Lifetime::Watch life = life_.watch();
  for (int i = 0; i < kFramesPerTurn; ++i) {
    if (!queued_.empty()) return;  // flush() goes on
    if (!rate_.take(monotonic_now())) return pause();
    char buffer[sizeof(wire::Frame) + 1];
    // Descriptors a function attaches are dropped by the kernel: there is no room for them.
    const ssize_t size = ::recv(socket_.native_handle(), buffer, sizeof buffer, MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size <= 0) return close({});
    const auto shown = std::min(static_cast<std::size_t>(size), sizeof buffer);
    const Result<wire::Frame> frame = wire::decode_shim_frame({buffer, shown});
    if (!frame) return close(frame.error().message);
    events_.frame(*frame);
    if (life.ended() || closed_) return;
  }
  wait_read();
}

void ShimConnection::pause() {
  pause_.expires_after(kFloodPause);
  pause_.async_wait(life_.on_success([this] { wait_read(); }));
}

void ShimConnection::send(const wire::Frame& frame, std::span<const int> fds) {
  if (closed_) return;
  if (queued_.empty()) {
    const int error = send_message(socket_.native_handle(), wire::packet_of(frame), fds, MSG_DONTWAIT);
    if (error == 0) return;
    if (error != EAGAIN) return close_later({});
    wait_write();
  }
  if (queued_.size() >= kMaxQueuedFrames) {
    return close_later(
        fmt::format("shim: {} frames wait to be read, at most {} may", queued_.size() + 1, kMaxQueuedFrames));
  }
  queued_.emplace_back(wire::packet_of(frame));
}

void ShimConnection::wait_write() {
  socket_.async_wait(Descriptor::wait_write, life_.on_success([this] { flush(); }));
}

void ShimConnection::flush() {
  while (!closed_ && !queued_.empty()) {
    const int error = send_message(socket_.native_handle(), queued_.front(), {}, MSG_DONTWAIT);
    if (error == EAGAIN) return wait_write();
    if (error != 0) return close({});
    queued_.pop_front();
  }
  wait_read();
}

// send() is called by owners in the middle of their own work.
void ShimConnection::close_later(std::string why) {
  boost::asio::post(io_, life_.guarded([this, why = std::move(why)]() mutable { close(std::move(why)); }));
}

void ShimConnection::close(std::string why) {
  if (closed_) return;
  shut();
  events_.closed(std::move(why));
}

void ShimConnection::shut() {
  if (std::exchange(closed_, true)) return;
  boost::system::error_code ignored;
  socket_.close(ignored);
  pause_.cancel();
}

}  // namespace fairlead
