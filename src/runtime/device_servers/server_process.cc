#include "runtime/device_servers/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "runtime/spawn_child.h"

namespace fairlead {
namespace {

using Wait = boost::asio::posix::stream_descriptor;

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal: {}", ::strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

Result<pid_t> spawn(const ServerProcess::Options& options, int socket) {
  std::vector<std::string> words;
  if (options.launcher) words = options.launcher(options.environment);
  words.insert(words.end(), {options.program, "device-server"});
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  return spawn_with_socket(std::move(words), options.environment, socket);
}

}  // namespace

Result<std::unique_ptr<ServerProcess>> ServerProcess::start(boost::asio::io_context& io, const Options& options,
                                                            Events events) {
  auto pair = make_seqpacket_pair();
  if (!pair) return fail(pair.error());
  const auto pid = spawn(options, pair->second.get());
  if (!pid) return fail(pid.error());
  UniqueFd end(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  if (!end) {
    const int error = errno;
    ::kill(*pid, SIGKILL);
    ::waitpid(*pid, nullptr, 0);
    return fail(errno_error(error, "pidfd_open"));
  }
  return std::unique_ptr<ServerProcess>(new ServerProcess(
      io, {*pid, std::move(end), options.launcher ? SIGTERM : SIGKILL}, std::move(pair->first), std::move(events)));
}

ServerProcess::ServerProcess(boost::asio::io_context& io, Process process, UniqueFd socket, Events events)
    : channel_(std::move(socket)),
      socket_(io, ::fcntl(channel_.socket(), F_DUPFD_CLOEXEC, 0)),
      end_(io, process.descriptor.release()),
      events_(std::move(events)),
      pid_(process.pid),
      end_signal_(process.end_signal) {
  wait_for_frames();
  wait_for_end();
}

ServerProcess::~ServerProcess() {
  if (reaped_) return;
  ::kill(pid_, end_signal_);
  ::waitpid(pid_, nullptr, 0);
}

void ServerProcess::kill() {
  if (!reaped_) ::kill(pid_, end_signal_);
}

void ServerProcess::wait_for_frames() {
  socket_.async_wait(Wait::wait_read, [this, alive = std::weak_ptr<int>(alive_)](boost::system::error_code error) {
    if (!error && !alive.expired()) on_readable();
  });
}

void ServerProcess::wait_for_end() {
  end_.async_wait(Wait::wait_read, [this, alive = std::weak_ptr<int>(alive_)](boost::system::error_code error) {
    if (error || alive.expired()) return;
    on_readable();  // what it said last
    if (alive.expired()) return;
    int status = 0;
    // Asio may report what was a descriptor before, whose number and state this one has got: look, and do not block.
    if (::waitpid(pid_, &status, WNOHANG) == 0) return wait_for_end();
    reaped_ = true;
    events_.gone(describe_end(status));
  });
}

void ServerProcess::on_readable() {
  const std::weak_ptr<int> alive = alive_;
  std::string bytes;
  std::vector<UniqueFd> descriptors;
  while (true) {
    const int error = channel_.receive(bytes, descriptors);
    if (error == EAGAIN) return wait_for_frames();
    if (error != 0) return;  // its end follows
    auto frame = wire::decode_frame_to_node(bytes);
    if (!frame) {
      spdlog::error("device server {}: {}", pid_, frame.error().message);
      return kill();
    }
    events_.frame(*std::move(frame));
    if (alive.expired()) return;
  }
}

void ServerProcess::send(const wire::FrameToServer& frame, std::span<const int> descriptors) {
  channel_.send(wire::encode(frame), descriptors);
  flush();
}

void ServerProcess::flush() {
  if (channel_.flush() || flushing_) return;
  flushing_ = true;
  socket_.async_wait(Wait::wait_write, [this, alive = std::weak_ptr<int>(alive_)](boost::system::error_code error) {
    if (error || alive.expired()) return;
    flushing_ = false;
    flush();
  });
}

}  // namespace fairlead
