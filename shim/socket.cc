#include "shim/socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fairlead::shim {
namespace {

constexpr int kHighDescriptor = 700;

int connected_to(const char* path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const int made = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  if (::connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return move_out_of_the_way(made);
  }
  ::close(made);
  return -1;
}

bool wait_readable(int descriptor, int limit_ms) {
  pollfd polled = {descriptor, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&polled, 1, limit_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

void take_descriptors(msghdr& message, int descriptors[2]) {
  int taken = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof descriptor);
      if (taken < 2) {
        descriptors[taken++] = move_out_of_the_way(descriptor);
      } else {
        ::close(descriptor);
      }
    }
  }
}

}  // namespace

int move_out_of_the_way(int descriptor) {
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kHighDescriptor);
  if (moved < 0) return descriptor;
  ::close(descriptor);
  return moved;
}

bool Socket::connect(const char* path) {
  const int made = connected_to(path);
  struct stat status = {};
  if (made < 0) return false;
  if (::fstat(made, &status) != 0) {
    ::close(made);
    return false;
  }
  device_.store(status.st_dev);
  inode_.store(status.st_ino);
  descriptor_.store(made, std::memory_order_release);
  return true;
}

int Socket::own_descriptor() const {
  const int descriptor = descriptor_.load(std::memory_order_acquire);
  struct stat status = {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) return -1;
  return status.st_dev == device_.load() && status.st_ino == inode_.load() ? descriptor : -1;
}

bool Socket::send(const wire::Frame& frame) const {
  const int descriptor = own_descriptor();
  if (descriptor < 0) return false;
  ssize_t sent = 0;
  do {
    sent = ::send(descriptor, &frame, sizeof frame, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof frame);
}

bool Socket::receive(wire::Frame* frame, int descriptors[2], int limit_ms) const {
  descriptors[0] = descriptors[1] = -1;
  const int descriptor = own_descriptor();
  if (descriptor < 0 || !wait_readable(descriptor, limit_ms) || own_descriptor() != descriptor) return false;
  iovec part = {frame, sizeof *frame};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t received = 0;
  do {
    received = ::recvmsg(descriptor, &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received <= 0) return false;
  take_descriptors(message, descriptors);
  if (received == static_cast<ssize_t>(sizeof *frame)) return true;
  for (int i = 0; i < 2; ++i) {
    if (descriptors[i] >= 0) ::close(descriptors[i]);
  }
  return false;
}

void Socket::close() {
  const int descriptor = own_descriptor();
  descriptor_.store(-1, std::memory_order_release);
  if (descriptor >= 0) ::close(descriptor);
}

}  // namespace fairlead::shim
