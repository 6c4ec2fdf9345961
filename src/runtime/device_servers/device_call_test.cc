#include "runtime/device_servers/device_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <boost/asio/io_context.hpp>
#include <map>
#include <set>

#include "runtime/device_servers/device_session.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Objects by name; opened when the test says so.
class ToldObjects final : public ObjectSource {
 public:
  std::optional<Known> look_up(const ObjectKey& name) override {
    const auto found = known.find(name.key);
    return found == known.end() ? std::nullopt : std::optional(found->second);
  }
  void open(const ObjectKey& name, Duration, std::function<void(Result<Opened>)> done) override {
    asked[name.key] = std::move(done);
  }
  Status expect(const ObjectKey& name, Bytes) override {
    if (!reserved.insert(name.key).second) return fail(Errc::kAlreadyExists, "object {} exists already", name.key);
    return {};
  }
  Status promise(const ObjectKey&, Bytes, Fetch, std::function<void()>) override { return {}; }
  void abandon(const ObjectKey& name, Error) override { reserved.erase(name.key); }

  void comes(const std::string& key, const std::string& content, Bytes bytes) {
    known[key] = {.content = content, .bytes = bytes};
    asked.extract(key).mapped()(Opened{content, bytes, UniqueFd(::memfd_create("object", MFD_CLOEXEC))});
  }
  std::map<std::string, Known> known;
  std::map<std::string, std::function<void(Result<Opened>)>> asked;
  std::set<std::string> reserved;
};

constexpr Bytes kSize(64);

std::shared_ptr<const KernelTaskSpec> task() {
  KernelTaskSpec spec;
  spec.task.buffers = {{.name = "w", .bytes = kSize, .role = BufferRole::kConstant, .constant = "weights"},
                       {.name = "x", .bytes = kSize, .role = BufferRole::kInput},
                       {.name = "y", .bytes = kSize, .role = BufferRole::kOutput},
                       {.name = "z", .bytes = kSize, .role = BufferRole::kOutput}};
  return std::make_shared<const KernelTaskSpec>(spec);
}

DeliverRequest request(const std::string& payload) {
  DeliverRequest request;
  request.id = InvocationId(7);
  request.invocation.payload = payload;
  return request;
}

class DeviceCallTest : public ::testing::Test {
 protected:
  DeviceCallTest() { servers.renew(server); }
  Result<DeviceCall> read(const std::string& payload) {
    return read_call(task(), InstanceId(3), "tenant", request(payload), Instant(5s), 10s);
  }
  BoundPtr bound(const std::string& key, Bytes size = kSize) {
    return std::make_shared<BoundObject>(1, ObjectKey{"tenant", key}, "", 0, size);
  }
  // What became of opening it, once it has come.
  std::string open(const BoundPtr& bound) {
    opener.open(server, servers.handle_of(server), bound, 1s,
                [this](const Status& status) { told.push_back(status ? "ok" : status.error().message); });
    io.restart();
    io.poll();
    return told.empty() ? "" : told.back();
  }

  boost::asio::io_context io;
  ToldObjects objects;
  ServerTable servers{io, ServerRecovery::Options{}};
  DeviceServer& server = servers.at({GpuId(1), "tenant"}, {});
  ObjectOpener opener{io, objects};
  std::vector<std::string> told;
};

TEST_F(DeviceCallTest, ACallBindsItsInputsAndHasAnOutputForEachBufferThatIsOne) {
  auto call = read(R"({"inputs": {"x": {"key": "in"}}, "outputs": {"y": {"key": "sum"}}})");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call->deadline, Instant(15s));
  ASSERT_EQ(call->inputs.size(), 1u);
  EXPECT_EQ(call->inputs[0]->name.key, "in");
  EXPECT_EQ(call->inputs[0]->size, kSize);
  ASSERT_EQ(call->outputs.size(), 2u);
  EXPECT_EQ(call->outputs[0]->name.key, "sum");
  EXPECT_EQ(call->outputs[1]->name.key, "") << "it travels with the answer";
}

TEST_F(DeviceCallTest, APayloadThatIsNoCallIsRefused) {
  EXPECT_FALSE(read("not json"));
  EXPECT_FALSE(read(R"({"inputs": {"nobody": {"key": "in"}}})"));
}

TEST_F(DeviceCallTest, WhereOneOutputIsTakenNoneIsReserved) {
  auto call = read(R"({"inputs": {"x": {"key": "in"}}, "outputs": {"y": {"key": "sum"}, "z": {"key": "taken"}}})");
  ASSERT_TRUE(call) << call.error().message;
  objects.reserved = {"taken"};
  const Status reserved = reserve_outputs(objects, *call);
  ASSERT_FALSE(reserved);
  EXPECT_THAT(reserved.error().message, HasSubstr("taken exists already"));
  EXPECT_THAT(objects.reserved, ElementsAre("taken")) << "another's, which stays";
}

TEST_F(DeviceCallTest, AnOutputWithAKeyHasANumberThatNoOtherEverHad) {
  auto call = read(R"({"inputs": {"x": {"key": "in"}}, "outputs": {"y": {"key": "sum"}}})");
  ASSERT_TRUE(call);
  const auto first = frame_of(*call, {}, opener);
  ASSERT_EQ(first.frame.outputs.size(), 2u);
  EXPECT_GT(first.frame.outputs[0].object, 0u);
  EXPECT_EQ(first.frame.outputs[1].object, 0u);
  EXPECT_GT(frame_of(*call, {}, opener).frame.outputs[0].object, first.frame.outputs[0].object);
}

TEST_F(DeviceCallTest, BytesThatTheServerHasNotTravelWithTheFirstFrameAlone) {
  const BoundPtr weights = bound("weights");
  open(weights);
  objects.comes("weights", "digest", kSize);
  ASSERT_TRUE(weights->memory);
  auto call = read(R"({"inputs": {"x": {"key": "in"}}})");
  ASSERT_TRUE(call);
  const auto first = frame_of(*call, {weights}, opener);
  ASSERT_EQ(first.frame.supplied.size(), 1u);
  EXPECT_EQ(first.frame.supplied[0].object, weights->object);
  EXPECT_EQ(first.descriptors.size(), 1u);
  EXPECT_THAT(frame_of(*call, {weights}, opener).frame.supplied, IsEmpty());
}

TEST_F(DeviceCallTest, EqualBytesHaveOneNumberAndAreOpenedOnce) {
  const BoundPtr first = bound("first"), second = bound("second");
  open(first);
  objects.comes("first", "digest", kSize);
  objects.known["second"] = {.content = "digest", .bytes = kSize};
  EXPECT_EQ(open(second), "ok");
  EXPECT_EQ(second->object, first->object);
  EXPECT_FALSE(second->memory);
  EXPECT_THAT(objects.asked, IsEmpty());
}

TEST_F(DeviceCallTest, AnObjectOfAnotherSizeThanItsBufferIsRefused) {
  open(bound("in"));
  objects.comes("in", "digest", Bytes(63));
  EXPECT_THAT(told, ElementsAre("object in has 63 bytes, the buffer 64"));
}

TEST_F(DeviceCallTest, WhatComesForAProcessThatEndedIsForNobody) {
  open(bound("in"));
  servers.renew(server);
  objects.comes("in", "digest", kSize);
  EXPECT_THAT(told, IsEmpty());
}

class DeviceSessionTest : public DeviceCallTest {
 protected:
  DeviceSessionTest() {
    session.instance = InstanceId(3);
    session.spec = {.instance = InstanceId(3), .gpu = GpuId(1), .tenant = "tenant", .task = task()};
    session.server = &server;
    session.constants = bind_constants(session.spec);
  }
  DeviceSession session;
};

TEST_F(DeviceSessionTest, ItsConstantsAreThoseOfItsTask) {
  ASSERT_EQ(session.constants.size(), 1u);
  EXPECT_EQ(session.constants[0]->name, (ObjectKey{"tenant", "weights"}));
  EXPECT_EQ(session.constants[0]->buffer, 0u);
}

TEST_F(DeviceSessionTest, ItsCallsNeedAllButItsConstantsWhichCountByNumber) {
  session.constants[0]->object = 9;
  server.memory = gib(1);
  const SessionMemory memory = memory_of(session);
  EXPECT_EQ(memory.call, Bytes(3 * 64));
  EXPECT_EQ(memory.device, gib(1));
  EXPECT_EQ(memory.server, server.number);
  ASSERT_EQ(memory.constants.size(), 1u);
  EXPECT_EQ(memory.constants[0].first, 9u);
}

TEST_F(DeviceSessionTest, ItsRegistrationCarriesTheBytesOfWhatTheServerHasNot) {
  open(session.constants[0]);
  objects.comes("weights", "digest", kSize);
  const auto first = registration_of(session);
  ASSERT_TRUE(first);
  ASSERT_EQ(first->frame.supplied.size(), 1u);
  EXPECT_EQ(first->frame.constants[0].object, session.constants[0]->object);
  EXPECT_FALSE(session.constants[0]->memory) << "it is in the frame now";
  const auto second = registration_of(session);
  ASSERT_TRUE(second);
  EXPECT_THAT(second->frame.supplied, IsEmpty());
}

TEST_F(DeviceSessionTest, AModuleThatIsNotThereIsNamed) {
  KernelTaskSpec spec = *task();
  spec.task.modules = {{.sha256 = "s"}};
  spec.module_files = {"/nowhere/module.ptx"};
  session.spec.task = std::make_shared<const KernelTaskSpec>(spec);
  const auto registration = registration_of(session);
  ASSERT_FALSE(registration);
  EXPECT_THAT(registration.error().message, HasSubstr("/nowhere/module.ptx"));
}

}  // namespace
}  // namespace fairlead
