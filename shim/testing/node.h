// For tests: a node as the shim sees it. It listens, answers every Hello with a page, and keeps the frames it is sent.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "wire/shim_frames.h"
#include "wire/shim_page.h"

namespace fairlead::shim::testing {

// One process that has registered.
class Connection {
 public:
  Connection(int descriptor, const wire::Hello& hello, wire::MemoryBackend backend);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const wire::Hello& hello() const { return hello_; }
  wire::ShimPage& page() const { return *page_; }
  void send(const wire::Frame& frame) const;
  // The next frame of this kind, within `limit_ms`; others are thrown away. False: there is none.
  bool receive(wire::FrameKind kind, wire::Frame* frame, int limit_ms = 5000);
  // The process has closed its end, within `limit_ms`.
  bool gone(int limit_ms = 5000);
  void cut();

 private:
  int descriptor_;
  wire::Hello hello_;
  wire::ShimPage* page_;
};

class Node {
 public:
  explicit Node(std::string path);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Of what version it is: newer shims are refused, as older nodes do.
  void speak(std::uint32_t version) { version_ = version; }
  // The next process that registers, within `limit_ms`; null: none does, or a newer one was refused.
  std::unique_ptr<Connection> accept(wire::MemoryBackend backend = wire::MemoryBackend::kNone, int limit_ms = 5000);

 private:
  std::string path_;
  int descriptor_;
  std::uint32_t version_ = wire::kShimVersion;
};

}  // namespace fairlead::shim::testing
