#include "shim/node_link.h"

#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "shim/clock.h"
#include "shim/gate.h"
#include "shim/memory/memory.h"
#include "shim/mover.h"
#include "shim/page.h"
#include "shim/requests.h"
#include "shim/socket.h"

namespace fairlead::shim {
namespace {

constexpr int kAnswerMs = kAnswerSeconds * 1000;
constexpr long kFirstRetryMs = 50;
constexpr long kLongestRetryMs = 5000;

constinit Socket link;
constinit Requests requests;
constinit std::atomic<bool> wanted{false};  // the node has been told that a thread waits

// Written before the link's thread starts, constant from then on.
char node_path[sizeof(sockaddr_un::sun_path)];
std::uint64_t instance_token;

void answer_move(const wire::Moved& moved) {
  wire::Frame frame = {.kind = wire::FrameKind::kMoved};
  frame.body.moved = moved;
  link.send(frame);  // a connection that is gone is noticed by the thread that reads it
}

void close_all(const int descriptors[2]) {
  for (int i = 0; i < 2; ++i) {
    if (descriptors[i] >= 0) ::close(descriptors[i]);
  }
}

bool take_welcome(const wire::Welcome& welcome, const int descriptors[2]) {
  if (!adopt_page(descriptors[0])) return false;
  ::close(descriptors[0]);
  memory::set_up({.backend = welcome.backend,
                  .uvm = welcome.uvm,
                  .arena_fd = descriptors[1],
                  .arena_bytes = descriptors[1] >= 0 ? welcome.arena_bytes : 0});
  return true;
}

// Connects and registers as a shim of `version`; the node's answer is the next frame.
bool say_hello(std::uint32_t version) {
  if (!link.connect(node_path)) return false;
  wire::Frame frame = {.kind = wire::FrameKind::kHello};
  frame.body.hello = {instance_token, version, static_cast<std::uint32_t>(::getpid())};
  int descriptors[2];
  if (link.send(frame) && link.receive(&frame, descriptors, kAnswerMs)) {
    if (frame.kind == wire::FrameKind::kWelcome && take_welcome(frame.body.welcome, descriptors)) return true;
    close_all(descriptors);
  }
  link.close();
  return false;
}

// An older node closes the connection of a newer shim at once, and is then spoken to as it speaks.
bool say_hello() {
  for (std::uint32_t version = wire::kShimVersion; version >= wire::kOldestShimVersion; --version) {
    if (say_hello(version)) return true;
  }
  return false;
}

void take_frame(const wire::Frame& frame) {
  switch (frame.kind) {
    case wire::FrameKind::kSwapOut:
    case wire::FrameKind::kSwapIn: wanted.store(false); return order_move(frame, answer_move);
    case wire::FrameKind::kRoom: return requests.answer(frame.body.room.request, frame);
    case wire::FrameKind::kStaging: return requests.answer(frame.body.staging.request, frame);
    default: return;  // of a newer node
  }
}

void serve() {
  wire::Frame frame;
  int descriptors[2];
  while (link.receive(&frame, descriptors, -1)) {
    close_all(descriptors);
    take_frame(frame);
  }
}

// Nobody gives out places or takes memory any more: work goes on, and memory comes back as it can.
void do_without_node() {
  link.close();
  requests.fail_all();
  wanted.store(false);
  page().pace.store(0);
  open_gate(wire::kGateNode);
  order_return();
}

void find_node_again() {
  for (long pause_ms = kFirstRetryMs; !say_hello(); pause_ms = std::min(2 * pause_ms, kLongestRetryMs)) {
    const timespec pause = {pause_ms / 1000, pause_ms % 1000 * 1000000};
    ::nanosleep(&pause, nullptr);
  }
  stop_return();
  // What is still away is the node's to return, as soon as somebody wants it.
  if (somebody_waits() && (page().gate.load() & wire::kGateMemory) != 0) want_memory();
}

void* run_link(void*) {
  const Bypass own_work;
  for (;;) {
    serve();
    do_without_node();
    find_node_again();
  }
}

// Sends a question that carries its request's number, and waits for the answer.
bool ask(wire::Frame* frame, std::uint64_t* request_of_frame, int seconds) {
  if (!link.connected()) return false;
  const std::uint64_t request = requests.open();
  if (request == 0) return false;
  *request_of_frame = request;
  if (link.send(*frame)) return requests.wait(request, frame, seconds * 1000);
  requests.cancel(request);
  return false;
}

}  // namespace

bool ask_for_room(std::uint64_t bytes) {
  wire::Frame frame = {.kind = wire::FrameKind::kNeedRoom};
  frame.body.need_room.bytes = bytes;
  return ask(&frame, &frame.body.need_room.request, kRoomSeconds) && frame.kind == wire::FrameKind::kRoom &&
         frame.body.room.granted != 0;
}

StagingPart ask_for_staging(std::uint64_t bytes) {
  wire::Frame frame = {.kind = wire::FrameKind::kNeedStaging};
  frame.body.need_staging.bytes = bytes;
  if (!ask(&frame, &frame.body.need_staging.request, kAnswerSeconds) || frame.kind != wire::FrameKind::kStaging)
    return {};
  return {frame.body.staging.offset, frame.body.staging.bytes};
}

void return_staging(StagingPart part) {
  wire::Frame frame = {.kind = wire::FrameKind::kReturnStaging};
  frame.body.return_staging = {part.offset, part.bytes};
  link.send(frame);  // without a node there is no arena to return it to
}

void want_memory() {
  if (memory_moves() || wanted.exchange(true)) return;
  const wire::Frame frame = {.kind = wire::FrameKind::kWantMemory};
  if (!link.send(frame)) wanted.store(false);
}

bool join_node(const char* path, std::uint64_t token) {
  std::strncpy(node_path, path, sizeof node_path - 1);
  instance_token = token;
  const bool joined = say_hello();
  // A node that is not there yet is looked for as one that went away.
  start_thread("fl-link", run_link);
  return joined;
}

void leave_node() {
  link.close();
  requests.reset();
  forget_moves();
  wanted.store(false);
}

}  // namespace fairlead::shim
