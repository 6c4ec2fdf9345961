#include "softgpu/conformance/child.h"

#include <csignal>

#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softgpu/conformance/runner.h"

extern char** environ;

namespace softgpu::conformance {
namespace {

constexpr int kChildFd = 3;
constexpr unsigned kPatienceSeconds = 20;

// Starts this program with one end of a new connection; the other end, or -1.
int start(const char* role, int& pid) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], kChildFd);
  const std::string arguments[] = {"conformance", "--library", driver_library(), "--role", role};
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int failed = ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failed == 0) return ends[0];
  ::close(ends[0]);
  pid = -1;
  return -1;
}

// A message of one byte with room for one descriptor.
struct FileMessage {
  char byte = 'f';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  FileMessage() {
    header.msg_iov = &part, header.msg_iovlen = 1;
    header.msg_control = control, header.msg_controllen = sizeof control;
  }
  FileMessage(const FileMessage&) = delete;
  FileMessage& operator=(const FileMessage&) = delete;
};

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

void Socket::send_bytes(const void* bytes, std::size_t count) {
  if (ok_) ok_ = ::send(fd_, bytes, count, MSG_NOSIGNAL) == static_cast<ssize_t>(count);
}

void Socket::receive_bytes(void* bytes, std::size_t count) {
  if (ok_) ok_ = ::recv(fd_, bytes, count, MSG_WAITALL) == static_cast<ssize_t>(count);
  if (!ok_) std::memset(bytes, 0, count);
}

void Socket::send_text(const std::string& text) {
  send(text.size());
  if (!text.empty()) send_bytes(text.data(), text.size());
}

std::string Socket::receive_text() {
  std::string text(receive<std::size_t>(), '\0');
  if (!text.empty()) receive_bytes(text.data(), text.size());
  return text;
}

void Socket::send_file(int fd) {
  FileMessage message;
  cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  control->cmsg_level = SOL_SOCKET, control->cmsg_type = SCM_RIGHTS, control->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(control), &fd, sizeof fd);
  if (ok_) ok_ = ::sendmsg(fd_, &message.header, MSG_NOSIGNAL) == 1;
}

int Socket::receive_file() {
  FileMessage message;
  int fd = -1;
  if (ok_) ok_ = ::recvmsg(fd_, &message.header, MSG_CMSG_CLOEXEC) == 1;
  const cmsghdr* control = ok_ ? CMSG_FIRSTHDR(&message.header) : nullptr;
  if (control != nullptr) std::memcpy(&fd, CMSG_DATA(control), sizeof fd);
  ok_ = fd >= 0;
  return fd;
}

Child::Child(Test& test, const char* role) : test_(test), socket_(start(role, pid_)) {
  if (pid_ < 0) test.fail("no process");
}

Child::~Child() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Child::finish() {
  const std::string failure = socket_.receive_text();
  if (!socket_.ok()) return test_.fail("the other process gave no answer");
  if (!failure.empty()) test_.fail("in the other process: " + failure);
}

int run_as_child(const std::string& role, int socket_fd) {
  ::alarm(kPatienceSeconds);
  Socket parent(socket_fd);
  const CUresult device = use_first_device();
  if (device != CUDA_SUCCESS) {
    parent.send_text("no context: " + name_of(device));
    return 1;
  }
  for (const Role& each : all_roles()) {
    if (role != each.name) continue;
    const Case description{.name = each.name, .kernels = "driver", .run = nullptr, .isolated = true};
    Test test(description);
    each.run(test, parent);
    parent.send_text(test.take_result().detail);
  }
  return 0;
}

}  // namespace softgpu::conformance
