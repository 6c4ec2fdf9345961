#include "runtime/device_servers/server_process.h"

#include <fcntl.h>

#include <cerrno>

#include "base/lifetime.h"
#include "base/log.h"

namespace fairlead {
namespace {

using Wait = boost::asio::posix::stream_descriptor;

constexpr int kFramesAtOnce = 16;  // a server that talks without end does not keep the loop
constexpr int kLastFrames = 4096;  // more than a socket holds

std::vector<std::string> words_of(const ServerProcess::Options& options, std::vector<std::string> words) {
  words.insert(words.end(), {options.program, "device-server"});
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  return words;
}

}  // namespace

Result<std::unique_ptr<ServerProcess>> ServerProcess::start(boost::asio::io_context& io, const Options& options,
                                                            Events events) {
  auto pair = make_seqpacket_pair();
  if (!pair) return fail(pair.error());
  std::unique_ptr<ServerProcess> made(new ServerProcess(io, std::move(pair->first), std::move(events)));
  Launch launch;
  if (options.launcher) launch = options.launcher(options.environment);
  made->held_ = std::move(launch.held);
  auto process =
      ChildProcess::start(io,
                          {.words = words_of(options, std::move(launch.words)),
                           .environment = options.environment,
                           .end_signal = options.launcher ? SIGTERM : SIGKILL},
                          pair->second.get(), [link = made.get()](std::string reason) { link->on_end(reason); });
  if (!process) return fail(process.error());
  made->process_ = *std::move(process);
  made->wait_for_frames();
  return made;
}

ServerProcess::ServerProcess(boost::asio::io_context& io, UniqueFd socket, Events events)
    : channel_(std::move(socket), kServerSays),
      socket_(io, ::fcntl(channel_.socket(), F_DUPFD_CLOEXEC, 0)),
      events_(std::move(events)) {}

void ServerProcess::on_end(const std::string& reason) {
  const Lifetime::Watch life = life_.watch();
  take_frames(kLastFrames);  // what it said last
  if (!life.ended()) events_.gone(reason);
}

void ServerProcess::wait_for_frames() {
  socket_.async_wait(Wait::wait_read, life_.on_success([this] { take_frames(kFramesAtOnce); }));
}

void ServerProcess::take_frames(int most) {
  const Lifetime::Watch life = life_.watch();
  std::string bytes;
  std::vector<UniqueFd> descriptors;
  for (int frames = 0; frames < most; ++frames) {
    const int error = channel_.receive(bytes, descriptors);
    if (error == EAGAIN) return wait_for_frames();
    if (error == EMSGSIZE || error == EBADMSG) {
      spdlog::error("device server {}: a frame is larger than it may be, or no frame", pid());
      return kill();
    }
    if (error != 0) return;  // its end follows
    auto frame = wire::decode_frame_to_node(bytes);
    if (!frame) {
      spdlog::error("device server {}: {}", pid(), frame.error().message);
      return kill();
    }
    events_.frame(*std::move(frame));
    if (life.ended()) return;
  }
  wait_for_frames();
}

void ServerProcess::send(const wire::FrameToServer& frame, std::span<const int> descriptors) {
  channel_.send(wire::encode(frame), descriptors);
  flush();
}

void ServerProcess::flush() {
  if (channel_.flush() || flushing_) return;
  flushing_ = true;
  socket_.async_wait(Wait::wait_write, life_.on_success([this] {
    flushing_ = false;
    flush();
  }));
}

}  // namespace fairlead
