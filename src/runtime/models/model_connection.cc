#include "runtime/models/model_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/lifetime.h"
#include "runtime/fd_socket.h"

namespace fairlead {
namespace {

using Wait = boost::asio::posix::stream_descriptor;
constexpr int kRequestsPerTurn = 16;  // then the others have theirs
constexpr auto kFloodPause = std::chrono::milliseconds(50);
constexpr auto kFullPause = std::chrono::milliseconds(20);

}  // namespace

ModelConnection::ModelConnection(boost::asio::io_context& io, UniqueFd socket, RateLimit& rate, Events events)
    : io_(io), socket_(io, socket.release()), pause_(io), write_pause_(io), events_(std::move(events)), rate_(rate) {}

void ModelConnection::start() {
  wait_read();
}

void ModelConnection::wait_read() {
  if (std::exchange(reads_, true)) return;
  socket_.async_wait(Wait::wait_read, life_.on_success([this] { on_readable(); }));
}

void ModelConnection::on_readable() {
  reads_ = false;
  if (closed_) return;
  const Lifetime::Watch life = life_.watch();
  for (int i = 0; i < kRequestsPerTurn; ++i) {
    if (!queued_.empty()) return;  // flush() goes on
    if (!rate_.take(monotonic_now())) {
      reads_ = true;
      pause_.expires_after(kFloodPause);
      pause_.async_wait([this, life](boost::system::error_code error) {
        if (error || life.ended()) return;
        reads_ = false;
        wait_read();
      });
      return;
    }
    char buffer[sizeof(ModelRequest) + 1];
    // Descriptors a program attaches are dropped by the kernel: there is no room for them.
    const ssize_t size = ::recv(socket_.native_handle(), buffer, sizeof buffer, MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size <= 0) {
      shut();
      return events_.closed({});
    }
    const Result<ModelRequest> request =
        decode_model_request({buffer, std::min(static_cast<std::size_t>(size), sizeof buffer)});
    if (!request) {
      shut();
      return events_.closed(request.error().message);
    }
    events_.request(*request);
    if (life.ended() || closed_) return;
  }
  wait_read();
}

int ModelConnection::post(const Packet& packet) {
  int fds[MODEL_FDS_PER_PACKET];
  for (std::size_t i = 0; i < packet.count; ++i) fds[i] = (*packet.blocks)[packet.first + i].get();
  const std::string_view bytes(reinterpret_cast<const char*>(&packet.answer), sizeof packet.answer);
  return send_message(socket_.native_handle(), bytes, {fds, packet.count}, MSG_DONTWAIT);
}

void ModelConnection::send(ModelAnswer answer, const Blocks& blocks) {
  if (closed_) return;
  const std::size_t total = blocks ? blocks->size() : 0;
  std::size_t first = 0;
  do {
    const Packet packet{answer, blocks, first, std::min<std::size_t>(total - first, MODEL_FDS_PER_PACKET)};
    first += packet.count;
    answer.kind = MODEL_MORE;
    if (queued_.empty()) {
      const int error = post(packet);
      if (error == 0) continue;
      if (error != EAGAIN && error != ETOOMANYREFS) return close_later({});
      error == EAGAIN ? wait_write() : pause_write();
    }
    if (queued_.size() >= kMaxQueued) {
      return close_later(
          fmt::format("models: {} answers wait to be read, at most {} may", queued_.size() + 1, kMaxQueued));
    }
    queued_.push_back(packet);
  } while (first < total);
}

void ModelConnection::wait_write() {
  socket_.async_wait(Wait::wait_write, life_.on_success([this] { flush(); }));
}

// Descriptors that other programs have not fetched yet are as many as may be on their way: that passes.
void ModelConnection::pause_write() {
  write_pause_.expires_after(kFullPause);
  write_pause_.async_wait(life_.on_success([this] { flush(); }));
}

void ModelConnection::flush() {
  while (!closed_ && !queued_.empty()) {
    const int error = post(queued_.front());
    if (error == EAGAIN) return wait_write();
    if (error == ETOOMANYREFS) return pause_write();
    if (error != 0) return close_later({});
    queued_.pop_front();
  }
  wait_read();
}

// send() is called by owners in the middle of their own work.
void ModelConnection::close_later(std::string why) {
  boost::asio::post(io_, [this, why = std::move(why), life = life_.watch()]() mutable {
    if (life.ended() || closed_) return;
    shut();
    events_.closed(std::move(why));
  });
}

void ModelConnection::shut() {
  if (std::exchange(closed_, true)) return;
  boost::system::error_code ignored;
  socket_.close(ignored);
  pause_.cancel();
  write_pause_.cancel();
}

}  // namespace fairlead
