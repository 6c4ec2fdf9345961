#include "runtime/device_server/device_server.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.h"
#include "base/log.h"
#include "runtime/device_server/channel.h"
#include "runtime/device_server/task_executor.h"

namespace fairlead {
namespace {

// Between two events of a call the loop looks for the next one before it sleeps: waking costs more than most kernels.
constexpr Duration kSpin = std::chrono::microseconds(50);
// While something runs: an error of the device wakes nobody.
constexpr int kErrorPollMs = 5;
constexpr std::int64_t kReserve = 256 << 20;  // of the device, for code and stacks, which the driver allocates itself
constexpr std::int64_t kTrialReserve = 1 << 30;  // for the contexts of ModuleTrials::Options::at_once processes

class Server {
 public:
  Server(std::unique_ptr<CudaContext> cuda, int socket) : cuda_(std::move(cuda)), channel_(UniqueFd(socket)) {}

  Status start(const DeviceServerOptions& options) {
    // It takes memory of its own, which is not free any more below.
    if (Status found = find_cublas(options.cublas); !found) return found;
    ObjectCacheOptions cache = options.cache;
    const auto free = cuda_->free_memory();
    if (!free) return fail(free.error());
    if (cache.device == Bytes(0)) {
      const Bytes reserve(kReserve + (options.trials ? kTrialReserve : 0));
      cache.device = *free - std::min(reserve, Bytes(free->count() / 8));
      if (options.spaces == AddressSpaces::kPerTenant) {
        const auto slack = DeviceObjects::slack(static_cast<std::uint64_t>(cache.device.count()));
        cache.device = cache.device - Bytes(static_cast<std::int64_t>(slack));
      }
    }
    auto executor = TaskExecutor::create(*cuda_,
                                         {.cache = cache,
                                          .spaces = options.spaces,
                                          .launching = options.launching,
                                          .modules = options.modules,
                                          .cublas = cublas_.get(),
                                          .trials = options.trials},
                                         [this](const wire::FrameToNode& frame) { channel_.send(encode(frame)); });
    if (!executor) return fail(executor.error());
    executor_ = *std::move(executor);
    channel_.send(encode(wire::ServerReady{cuda_->device().name, static_cast<std::uint64_t>(cache.device.count())}));
    return {};
  }

  int run() {
    Instant busy_until = monotonic_now() + kSpin;
    while (true) {
      const int received = receive_all();
      if (received != EAGAIN) return 0;
      if (!executor_->progress()) return flush_and_fail();
      channel_.flush();
      const Instant now = monotonic_now();
      if (received_any_) busy_until = now + kSpin;
      if (now >= busy_until) {
        sleep();
        busy_until = monotonic_now() + kSpin;
      }
    }
  }

 private:
  Status find_cublas(const std::string& which) {
    if (which == "off") return {};
    auto opened = Cublas::open(which == "auto" ? "" : which);
    if (opened) {
      cublas_ = *std::move(opened);
      spdlog::info("device server: matrix products of kernel tasks use {}", cublas_->description());
      return {};
    }
    if (which != "auto") return fail(opened.error());
    spdlog::info("device server: matrix products of kernel tasks use the built-in kernels: {}", opened.error().message);
    return {};
  }

  int receive_all() {
    received_any_ = false;
    while (true) {
      const int error = channel_.receive(bytes_, descriptors_);
      if (error != 0) return error;
      received_any_ = true;
      auto frame = wire::decode_frame_to_server(bytes_);
      if (!frame) {
        spdlog::error("device server: {}", frame.error().message);
        return EBADMSG;
      }
      executor_->handle(*std::move(frame), descriptors_);
    }
  }

  int flush_and_fail() {
    pollfd socket{channel_.socket(), POLLOUT, 0};
    while (!channel_.flush() && ::poll(&socket, 1, 1000) > 0) {
    }
    return 1;
  }

  void sleep() {
    std::vector<pollfd> events{
        {channel_.socket(), static_cast<short>(channel_.has_unsent() ? POLLIN | POLLOUT : POLLIN), 0},
        {executor_->wake_descriptor(), POLLIN, 0}};
    std::vector<int> doorbells;
    executor_->add_doorbells(doorbells);
    for (const int doorbell : doorbells) events.push_back({doorbell, POLLIN, 0});
    ::poll(events.data(), events.size(), executor_->running() ? kErrorPollMs : -1);
    if ((events[1].revents & POLLIN) != 0) executor_->clear_wake();
  }

  std::unique_ptr<CudaContext> cuda_;
  std::unique_ptr<Cublas> cublas_;  // null: none
  DeviceChannel channel_;
  std::unique_ptr<TaskExecutor> executor_;
  std::string bytes_;
  std::vector<UniqueFd> descriptors_;
  bool received_any_ = false;
};

}  // namespace

int device_server(const DeviceServerOptions& options) {
  init_log("info");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  auto cuda = CudaContext::open(options.library_dir, 0);
  if (!cuda) {
    spdlog::error("device server: {}", cuda.error().message);
    return 1;
  }
  Server server(*std::move(cuda), options.socket);
  if (Status started = server.start(options); !started) {
    spdlog::error("device server: {}", started.error().message);
    return 1;
  }
  // Nothing here needs an orderly end, and a driver with a kernel that never ends has none.
  ::_exit(server.run());
}

}  // namespace fairlead
