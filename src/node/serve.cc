#include "node/serve.h"

#include <sys/resource.h>

#include <boost/asio/signal_set.hpp>
#include <filesystem>
#include <memory>

#include "base/log.h"
#include "gateway/gateway.h"
#include "net/http_server.h"
#include "node/event_loop.h"
#include "node/node.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

Result<GpuLibrary> gpu_library(const ServeOptions& options) {
  if (options.software_gpu) return software_gpu_library(options.gpu_library_dir);
  return system_gpu_library(options.gpu_library_dir);
}

NodeOptions node_options(const ServeOptions& options, const std::string& state_dir, const GpuLibrary& gpu) {
  NodeOptions node;
  node.state_dir = state_dir;
  node.policy = options.policy;
  node.policy_options.over_run = from_seconds(options.over_run_seconds);
  node.policy_options.ttl_factor = options.ttl_factor;
  node.core.tokens_per_gpu = static_cast<std::size_t>(options.tokens_per_gpu);
  node.core.instances_per_gpu = static_cast<std::size_t>(options.instances_per_gpu);
  node.core.queue_limit = static_cast<std::size_t>(options.queue_limit);
  node.host.state_dir = state_dir + "/instances";
  node.host.log_dir = state_dir + "/logs";
  node.gpu_access = gpu_access(gpu);
  return node;
}

// An instance takes about seven descriptors, a connection one.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Status make_state_dir(const std::string& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return fail(errno_error(error.value(), "create state folder " + dir));
  fs::permissions(dir, fs::perms::owner_all, error);
  return {};
}

// A running node and what stops it. The first signal drains, a second one or the drain deadline ends at once.
class Server {
 public:
  explicit Server(const ServeOptions& options)
      : options_(options), signals_(io_, SIGTERM, SIGINT), drain_deadline_(io_) {}

  Status start() {
    const std::string& dir = options_.state_dir;
    if (Status made = make_state_dir(dir); !made) return made;
    const auto library = gpu_library(options_);
    if (!library) return fail(library.error());
    auto node = Node::create(io_, node_options(options_, dir, *library));
    if (!node) return fail(node.error());
    node_ = *std::move(node);
    auto gpus = GpuMonitor::open(library->dir);
    if (!gpus) return fail(gpus.error());
    for (const GpuSample& gpu : (*gpus)->samples()) {
      spdlog::info("GPU {}: {}, {:.0f} MiB", gpu.gpu.value(), gpu.name, gpu.memory_total.mib());
    }
    node_->use_gpus(*std::move(gpus));
    spdlog::info("state in {}, policy {}", dir, options_.policy);
    return listen();
  }

  void run() {
    await_signal();
    EventLoop(io_, [this] { return node_->busy(); }).run();
  }

 private:
  Status listen() {
    gateway_ = std::make_unique<Gateway>(*node_);
    http_ = std::make_unique<net::HttpServer>(
        io_, Gateway::http_limits(), [this](net::HttpExchange exchange) { gateway_->handle(std::move(exchange)); });
    for (const std::string& address : options_.listen) {
      const auto bound = http_->listen(address);
      if (!bound) return fail(bound.error());
      spdlog::info("listening on {}", *bound);
    }
    return {};
  }

  void await_signal() {
    signals_.async_wait([this](boost::system::error_code error, int signal) {
      if (error) return;
      if (stopping_) return io_.stop();
      stopping_ = true;
      spdlog::info("{}: finishing what was accepted, at most {:.0f} s", signal == SIGTERM ? "SIGTERM" : "SIGINT",
                   options_.drain_seconds);
      stop_gracefully();
      await_signal();
    });
  }

  void stop_gracefully() {
    http_->stop_listening();
    drain_deadline_.expires_after(from_seconds(options_.drain_seconds));
    drain_deadline_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      spdlog::warn("invocations still run after {:.0f} s: they end now", options_.drain_seconds);
      io_.stop();
    });
    node_->drain([this] { io_.stop(); });
  }

  const ServeOptions& options_;
  boost::asio::io_context io_{1};  // one thread runs it
  boost::asio::signal_set signals_;
  boost::asio::steady_timer drain_deadline_;
  bool stopping_ = false;
  std::unique_ptr<Node> node_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<net::HttpServer> http_;
};

}  // namespace

int serve(const ServeOptions& options) {
  init_log(options.log_level);
  raise_descriptor_limit();
  Server server(options);
  if (Status started = server.start(); !started) {
    spdlog::error("{}", started.error().message);
    return 1;
  }
  server.run();
  spdlog::info("stopped");
  return 0;
}

}  // namespace fairlead
