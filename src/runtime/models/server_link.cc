#include "runtime/models/server_link.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/fd_socket.h"
#include "runtime/spawn_child.h"

namespace fairlead {
namespace {

using Wait = boost::asio::posix::stream_descriptor;

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal: {}", ::strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace

Result<std::unique_ptr<ModelServerLink>> ModelServerLink::start(boost::asio::io_context& io, const Options& options,
                                                                Events events) {
  auto pair = make_seqpacket_pair();
  if (!pair) return fail(pair.error());
  const auto pid = spawn_with_socket(options.words, options.environment, pair->second.get());
  if (!pid) return fail(pid.error());
  UniqueFd end(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  if (!end) {
    const int error = errno;
    ::kill(*pid, SIGKILL);
    ::waitpid(*pid, nullptr, 0);
    return fail(errno_error(error, "pidfd_open"));
  }
  return std::unique_ptr<ModelServerLink>(
      new ModelServerLink(io, *pid, std::move(end), std::move(pair->first), std::move(events)));
}

ModelServerLink::ModelServerLink(boost::asio::io_context& io, pid_t pid, UniqueFd end, UniqueFd socket, Events events)
    : socket_(io, socket.release()), end_(io, end.release()), events_(std::move(events)), pid_(pid) {
  wait_read();
  wait_end();
}

ModelServerLink::~ModelServerLink() {
  if (reaped_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ModelServerLink::wait_read() {
  socket_.async_wait(Wait::wait_read, [this, alive = std::weak_ptr<int>(alive_)](boost::system::error_code error) {
    if (!error && !alive.expired()) on_readable();
  });
}

void ModelServerLink::wait_end() {
  end_.async_wait(Wait::wait_read, [this, alive = std::weak_ptr<int>(alive_)](boost::system::error_code error) {
    if (error || alive.expired()) return;
    on_readable();  // what it said last
    if (alive.expired()) return;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == 0) return wait_end();
    reaped_ = true;
    events_.gone(describe_end(status));
  });
}

void ModelServerLink::on_readable() {
  const std::weak_ptr<int> alive = alive_;
  while (true) {
    FdMessage message;
    const int error = receive_message(socket_.native_handle(), message, MSG_DONTWAIT);
    if (error == EAGAIN) return wait_read();
    if (error != 0 || message.bytes.size() != sizeof(model_server::Report)) return;  // its end follows
    model_server::Report report;
    std::memcpy(&report, message.bytes.data(), sizeof report);
    report.message[sizeof report.message - 1] = '\0';
    events_.report(report, std::move(message.fds));
    if (alive.expired()) return;
  }
}

void ModelServerLink::send(const model_server::Order& order) {
  unsent_.push_back(order);
  if (unsent_.size() == 1) wait_write();
}

void ModelServerLink::wait_write() {
  socket_.async_wait(Wait::wait_write, [this, alive = std::weak_ptr<int>(alive_)](boost::system::error_code error) {
    if (error || alive.expired()) return;
    while (!unsent_.empty()) {
      const std::string_view bytes(reinterpret_cast<const char*>(&unsent_.front()), sizeof unsent_.front());
      const int sent = send_message(socket_.native_handle(), bytes, {}, MSG_DONTWAIT);
      if (sent == EAGAIN) return wait_write();
      if (sent != 0) return;  // its end follows
      unsent_.pop_front();
    }
  });
}

}  // namespace fairlead
