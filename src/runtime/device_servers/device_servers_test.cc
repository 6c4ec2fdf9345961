// Sessions and calls through real device servers on the software GPU.
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

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::uint32_t kElements = 256;
constexpr Bytes kVector{kElements * 4};

const std::string kKernels = [] {
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
  void erase(const std::string& key) { objects_.erase(key); }
  bool is_on_device(const std::string& key) { return objects_.at(key).known.on_device; }
  int opened = 0;

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
  Status expect(const ObjectKey& name) override {
    if (objects_.contains(name.key)) return fail(Errc::kAlreadyExists, "object {} exists already", name.key);
    objects_[name.key].known.created_ms = ++clock_;
    return {};
  }
  Status promise(const ObjectKey& name, Bytes bytes, Fetch fetch) override {
    Stored& stored = objects_.at(name.key);
    stored.known.bytes = bytes;
    stored.known.on_device = true;
    stored.fetch = std::move(fetch);
    return {};
  }
  void abandon(const ObjectKey& name, Error why) override {
    objects_.erase(name.key);
    abandoned[name.key] = why.message;
  }
  std::map<std::string, std::string> abandoned;

 private:
  struct Stored {
    Known known;
    std::string bytes;
    Fetch fetch;
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

std::string floats(float first, float step = 1) {
  std::string bytes(static_cast<std::size_t>(kVector.count()), '\0');
  for (std::uint32_t i = 0; i < kElements; ++i) {
    const float value = first + step * static_cast<float>(i);
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  return bytes;
}

LiteralArgument literal(float value) {
  return {.bytes = std::string(reinterpret_cast<const char*>(&value), 4), .relocations = {}};
}

BufferSpec buffer(const std::string& name, BufferRole role, const std::string& constant = "") {
  BufferSpec spec{.name = name, .bytes = kVector, .role = role, .type = ElementType::kF32, .shape = {}};
  spec.constant = constant;
  return spec;
}

KernelLaunch launch(const std::string& kernel, std::vector<KernelArgument> arguments) {
  return {.module = 0,
          .kernel = kernel,
          .grid = {1, 1, 1},
          .block = {kElements, 1, 1},
          .shared_bytes = 0,
          .arguments = std::move(arguments)};
}

// y = k x + w
KernelTask affine(float k) {
  KernelTask task;
  task.buffers = {buffer("x", BufferRole::kInput), buffer("w", BufferRole::kConstant, "w"),
                  buffer("y", BufferRole::kOutput)};
  task.kernels = {launch("scale", {BufferArgument{.buffer = 0}, BufferArgument{.buffer = 2}, literal(k)}),
                  launch("accumulate", {BufferArgument{.buffer = 1}, BufferArgument{.buffer = 2}})};
  return task;
}

KernelTask only(const std::string& kernel) {
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
    options.program = DEVICE_SERVER;
    options.arguments = {SOFTGPU_FOLDER, std::to_string(device), std::to_string(host), eviction};
    if (one_for_all) options.arguments.emplace_back("fence");
    if (plain) options.arguments.emplace_back("plain");
    if (modules > 0) options.arguments.push_back("modules=" + std::to_string(modules));
    options.arguments.insert(options.arguments.end(), words_.begin(), words_.end());
    options.one_for_all = one_for_all;
    options.trial_patience = trial_patience_;
    options.idle_limit = idle_limit_;
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
            .gone = [this](InstanceId instance, const ExitInfo& exit) { gone_[instance] = exit; },
            .residence =
                [this](InstanceId instance, const SessionResidence& residence) {
                  reloads_[instance] = residence.reload;
                  resident_ = residence.resident;
                },
            .session_memory = [this](InstanceId instance, const SessionMemory& has) { memory_[instance] = has; },
        });
  }

  template <typename Condition>
  void run_until(Condition condition, Duration limit = 30s) {
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
                     .environment = {{"SOFTGPU_HOME", home_ + "/gpu"}}});
    return instance;
  }
  InstanceId ready(KernelTask task, const std::string& tenant = "default", const std::string& kernels = kKernels) {
    const InstanceId instance = begin(std::move(task), tenant, kernels);
    run_until([&] { return nexts_[instance] == 1 || gone_.contains(instance); });
    return instance;
  }

  InvocationId send(InstanceId instance, const KernelTaskCall& call, Duration timeout = 20s) {
    DeliverRequest request{.invocation = InvocationId(++last_invocation_)};
    request.payload = wire::encode(call);
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
    EXPECT_FALSE(answer.is_error) << answer.payload;
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
  Duration idle_limit_ = 60s;
  std::vector<std::string> words_;  // more arguments of servers
  Duration trial_patience_ = 30s;
  boost::asio::io_context io_;
  MapOfObjects objects_{io_};
  std::map<InstanceId, int> nexts_;
  std::set<InstanceId> busy_;  // they send a call as soon as they may
  std::map<InvocationId, Answer> answers_;
  std::map<InstanceId, ExitInfo> gone_;
  std::map<InstanceId, Duration> reloads_;
  Bytes resident_{0};  // as told last
  std::map<InstanceId, SessionMemory> memory_;
  std::unique_ptr<DeviceServers> servers_;
  std::uint64_t last_instance_ = 0, last_invocation_ = 0;
};

TEST_F(DeviceServersTest, ACallComputesWithItsInputAndItsConstant) {
  objects_.put("w", floats(100));
  const InstanceId instance = ready(affine(3));
  EXPECT_EQ(output(run(instance, with_x(floats(0)))), floats(100, 4));
  EXPECT_EQ(output(run(instance, with_x(floats(1)))), floats(103, 4));
  EXPECT_EQ(nexts_[instance], 3);
  EXPECT_EQ(objects_.opened, 1);  // the constant, once
  EXPECT_EQ(view().counters.misses, 1u);
  EXPECT_EQ(view().counters.hits, 2u);  // came with the session: both calls found it
  EXPECT_GT(servers_->use(instance).gpu_time, Duration(0));
}

TEST_F(DeviceServersTest, AKeyedOutputStaysOnTheDeviceAndFeedsTheNextCall) {
  objects_.put("w", floats(0, 0));
  const InstanceId instance = ready(affine(2));
  KernelTaskCall first = with_x(floats(1));
  first.outputs = {{2, "a", ""}};
  ASSERT_EQ(decoded(run(instance, first)).outputs.at(0).key, "a");
  EXPECT_TRUE(objects_.is_on_device("a"));
  const KernelTaskCall second{.inputs = {{0, "a", ""}}, .outputs = {}};
  EXPECT_EQ(output(run(instance, second)), floats(4, 4));
  EXPECT_TRUE(objects_.is_on_device("a"));  // never left it
  EXPECT_EQ(fetched("a"), floats(2, 2));
}

TEST_F(DeviceServersTest, BadCallsFailBeforeAnythingRunsAndTheSessionLives) {
  objects_.put("w", floats(0));
  objects_.put("short", "1234");
  const InstanceId instance = ready(affine(1));
  EXPECT_THAT(run(instance, {}).payload, HasSubstr("x"));
  EXPECT_THAT(run(instance, {.inputs = {{0, "nowhere", ""}}, .outputs = {}}).payload, HasSubstr("nowhere"));
  EXPECT_THAT(run(instance, {.inputs = {{0, "short", ""}}, .outputs = {}}).payload, HasSubstr("4 bytes"));
  KernelTaskCall taken = with_x(floats(0));
  taken.outputs = {{2, "short", ""}};
  EXPECT_THAT(run(instance, taken).payload, HasSubstr("exists"));
  EXPECT_EQ(output(run(instance, with_x(floats(0)))), floats(0, 2));
}

TEST_F(DeviceServersTest, ATaskThatCannotBeLoadedDoesNotStart) {
  KernelTask unknown = only("spin");
  unknown.kernels[0].kernel = "missing";
  EXPECT_THAT(gone_[ready(unknown)].init_error_payload, HasSubstr("missing"));
  EXPECT_THAT(gone_[ready(affine(1))].init_error_payload, HasSubstr("there is no object w"));
}

TEST_F(DeviceServersTest, ModulesOfOneNameAreToldApartByContent) {
  objects_.put("w", floats(0, 0));
  std::string other = kKernels;
  other.replace(other.find("mul.f32"), 7, "add.f32");
  const InstanceId a = ready(affine(2), "tenant-a");
  const InstanceId b = ready(affine(2), "tenant-b", other);
  const InstanceId c = ready(affine(2), "tenant-a", other);
  EXPECT_EQ(output(run(a, with_x(floats(1)))), floats(2, 2));
  EXPECT_EQ(output(run(b, with_x(floats(1)))), floats(3));
  EXPECT_EQ(output(run(c, with_x(floats(1)))), floats(3));
  EXPECT_EQ(servers_->views().size(), 2u);
}

TEST_F(DeviceServersTest, AKilledServerIsReplacedAndTheCallAnswersAllTheSame) {
  objects_.put("w", floats(5));
  const InstanceId instance = ready(affine(1));
  const InvocationId call = send(instance, with_x(floats(1)));
  ::kill(static_cast<pid_t>(view().pid), SIGKILL);
  EXPECT_EQ(output(answer(call)), floats(6, 2));
  EXPECT_EQ(output(run(instance, with_x(floats(2)))), floats(7, 2));
  EXPECT_EQ(view().restarts, 1u);
  EXPECT_FALSE(gone_.contains(instance));
}

TEST_F(DeviceServersTest, OutputsThatOnlyTheServerHadAreLostWithItAndSaySo) {
  objects_.put("w", floats(0));
  const InstanceId instance = ready(affine(1));
  KernelTaskCall call = with_x(floats(1));
  call.outputs = {{2, "a", ""}};
  run(instance, call);
  ::kill(static_cast<pid_t>(view().pid), SIGKILL);
  run_until([&] { return objects_.abandoned.contains("a"); });
  EXPECT_THAT(objects_.abandoned["a"], HasSubstr("run the task that makes it again"));
}

TEST_F(DeviceServersTest, AFaultFailsItsOwnCallAndNoOther) {
  objects_.put("w", floats(0));
  const InstanceId good = ready(affine(1));
  const InstanceId bad = ready(only("wild"));
  const InvocationId fault = send(bad, {});
  const InvocationId fine = send(good, with_x(floats(1)));
  EXPECT_THAT(answer(fault).payload, HasSubstr("700"));
  EXPECT_EQ(output(answer(fine)), floats(1, 2));
  EXPECT_EQ(output(run(good, with_x(floats(2)))), floats(2, 2));
}

TEST_F(DeviceServersTest, AKernelThatDoesNotEndIsKilledAtItsDeadline) {
  objects_.put("w", floats(0));
  const InstanceId good = ready(affine(1));
  const InstanceId bad = ready(only("spin"));
  send(bad, {}, 300ms);
  const InvocationId fine = send(good, with_x(floats(1)));
  servers_->kill(bad);  // as the core does when its time is over
  run_until([&] { return gone_.contains(bad); });
  run_until([&] { return view().restarts == 1; });
  EXPECT_EQ(output(answer(fine)), floats(1, 2));
  EXPECT_EQ(output(run(good, with_x(floats(3)))), floats(3, 2));
}

TEST_F(DeviceServersTest, ACallThatRunsAloneIsNotOvertakenForEver) {
  objects_.put("w", floats(0));
  const InstanceId first = ready(affine(1));
  const InstanceId second = ready(affine(1));
  const InstanceId last = ready(affine(1));  // registered again behind the others
  const InvocationId suspect = send(last, with_x(floats(1)));
  ::kill(static_cast<pid_t>(view().pid), SIGKILL);
  run_until([&] { return view().restarts == 1; });
  busy_ = {first, second};
  for (const InstanceId instance : busy_) send(instance, with_x(floats(1)));
  EXPECT_EQ(output(answer(suspect)), floats(1, 2));
}

TEST_F(DeviceServersTest, ADeadlineThatEndsAServerMakesNobodyElseASuspect) {
  objects_.put("w", floats(0));
  const InstanceId endless = ready(only("spin"));
  const InstanceId good = ready(affine(1));
  const InstanceId late = ready(only("spin"));
  send(endless, {});
  const InvocationId fine = send(good, with_x(floats(1)));
  send(late, {}, 0ms);
  servers_->kill(late);
  run_until([&] { return view().restarts == 1; });
  EXPECT_EQ(output(answer(fine)), floats(1, 2));  // beside the one that does not end, not behind it
}

class Evictions : public DeviceServersTest, public testing::WithParamInterface<const char*> {};

// 16 KiB of device memory hold five of the vectors and what a call needs; nine outputs and their inputs go through.
TEST_P(Evictions, ContentsSurviveWhateverMakesRoom) {
  use_servers(8 << 10, 1 << 20, GetParam());
  objects_.put("w", floats(7, 0));
  const InstanceId instance = ready(affine(1));
  for (int i = 0; i < 9; ++i) {
    KernelTaskCall call = with_x(floats(static_cast<float>(i)));
    call.outputs = {{2, "out" + std::to_string(i), ""}};
    ASSERT_FALSE(run(instance, call).is_error);
  }
  for (int i = 0; i < 9; ++i) {  // read back by a kernel
    const KernelTaskCall call{.inputs = {{0, "out" + std::to_string(i), ""}}, .outputs = {}};
    EXPECT_EQ(output(run(instance, call)), floats(14 + static_cast<float>(i)));
  }
  for (int i = 0; i < 9; ++i) EXPECT_EQ(fetched("out" + std::to_string(i)), floats(7 + static_cast<float>(i)));
  EXPECT_GT(view().counters.write_backs, 0u);
  EXPECT_LE(view().counters.device_used, 8u << 10);
}
INSTANTIATE_TEST_SUITE_P(Strategies, Evictions, testing::Values("single-use", "lru", "cost"));

// 3 KiB hold one vector and what a call needs.
TEST_F(DeviceServersTest, SaysWhoseConstantsWouldHaveToBeLoaded) {
  use_servers(3 << 10, 1 << 20, "cost");
  objects_.put("w", floats(7, 0));
  objects_.put("v", floats(9, 0));
  KernelTask with_v = affine(1);
  for (BufferSpec& buffer : with_v.buffers) {
    if (buffer.role == BufferRole::kConstant) buffer.constant = "v";
  }
  const InstanceId first = ready(affine(1)), same = ready(affine(2)), second = ready(with_v);
  for (const InstanceId instance : {first, same, second}) EXPECT_EQ(reloads_.at(instance), 0ns) << "memory was free";
  EXPECT_EQ(resident_, Bytes(2 << 10));
  EXPECT_EQ(memory_.at(first).device, Bytes(3 << 10));
  EXPECT_EQ(memory_.at(first).constants, memory_.at(same).constants) << "the same object";
  EXPECT_NE(memory_.at(first).constants, memory_.at(second).constants);
  EXPECT_EQ(memory_.at(first).constants.at(0).second + memory_.at(first).call, Bytes(3 << 10)) << "x, w and y";
  EXPECT_EQ(output(run(first, with_x(floats(1)))), floats(8));
  EXPECT_EQ(reloads_[first], 0ns);
  EXPECT_EQ(reloads_[same], 0ns) << "the same constant";
  EXPECT_EQ(resident_, Bytes(1 << 10)) << "counted once";
  EXPECT_GT(reloads_[second], 0ns);
  EXPECT_EQ(output(run(second, with_x(floats(1)))), floats(10));
  EXPECT_GT(reloads_[first], 0ns);
  EXPECT_GT(reloads_[same], 0ns);
  EXPECT_EQ(reloads_[second], 0ns);
  EXPECT_EQ(::kill(static_cast<pid_t>(view().pid), SIGKILL), 0);
  run_until([&] { return view().restarts == 1 && reloads_[first] == 0ns; });  // another process loads them again
}

TEST_F(DeviceServersTest, WhatIsLargerThanTheDeviceIsAnErrorThatNamesBoth) {
  use_servers(2 << 10, 1 << 20, "cost");
  objects_.put("w", floats(0));
  const InstanceId instance = ready(affine(1));
  EXPECT_THAT(run(instance, with_x(floats(1))).payload, HasSubstr("3072 bytes of device memory"));
}

// Device and host tier hold a part of the inputs; which, only the server knows. What it says is missing is opened again.
TEST_F(DeviceServersTest, WhatTheServerNoLongerHasIsGivenToItAgain) {
  use_servers(8 << 10, 2 << 10, "lru");
  objects_.put("w", floats(7, 0));
  const InstanceId instance = ready(affine(1));
  const int opened_for_the_session = objects_.opened;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 12; ++i) {
      const std::string key = "in" + std::to_string(i);
      if (round == 0) objects_.put(key, floats(static_cast<float>(i)));
      const KernelTaskCall call{.inputs = {{0, key, ""}}, .outputs = {}};
      EXPECT_EQ(output(run(instance, call)), floats(7 + static_cast<float>(i))) << round;
    }
  }
  EXPECT_GT(objects_.opened, opened_for_the_session + 12);
  EXPECT_EQ(view().restarts, 0u);
}

TEST_F(DeviceServersTest, SharedMemoryThatOneTaskAskedForStaysAllowedWhenAnotherNeedsLess) {
  objects_.put("w", floats(0, 0));
  KernelTask more = affine(1), less = affine(1);
  more.kernels[0].shared_bytes = 60 << 10;
  less.kernels[0].shared_bytes = 50 << 10;
  const InstanceId first = ready(more), second = ready(less);
  EXPECT_EQ(output(run(second, with_x(floats(1)))), floats(1));
  EXPECT_EQ(output(run(first, with_x(floats(1)))), floats(1));
}

// As many as a model has parameters; a message between processes carries 253 descriptors.
TEST_F(DeviceServersTest, ATaskMayHaveMoreConstantsThanAMessageHasDescriptors) {
  constexpr std::uint32_t kConstants = 600;
  KernelTask task;
  task.buffers = {buffer("y", BufferRole::kOutput)};
  task.buffers[0].zeroed = true;
  for (std::uint32_t i = 1; i <= kConstants; ++i) {
    const std::string key = "w" + std::to_string(i);
    objects_.put(key, floats(static_cast<float>(i), 0));
    task.buffers.push_back(buffer(key.c_str(), BufferRole::kConstant, key.c_str()));
    task.kernels.push_back(launch("accumulate", {BufferArgument{.buffer = i}, BufferArgument{.buffer = 0}}));
  }
  EXPECT_EQ(output(run(ready(task), {})), floats(kConstants * (kConstants + 1) / 2, 0));
}

TEST_F(DeviceServersTest, AServerWithoutSessionsEndsUnlessItHoldsOutputs) {
  idle_limit_ = 10ms;
  use_servers(64 << 20, 64 << 20, "cost");
  objects_.put("w", floats(0, 0));
  const InstanceId instance = ready(affine(1));
  KernelTaskCall call = with_x(floats(1));
  call.outputs = {{2, "kept", ""}};
  ASSERT_FALSE(run(instance, call).is_error);
  servers_->kill(instance);
  EXPECT_EQ(fetched("kept"), floats(1)) << "by the server that had it";
  run_until([&] { return servers_->views().empty(); });
}

// ---- tasks of many kernels, which are graphs of the driver

// t = x / 2, m += t, t = m / 2, m += t, ... : t is a temporary that begins with zeros, m goes in and out.
KernelTask zigzag(std::size_t kernels, std::uint32_t iterations) {
  KernelTask task;
  task.buffers = {buffer("x", BufferRole::kInput), buffer("w", BufferRole::kConstant, "w"),
                  buffer("m", BufferRole::kInOut), buffer("t", BufferRole::kTemporary)};
  task.buffers[3].zeroed = true;
  task.iterations = iterations;
  const auto add = [](std::uint32_t from, std::uint32_t to) {
    return launch("accumulate", {BufferArgument{.buffer = from}, BufferArgument{.buffer = to}});
  };
  task.kernels = {add(0, 3), add(1, 3)};
  while (task.kernels.size() < kernels) {
    task.kernels.push_back(add(3, 2));
    task.kernels.push_back(launch("scale", {BufferArgument{.buffer = 2}, BufferArgument{.buffer = 3}, literal(0.5F)}));
  }
  return task;
}

class Graphs : public DeviceServersTest, public testing::WithParamInterface<bool> {
 protected:
  // What two sessions that run at the same time make of twelve inputs, in a memory that holds hardly two calls of them:
  // buffers are in another place in nearly every call.
  std::vector<std::string> results(bool plain) {
    use_servers(12 << 10, 1 << 20, "lru", GetParam(), plain);
    const InstanceId one = ready(zigzag(30, 1));
    const InstanceId other = ready(zigzag(6, 30));
    std::vector<InvocationId> sent;
    for (int i = 0; i < 12; ++i) {
      const InstanceId instance = i % 2 == 0 ? one : other;
      const std::string name = fmt::format("{}-{}", plain ? "plain" : "graph", i);
      KernelTaskCall call{.inputs = {{0, "x" + std::to_string(i % 5), ""}, {2, "", floats(2)}}, .outputs = {}};
      if (i >= 2) call.inputs[1] = {2, fmt::format("{}-{}", plain ? "plain" : "graph", i - 2), ""};
      call.outputs = {{2, name, ""}};
      sent.push_back(send(instance, call));
      if (i % 2 == 1) {
        EXPECT_FALSE(answer(sent[sent.size() - 2]).is_error) << answers_[sent[sent.size() - 2]].payload;
        EXPECT_FALSE(answer(sent.back()).is_error) << answers_[sent.back()].payload;
      }
    }
    EXPECT_GT(view().counters.evictions, 0u);
    std::vector<std::string> made;
    for (int i = 0; i < 12; ++i) made.push_back(fetched(fmt::format("{}-{}", plain ? "plain" : "graph", i)));
    return made;
  }
};

TEST_P(Graphs, ComputeWhatKernelsOneByOneDo) {
  objects_.put("w", floats(3));
  for (int i = 0; i < 5; ++i) objects_.put("x" + std::to_string(i), floats(static_cast<float>(i)));
  const std::vector<std::string> graphs = results(false);
  const std::vector<std::string> plain = results(true);
  EXPECT_TRUE(graphs == plain);  // too long to print
  EXPECT_NE(graphs[0], graphs[2]);
}
INSTANTIATE_TEST_SUITE_P(Isolation, Graphs, testing::Bool());

TEST_F(DeviceServersTest, AFaultInTheMiddleOfAGraphFailsItsOwnCallAndNoOther) {
  objects_.put("w", floats(0));
  objects_.put("x", floats(1));
  KernelTask faulty = zigzag(20, 1);
  faulty.kernels[10] = launch("wild", {BufferArgument{.buffer = 2}});
  const InstanceId bad = ready(faulty);
  const InstanceId good = ready(zigzag(20, 1));
  const KernelTaskCall call{.inputs = {{0, "x", ""}, {2, "", floats(0)}}, .outputs = {}};
  const InvocationId fault = send(bad, call);
  const InvocationId fine = send(good, call);
  EXPECT_THAT(answer(fault).payload, HasSubstr("700"));
  EXPECT_FALSE(answer(fine).is_error);
  EXPECT_EQ(output(run(good, call)), output(answer(fine)));
}

// ---- modules that no session uses

std::string version(int number) {
  return kKernels + "// " + std::to_string(number) + "\n";
}

class Modules : public DeviceServersTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    DeviceServersTest::SetUp();
    use_servers(64 << 20, 64 << 20, "cost", GetParam(), false, 2);
    objects_.put("w", floats(3));
  }
  void end(InstanceId instance) {
    servers_->kill(instance);
    run_until([&] { return gone_.contains(instance); });
  }
};

TEST_P(Modules, AreUnloadedWhenTheyAreManyAndLoadedAgainWhenTheyComeBack) {
  const InstanceId stays = ready(affine(1), "default", version(100));
  std::uint64_t most = 0;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 6; ++i) {
      const InstanceId instance = ready(affine(2), "default", version(i));
      ASSERT_EQ(output(run(instance, with_x(floats(1)))), floats(5, 3));
      most = std::max(most, view().counters.modules);
      end(instance);
    }
  }
  EXPECT_LE(most, 5u);  // that which stays, the last one's, two that wait, and one that goes with the next frame
  EXPECT_EQ(output(run(stays, with_x(floats(1)))), floats(4, 2));
  EXPECT_EQ(view().restarts, 0u);
}

TEST_P(Modules, AreUnloadedWhileOtherCallsRun) {
  const InstanceId busy = ready(affine(1), "default", version(100));
  busy_ = {busy};
  send(busy, with_x(floats(1)));
  for (int i = 0; i < 12; ++i) end(ready(affine(2), "default", version(i)));
  busy_.clear();
  const InstanceId last = ready(affine(2), "default", version(0));
  EXPECT_EQ(output(run(last, with_x(floats(1)))), floats(5, 3));
  EXPECT_LE(view().counters.modules, 7u);  // two of sessions, twice two, and one that goes with the next frame
}
INSTANTIATE_TEST_SUITE_P(Isolation, Modules, testing::Bool());

// ---- one server for all tenants

class SharedServerTest : public DeviceServersTest {
 protected:
  void SetUp() override {
    DeviceServersTest::SetUp();
    words_ = {"trials", "crash=" + home_ + "/crash", "hang=" + home_ + "/hang"};
    use_servers(64 << 20, 64 << 20, "cost", true);
  }
};

TEST_F(SharedServerTest, TenantsShareItAndNoObjectOrModule) {
  objects_.put("w", floats(0, 0));
  const InstanceId a = ready(affine(2), "tenant-a");
  const InstanceId b = ready(affine(2), "tenant-b");
  EXPECT_EQ(output(run(a, with_x(floats(1)))), floats(2, 2));
  EXPECT_EQ(output(run(b, with_x(floats(1)))), floats(2, 2));
  EXPECT_EQ(output(run(a, with_x(floats(2)))), floats(4, 2));
  ASSERT_EQ(servers_->views().size(), 1u);
  EXPECT_EQ(view().tenant, DeviceServers::kAllTenants);
  EXPECT_EQ(view().sessions, 2u);
  EXPECT_EQ(view().counters.misses, 2u);  // w, once for each
  EXPECT_EQ(view().counters.hits, 3u);    // each call found it there
}

TEST_F(SharedServerTest, AKeyThatTwoTenantsWriteIsTwoObjects) {
  objects_.put("w", floats(0, 0));
  const InstanceId a = ready(affine(2), "tenant-a");
  const InstanceId b = ready(affine(3), "tenant-b");
  KernelTaskCall call = with_x(floats(1));
  call.outputs = {{2, "y", ""}};
  ASSERT_FALSE(run(a, call).is_error);
  objects_.erase("y");  // this data layer has one tenant only
  ASSERT_FALSE(run(b, call).is_error);
  EXPECT_EQ(fetched("y"), floats(3, 3));
}

TEST_F(SharedServerTest, WhatCannotBeFencedIsRefusedWithTheReason) {
  std::string textured = kKernels;
  textured.insert(textured.find(".visible"), ".global .texref picture;\n");
  EXPECT_THAT(gone_[ready(only("spin"), "tenant-a", textured)].init_error_payload,
              AllOf(HasSubstr("kernels.ptx"), HasSubstr("cannot be fenced"), HasSubstr("texref")));
  EXPECT_THAT(gone_[ready(only("spin"), "tenant-a",
                          std::string("\x7f"
                                      "ELF") +
                              std::string(100, '\0'))]
                  .init_error_payload,
              HasSubstr("machine code and no PTX"));
}

TEST_F(SharedServerTest, ModuleVariablesAreTheTenantsOwnAndLastFromCallToCall) {
  const std::string counter = R"(.version 6.0
.target sm_70
.address_size 64
.global .align 4 .f32 count = 0f40A00000;
.visible .entry bump(.param .u64 y)
{
  .reg .f32 %f; .reg .b64 %y;
  ld.param.u64 %y, [y]; ld.global.f32 %f, [count]; add.f32 %f, %f, 0f3F800000; st.global.f32 [count], %f;
  st.global.f32 [%y], %f;
  ret;
}
)";
  KernelTask task = only("bump");
  task.buffers[0].zeroed = true;
  const InstanceId a = ready(task, "tenant-a", counter);
  const InstanceId b = ready(task, "tenant-b", counter);
  const auto first = [&](InstanceId instance) { return output(run(instance, {})).substr(0, 4); };
  EXPECT_EQ(first(a), floats(6).substr(0, 4));
  EXPECT_EQ(first(a), floats(7).substr(0, 4));
  EXPECT_EQ(first(b), floats(6).substr(0, 4));
}

// Variables may have 64 MiB: these have 96, one after the other. Where few modules stay they make room for each other, where
// many may, those that nobody uses go when there is no room.
class Variables : public SharedServerTest, public testing::WithParamInterface<int> {};

TEST_P(Variables, OfUnloadedModulesMakeRoomForThoseOfOthersAndBeginAnew) {
  use_servers(128 << 20, 64 << 20, "cost", true, false, GetParam());
  KernelTask task = only("bump");
  task.buffers[0].zeroed = true;
  for (int i = 0; i < 12; ++i) {
    const std::string module = fmt::format(R"(.version 6.0
.target sm_70
.address_size 64
.global .align 4 .f32 count = 0f40A00000;
.global .align 4 .b8 table[{}];
.visible .entry bump(.param .u64 y)
{{
  .reg .f32 %f; .reg .b64 %y;
  ld.param.u64 %y, [y]; ld.global.f32 %f, [count]; add.f32 %f, %f, 0f3F800000; st.global.f32 [count], %f;
  st.global.f32 [table+4096], %f;
  st.global.f32 [%y], %f;
  ret;
}}
)",
                                           (8 << 20) - 4096 * i);
    const InstanceId instance = ready(task, "tenant-a", module);
    ASSERT_FALSE(gone_.contains(instance)) << gone_[instance].reason;
    EXPECT_EQ(output(run(instance, {})).substr(0, 4), floats(6).substr(0, 4));
    servers_->kill(instance);
    run_until([&] { return gone_.contains(instance); });
  }
}
INSTANTIATE_TEST_SUITE_P(ModulesThatStay, Variables, testing::Values(1, 100));

TEST_F(SharedServerTest, AFaultOfOneTenantDoesNotFailAnothersCall) {
  objects_.put("w", floats(0));
  std::string traps = kKernels;
  traps.replace(traps.find("mov.u64 %rd1, 64;"), 17, "trap;");
  const InstanceId good = ready(affine(1), "tenant-a");
  const InstanceId bad = ready(only("wild"), "tenant-b", traps);
  const InvocationId fault = send(bad, {});
  const InvocationId fine = send(good, with_x(floats(1)));
  EXPECT_TRUE(answer(fault).is_error);
  EXPECT_EQ(output(answer(fine)), floats(1, 2));
  EXPECT_EQ(output(run(good, with_x(floats(2)))), floats(2, 2));
  EXPECT_GE(view().restarts, 1u);
}

TEST_F(SharedServerTest, AnEndlessKernelEndsAtItsDeadlineAndOthersRunAgainBesideEachOther) {
  objects_.put("w", floats(0));
  const InstanceId good = ready(affine(1), "tenant-a");
  const InstanceId bad = ready(only("spin"), "tenant-b");
  send(bad, {}, 300ms);
  const InvocationId fine = send(good, with_x(floats(1)));
  servers_->kill(bad);
  run_until([&] { return gone_.contains(bad); });
  run_until([&] { return view().restarts == 1; });
  EXPECT_EQ(output(answer(fine)), floats(1, 2));
}

TEST_F(SharedServerTest, AModuleThatCrashesTheCompilerFailsItsOwnSession) {
  objects_.put("w", floats(0));
  const InstanceId good = ready(affine(1), "tenant-a");
  std::ofstream(home_ + "/crash") << "yes";
  const InstanceId bad = ready(only("wild"), "tenant-b");
  EXPECT_THAT(gone_[bad].reason, testing::AllOf(HasSubstr("module kernels.ptx"), HasSubstr("signal: Aborted")));
  EXPECT_EQ(output(run(good, with_x(floats(1)))), floats(1, 2));
  EXPECT_EQ(output(run(ready(affine(2), "tenant-a"), with_x(floats(1)))), floats(2, 3));  // the module passed
  EXPECT_EQ(view().restarts, 0u);
}

TEST_F(SharedServerTest, CallsRunBesideATrialAndItsSessionMayStopOrMoveToTheNextServer) {
  objects_.put("w", floats(0));
  trial_patience_ = 500ms;
  use_servers(64 << 20, 64 << 20, "cost", true);
  const InstanceId good = ready(affine(1), "tenant-a");
  std::ofstream(home_ + "/hang") << "yes";
  const InstanceId moves = begin(only("wild"), "tenant-b");
  const InstanceId stops = begin(only("wild"), "tenant-b");
  run_until([&] { return fs::exists(home_ + "/hanging"); });
  EXPECT_EQ(output(run(good, with_x(floats(1)))), floats(1, 2));
  servers_->kill(stops);
  run_until([&] { return gone_.contains(stops); });
  fs::remove(home_ + "/hang");
  ::kill(static_cast<pid_t>(view().pid), SIGKILL);
  run_until([&] { return nexts_[moves] == 1; });
  EXPECT_EQ(output(run(good, with_x(floats(1)))), floats(1, 2));
}

}  // namespace
}  // namespace fairlead
