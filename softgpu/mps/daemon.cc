#include "softgpu/mps/daemon.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "softgpu/device/files.h"
#include "softgpu/driver/visible_devices.h"

namespace softgpu::mps {
namespace {

constexpr char kPidFile[] = "nvidia-cuda-mps-control.pid";
constexpr char kSocketFile[] = "control";
constexpr std::size_t kLongestCommand = 4096;
constexpr int kCommandTimeoutMs = 1000;  // a connection that says nothing does not hold the others up for longer

volatile std::sig_atomic_t g_stop = 0;

// A line, or what came of it in time.
std::string read_command(int connection) {
  std::string line;
  char byte = 0;
  pollfd readable{connection, POLLIN, 0};
  while (line.size() < kLongestCommand && ::poll(&readable, 1, kCommandTimeoutMs) > 0 &&
         ::read(connection, &byte, 1) == 1 && byte != '\n') {
    line.push_back(byte);
  }
  return line;
}

void stop_on_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { g_stop = 1; };
  for (const int signal : {SIGTERM, SIGINT}) ::sigaction(signal, &action, nullptr);
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::start(PipeDirectory pipe) {
  auto machine = open_machine();
  if (!machine) return failure(machine.error());
  auto clients = Clients::open(*machine);
  if (!clients) return failure(clients.error());
  const auto visible = visible_devices(*machine, std::getenv("CUDA_VISIBLE_DEVICES"), false);
  if (!visible) return failure(visible.error());
  if (visible->empty()) return failure("no device is visible (CUDA_VISIBLE_DEVICES)");
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(pipe), std::move(*machine), *clients));
  for (const Part& part : *visible) {
    auto view = DeviceView::open(daemon->clients_, part);
    if (!view) return failure(view.error());
    const auto faults = static_cast<std::uint32_t>((*view)->control().mps_fault.load() >> 32);
    daemon->devices_.push_back({std::move(*view), faults});
    daemon->settings_.devices.insert(part.gpu);
  }
  const auto lock = daemon->pipe_.lock();
  if (!lock) return failure(lock.error());
  daemon->lock_ = *lock;
  if (const auto written = daemon->write_settings(); !written) return failure(written.error());
  const auto socket = daemon->pipe_.listen();
  if (!socket) return failure(socket.error());
  daemon->socket_ = *socket;
  for (const char* name : {kSocketFile, kMpsLockFile}) ::chmod(daemon->pipe_.file(name).c_str(), 0666);
  return daemon;
}

// The lock goes last: until then nobody takes what is being removed for a new daemon's.
Daemon::~Daemon() {
  if (lock_ < 0) return;
  for (const char* name : {kSocketFile, kPidFile, kMpsSettingsFile}) ::unlink(pipe_.file(name).c_str());
  if (socket_ >= 0) ::close(socket_);
  ::close(lock_);
}

Status Daemon::write_settings() const {
  Mps settings = settings_;
  settings.pipe_directory = pipe_.path();
  const std::string path = pipe_.file(kMpsSettingsFile);
  if (auto written = replace_file(path, mps_text(settings)); !written) return written;
  ::chmod(path.c_str(), 0644);  // clients are other users
  return {};
}

void Daemon::run() {
  stop_on_signals();
  std::ofstream(pipe_.file(kPidFile)) << ::getpid() << "\n";
  log("Starting control daemon using socket " + pipe_.file(kSocketFile));
  bool quit = false;
  while (!quit && g_stop == 0) {
    const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;  // a signal
    const std::string line = read_command(connection);
    const std::string text = answer(line, quit);
    log("Cmd:" + line);
    if (!quit) (void)!::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    ::close(connection);
  }
  log("Exit with status 0");
}

void Daemon::log(const std::string& line) const {
  const char* directory = std::getenv("CUDA_MPS_LOG_DIRECTORY");
  const std::string path = std::string(directory != nullptr ? directory : "/var/log/nvidia-mps") + "/control.log";
  std::ofstream(path, std::ios::app) << "[Control " << ::getpid() << "] " << line << "\n";
}

}  // namespace softgpu::mps
