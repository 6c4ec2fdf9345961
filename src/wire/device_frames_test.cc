#include "wire/device_frames.h"

#include <gtest/gtest.h>

namespace fairlead::wire {
namespace {

// One of each, every field with a value of its own: a field that is not listed comes back as it is made.
std::vector<FrameToServer> frames_to_server() {
  const SuppliedObject supplied{.object = 1, .bytes = 2, .descriptor = 3};
  const BoundObject bound{.buffer = 4, .object = 5, .bytes = std::string("a\0b", 3)};
  return {
      RegisterSession{.session = 6,
                      .tenant = "acme",
                      .task = "task",
                      .modules = {{.sha256 = "hash", .bytes = 7, .descriptor = 8}, {.sha256 = "other"}},
                      .constants = {bound},
                      .supplied = {supplied},
                      .most_width_percent = 41},
      DropSession{.session = 9},
      RunCall{.call = 10,
              .session = 11,
              .inputs = {bound},
              .outputs = {bound, {}},
              .supplied = {supplied},
              .ring_inputs = {{.buffer = 29, .slot = 30, .start = 31, .ring = 32}},
              .ring_outputs = {{.buffer = 33, .slot = 34, .start = 35, .ring = 36}, {}}},
      FetchObject{.fetch = 12, .object = 13},
      DropObject{.object = 14},
      ModuleTrial{.session = 15,
                  .modules = {{.sha256 = "hash", .code = "code"}},
                  .range_base = 16,
                  .range_bytes = 17,
                  .guard_bytes = 18,
                  .architecture = 80},
      ModulesMeasured{.session = 19, .variable_bytes = {20, 21}},
      VariablesPlaced{.session = 22, .addresses = {23, 0}, .to_load = {24}},
      ModulesFenced{.session = 25, .modules = {{.ptx = "ptx", .variables = {{.offset = 26, .bytes = "bytes"}}}}},
      TrialEnded{.session = 27, .module = 28, .error = "why"},
      OpenRing{.ring = 37, .slots = 38, .slot_bytes = 39},
      CloseRing{.ring = 40},
      PaceSession{.session = 41},
  };
}

std::vector<FrameToNode> frames_to_node() {
  const auto ns = [](std::int64_t count) { return Duration(count); };
  CallDone done{.call = 1,
                .outcome = CallDone::Outcome::kMissing,
                .error = "why",
                .missing = {2, 3},
                .outputs = {{.buffer = 4, .object = 0, .bytes = "out"}},
                .phases = {.kernel_run = ns(5),
                           .kernel_init = ns(6),
                           .device_malloc = ns(7),
                           .device_copy = ns(8),
                           .data_layer = ns(9),
                           .overhead = ns(10)},
                .gpu_ns = -11,
                .session_bytes = 12};
  done.counters = {.hits = 13,
                   .host_hits = 14,
                   .misses = 15,
                   .evictions = 16,
                   .write_backs = 17,
                   .loaded_bytes = 18,
                   .written_back_bytes = 19,
                   .device_used = 20,
                   .device_mapped = 21,
                   .host_used = 22,
                   .modules = 23};
  return {
      ServerReady{.device = "a GPU", .memory = 24},
      SessionReady{
          .session = 25, .error = "why", .init_ns = 26, .width_percent = 27, .why_not_narrower = "machine code"},
      done,
      ObjectFetched{.fetch = 27, .error = "why"},
      ServerFault{.error = "why", .calls = {28, 29}},
      ConstantsMissing{.sessions = {{.session = 30, .bytes = 31}}, .bytes_per_second = 1.5e9, .resident = 32},
      ModuleTrial{.session = 33, .modules = {}, .range_base = 34},
      ModulesMeasured{.session = 35, .variable_bytes = {}},
      VariablesPlaced{.session = 36, .addresses = {37}, .to_load = {}},
      ModulesFenced{.session = 38, .modules = {{.ptx = "", .variables = {}}}},
      TrialEnded{.session = 39, .module = 40, .error = ""},
      CallLoaded{.call = 41},
  };
}

template <typename Frame, typename Decode>
void expect_all_come_back(const std::vector<Frame>& frames, Decode decode) {
  EXPECT_EQ(frames.size(), std::variant_size_v<Frame>) << "one of each kind";
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(frames[i].index(), i) << "one of each kind";
    const auto back = decode(encode(frames[i]));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, frames[i]) << "kind " << i;
  }
}

// Whatever is cut off, or appended, is seen: no frame is the beginning of another.
template <typename Frame, typename Decode>
void expect_damage_is_seen(const std::vector<Frame>& frames, Decode decode) {
  for (const Frame& frame : frames) {
    const std::string bytes = encode(frame);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto cut = decode(std::string_view(bytes).substr(0, size));
      ASSERT_FALSE(cut) << "kind " << frame.index() << ", " << size << " of " << bytes.size() << " bytes";
      EXPECT_EQ(cut.error().code, Errc::kCorrupt);
    }
    EXPECT_FALSE(decode(bytes + '\0')) << "kind " << frame.index();
  }
}

TEST(DeviceFrames, EveryFieldOfEveryFrameComesBack) {
  expect_all_come_back(frames_to_server(), decode_frame_to_server);
  expect_all_come_back(frames_to_node(), decode_frame_to_node);
}

TEST(DeviceFrames, EveryTruncationAndAnAppendedByteAreRefused) {
  expect_damage_is_seen(frames_to_server(), decode_frame_to_server);
  expect_damage_is_seen(frames_to_node(), decode_frame_to_node);
}

TEST(DeviceFrames, AKindThatThereIsNotIsRefused) {
  const auto unknown = static_cast<char>(std::variant_size_v<FrameToServer>);
  const auto decoded = decode_frame_to_server(std::string(1, unknown) + std::string(8, '\0'));
  ASSERT_FALSE(decoded);
  EXPECT_NE(decoded.error().message.find("frame of kind 13 and 9 bytes"), std::string::npos) << decoded.error().message;
}

TEST(DeviceFrames, HugeLengthsAreRefusedWithoutAllocating) {
  std::string bytes = encode(FrameToServer(ModulesMeasured{.session = 1, .variable_bytes = {2}}));
  const std::size_t at = 1 + sizeof(std::uint64_t);
  bytes.replace(at, sizeof(std::uint64_t), sizeof(std::uint64_t), '\xff');
  EXPECT_FALSE(decode_frame_to_server(bytes));
  std::string text = encode(FrameToNode(ServerReady{.device = "a GPU", .memory = 1}));
  text.replace(1, sizeof(std::uint64_t), sizeof(std::uint64_t), '\xff');
  EXPECT_FALSE(decode_frame_to_node(text));
}

}  // namespace
}  // namespace fairlead::wire
