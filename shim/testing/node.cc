#include "shim/testing/node.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace fairlead::shim::testing {
namespace {

constexpr std::size_t kPageBytes = 4096;

bool readable(int descriptor, int limit_ms) {
  pollfd polled = {descriptor, POLLIN, 0};
  return ::poll(&polled, 1, limit_ms) == 1;
}

int make_page(wire::ShimPage** page) {
  const int descriptor = ::memfd_create("shim-page", MFD_CLOEXEC);
  if (descriptor < 0 || ::ftruncate(descriptor, kPageBytes) != 0) std::abort();
  void* const memory = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) std::abort();
  *page = new (memory) wire::ShimPage;
  return descriptor;
}

void send_welcome(int socket, int page, wire::MemoryBackend backend) {
  wire::Frame frame = {.kind = wire::FrameKind::kWelcome};
  frame.body.welcome = {0, backend, wire::UvmMode::kPrefetchSwap};
  iovec part = {&frame, sizeof frame};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &page, sizeof page);
  ::sendmsg(socket, &message, MSG_NOSIGNAL);  // refused where the process has ended meanwhile, which gone() tells
}

}  // namespace

Connection::Connection(int descriptor, const wire::Hello& hello, wire::MemoryBackend backend)
    : descriptor_(descriptor), hello_(hello) {
  const int page = make_page(&page_);
  page_->version = hello.version;
  send_welcome(descriptor_, page, backend);
  ::close(page);
}

Connection::~Connection() {
  cut();
  ::munmap(page_, kPageBytes);
}

void Connection::send(const wire::Frame& frame) const {
  ::send(descriptor_, &frame, sizeof frame, MSG_NOSIGNAL);
}

bool Connection::receive(wire::FrameKind kind, wire::Frame* frame, int limit_ms) {
  while (readable(descriptor_, limit_ms)) {
    if (::recv(descriptor_, frame, sizeof *frame, 0) != sizeof *frame) return false;
    if (frame->kind == kind) return true;
  }
  return false;
}

bool Connection::gone(int limit_ms) {
  wire::Frame frame;
  while (readable(descriptor_, limit_ms)) {
    if (::recv(descriptor_, &frame, sizeof frame, 0) <= 0) return true;
  }
  return false;
}

void Connection::cut() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

Node::Node(std::string path)
    : path_(std::move(path)), descriptor_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
  ::unlink(path_.c_str());
  if (::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) std::abort();
  if (::listen(descriptor_, 64) != 0) std::abort();
}

Node::~Node() {
  ::close(descriptor_);
  ::unlink(path_.c_str());
}

std::unique_ptr<Connection> Node::accept(wire::MemoryBackend backend, int limit_ms) {
  if (!readable(descriptor_, limit_ms)) return nullptr;
  const int socket = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
  wire::Frame frame;
  if (socket < 0 || !readable(socket, limit_ms)) return nullptr;
  if (::recv(socket, &frame, sizeof frame, 0) != sizeof frame || frame.kind != wire::FrameKind::kHello) return nullptr;
  if (frame.body.hello.version > version_) {
    ::close(socket);
    return nullptr;
  }
  return std::make_unique<Connection>(socket, frame.body.hello, backend);
}

}  // namespace fairlead::shim::testing
