#include "runtime/spawner_link.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "runtime/fd_socket.h"

namespace fairlead {
namespace {

constexpr std::string_view kGone = "the spawner has ended unexpectedly";

std::string end_text(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace

SpawnerLink::SpawnerLink(boost::asio::io_context& io, SpawnerProcess spawner, SpawnerLinkOptions options,
                         SpawnerLinkEvents events)
    : options_(std::move(options)),
      events_(std::move(events)),
      pid_(spawner.pid),
      socket_(io, spawner.socket.release()),
      end_(io),
      launch_timer_(io),
      watchdog_(io) {
  outage_.times.ready(monotonic_now());
  wait_for_notes();
}

SpawnerLink::~SpawnerLink() {
  boost::system::error_code ignored;
  socket_.close(ignored);
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
}

// ---- orders

Status SpawnerLink::send(std::uint64_t instance, std::string bytes, UniqueFd log) {
  if (outage_.refuses) return fail(Errc::kUnavailable, "{}", obstacle());
  waiting_.push_back({instance, std::move(bytes), std::move(log)});
  if (state_ == State::kServing && waiting_.size() == 1) send_waiting();
  return {};
}

bool SpawnerLink::waiting(std::uint64_t instance) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const Order& order) { return order.instance == instance; });
}

std::string SpawnerLink::obstacle() const {
  switch (state_) {
    case State::kServing: return "";
    case State::kGone: return std::string(kGone);
    case State::kEnding:
    case State::kWaiting:
    case State::kLaunched: break;
  }
  return fmt::format("{}, a new one is being started", outage_.why);
}

void SpawnerLink::send_waiting() {
  while (!waiting_.empty() && state_ == State::kServing) {
    const Order& order = waiting_.front();
    const int log = order.log.get();
    const int error = send_message(socket_.native_handle(), order.bytes, std::span(&log, 1), MSG_DONTWAIT);
    if (error == EAGAIN) {
      return socket_.async_wait(boost::asio::posix::stream_descriptor::wait_write,
                                life_.on_success([this] { send_waiting(); }));
    }
    if (error != 0) return;  // its end, which the next receive shows: the order waits for the next one
    sent_.insert(order.instance);
    if (sent_.size() == 1) watch();
    waiting_.pop_front();
  }
}

// ---- notes

void SpawnerLink::wait_for_notes() {
  socket_.async_wait(boost::asio::posix::stream_descriptor::wait_read, life_.on_success([this] { read_notes(); }));
}

void SpawnerLink::read_notes() {
  const Lifetime::Watch life = life_.watch();
  while (true) {
    FdMessage message;
    const int error = receive_message(socket_.native_handle(), message, MSG_DONTWAIT);
    if (error == EAGAIN) return wait_for_notes();
    if (error != 0 || message.bytes.empty()) return end(std::string(kGone));
    if (state_ == State::kLaunched) {
      if (message.bytes != kSpawnerReady) return end("the new spawner cannot serve: " + message.bytes);
      state_ = State::kServing;
      outage_.times.ready(monotonic_now());
      outage_.since.reset();
      outage_.refuses = false;
      ++restarts_;
      spdlog::info("a new spawner (pid {}) makes sandboxes", pid_);
      watch();
      send_waiting();
      events_.replaced();
      continue;
    }
    take(message.bytes, message.fds);
    if (life.ended() || state_ != State::kServing) return;
  }
}

void SpawnerLink::take(std::string_view bytes, std::vector<UniqueFd>& fds) {
  auto note = decode_note(bytes);
  FL_CHECK(note.has_value(), "spawner: {}", note.error().message);
  sent_.erase(std::visit([](const auto& any) { return any.instance; }, *note));
  watch();
  if (const auto* started = std::get_if<StartedNote>(&*note)) {
    events_.started(*started, fds);
  } else {
    events_.exited(std::get<ExitNote>(*std::move(note)));
  }
}

// A spawner that owes something has options_.patience for it.
void SpawnerLink::watch() {
  watchdog_.cancel();
  if (sent_.empty() && state_ != State::kLaunched) return;
  watchdog_.expires_after(options_.patience);
  watchdog_.async_wait(life_.on_success([this] {
    // A note was read after this was queued, and set the clock anew.
    if (watchdog_.expiry() > boost::asio::steady_timer::clock_type::now()) return;
    end(fmt::format("the spawner said nothing for {:.0f} s", to_seconds(options_.patience)));
  }));
}

// ---- its end, and the next one

void SpawnerLink::end(std::string why) {
  // Not twice: what was queued in the event loop may come after it, and by then there is no process that pid_ names.
  if (state_ != State::kServing && state_ != State::kLaunched) return;
  outage_.why = std::move(why);
  state_ = State::kEnding;
  watchdog_.cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
  sent_.clear();
  ::kill(pid_, SIGKILL);  // it may hang, or have given up its socket alone
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd < 0) {
    reap();
  } else {
    end_.assign(pidfd);
    end_.async_wait(boost::asio::posix::stream_descriptor::wait_read, life_.on_success([this] { reap(); }));
  }
  events_.lost(outage_.why);
}

void SpawnerLink::reap() {
  int status = 0;
  boost::system::error_code ignored;
  end_.close(ignored);
  ::waitpid(pid_, &status, 0);
  spdlog::error("{} ({}): what it had started has ended", outage_.why, end_text(status));
  pid_ = -1;
  replace();
}

void SpawnerLink::replace() {
  const Instant now = monotonic_now();
  const Duration wait = outage_.times.ended(now);
  if (!outage_.since) outage_.since = now;
  if (options_.program.empty()) {
    state_ = State::kGone;
    spdlog::error("no instance can run until the node is restarted");
    return refuse_waiting();
  }
  if (wait == Duration(0)) return launch();
  state_ = State::kWaiting;
  if (now - *outage_.since >= kGrace) refuse_waiting();
  launch_timer_.expires_after(wait);
  launch_timer_.async_wait(life_.on_success([this] { launch(); }));
}

void SpawnerLink::launch() {
  Result<SpawnerProcess> launched = launch_spawner(options_.program, options_.spawner);
  if (!launched) {
    outage_.why = launched.error().message;
    spdlog::error("no new spawner: {}", outage_.why);
    return replace();
  }
  pid_ = launched->pid;
  socket_.assign(launched->socket.release());
  state_ = State::kLaunched;
  watch();
  wait_for_notes();
}

void SpawnerLink::refuse_waiting() {
  outage_.refuses = true;
  const std::string why = obstacle();
  std::deque<Order> refused;
  std::swap(refused, waiting_);
  for (const Order& order : refused) events_.refused(order.instance, why);
}

}  // namespace fairlead
