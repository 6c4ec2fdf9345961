#include "runtime/spawn_protocol.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "runtime/fd_socket.h"
#include "runtime/spawner.h"

namespace fairlead {
namespace {

StartOrder example_order() {
  return {.instance = 7,
          .environment = {"A=1", "EMPTY=", "PATH=/usr/bin"},
          .binds = {{"/srv/code", "/var/task", false},
                    {"/srv/state", "/run/state", true},
                    {"/srv/f", "/f", false, FileIdentity{1, 2, 3}},
                    {"/srv/o", "/o", true, {}, true}},
          .memory_limit = mib(512),
          .tmp_limit = mib(64),
          .max_processes = 100,
          .container = R"({"ociVersion":"1.0.0"})",
          .http_port = 8080,
          .egress_asked = "pypi.org:443",
          .egress_granted = "all",
          .secrets = {{"db", "s3cret"}, {"empty", ""}}};
}

TEST(SpawnProtocol, DecodesWhatItEncodes) {
  EXPECT_EQ(decode_start_order(encode(example_order())), example_order());

  const StartedNote started{7, 4711};
  EXPECT_EQ(std::get<StartedNote>(*decode_note(encode(started))), started);
  const ExitNote exit{7, true, 0x300, "because", 123, true};
  EXPECT_EQ(std::get<ExitNote>(*decode_note(encode(exit))), exit);
}

TEST(SpawnProtocol, EveryTruncationIsRefused) {
  const std::string order = encode(example_order());
  for (std::size_t size = 0; size < order.size(); ++size) {
    EXPECT_FALSE(decode_start_order(std::string_view(order).substr(0, size))) << size;
  }
  const std::string note = encode(ExitNote{7, true, 0, "because", 0});
  for (std::size_t size = 0; size < note.size(); ++size) {
    EXPECT_FALSE(decode_note(std::string_view(note).substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_start_order(order + "x"));
  EXPECT_FALSE(decode_note(std::string(16, '\x7f')));
}

TEST(SpawnProtocol, HugeCountsAreRefusedWithoutAllocating) {
  std::string order = encode(StartOrder{});
  order.replace(8, 8, std::string(8, '\x7f'));
  EXPECT_FALSE(decode_start_order(order));
}

TEST(Spawner, ReadsWhatItIsStartedWith) {
  for (const bool use_cgroups : {true, false}) {
    const SpawnerOptions options{.template_dir = "/a b",
                                 .use_cgroups = use_cgroups,
                                 .blanks = 3,
                                 .cpu = {.weight = 70, .millicpus = 1500},
                                 .way_out = use_cgroups};
    const Result<SpawnerOptions> read = spawner_options_of(spawner_arguments(options));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->template_dir, options.template_dir);
    EXPECT_EQ(read->use_cgroups, use_cgroups);
    EXPECT_EQ(read->blanks, 3);
    EXPECT_EQ(read->cpu, options.cpu);
    EXPECT_EQ(read->way_out, options.way_out);
  }
  EXPECT_FALSE(spawner_options_of({"/a"}));
  EXPECT_FALSE(spawner_options_of({"/a", "cgroups", "3", "0", "-1", "way-out"}));
  EXPECT_FALSE(spawner_options_of({"/a", "other", "3", "0", "0", "way-out"}));
  EXPECT_FALSE(spawner_options_of({"/a", "cgroups", "3x", "0", "0", "way-out"}));
  EXPECT_FALSE(spawner_options_of({"/a", "cgroups", "3", "0", "0", "out"}));
  EXPECT_TRUE(spawner_options_of({"/a", "cgroups", "3", "0", "0", "way-out"}));
}

TEST(FdSocket, CarriesBytesAndDescriptors) {
  auto pair = make_seqpacket_pair();
  ASSERT_TRUE(pair);
  const int fds[] = {pair->first.get(), pair->second.get()};
  ASSERT_EQ(send_message(pair->first.get(), "hello", fds), 0);
  FdMessage message;
  ASSERT_EQ(receive_message(pair->second.get(), message), 0);
  EXPECT_EQ(message.bytes, "hello");
  ASSERT_EQ(message.fds.size(), 2u);
  ASSERT_EQ(send_message(message.fds[0].get(), "back"), 0) << "the received descriptor is the first end";
  ASSERT_EQ(receive_message(pair->second.get(), message), 0);
  EXPECT_EQ(message.bytes, "back");
}

TEST(FdSocket, RefusesWhatExceedsItsLimitsAndSeesTheEnd) {
  auto pair = make_seqpacket_pair();
  ASSERT_TRUE(pair);
  EXPECT_EQ(send_message(pair->first.get(), std::string(kMaxMessageBytes + 1, 'x')), EMSGSIZE);
  EXPECT_EQ(send_message(pair->first.get(), std::string(kMaxMessageBytes, 'x')), 0);
  FdMessage message;
  ASSERT_EQ(receive_message(pair->second.get(), message), 0);
  EXPECT_EQ(message.bytes.size(), kMaxMessageBytes);
  EXPECT_EQ(receive_message(pair->second.get(), message, MSG_DONTWAIT), EAGAIN);
  pair->first.reset();
  EXPECT_EQ(receive_message(pair->second.get(), message), 0);
  EXPECT_TRUE(message.bytes.empty());
}

}  // namespace
}  // namespace fairlead
