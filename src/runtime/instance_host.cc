#include "runtime/instance_host.h"

#include <signal.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json_bounds.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "runtime/fd_socket.h"
#include "runtime/instance.h"
#include "runtime/spawner_link.h"

namespace fairlead {

std::string words_of_failed_start(const ExitInfo& exit) {
  constexpr std::size_t kMost = 300;
  std::string text = exit.init_failure.text;
  if (text.empty() && check_json_bounds(exit.init_error_payload, "the error")) {
    const auto said = nlohmann::json::parse(exit.init_error_payload, nullptr, /*allow_exceptions=*/false);
    const bool has_message = said.is_object() && said.contains("errorMessage") && said["errorMessage"].is_string();
    if (has_message) text = said["errorMessage"].get<std::string>();
  }
  if (text.empty()) text = exit.reason;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // no part of a character
  return text.substr(0, end);
}

namespace {

namespace fs = std::filesystem;

constexpr auto kLogFlushInterval = std::chrono::milliseconds(20);
constexpr std::string_view kNoDescriptors =
    "the node has no file descriptor left for the instance (ulimit -n): raise the limit, or keep fewer instances "
    "(--pool)";

class InstanceHostImpl final : public InstanceHost {
 public:
  InstanceHostImpl(boost::asio::io_context& io, InstanceHostOptions options, InstanceEvents events,
                   SpawnerProcess spawner, SeccompPrograms seccomp)
      : io_(io),
        options_(std::move(options)),
        events_(std::move(events)),
        flush_timer_(io),
        seccomp_(std::move(seccomp)),
        context_{io, options_, events_, [this] { arm_log_flush(); }, seccomp_},
        spawner_(io, std::move(spawner),
                 {.spawner = spawner_options(options_),
                  .program = options_.spawner_program,
                  .patience = options_.spawner_patience},
                 spawner_events()) {}

  static SpawnerOptions spawner_options(const InstanceHostOptions& options) {
    return {.template_dir = options.state_dir + "/root",
            .use_cgroups = options.use_cgroups,
            .cpu = options.cpu,
            .way_out = !options.egress.empty() && options.egress_obstacle.empty()};
  }

  void start(InstanceSpec spec) override;
  void deliver(InstanceId instance, DeliverRequest request) override;
  void kill(InstanceId instance) override;
  InstanceStats stats(InstanceId instance) const override;
  std::size_t live() const override { return instances_.size(); }
  std::string obstacle() const override { return spawner_.obstacle(); }
  std::uint64_t spawner_restarts() const override { return spawner_.restarts(); }

 private:
  SpawnerLinkEvents spawner_events();
  Status send_order(Instance& instance, InstanceId id);
  void on_started(const StartedNote& note, std::vector<UniqueFd>& fds);
  void on_exit(ExitNote note);
  void on_spawner_lost(const std::string& why);
  std::function<void(ExitInfo)> forget(InstanceId id);
  std::shared_ptr<FunctionLog> log_of(const std::string& function);
  void arm_log_flush();

  boost::asio::io_context& io_;
  const InstanceHostOptions options_;
  const InstanceEvents events_;
  boost::asio::steady_timer flush_timer_;
  bool flush_armed_ = false;
  const SeccompPrograms seccomp_;
  const InstanceContext context_;
  std::map<std::string, std::weak_ptr<FunctionLog>> logs_;  // owned by the functions' instances
  std::map<InstanceId, std::unique_ptr<Instance>> instances_;
  SpawnerLink spawner_;  // goes before what its events use
  Lifetime life_;
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
  flush_timer_.async_wait(life_.on_success([this] {
    flush_armed_ = false;
    for (auto& [function, weak] : logs_) {
      const std::shared_ptr<FunctionLog> log = weak.lock();
      if (log && log->dirty()) log->flush();
    }
    std::erase_if(logs_, [](const auto& entry) { return entry.second.expired(); });
  }));
}

void InstanceHostImpl::start(InstanceSpec spec) {
  const InstanceId id = spec.instance;
  FL_CHECK(!instances_.contains(id), "instance {} started twice", id.value());
  std::shared_ptr<FunctionLog> log = log_of(spec.function);
  auto& instance = instances_[id] = std::make_unique<Instance>(context_, std::move(spec), std::move(log));
  if (auto status = send_order(*instance, id); !status) {
    const bool is_nodes_fault = status.error().code != Errc::kTooLarge;
    ExitNote note{.instance = id.value(), .failure = status.error().message, .is_nodes_fault = is_nodes_fault};
    boost::asio::post(io_, life_.guarded([this, note = std::move(note)] { on_exit(note); }));
  }
}

Status InstanceHostImpl::send_order(Instance& instance, InstanceId id) {
  Result<UniqueFd> log = instance.open();
  if (!log) return fail(log.error());
  std::string order = encode(instance.order());
  if (order.size() > kMaxMessageBytes) {
    return fail(Errc::kTooLarge, "environment and binds take {} bytes, the limit is {}", order.size(),
                kMaxMessageBytes);
  }
  return spawner_.send(id.value(), std::move(order), std::move(*log));
}

SpawnerLinkEvents InstanceHostImpl::spawner_events() {
  return {
      .started = [this](const StartedNote& note, std::vector<UniqueFd>& fds) { on_started(note, fds); },
      .exited = [this](ExitNote note) { on_exit(std::move(note)); },
      .lost = [this](const std::string& why) { on_spawner_lost(why); },
      .refused =
          [this](std::uint64_t instance, const std::string& why) {
            on_exit(ExitNote{.instance = instance, .failure = why, .is_nodes_fault = true});
          },
      .replaced =
          [this] {
            if (events_.able_again) events_.able_again();
          },
  };
}

void InstanceHostImpl::on_started(const StartedNote& note, std::vector<UniqueFd>& fds) {
  const auto found = instances_.find(InstanceId(note.instance));
  if (found == instances_.end()) return;
  if (fds.size() < 2) {  // the kernel drops those that the receiver has no number for
    ::kill(note.pid, SIGKILL);
    return on_exit(ExitNote{.instance = note.instance, .failure = std::string(kNoDescriptors), .is_nodes_fault = true});
  }
  found->second->started(note.pid, std::move(fds[0]), std::move(fds[1]),
                         fds.size() > 2 ? std::move(fds[2]) : UniqueFd());
}

void InstanceHostImpl::on_exit(ExitNote note) {
  const InstanceId id(note.instance);
  const auto found = instances_.find(id);
  if (found != instances_.end()) found->second->ended(std::move(note), forget(id));
}

// What the spawner had been told of ends with it.
void InstanceHostImpl::on_spawner_lost(const std::string& why) {
  for (const auto& [id, instance] : instances_) {
    if (spawner_.waiting(id.value())) continue;
    instance->lost({.instance = id.value(), .failure = why, .is_nodes_fault = true}, forget(id));
  }
}

std::function<void(ExitInfo)> InstanceHostImpl::forget(InstanceId id) {
  return [this, id](ExitInfo info) {
    instances_.erase(id);
    events_.gone(id, std::move(info));
  };
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
  Result<SpawnerProcess> spawner = start_spawner(InstanceHostImpl::spawner_options(options));
  if (!spawner) return fail(spawner.error());
  Result<SeccompPrograms> seccomp = compile_seccomp();
  if (!seccomp) return fail(seccomp.error());
  return std::make_unique<InstanceHostImpl>(io, std::move(options), std::move(events), std::move(*spawner),
                                            std::move(*seccomp));
}

}  // namespace fairlead
