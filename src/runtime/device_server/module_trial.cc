#include "runtime/device_server/module_trial.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include "base/give_way.h"
#include "base/log.h"
#include "gpu/context.h"
#include "gpu/fence/verifier.h"
#include "runtime/device_server/channel.h"
#include "runtime/device_server/fenced_modules.h"
#include "wire/device_frames.h"

namespace fairlead {
namespace {

constexpr std::uint64_t kCompilerMemory = std::uint64_t{8} << 30;

std::uint64_t data_bytes() {
  std::uint64_t kilobytes = 0;
  std::FILE* status = std::fopen("/proc/self/status", "re");
  if (status == nullptr) return 0;
  char line[256];
  while (std::fgets(line, sizeof line, status) != nullptr && std::sscanf(line, "VmData: %" SCNu64, &kilobytes) != 1) {
  }
  std::fclose(status);
  return kilobytes << 10;
}

// Memory on top of what the process has already: a driver reserves more than any compiler needs. The hard limit stays,
// for the driver's own reservations, until `is_last`.
void limit_memory(bool is_last) {
  const rlim_t bytes = data_bytes() + kCompilerMemory;
  const rlimit data{bytes, is_last ? bytes : RLIM_INFINITY};
  ::setrlimit(RLIMIT_DATA, &data);
}

// No core; others are first on the processors; and where memory is short all the same, this process is the one to go.
void stand_back() {
  give_way();
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return;
  [[maybe_unused]] const ssize_t wrote = ::write(score, "1000", 4);
  ::close(score);
}

template <typename Frame>
Result<Frame> receive(DeviceChannel& channel) {
  std::string bytes;
  std::vector<UniqueFd> descriptors;
  int error = EAGAIN;
  while ((error = channel.receive(bytes, descriptors)) == EAGAIN) {
    pollfd socket{channel.socket(), POLLIN, 0};
    ::poll(&socket, 1, -1);
  }
  if (error != 0) return fail(errno_error(error, "receive from the node"));
  auto frame = wire::decode_frame_to_server(bytes);
  if (!frame) return fail(frame.error());
  auto* expected = std::get_if<Frame>(&*frame);
  if (expected == nullptr) return fail(Errc::kCorrupt, "a frame of kind {} is not the next one", frame->index());
  return std::move(*expected);
}

void say(DeviceChannel& channel, const wire::FrameToNode& frame) {
  channel.send(wire::encode(frame));
  while (!channel.flush()) {
    pollfd socket{channel.socket(), POLLOUT, 0};
    ::poll(&socket, 1, -1);
  }
}

// One trial. What is fenced leaves this process before the driver's compiler sees any of the modules: a compiler that a
// module has taken over could forge what is said after that, and the server would load what reaches everywhere.
class Trial {
 public:
  Trial(DeviceChannel& channel, wire::ModuleTrial order) : channel_(channel), order_(std::move(order)) {
    for (std::size_t m = 0; m < order_.modules.size(); ++m) to_load_.push_back(m);
  }

  Status run(const std::string& library_dir) {
    if (order_.range_bytes > 0) {
      limit_memory(false);
      Status fenced = fence();
      if (!fenced || is_refused_) return fenced;
    }
    load(library_dir);
    return {};
  }

 private:
  // Tells why the modules are not loaded. Nothing follows.
  Status refuse(std::size_t module, const Error& why) {
    is_refused_ = true;
    say(channel_, wire::TrialEnded{order_.session, static_cast<std::uint32_t>(module), why.message});
    return {};
  }

  fence::FenceOptions options(std::uint64_t variables_address) const {
    return {.base = order_.range_base,
            .bytes = order_.range_bytes,
            .guard_bytes = order_.guard_bytes,
            .variables_address = variables_address};
  }

  Status fence() {
    wire::ModulesMeasured measured{.session = order_.session, .variable_bytes = {}};
    for (std::size_t m = 0; m < order_.modules.size(); ++m) {
      const auto bytes = measure_image(order_.modules[m].code, order_.architecture, options(0));
      if (!bytes) return refuse(m, bytes.error());
      measured.variable_bytes.push_back(*bytes);
    }
    say(channel_, measured);
    auto placed = receive<wire::VariablesPlaced>(channel_);
    if (!placed) return fail(placed.error());
    if (placed->addresses.size() != order_.modules.size()) {
      return fail(Errc::kCorrupt, "{} addresses of {} modules", placed->addresses.size(), order_.modules.size());
    }
    wire::ModulesFenced fenced{.session = order_.session, .modules = {}};
    for (std::size_t m = 0; m < order_.modules.size(); ++m) {
      auto code = fence_image(order_.modules[m].code, order_.architecture, options(placed->addresses[m]));
      if (!code) return refuse(m, code.error());
      // The server does so again before it loads anything. Here, what the verifier itself stumbles over ends this process.
      const Status verified = fence::verify_fenced(code->ptx, options(placed->addresses[m]));
      if (!verified) {
        spdlog::error("trial of modules: {}", verified.error().message);
        return refuse(m, verified.error());
      }
      order_.modules[m].code = code->ptx;
      fenced.modules.push_back({std::move(code->ptx), std::move(code->variables)});
    }
    say(channel_, fenced);
    to_load_ = std::move(placed->to_load);
    return {};
  }

  void load(const std::string& library_dir) {
    wire::TrialEnded ended{.session = order_.session};
    if (to_load_.empty()) return say(channel_, ended);
    const auto cuda = CudaContext::open(library_dir, 0);
    limit_memory(true);
    for (const std::uint64_t m : to_load_) {
      ended.module = static_cast<std::uint32_t>(m);
      const auto loaded = cuda ? (*cuda)->load_module(order_.modules.at(m).code) : Result<CUmodule>(fail(cuda.error()));
      if (!loaded) ended.error = cuda ? loaded.error().message : "it could not be tried: " + loaded.error().message;
      if (loaded) (*cuda)->unload_module(*loaded);
      say(channel_, ended);
      if (!loaded) return;
    }
  }

  DeviceChannel& channel_;
  wire::ModuleTrial order_;
  std::vector<std::uint64_t> to_load_;
  bool is_refused_ = false;
};

}  // namespace

int try_modules(const DeviceServerOptions& options) {
  init_log("info");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  stand_back();
  DeviceChannel channel{UniqueFd(options.socket)};
  auto order = receive<wire::ModuleTrial>(channel);
  const Status tried = order ? Trial(channel, *std::move(order)).run(options.library_dir) : fail(order.error());
  if (!tried) spdlog::error("trial of modules: {}", tried.error().message);
  // As a device server ends: the driver's own end may take long.
  ::_exit(tried ? 0 : 1);
}

}  // namespace fairlead
