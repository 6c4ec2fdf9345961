// What the tests of device servers share: real servers on the software GPU, and a data layer in memory.
#pragma once

#include "runtime/device_servers/device_servers.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <boost/asio/post.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "base/clock.h"
#include "wire/kernel_task_codec.h"

#ifndef TEST_KERNELS  // as CMakeLists.txt says
#define TEST_KERNELS ""
#define DEVICE_SERVER ""
#define SOFTGPU_FOLDER ""
#endif

namespace fairlead {

using namespace std::chrono_literals;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::uint32_t kElements = 256;
constexpr Bytes kVector{kElements * 4};

inline const std::string kKernels = [] {
  std::ifstream file(TEST_KERNELS);
  return std::string(std::istreambuf_iterator<char>(file), {});
}();

// The data layer: objects in memory files, opened at once or when they come.
class MapOfObjects final : public ObjectSource {
 public:
  explicit MapOfObjects(boost::asio::io_context& io) : io_(io) {}

  void put(const std::string& key, const std::string& bytes) {
    Stored& stored = objects_[key];
    stored = {.known = {bytes, Bytes(static_cast<std::int64_t>(bytes.size())), ++clock_, false}, .bytes = bytes};
  }
  void erase(const std::string& key) {
    const auto erased = objects_.extract(key);
    if (!erased.empty() && erased.mapped().gone) boost::asio::post(io_, erased.mapped().gone);
  }
  bool is_on_device(const std::string& key) { return objects_.at(key).known.on_device; }
  int opened = 0;
  std::function<void()> before_fetch;  // of an output, from its device

  std::optional<Known> look_up(const ObjectKey& name) override {
    const auto found = objects_.find(name.key);
    if (found == objects_.end()) return std::nullopt;
    return found->second.known;
  }
  void open(const ObjectKey& name, Duration, std::function<void(Result<Opened>)> done) override {
    ++opened;
    boost::asio::post(io_, [this, name, done] {
      const auto found = objects_.find(name.key);
      if (found == objects_.end()) return done(fail(Errc::kNotFound, "there is no object {}", name.key));
      Stored& stored = found->second;
      if (!stored.known.on_device) return done(to_file(stored));
      UniqueFd destination(::memfd_create("fetched", MFD_CLOEXEC));
      FL_CHECK(::ftruncate(destination.get(), stored.known.bytes.count()) == 0);
      UniqueFd ours(::fcntl(destination.get(), F_DUPFD_CLOEXEC, 0));
      if (before_fetch) before_fetch();
      stored.fetch(std::move(destination),
                   [this, name, done, file = std::make_shared<UniqueFd>(std::move(ours))](Status fetched) {
                     if (!fetched) return done(fail(fetched.error()));
                     Stored& now = objects_.at(name.key);
                     now.bytes.resize(static_cast<std::size_t>(now.known.bytes.count()));
                     FL_CHECK(::pread(file->get(), now.bytes.data(), now.bytes.size(), 0) == now.known.bytes.count());
                     now.known.on_device = false;
                     now.known.content = now.bytes;
                     done(to_file(now));
                   });
    });
  }
  Status expect(const ObjectKey& name, Bytes) override {
    if (objects_.contains(name.key)) return fail(Errc::kAlreadyExists, "object {} exists already", name.key);
    objects_[name.key].known.created_ms = ++clock_;
    return {};
  }
  Status promise(const ObjectKey& name, Bytes bytes, Fetch fetch, std::function<void()> gone) override {
    Stored& stored = objects_.at(name.key);
    stored.known.bytes = bytes;
    stored.known.on_device = true;
    stored.fetch = std::move(fetch);
    stored.gone = std::move(gone);
    return {};
  }
  void abandon(const ObjectKey& name, Error why) override {
    erase(name.key);
    abandoned[name.key] = why.message;
  }
  std::map<std::string, std::string> abandoned;

 private:
  struct Stored {
    Known known;
    std::string bytes;
    Fetch fetch;
    std::function<void()> gone;
  };
  Result<Opened> to_file(const Stored& stored) {
    UniqueFd file(::memfd_create("object", MFD_CLOEXEC));
    FL_CHECK(::write(file.get(), stored.bytes.data(), stored.bytes.size()) ==
             static_cast<ssize_t>(stored.bytes.size()));
    return Opened{stored.known.content, stored.known.bytes, std::move(file)};
  }

  boost::asio::io_context& io_;
  std::map<std::string, Stored> objects_;
  std::int64_t clock_ = 0;
};

inline std::string floats(float first, float step = 1) {
  std::string bytes(static_cast<std::size_t>(kVector.count()), '\0');
  for (std::uint32_t i = 0; i < kElements; ++i) {
    const float value = first + step * static_cast<float>(i);
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  return bytes;
}

inline LiteralArgument literal(float value) {
  return {.bytes = std::string(reinterpret_cast<const char*>(&value), 4), .relocations = {}};
}

inline BufferSpec buffer(const std::string& name, BufferRole role, const std::string& constant = "") {
  BufferSpec spec{.name = name, .bytes = kVector, .role = role, .type = ElementType::kF32, .shape = {}};
  spec.constant = constant;
  return spec;
}

inline KernelLaunch launch(const std::string& kernel, std::vector<KernelArgument> arguments) {
  return {.module = 0,
          .kernel = kernel,
          .grid = {1, 1, 1},
          .block = {kElements, 1, 1},
          .shared_bytes = 0,
          .arguments = std::move(arguments)};
}

// y = k x + w
inline KernelTask affine(float k) {
  KernelTask task;
  task.buffers = {buffer("x", BufferRole::kInput), buffer("w", BufferRole::kConstant, "w"),
                  buffer("y", BufferRole::kOutput)};
  task.kernels = {launch("scale", {BufferArgument{.buffer = 0}, BufferArgument{.buffer = 2}, literal(k)}),
                  launch("accumulate", {BufferArgument{.buffer = 1}, BufferArgument{.buffer = 2}})};
  return task;
}

inline KernelTask only(const std::string& kernel) {
  KernelTask task;
  task.buffers = {buffer("y", BufferRole::kOutput)};
  task.kernels = {launch(kernel, {BufferArgument{.buffer = 0}})};
  task.kernels[0].block = {1, 1, 1};
  return task;
}

class DeviceServersTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "fairlead-device-XXXXXX").string();
    FL_CHECK(::mkdtemp(pattern.data()) != nullptr);
    home_ = pattern;
    std::ofstream(home_ + "/kernels.ptx") << kKernels;
    use_servers(64 << 20, 64 << 20, "cost");
  }
  void TearDown() override {
    servers_.reset();
    fs::remove_all(home_);
  }

  void use_servers(std::int64_t device, std::int64_t host, const std::string& eviction, bool one_for_all = false,
                   bool plain = false, int modules = 0) {
    DeviceServersOptions options;
    options.program = program_;
    options.arguments = {SOFTGPU_FOLDER, std::to_string(device), std::to_string(host), eviction};
    if (one_for_all) options.arguments.emplace_back("fence");
    if (plain) options.arguments.emplace_back("plain");
    if (modules > 0) options.arguments.push_back("modules=" + std::to_string(modules));
    options.arguments.insert(options.arguments.end(), words_.begin(), words_.end());
    options.one_for_all = one_for_all;
    options.trial_patience = trial_patience_;
    options.idle_limit = idle_limit_;
    options.pace.sized = [this](InstanceId instance, std::uint64_t server, int width_percent) {
      sizes_[instance] = {server, width_percent};
    };
    servers_.reset();
    servers_ = std::make_unique<DeviceServers>(
        io_, options, objects_,
        InstanceEvents{
            .next =
                [this](InstanceId instance) {
                  ++nexts_[instance];
                  if (busy_.contains(instance)) send(instance, with_x(floats(1)));
                },
            .answered = [this](InstanceId, Answer answer) { answers_[answer.invocation] = std::move(answer); },
            .gone =
                [this](InstanceId instance, const ExitInfo& exit) {
                  gone_[instance] = exit;
                  if (after_gone_) std::exchange(after_gone_, nullptr)();
                },
            .residence =
                [this](InstanceId instance, const SessionResidence& residence) {
                  reloads_[instance] = residence.reload;
                  resident_ = residence.resident;
                },
            .session_memory = [this](InstanceId instance, const SessionMemory& has) { memory_[instance] = has; },
            .loaded = [this](InvocationId invocation) { loaded_.push_back(invocation); },
        });
  }

  template <typename Condition>
  void run_until(Condition condition, Duration limit = 120s) {
    const Instant end = monotonic_now() + limit;
    while (!condition() && monotonic_now() < end) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(100));
    }
    ASSERT_TRUE(condition());
  }

  InstanceId begin(KernelTask task, const std::string& tenant = "default", const std::string& kernels = kKernels) {
    const std::string file = home_ + "/" + std::to_string(std::hash<std::string>()(kernels)) + ".ptx";
    std::ofstream(file) << kernels;
    auto spec = std::make_shared<KernelTaskSpec>();
    std::string digest = fs::path(file).stem();  // as good as one here
    digest.resize(32, '-');
    task.modules = {{.name = "kernels.ptx", .sha256 = digest}};
    spec->task = std::move(task);
    spec->module_files = {file};
    const InstanceId instance(++last_instance_);
    servers_->start({.instance = instance,
                     .gpu = GpuId(1),
                     .tenant = tenant,
                     .task = std::move(spec),
                     .environment = {{"SOFTGPU_HOME", home_ + "/gpu"}},
                     .whole_kernels = whole_kernels_,
                     .most_width_percent = most_width_percent_});
    return instance;
  }
  InstanceId ready(KernelTask task, const std::string& tenant = "default", const std::string& kernels = kKernels) {
    const InstanceId instance = begin(std::move(task), tenant, kernels);
    run_until([&] { return nexts_[instance] == 1 || gone_.contains(instance); });
    return instance;
  }

  InvocationId send(InstanceId instance, const KernelTaskCall& call, Duration timeout = 120s) {
    DeliverRequest request{.id = InvocationId(++last_invocation_)};
    request.invocation.payload = wire::encode(call);
    request.deadline_epoch_ms = wall_clock_ms() + timeout / 1ms;
    servers_->deliver(instance, std::move(request));
    return InvocationId(last_invocation_);
  }
  Answer answer(InvocationId invocation) {
    run_until([&] { return answers_.contains(invocation); });
    return answers_[invocation];
  }
  Answer run(InstanceId instance, const KernelTaskCall& call) { return answer(send(instance, call)); }
  static KernelTaskAnswer decoded(const Answer& answer) {
    EXPECT_FALSE(answer.is_error) << answer.failure.text;
    return wire::decode_kernel_task_answer(answer.payload).value_or(KernelTaskAnswer{});
  }
  static std::string output(const Answer& answer) {
    const KernelTaskAnswer read = decoded(answer);
    return read.outputs.empty() ? "" : read.outputs[0].bytes;
  }
  std::string fetched(const std::string& key) {
    std::string bytes;
    bool done = false;
    objects_.open({"default", key}, 1s, [&](Result<ObjectSource::Opened> object) {
      done = true;
      if (!object) return;
      bytes.resize(static_cast<std::size_t>(object->bytes.count()));
      FL_CHECK(::pread(object->memory.get(), bytes.data(), bytes.size(), 0) == object->bytes.count());
    });
    run_until([&] { return done; });
    return bytes;
  }
  static KernelTaskCall with_x(const std::string& bytes) { return {.inputs = {{0, "", bytes}}, .outputs = {}}; }
  DeviceServers::View view() { return servers_->views().at(0); }

  std::string home_;
  std::string program_ = DEVICE_SERVER;
  Duration idle_limit_ = 60s;
  std::vector<std::string> words_;  // more arguments of servers
  Duration trial_patience_ = 120s;
  boost::asio::io_context io_;
  MapOfObjects objects_{io_};
  int most_width_percent_ = 100;  // of sessions that start
  bool whole_kernels_ = false;    // theirs
  std::map<InstanceId, int> nexts_;
  std::map<InstanceId, std::pair<std::uint64_t, int>> sizes_;  // the server, and per cent of the SMs
  std::set<InstanceId> busy_;                                  // they send a call as soon as they may
  std::map<InvocationId, Answer> answers_;
  std::map<InstanceId, ExitInfo> gone_;
  std::function<void()> after_gone_;  // the next time that one is
  std::map<InstanceId, Duration> reloads_;
  Bytes resident_{0};  // as told last
  std::map<InstanceId, SessionMemory> memory_;
  std::vector<InvocationId> loaded_;  // calls whose constants came while they waited, in order
  std::unique_ptr<DeviceServers> servers_;
  std::uint64_t last_instance_ = 0, last_invocation_ = 0;
};

}  // namespace fairlead
