#include "runtime/models/server_link.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/lifetime.h"
#include "runtime/fd_socket.h"

namespace fairlead {
namespace {

using Wait = boost::asio::posix::stream_descriptor;

}  // namespace

Result<std::unique_ptr<ModelServerLink>> ModelServerLink::start(boost::asio::io_context& io, const Options& options,
                                                                Events events) {
  auto pair = make_seqpacket_pair();
  if (!pair) return fail(pair.error());
  std::unique_ptr<ModelServerLink> made(new ModelServerLink(io, std::move(pair->first), std::move(events)));
  Launch launch;
  if (options.launcher) launch = options.launcher(options.environment);
  made->held_ = std::move(launch.held);
  launch.words.insert(launch.words.end(), options.words.begin(), options.words.end());
  auto process =
      ChildProcess::start(io, {.words = std::move(launch.words), .environment = options.environment},
                          pair->second.get(), [link = made.get()](std::string reason) { link->on_end(reason); });
  if (!process) return fail(process.error());
  made->process_ = *std::move(process);
  made->wait_read();
  return made;
}

ModelServerLink::ModelServerLink(boost::asio::io_context& io, UniqueFd socket, Events events)
    : socket_(io, socket.release()), events_(std::move(events)) {}

void ModelServerLink::on_end(const std::string& reason) {
  const Lifetime::Watch life = life_.watch();
  on_readable();  // what it said last
  if (!life.ended()) events_.gone(reason);
}

void ModelServerLink::wait_read() {
  socket_.async_wait(Wait::wait_read, life_.on_success([this] { on_readable(); }));
}

void ModelServerLink::on_readable() {
  const Lifetime::Watch life = life_.watch();
  while (true) {
    FdMessage message;
    const int error = receive_message(socket_.native_handle(), message, MSG_DONTWAIT);
    if (error == EAGAIN) return wait_read();
    if (error != 0 || message.bytes.size() != sizeof(model_server::Report)) return;  // its end follows
    model_server::Report report;
    std::memcpy(&report, message.bytes.data(), sizeof report);
    report.message[sizeof report.message - 1] = '\0';
    events_.report(report, std::move(message.fds));
    if (life.ended()) return;
  }
}

void ModelServerLink::send(const model_server::Order& order) {
  unsent_.push_back(order);
  if (unsent_.size() == 1) wait_write();
}

void ModelServerLink::wait_write() {
  socket_.async_wait(Wait::wait_write, life_.on_success([this] {
    while (!unsent_.empty()) {
      const std::string_view bytes(reinterpret_cast<const char*>(&unsent_.front()), sizeof unsent_.front());
      const int sent = send_message(socket_.native_handle(), bytes, {}, MSG_DONTWAIT);
      if (sent == EAGAIN) return wait_write();
      if (sent != 0) return;  // its end follows
      unsent_.pop_front();
    }
  }));
}

}  // namespace fairlead
