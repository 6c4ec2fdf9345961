#include "runtime/models/model_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "abi/model_store.h"
#include "base/unique_fd.h"
#include "runtime/models/model_gpu.h"

namespace fairlead {
namespace {

using ::testing::HasSubstr;

class ModelHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/model-host-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  // A host whose servers are this program.
  void start(std::vector<std::string> server) {
    host = std::make_unique<ModelHost>(io, ModelHostOptions{.server = std::move(server), .socket_dir = folder},
                                       ModelEvents());
    const auto path =
        host->add({.user = {InstanceId(1), "t", "f:1", {}, {}}, .gpu = GpuId(1), .device_memory = mib(1000)});
    ASSERT_TRUE(path) << path.error().message;
    socket = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path->c_str());
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  void send(std::uint64_t bytes) {
    ModelRequest request{};
    request.version = MODEL_PROTOCOL;
    request.kind = MODEL_OPEN;
    request.number = 5;
    request.bytes = bytes;
    std::strcpy(request.id, "vit");
    ASSERT_EQ(::send(socket.get(), &request, sizeof request, 0), static_cast<ssize_t>(sizeof request));
  }
  ModelAnswer receive() {
    ModelAnswer answer{};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    ssize_t size = -1;
    while (size < 0 && std::chrono::steady_clock::now() < end) {
      io.restart();
      io.run_for(std::chrono::milliseconds(10));
      size = ::recv(socket.get(), &answer, sizeof answer, MSG_DONTWAIT);
    }
    EXPECT_EQ(size, static_cast<ssize_t>(sizeof answer));
    return answer;
  }

  std::string folder;
  boost::asio::io_context io;
  std::unique_ptr<ModelHost> host;
  UniqueFd socket;
};

TEST_F(ModelHostTest, AServerThatCannotStartIsAClearError) {
  start({"/nonexistent/fairlead", "model-server"});
  send(1 << 20);
  const ModelAnswer answer = receive();
  EXPECT_EQ(answer.kind, MODEL_ERROR);
  EXPECT_EQ(answer.number, 5U);
  EXPECT_EQ(answer.error, MODEL_UNAVAILABLE);
  EXPECT_THAT(answer.message, HasSubstr("/nonexistent/fairlead"));
  EXPECT_EQ(host->views().at(0).use.bytes, 0U);
}

TEST_F(ModelHostTest, AServerThatEndsIsToldToWhoWaitsAndWhoIsTooQuick) {
  start({"/bin/false"});
  send(1 << 20);
  const ModelAnswer lost = receive();
  EXPECT_EQ(lost.error, MODEL_AGAIN);
  EXPECT_THAT(lost.message, HasSubstr("exit status 1"));
  EXPECT_EQ(host->views().at(0).restarts, 1U);
  send(1 << 20);
  const ModelAnswer again = receive();
  EXPECT_EQ(again.error, MODEL_UNAVAILABLE);
  EXPECT_THAT(again.message, HasSubstr("again in a second"));
}

TEST_F(ModelHostTest, NothingIsEvictedWhereNothingIs) {
  start({"/bin/false"});
  std::vector<Bytes> freed;
  host->evict(GpuId(1), mib(1), [&](Bytes bytes) { freed.push_back(bytes); });
  host->evict(GpuId(9), mib(1), [&](Bytes bytes) { freed.push_back(bytes); });
  EXPECT_TRUE(freed.empty());  // never from inside the call
  io.run_for(std::chrono::milliseconds(100));
  EXPECT_THAT(freed, ::testing::ElementsAre(Bytes(0), Bytes(0)));
}

TEST_F(ModelHostTest, AnInstanceThatGoesTakesItsSocketAlong) {
  start({"/bin/false"});
  host->remove(InstanceId(1));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace fairlead
