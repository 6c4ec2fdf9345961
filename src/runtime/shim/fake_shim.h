// For tests: a process's end of the shim socket, plain code speaking frames.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "runtime/fd_socket.h"
#include "runtime/instance_host.h"
#include "wire/shim_codec.h"
#include "wire/shim_page.h"

namespace fairlead {

class FakeShim {
 public:
  explicit FakeShim(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << path;
  }
  ~FakeShim() {
    if (page_ != nullptr) ::munmap(static_cast<void*>(page_), sizeof *page_);
  }
  FakeShim(const FakeShim&) = delete;
  FakeShim& operator=(const FakeShim&) = delete;

  int fd() const { return socket_.get(); }
  void send(const wire::Frame& frame) { send_bytes(wire::packet_of(frame)); }
  void send_bytes(std::string_view bytes) { last_error_ = send_message(socket_.get(), bytes, {}, MSG_DONTWAIT); }
  int last_error() const { return last_error_; }

  void hello(std::uint64_t token, std::uint32_t version = wire::kShimVersion) {
    wire::Frame frame = wire::make_frame(wire::FrameKind::kHello);
    frame.body.hello = {token, version, static_cast<std::uint32_t>(::getpid())};
    send(frame);
  }
  void moved(wire::FrameKind answered, wire::MoveResult result, std::uint64_t bytes) {
    wire::Frame frame = wire::make_frame(wire::FrameKind::kMoved);
    frame.body.moved = {answered, result, bytes, 100, 200};
    send(frame);
  }
  void need_staging(std::uint64_t bytes, std::uint64_t request) {
    wire::Frame frame = wire::make_frame(wire::FrameKind::kNeedStaging);
    frame.body.need_staging = {bytes, request};
    send(frame);
  }
  void return_staging(std::uint64_t offset, std::uint64_t bytes) {
    wire::Frame frame = wire::make_frame(wire::FrameKind::kReturnStaging);
    frame.body.return_staging = {offset, bytes};
    send(frame);
  }
  void need_room(std::uint64_t bytes, std::uint64_t request) {
    wire::Frame frame = wire::make_frame(wire::FrameKind::kNeedRoom);
    frame.body.need_room = {bytes, request};
    send(frame);
  }

  // What is there now; empty: nothing is, or closed().
  std::optional<wire::Frame> receive() {
    FdMessage message;
    if (receive_message(socket_.get(), message, MSG_DONTWAIT) != 0) return std::nullopt;
    if (message.bytes.size() != sizeof(wire::Frame)) {
      closed_ = true;
      return std::nullopt;
    }
    wire::Frame frame = wire::make_frame(wire::FrameKind::kHello);
    std::memcpy(static_cast<void*>(&frame), message.bytes.data(), sizeof frame);
    if (!message.fds.empty()) take(std::move(message.fds));
    return frame;
  }
  bool closed() const { return closed_; }
  wire::ShimPage* page() const { return page_; }
  const std::vector<UniqueFd>& fds() const { return fds_; }

 private:
  void take(std::vector<UniqueFd> fds) {
    fds_ = std::move(fds);
    void* mapped = ::mmap(nullptr, sizeof *page_, PROT_READ | PROT_WRITE, MAP_SHARED, fds_[0].get(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    page_ = static_cast<wire::ShimPage*>(mapped);
  }

  UniqueFd socket_;
  std::vector<UniqueFd> fds_;
  wire::ShimPage* page_ = nullptr;
  bool closed_ = false;
  int last_error_ = 0;
};

}  // namespace fairlead
