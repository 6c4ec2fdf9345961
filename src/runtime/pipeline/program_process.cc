#include "runtime/pipeline/program_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "runtime/fd_socket.h"
#include "wire/program_frames.h"

namespace fairlead {
namespace {

constexpr int kPacketsAtOnce = 16;  // a program that talks without end does not keep the loop

Result<UniqueFd> memory_file(std::string_view bytes) {
  UniqueFd file(::memfd_create("fairlead-input", MFD_CLOEXEC));
  if (!file) return fail(errno_error(errno, "memfd_create"));
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return fail(errno_error(errno, "write an input"));
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return file;
}

}  // namespace

ProgramProcess::ProgramProcess(boost::asio::io_context& io, Options options, Events events)
    : io_(io), options_(std::move(options)), events_(std::move(events)) {
  if (Status started = start(); started) {
    for (const auto& ring : options_.rings) open(*ring);
  } else {
    on_gone(started.error().message);
  }
}

Status ProgramProcess::start() {
  auto pair = make_seqpacket_pair();
  if (!pair) return fail(pair.error());
  channel_.emplace(std::move(pair->first));
  UniqueFd own(::fcntl(channel_->socket(), F_DUPFD_CLOEXEC, 0));
  if (!own) return fail(errno_error(errno, "duplicate its socket"));
  socket_.emplace(io_, own.release());
  auto process = ChildProcess::start(io_,
                                     {.words = options_.launch.words,
                                      .environment = options_.launch.environment,
                                      .end_signal = options_.launch.end_signal},
                                     pair->second.get(), [this, life = life_.watch()](const std::string& reason) {
                                       if (life.ended()) return;
                                       on_readable();  // what it said last
                                       on_gone(reason);
                                     });
  if (!process) return fail(process.error());
  process_ = *std::move(process);
  wait_for_packets();
  return {};
}

void ProgramProcess::on_gone(const std::string& reason) {
  is_ready_ = false;
  is_ending_ = true;
  const std::string why = fmt::format("program {}: {}", options_.name, fault_.empty() ? reason : fault_);
  boost::asio::post(io_, life_.guarded([this, why] { events_.lost(why); }));
}

void ProgramProcess::end(std::string why) {
  is_ready_ = false;
  if (!std::exchange(is_ending_, true) && fault_.empty()) fault_ = std::move(why);
  if (process_) process_->kill();
}

void ProgramProcess::wait_for_packets() {
  socket_->async_wait(boost::asio::posix::stream_descriptor::wait_read, life_.on_success([this] { on_readable(); }));
}

// Descriptors that it sends are closed unseen.
void ProgramProcess::on_readable() {
  for (int packets = 0; packets < kPacketsAtOnce && !is_ending_; ++packets) {
    FdMessage message;
    const int error = receive_message(channel_->socket(), message, MSG_DONTWAIT);
    if (error == EAGAIN) return wait_for_packets();
    if (error != 0 || (message.bytes.empty() && message.fds.empty())) return;  // its end follows
    on_said(message.bytes);
  }
  if (!is_ending_) wait_for_packets();
}

void ProgramProcess::on_said(std::string_view packet) {
  using Kind = wire::ProgramSaid::Kind;
  auto said = wire::decode_program_said(packet);
  if (!said) return end(said.error().message);
  if (said->kind == Kind::kCannot) return end(std::move(said->text));
  if (said->kind == Kind::kReady) {
    if (is_ready_) return end("it was ready already, and says so again");
    is_ready_ = true;
    boost::asio::post(io_, life_.guarded([this] {
      if (is_ready_) events_.ready();
    }));
    return;
  }
  if (call_ != said->call) return end(fmt::format("it answers call {}, which it was not asked", said->call));
  const bool is_done = said->kind == Kind::kDone;
  using Ended = wire::CallDone::Outcome;
  finish(said->call, is_done ? Ended::kDone : Ended::kFailed, std::move(said->text));
}

void ProgramProcess::finish(std::uint64_t call, wire::CallDone::Outcome outcome, std::string error) {
  call_.reset();
  wire::CallDone done{.call = call};
  done.outcome = outcome;
  done.error = std::move(error);
  boost::asio::post(io_, life_.guarded([this, done = std::move(done)] { events_.done(done); }));
}

void ProgramProcess::run(std::size_t, wire::RunCall call) {
  const std::size_t outputs = call.ring_outputs.size();
  std::vector<wire::ProgramTensor> inputs(options_.inputs), written(outputs);
  std::vector<UniqueFd> files;
  std::vector<int> descriptors;
  call_ = call.call;
  for (const wire::BoundObject& input : call.inputs) {
    auto file = memory_file(input.bytes);
    if (!file) return finish(call.call, wire::CallDone::Outcome::kFailed, file.error().message);
    inputs.at(input.buffer) = {.ring = 0, .slot = static_cast<std::uint32_t>(files.size())};
    descriptors.push_back(file->get());
    files.push_back(*std::move(file));
  }
  for (const wire::RingSlot& input : call.ring_inputs) inputs.at(input.buffer) = {input.ring, input.slot};
  for (const wire::RingSlot& output : call.ring_outputs) {
    written.at(output.buffer - options_.inputs) = {output.ring, output.slot};
  }
  send(wire::encode_program_call(call.call, inputs, written), descriptors);
}

void ProgramProcess::open(const HostRing& ring) {
  const int descriptors[] = {ring.descriptor()};
  send(wire::encode_open_ring(ring.number(), ring.shape()), descriptors);
}

void ProgramProcess::open_other(std::size_t, const HostRing& ring) {
  if (others_.insert(ring.number()).second) open(ring);
}

void ProgramProcess::keep_others(const std::set<std::uint64_t>& numbers) {
  std::erase_if(others_, [&](std::uint64_t other) {
    if (numbers.contains(other)) return false;
    if (!is_ending_) send(wire::encode_close_ring(other));
    return true;
  });
}

void ProgramProcess::send(const std::string& packet, std::span<const int> descriptors) {
  channel_->send(packet, descriptors);
  flush();
}

void ProgramProcess::flush() {
  if (channel_->flush() || is_flushing_) return;
  is_flushing_ = true;
  socket_->async_wait(boost::asio::posix::stream_descriptor::wait_write, life_.on_success([this] {
    is_flushing_ = false;
    flush();
  }));
}

}  // namespace fairlead
