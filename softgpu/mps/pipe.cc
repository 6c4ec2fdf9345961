#include "softgpu/mps/pipe.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "softgpu/device/time/mps.h"

namespace softgpu::mps {
namespace {

constexpr char kSocket[] = "control";
constexpr int kLockTries = 100;  // a client that looks for the daemon holds the lock for a moment
constexpr std::chrono::milliseconds kLockPause(5);

tl::unexpected<std::string> failed(const std::string& what) {
  return failure(what + ": " + std::strerror(errno));
}

sockaddr_un address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

}  // namespace

Result<PipeDirectory> PipeDirectory::open(bool create) {
  std::string path = mps_environment().pipe_directory;
  if (path.empty()) path = Mps().pipe_directory;
  std::error_code error;
  if (create) std::filesystem::create_directories(path, error);
  const int fd = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed("open the pipe directory " + path);
  return PipeDirectory(std::move(path), fd);
}

PipeDirectory::~PipeDirectory() {
  if (fd_ >= 0) ::close(fd_);
}

std::string PipeDirectory::socket_name() const {
  return "/proc/self/fd/" + std::to_string(fd_) + "/" + kSocket;
}

Result<int> PipeDirectory::lock() const {
  const std::string path = file(kMpsLockFile);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return failed("open " + path);
  for (int tries = 0; ::flock(fd, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (tries == kLockTries) {
      ::close(fd);
      return failure("An instance of this daemon is already running");
    }
    std::this_thread::sleep_for(kLockPause);
  }
  return fd;
}

Result<int> PipeDirectory::listen() const {
  ::unlink(file(kSocket).c_str());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(socket_name());
  if (socket < 0 || ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket, SOMAXCONN) != 0) {
    return failed("listen at " + file(kSocket));
  }
  return socket;
}

Result<std::string> PipeDirectory::send(const std::string& command) const {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(socket_name());
  if (socket < 0 || ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (socket >= 0) ::close(socket);
    return failure("Cannot find MPS control daemon process");
  }
  const std::string line = command + "\n";
  bool sent = ::send(socket, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
  std::string answer;
  char buffer[4096];
  for (ssize_t count = 1; sent && count > 0;) {
    count = ::read(socket, buffer, sizeof buffer);
    if (count > 0) answer.append(buffer, static_cast<std::size_t>(count));
    if (count < 0) sent = false;
  }
  ::close(socket);
  if (!sent) return failed("the MPS control daemon of " + path_);
  return answer;
}

}  // namespace softgpu::mps
