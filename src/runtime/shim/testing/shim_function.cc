// A function for tests that is its own shim: it says Hello over the socket in its sandbox and then does what _HANDLER
// says. What it finds out goes to its log.
//   mover     moves what it is told to through its arena, byte for byte, and checks what comes back
//   staller   takes staging when told to move, and never answers
//   preload   says whether the shim's library is mapped into it
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/fd_socket.h"
#include "wire/shim_codec.h"
#include "wire/shim_page.h"

namespace {

using namespace fairlead;
using wire::Frame;
using wire::FrameKind;

constexpr std::uint64_t kMemoryBytes = 3 * wire::kStagingGranule;

void say(const char* text) {
  std::puts(text);
  std::fflush(stdout);
}

class Shim {
 public:
  Shim() : socket_(::socket(AF_UNIX, SOCK_SEQPACKET, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, std::getenv(wire::kShimSocketVariable));
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) say("cannot connect");
    Frame hello = wire::make_frame(FrameKind::kHello);
    const std::uint64_t token = std::strtoull(std::getenv(wire::kShimTokenVariable), nullptr, 10);
    hello.body.hello = {token, wire::kShimVersion, static_cast<std::uint32_t>(::getpid())};
    send(hello);
    FdMessage welcome;
    if (receive_message(socket_, welcome) != 0 || welcome.fds.size() != 2) say("no welcome");
    std::memcpy(static_cast<void*>(&frame_), welcome.bytes.data(), sizeof frame_);
    arena_bytes_ = frame_.body.welcome.arena_bytes;
    page_ = static_cast<wire::ShimPage*>(map(welcome.fds[0].get(), sizeof(wire::ShimPage)));
    arena_ = static_cast<char*>(map(welcome.fds[1].get(), arena_bytes_));
  }

  void send(const Frame& frame) { send_message(socket_, wire::packet_of(frame)); }
  const Frame& receive() {
    FdMessage message;
    if (receive_message(socket_, message) != 0 || message.bytes.size() != sizeof frame_) ::_exit(3);
    std::memcpy(static_cast<void*>(&frame_), message.bytes.data(), sizeof frame_);
    return frame_;
  }
  void moved(FrameKind answered) {
    Frame frame = wire::make_frame(FrameKind::kMoved);
    frame.body.moved = {answered, wire::MoveResult::kDone, kMemoryBytes, 1, 2};
    send(frame);
  }
  std::uint64_t stage() {
    Frame need = wire::make_frame(FrameKind::kNeedStaging);
    need.body.need_staging = {kMemoryBytes, 1};
    send(need);
    const Frame& staging = receive();
    if (staging.kind != FrameKind::kStaging || staging.body.staging.bytes != kMemoryBytes) say("no staging");
    return staging.body.staging.offset;
  }
  void unstage(std::uint64_t offset) {
    Frame back = wire::make_frame(FrameKind::kReturnStaging);
    back.body.return_staging = {offset, kMemoryBytes};
    send(back);
  }
  wire::ShimPage& page() { return *page_; }
  char* arena() { return arena_; }

 private:
  static void* map(int fd, std::size_t bytes) {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }

  int socket_;
  Frame frame_ = wire::make_frame(FrameKind::kHello);
  std::uint64_t arena_bytes_ = 0;
  wire::ShimPage* page_ = nullptr;
  char* arena_ = nullptr;
};

std::vector<char> pattern() {
  std::vector<char> bytes(kMemoryBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  return bytes;
}

void move(Shim& shim) {
  std::vector<char> memory = pattern();
  std::uint64_t offset = 0;
  while (true) {
    if (shim.receive().kind == FrameKind::kSwapOut) {
      offset = shim.stage();
      std::memcpy(shim.arena() + offset, memory.data(), memory.size());
      std::fill(memory.begin(), memory.end(), 0);
      shim.page().resident = 0;
      shim.page().away = kMemoryBytes;
      shim.moved(FrameKind::kSwapOut);
    } else {
      std::memcpy(memory.data(), shim.arena() + offset, memory.size());
      shim.unstage(offset);
      shim.page().away = 0;
      shim.page().resident = kMemoryBytes;
      say(memory == pattern() ? "every byte is back" : "bytes are lost");
      shim.moved(FrameKind::kSwapIn);
    }
  }
}

void find_library() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/run/fairlead/libfairlead-shim.so") != std::string::npos) return say("the library is mapped");
  }
  say("no library");
}

}  // namespace

#ifdef __SANITIZE_ADDRESS__
// The library comes before the sanitizer's runtime, which by itself would end the process for that.
extern "C" __attribute__((visibility("default"), used)) const char* __asan_default_options() {
  return "verify_asan_link_order=0";
}
#endif

int main() {
  const std::string handler = std::getenv("_HANDLER");
  if (handler == "preload") {
    find_library();
    return 0;
  }
  Shim shim;
  shim.page().held = kMemoryBytes;
  shim.page().resident = kMemoryBytes;
  if (handler == "mover") move(shim);
  shim.receive();
  shim.stage();
  say("stalling");
  while (true) ::pause();
}
