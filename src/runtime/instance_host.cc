#include "runtime/instance_host.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <deque>
#include <filesystem>

#include "base/check.h"
#include "base/log.h"
#include "runtime/fd_socket.h"
#include "runtime/instance.h"
#include "runtime/spawner.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

constexpr auto kLogFlushInterval = std::chrono::milliseconds(20);
constexpr std::string_view kNoDescriptors =
    "the node has no file descriptor left for the instance (ulimit -n): raise the limit, or keep fewer instances "
    "(--pool)";
constexpr std::string_view kSpawnerGone = "the spawner has ended unexpectedly";

class InstanceHostImpl final : public InstanceHost {
 public:
  InstanceHostImpl(boost::asio::io_context& io, InstanceHostOptions options, InstanceEvents events,
                   SpawnerProcess spawner, SeccompPrograms seccomp)
      : io_(io),
        options_(std::move(options)),
        events_(std::move(events)),
        spawner_pid_(spawner.pid),
        spawner_(io, spawner.socket.release()),
        flush_timer_(io),
        seccomp_(std::move(seccomp)),
        context_{io, options_, events_, [this] { arm_log_flush(); }, seccomp_} {
    wait_for_notes();
  }

  ~InstanceHostImpl() override {
    spawner_.close();
    ::waitpid(spawner_pid_, nullptr, 0);
  }

  void start(InstanceSpec spec) override;
  void deliver(InstanceId instance, DeliverRequest request) override;
  void kill(InstanceId instance) override;
  InstanceStats stats(InstanceId instance) const override;
  std::size_t live() const override { return instances_.size(); }

 private:
  struct PendingOrder {
    InstanceId instance;
    std::string bytes;
    UniqueFd log;
  };

  Status send_order(Instance& instance, InstanceId id);
  void send_pending();
  void wait_for_notes();
  void on_notes();
  void on_started(const StartedNote& note, std::vector<UniqueFd>& fds);
  void on_exit(ExitNote note);
  void on_spawner_gone();
  std::shared_ptr<FunctionLog> log_of(const std::string& function);
  void arm_log_flush();

  boost::asio::io_context& io_;
  const InstanceHostOptions options_;
  const InstanceEvents events_;
  const pid_t spawner_pid_;
  boost::asio::posix::stream_descriptor spawner_;
  boost::asio::steady_timer flush_timer_;
  bool flush_armed_ = false;
  bool spawner_gone_ = false;
  const SeccompPrograms seccomp_;
  const InstanceContext context_;
  std::deque<PendingOrder> pending_;                        // the spawner's socket was full; bounded by the instances
  std::map<std::string, std::weak_ptr<FunctionLog>> logs_;  // owned by the functions' instances
  std::map<InstanceId, std::unique_ptr<Instance>> instances_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

std::shared_ptr<FunctionLog> InstanceHostImpl::log_of(const std::string& function) {
  std::weak_ptr<FunctionLog>& known = logs_[function];
  std::shared_ptr<FunctionLog> log = known.lock();
  if (!log) {
    log = std::make_shared<FunctionLog>(options_.log_dir, function, options_.log_file_limit);
    known = log;
  }
  return log;
}

void InstanceHostImpl::arm_log_flush() {
  if (std::exchange(flush_armed_, true)) return;
  flush_timer_.expires_after(kLogFlushInterval);
  flush_timer_.async_wait([this, alive = std::weak_ptr<int>(alive_)](const boost::system::error_code& error) {
    if (error || alive.expired()) return;
    flush_armed_ = false;
    for (auto& [function, weak] : logs_) {
      const std::shared_ptr<FunctionLog> log = weak.lock();
      if (log && log->dirty()) log->flush();
    }
    std::erase_if(logs_, [](const auto& entry) { return entry.second.expired(); });
  });
}

void InstanceHostImpl::start(InstanceSpec spec) {
  const InstanceId id = spec.instance;
  FL_CHECK(!instances_.contains(id), "instance {} started twice", id.value());
  std::shared_ptr<FunctionLog> log = log_of(spec.function);
  auto& instance = instances_[id] = std::make_unique<Instance>(context_, std::move(spec), std::move(log));
  if (auto status = send_order(*instance, id); !status) {
    ExitNote note{.instance = id.value(), .failure = status.error().message};
    boost::asio::post(io_, [this, note = std::move(note), alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired()) on_exit(note);
    });
  }
}

Status InstanceHostImpl::send_order(Instance& instance, InstanceId id) {
  if (spawner_gone_) return fail(Errc::kUnavailable, "{}", kSpawnerGone);
  Result<UniqueFd> log = instance.open();
  if (!log) return fail(log.error());
  PendingOrder order{id, encode(instance.order()), std::move(*log)};
  if (order.bytes.size() > kMaxMessageBytes) {
    return fail(Errc::kTooLarge, "environment and binds take {} bytes, the limit is {}", order.bytes.size(),
                kMaxMessageBytes);
  }
  pending_.push_back(std::move(order));
  if (pending_.size() == 1) send_pending();
  return {};
}

void InstanceHostImpl::send_pending() {
  while (!pending_.empty()) {
    const int fds[] = {pending_.front().log.get()};
    const int error = send_message(spawner_.native_handle(), pending_.front().bytes, fds, MSG_DONTWAIT);
    if (error == EAGAIN) {
      return spawner_.async_wait(boost::asio::posix::stream_descriptor::wait_write,
                                 [this, alive = std::weak_ptr<int>(alive_)](const boost::system::error_code& failed) {
                                   if (!failed && !alive.expired()) send_pending();
                                 });
    }
    // Any other error is the spawner's end, which the next receive shows.
    pending_.pop_front();
  }
}

void InstanceHostImpl::wait_for_notes() {
  spawner_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [this, alive = std::weak_ptr<int>(alive_)](const boost::system::error_code& error) {
                        if (!error && !alive.expired()) on_notes();
                      });
}

void InstanceHostImpl::on_notes() {
  FdMessage message;
  while (true) {
    const int error = receive_message(spawner_.native_handle(), message, MSG_DONTWAIT);
    if (error == EAGAIN) return wait_for_notes();
    if (error != 0 || message.bytes.empty()) return on_spawner_gone();
    auto note = decode_note(message.bytes);
    FL_CHECK(note.has_value(), "spawner: {}", note.error().message);
    if (const auto* started = std::get_if<StartedNote>(&*note)) {
      on_started(*started, message.fds);
    } else {
      on_exit(std::get<ExitNote>(std::move(*note)));
    }
  }
}

void InstanceHostImpl::on_started(const StartedNote& note, std::vector<UniqueFd>& fds) {
  const auto found = instances_.find(InstanceId(note.instance));
  if (found == instances_.end()) return;
  if (fds.size() < 2) {  // the kernel drops those that the receiver has no number for
    ::kill(note.pid, SIGKILL);
    return on_exit(ExitNote{.instance = note.instance, .failure = std::string(kNoDescriptors)});
  }
  found->second->started(note.pid, std::move(fds[0]), std::move(fds[1]),
                         fds.size() > 2 ? std::move(fds[2]) : UniqueFd());
}

void InstanceHostImpl::on_exit(ExitNote note) {
  const InstanceId id(note.instance);
  const auto found = instances_.find(id);
  if (found == instances_.end()) return;
  found->second->ended(std::move(note), [this, id](ExitInfo info) {
    instances_.erase(id);
    events_.gone(id, std::move(info));
  });
}

void InstanceHostImpl::on_spawner_gone() {
  spdlog::error("{}: no instance can run until the node is restarted", kSpawnerGone);
  spawner_gone_ = true;
  pending_.clear();
  for (const auto& [id, instance] : instances_) {
    on_exit(ExitNote{.instance = id.value(), .failure = std::string(kSpawnerGone)});
  }
}

void InstanceHostImpl::deliver(InstanceId instance, DeliverRequest request) {
  const auto found = instances_.find(instance);
  FL_CHECK(found != instances_.end(), "deliver to unknown instance {}", instance.value());
  found->second->deliver(std::move(request));
}

void InstanceHostImpl::kill(InstanceId instance) {
  const auto found = instances_.find(instance);
  if (found != instances_.end()) found->second->kill();
}

InstanceStats InstanceHostImpl::stats(InstanceId instance) const {
  const auto found = instances_.find(instance);
  return found == instances_.end() ? InstanceStats{} : found->second->stats();
}

Status make_folders(const InstanceHostOptions& options) {
  std::error_code error;
  // Sockets of a node that was killed.
  fs::remove_all(options.state_dir + "/run", error);
  for (const std::string& dir : {options.state_dir + "/run", options.log_dir}) {
    fs::create_directories(dir, error);
    if (error) return fail(errno_error(error.value(), "mkdir " + dir));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<InstanceHost>> InstanceHost::create(boost::asio::io_context& io, InstanceHostOptions options,
                                                           InstanceEvents events) {
  if (auto status = make_folders(options); !status) return fail(status.error());
  Result<SpawnerProcess> spawner =
      start_spawner({.template_dir = options.state_dir + "/root", .use_cgroups = options.use_cgroups, .cpu = options.cpu});
  if (!spawner) return fail(spawner.error());
  Result<SeccompPrograms> seccomp = compile_seccomp();
  if (!seccomp) return fail(seccomp.error());
  return std::make_unique<InstanceHostImpl>(io, std::move(options), std::move(events), std::move(*spawner),
                                            std::move(*seccomp));
}

}  // namespace fairlead
