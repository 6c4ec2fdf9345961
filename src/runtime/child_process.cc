#include "runtime/child_process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/unique_fd.h"
#include "runtime/spawn_child.h"

namespace fairlead {
namespace {

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal: {}", ::strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace

class ChildProcess::Watch : public std::enable_shared_from_this<Watch> {
 public:
  Watch(boost::asio::io_context& io, pid_t pid, UniqueFd end, int end_signal, Ended ended)
      : end_(io, end.release()), late_(io), pid_(pid), end_signal_(end_signal), ended_(std::move(ended)) {}
  ~Watch() {
    if (!is_reaped_) reap_now();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  pid_t pid() const { return pid_; }
  void tell_nobody() { ended_ = nullptr; }

  void wait() {
    end_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [self = shared_from_this()](boost::system::error_code error) {
                      if (!error) self->look();
                    });
  }

  void kill() {
    if (is_reaped_) return;
    signal_end();
    if (end_signal_ == SIGKILL || std::exchange(is_asked_, true)) return;
    late_.expires_after(kPatience);
    late_.async_wait([self = shared_from_this()](boost::system::error_code error) {
      if (!error && !self->is_reaped_) ::kill(self->pid_, SIGKILL);
    });
  }

 private:
  void signal_end() const {
    ::kill(pid_, end_signal_);
    if (end_signal_ != SIGKILL) ::kill(pid_, SIGCONT);
  }

  void look() {
    int status = 0;
    // Asio may report what was a descriptor before, whose number and state this one has got: look, and do not block.
    if (::waitpid(pid_, &status, WNOHANG) == 0) return wait();
    is_reaped_ = true;
    late_.cancel();
    if (const Ended ended = std::exchange(ended_, nullptr)) ended(describe_end(status));
  }

  // The loop is being destroyed.
  void reap_now() {
    signal_end();
    pollfd over{end_.native_handle(), POLLIN, 0};
    const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience);
    if (::poll(&over, 1, static_cast<int>(most.count())) <= 0) ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  boost::asio::posix::stream_descriptor end_;  // pidfd
  boost::asio::steady_timer late_;
  const pid_t pid_;
  const int end_signal_;
  Ended ended_;
  bool is_reaped_ = false, is_asked_ = false;
};

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(boost::asio::io_context& io, Options options, int socket,
                                                          Ended ended) {
  const auto pid = spawn_with_socket(std::move(options.words), options.environment, socket);
  if (!pid) return fail(pid.error());
  UniqueFd end(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  if (!end) {
    const int error = errno;
    ::kill(*pid, SIGKILL);
    ::waitpid(*pid, nullptr, 0);
    return fail(errno_error(error, "pidfd_open"));
  }
  // Shared with the loop: see the field.
  auto watch = std::make_shared<Watch>(io, *pid, std::move(end), options.end_signal, std::move(ended));
  watch->wait();
  return std::unique_ptr<ChildProcess>(new ChildProcess(std::move(watch)));
}

ChildProcess::~ChildProcess() {
  watch_->tell_nobody();
  watch_->kill();
}

void ChildProcess::kill() {
  watch_->kill();
}

pid_t ChildProcess::pid() const {
  return watch_->pid();
}

}  // namespace fairlead
