#include "runtime/pipeline/stage_process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/lifetime.h"
#include "base/log.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

constexpr std::uint64_t kFirstConstant = std::uint64_t{1} << 62;  // objects of calls have the numbers below

}  // namespace

StageProcess::StageProcess(boost::asio::io_context& io, Options options, Events events)
    : io_(io), options_(std::move(options)), events_(std::move(events)) {
  const Lifetime::Watch life = life_.watch();
  auto process = ServerProcess::start(io_, options_.process,
                                      {.frame =
                                           [this, life](wire::FrameToNode frame) {
                                             if (!life.ended()) on_frame(frame);
                                           },
                                       .gone =
                                           [this, life](const std::string& reason) {
                                             if (!life.ended()) on_gone(reason);
                                           }});
  if (process) {
    process_ = *std::move(process);
  } else {
    on_gone(process.error().message);
  }
}

StageProcess::~StageProcess() = default;

// Posted: whoever hears of it may destroy this, and its process must not go inside its own callback.
void StageProcess::on_gone(const std::string& reason) {
  is_ready_ = false;
  is_ending_ = true;
  boost::asio::post(io_, life_.guarded([this, why = fault_.empty() ? reason : fault_] { events_.lost(why); }));
}

void StageProcess::end(std::string why) {
  is_ready_ = false;
  if (!std::exchange(is_ending_, true) && fault_.empty()) fault_ = std::move(why);
  if (process_) process_->kill();
}

void StageProcess::on_frame(wire::FrameToNode& frame) {
  if (is_ending_) return;
  if (const auto* ready = std::get_if<wire::ServerReady>(&frame)) {
    device_ = ready->device;
    // In this order: where a session is ready, the server has opened all of them.
    for (const auto& ring : options_.rings) open(*ring);
    for (const std::size_t component : options_.components) {
      if (Status made = register_session(component); !made) return end(made.error().message);
    }
  }
  if (const auto* ready = std::get_if<wire::SessionReady>(&frame)) {
    if (!ready->error.empty()) {
      return end(
          fmt::format("component {}: {}", options_.program->dag.components[ready->session - 1].name, ready->error));
    }
    if (++sessions_ready_ < options_.components.size()) return;
    is_ready_ = true;
    events_.ready();
  }
  if (auto* done = std::get_if<wire::CallDone>(&frame)) on_done(*done);
  if (const auto* fault = std::get_if<wire::ServerFault>(&frame)) fault_ = fault->error;
  if (std::holds_alternative<wire::ModuleTrial>(frame))
    end("its device server wants modules tried, which pipelines do not");
}

// A constant that made room for others is supplied again, once in a call.
void StageProcess::on_done(wire::CallDone& done) {
  auto call = calls_.extract(done.call);
  if (call.empty()) return;
  if (done.outcome == wire::CallDone::Outcome::kMissing) {
    const std::size_t component = call.mapped().first;
    wire::RunCall again = std::move(call.mapped().second);
    if (resupplied_.insert(done.call).second) {
      std::vector<int> descriptors;
      std::vector<UniqueFd> files;
      Status supplied;
      for (const Constant& constant : constants_[component]) {
        if (supplied) supplied = supply(constant, again.supplied, descriptors, files);
      }
      if (supplied) {
        process_->send(again, descriptors);
        calls_[done.call] = {component, std::move(again)};
        return;
      }
      done.error = supplied.error().message;
    }
    done.outcome = wire::CallDone::Outcome::kFailed;
    if (done.error.empty()) done.error = "what it reads is no longer on the device";
  }
  resupplied_.erase(done.call);
  events_.done(std::move(done));
}

Status StageProcess::supply(const Constant& constant, std::vector<wire::SuppliedObject>& supplied,
                            std::vector<int>& descriptors, std::vector<UniqueFd>& files) const {
  UniqueFd file(::open(constant.file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail(errno_error(errno, "open " + constant.file));
  supplied.push_back({constant.object, constant.bytes, static_cast<std::int32_t>(descriptors.size())});
  descriptors.push_back(file.get());
  files.push_back(std::move(file));
  return {};
}

Status StageProcess::register_session(std::size_t component) {
  const ComponentTask& task = options_.program->tasks[component];
  const KernelTask& kernels = task.spec->task;
  wire::RegisterSession frame{.session = component + 1, .tenant = options_.tenant, .task = wire::encode(kernels)};
  std::vector<int> descriptors;
  std::vector<UniqueFd> files;
  for (std::size_t m = 0; m < task.spec->module_files.size(); ++m) {
    UniqueFd file(::open(task.spec->module_files[m].c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0) return fail(errno_error(errno, "open " + task.spec->module_files[m]));
    frame.modules.push_back({.sha256 = kernels.modules[m].sha256,
                             .bytes = static_cast<std::uint64_t>(info.st_size),
                             .descriptor = static_cast<std::int32_t>(descriptors.size())});
    descriptors.push_back(file.get());
    files.push_back(std::move(file));
  }
  std::vector<Constant>& constants = constants_[component];
  for (std::uint32_t b = 0; b < kernels.buffers.size(); ++b) {
    const BufferSpec& buffer = kernels.buffers[b];
    if (buffer.role != BufferRole::kConstant) continue;
    const std::uint64_t object = kFirstConstant + component * kMaxTaskBuffers + b;
    constants.push_back(
        {b, object, static_cast<std::uint64_t>(buffer.bytes.count()), task.constant_files.at(buffer.constant)});
    frame.constants.push_back({.buffer = b, .object = object, .bytes = {}});
    if (Status there = supply(constants.back(), frame.supplied, descriptors, files); !there) return there;
  }
  process_->send(frame, descriptors);
  return {};
}

void StageProcess::open(const HostRing& ring) {
  const int descriptors[] = {ring.descriptor()};
  process_->send(ring.frame(), descriptors);
}

void StageProcess::open_other(std::size_t, const HostRing& ring) {
  if (others_.insert(ring.number()).second) open(ring);
}

void StageProcess::keep_others(const std::set<std::uint64_t>& numbers) {
  std::erase_if(others_, [&](std::uint64_t other) {
    if (numbers.contains(other)) return false;
    if (process_ && !is_ending_) process_->send(wire::CloseRing{other});
    return true;
  });
}

void StageProcess::run(std::size_t component, wire::RunCall call) {
  call.session = component + 1;
  process_->send(call);
  const std::uint64_t number = call.call;
  calls_[number] = {component, std::move(call)};
}

void StageProcess::drop(std::uint64_t object) {
  if (process_ && !is_ending_) process_->send(wire::DropObject{object});
}

}  // namespace fairlead
