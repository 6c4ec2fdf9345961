// libFuzzer: any packet is a message of the spawner, of a device server, of a shim or of a pipeline's program, or refused with an error; what
// is taken is written and read again the same, a shim's numbers keep their bounds, and a program's texts are printable. The first byte says which.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/fuzz_seeds.h"
#include "runtime/spawn_protocol.h"
#include "wire/device_frames.h"
#include "wire/program_frames.h"
#include "wire/shim_codec.h"

namespace fairlead {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

template <typename T>
std::string shim(wire::FrameKind kind, T wire::Frame::Body::*member, T value) {
  wire::Frame frame = wire::make_frame(kind);
  frame.body.*member = value;
  return "4" + std::string(wire::packet_of(frame));
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  const StartOrder order{.instance = 1,
                         .environment = {"A=b"},
                         .binds = {{"/a", "/b", true}},
                         .memory_limit = Bytes(7),
                         .max_processes = 3,
                         .container = "{}",
                         .http_port = 80,
                         .http_health = "/_/health",
                         .secrets = {{"db", "x"}}};
  const wire::RegisterSession session{.session = 1,
                                      .tenant = "a",
                                      .task = "t",
                                      .modules = {{"0123", 4, 0}},
                                      .constants = {{1, 2, "x"}},
                                      .supplied = {{3, 4, 1}}};
  const wire::ModulesFenced fenced{.session = 1, .modules = {{"ptx", {{8, "ab"}}}}};
  wire::CallDone done{.call = 1, .missing = {2, 3}, .outputs = {{1, 0, "out"}}};
  return {
      "0" + encode(order),
      "1" + encode(StartedNote{1, 2}),
      "1" + encode(ExitNote{.instance = 1, .ended = true, .wait_status = 9, .failure = "why"}),
      "2" + wire::encode(wire::FrameToServer(session)),
      "2" + wire::encode(wire::FrameToServer(wire::ModuleTrial{.session = 1, .modules = {{"00", "ptx"}}})),
      "2" + wire::encode(wire::FrameToServer(fenced)),
      "3" + wire::encode(wire::FrameToNode(done)),
      "3" + wire::encode(wire::FrameToNode(wire::ServerFault{"why", {1, 2}})),
      "3" + wire::encode(wire::FrameToNode(wire::ConstantsMissing{.sessions = {{1, 2}}, .bytes_per_second = 0.5})),
      shim(wire::FrameKind::kHello, &wire::Frame::Body::hello, {1, 1, 42}),
      shim(wire::FrameKind::kMoved, &wire::Frame::Body::moved,
           {wire::FrameKind::kSwapOut, wire::MoveResult::kDone, 1, 2, 3}),
      shim(wire::FrameKind::kReturnStaging, &wire::Frame::Body::return_staging,
           {wire::kStagingGranule, wire::kStagingGranule}),
      "5R",
      std::string("5D\1\0\0\0\0\0\0\0", 10),
      std::string("5E\1\0\0\0\0\0\0\0KeyError: \xff", 21),
  };
}

namespace {

void read_order(std::string_view bytes) {
  if (const auto order = decode_start_order(bytes)) require(decode_start_order(encode(*order)).value() == *order);
}

void read_note(std::string_view bytes) {
  const auto note = decode_note(bytes);
  if (!note) return require(!note.error().message.empty());
  const std::string again = std::visit([](const auto& is) { return encode(is); }, *note);
  require(decode_note(again).value() == *note);
}

// By their bytes: a number that is none is not equal to itself.
void read_device_frames(std::string_view bytes) {
  if (const auto frame = wire::decode_frame_to_server(bytes)) require(wire::encode(*frame) == bytes);
  if (const auto frame = wire::decode_frame_to_node(bytes)) require(wire::encode(*frame) == bytes);
}

void read_shim_frame(std::string_view bytes) {
  const auto frame = wire::decode_shim_frame(bytes);
  if (!frame) return require(!frame.error().message.empty());
  require(wire::packet_of(*frame) == bytes);
  const wire::Frame::Body& body = frame->body;
  if (frame->kind == wire::FrameKind::kNeedRoom) require(body.need_room.bytes <= wire::kMaxFrameBytes);
  if (frame->kind == wire::FrameKind::kReturnStaging) {
    require(body.return_staging.offset + body.return_staging.bytes <= 2 * wire::kMaxFrameBytes);
  }
}

void read_program_said(std::string_view bytes) {
  const auto said = wire::decode_program_said(bytes);
  if (!said) return require(!said.error().message.empty());
  require(said->text.size() <= wire::kMaxProgramText);
  for (const char c : said->text) require(c >= ' ' && c <= '~');
}

}  // namespace
}  // namespace fairlead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case '0' % 6: fairlead::read_order(bytes); break;
    case '1' % 6: fairlead::read_note(bytes); break;
    case '4' % 6: fairlead::read_shim_frame(bytes); break;
    case '5' % 6: fairlead::read_program_said(bytes); break;
    default: fairlead::read_device_frames(bytes);
  }
  return 0;
}
