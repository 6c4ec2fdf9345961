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

#include "base/log.h"
#include "cuda/context.h"
#include "runtime/device_server/channel.h"
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

// On top of what it has already: a driver reserves more than any compiler needs. And where memory is short all the same,
// this process is the one to go.
void limit_resources() {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const rlimit data{data_bytes() + kCompilerMemory, data_bytes() + kCompilerMemory};
  ::setrlimit(RLIMIT_DATA, &data);
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return;
  [[maybe_unused]] const ssize_t wrote = ::write(score, "1000", 4);
  ::close(score);
}

Result<wire::ModuleTrial> receive_trial(DeviceChannel& channel) {
  std::string bytes;
  std::vector<UniqueFd> descriptors;
  int error = EAGAIN;
  while ((error = channel.receive(bytes, descriptors)) == EAGAIN) {
    pollfd socket{channel.socket(), POLLIN, 0};
    ::poll(&socket, 1, -1);
  }
  if (error != 0) return fail(errno_error(error, "receive the modules"));
  auto frame = wire::decode_frame_to_server(bytes);
  if (!frame) return fail(frame.error());
  auto* trial = std::get_if<wire::ModuleTrial>(&*frame);
  if (trial == nullptr) return fail(Errc::kCorrupt, "the first frame is of kind {}, not a ModuleTrial", frame->index());
  return std::move(*trial);
}

void say(DeviceChannel& channel, const wire::TrialEnded& ended) {
  channel.send(wire::encode(wire::FrameToNode(ended)));
  while (!channel.flush()) {
    pollfd socket{channel.socket(), POLLOUT, 0};
    ::poll(&socket, 1, -1);
  }
}

}  // namespace

int try_modules(const DeviceServerOptions& options) {
  init_log("info");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  DeviceChannel channel{UniqueFd(options.socket)};
  const auto trial = receive_trial(channel);
  if (!trial) {
    spdlog::error("trial of modules: {}", trial.error().message);
    return 1;
  }
  const auto cuda = CudaContext::open(options.library_dir, 0);
  limit_resources();
  wire::TrialEnded ended{.session = trial->session};
  for (const wire::ModuleTrial::Module& module : trial->modules) {
    const auto loaded = cuda ? (*cuda)->load_module(module.code) : Result<CUmodule>(fail(cuda.error()));
    if (!loaded) {
      ended.error = cuda ? loaded.error().message : "it could not be tried: " + loaded.error().message;
    } else {
      (*cuda)->unload_module(*loaded);
    }
    say(channel, ended);
    if (!loaded) break;
    ++ended.module;
  }
  // As a device server ends: the driver's own end may take long.
  ::_exit(0);
}

}  // namespace fairlead
