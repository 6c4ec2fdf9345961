#include "wire/shim_codec.h"

#include <cstring>

namespace fairlead::wire {
namespace {

// One reader per field, so that every refusal reads the same way.
class Checker {
 public:
  explicit Checker(FrameKind kind) : kind_(kind) {}

  Checker& between(std::string_view field, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
    if (status_ && (value < least || value > most)) {
      status_ = fail(Errc::kCorrupt, "shim frame {}: {} is {}, it must be between {} and {}", frame_kind_name(kind_),
                     field, value, least, most);
    }
    return *this;
  }
  Checker& granules(std::string_view field, std::uint64_t value, std::uint64_t least) {
    between(field, value, least, kMaxFrameBytes);
    if (status_ && value % kStagingGranule != 0) {
      status_ = fail(Errc::kCorrupt, "shim frame {}: {} is {}, it must be a multiple of {}", frame_kind_name(kind_),
                     field, value, kStagingGranule);
    }
    return *this;
  }
  Status done() const { return status_; }

 private:
  FrameKind kind_;
  Status status_;
};

Status check_moved(const Moved& moved) {
  // Read as numbers: an enumerator that is none must not be used as one.
  const auto answered = static_cast<std::uint64_t>(moved.answered);
  const auto result = static_cast<std::uint64_t>(moved.result);
  return Checker(FrameKind::kMoved)
      .between("answered", answered, static_cast<std::uint64_t>(FrameKind::kSwapOut),
               static_cast<std::uint64_t>(FrameKind::kSwapIn))
      .between("result", result, 0, static_cast<std::uint64_t>(MoveResult::kNothing))
      .between("bytes", moved.bytes, 0, kMaxFrameBytes)
      .between("move_ns", moved.move_ns, 0, kMaxFrameTimeNs)
      .between("total_ns", moved.total_ns, 0, kMaxFrameTimeNs)
      .done();
}

Status check(const Frame& frame) {
  const Frame::Body& body = frame.body;
  const Checker checker(frame.kind);
  switch (frame.kind) {
    case FrameKind::kHello: return Checker(checker).between("pid", body.hello.pid, 1, 1 << 22).done();
    case FrameKind::kMoved: return check_moved(body.moved);
    case FrameKind::kNeedRoom: return Checker(checker).between("bytes", body.need_room.bytes, 1, kMaxFrameBytes).done();
    case FrameKind::kNeedStaging:
      return Checker(checker).granules("bytes", body.need_staging.bytes, kStagingGranule).done();
    case FrameKind::kReturnStaging:
      return Checker(checker)
          .granules("offset", body.return_staging.offset, 0)
          .granules("bytes", body.return_staging.bytes, kStagingGranule)
          .done();
    case FrameKind::kWantMemory: return {};
    case FrameKind::kWelcome:
    case FrameKind::kSwapOut:
    case FrameKind::kSwapIn:
    case FrameKind::kRoom:
    case FrameKind::kStaging:
      return fail(Errc::kCorrupt, "shim frame {}: only the node sends it", frame_kind_name(frame.kind));
  }
  return fail(Errc::kCorrupt, "shim frame: kind is {}, it must be between {} and {}",
              static_cast<std::uint32_t>(frame.kind), static_cast<std::uint32_t>(FrameKind::kHello),
              static_cast<std::uint32_t>(FrameKind::kWantMemory));
}

}  // namespace

std::string_view frame_kind_name(FrameKind kind) {
  switch (kind) {
    case FrameKind::kHello: return "Hello";
    case FrameKind::kWelcome: return "Welcome";
    case FrameKind::kSwapOut: return "SwapOut";
    case FrameKind::kSwapIn: return "SwapIn";
    case FrameKind::kMoved: return "Moved";
    case FrameKind::kNeedRoom: return "NeedRoom";
    case FrameKind::kRoom: return "Room";
    case FrameKind::kNeedStaging: return "NeedStaging";
    case FrameKind::kStaging: return "Staging";
    case FrameKind::kReturnStaging: return "ReturnStaging";
    case FrameKind::kWantMemory: return "WantMemory";
  }
  return "?";
}

std::string_view move_result_name(MoveResult result) {
  switch (result) {
    case MoveResult::kDone: return "done";
    case MoveResult::kPartly: return "partly";
    case MoveResult::kBusy: return "busy";
    case MoveResult::kNoRoom: return "no room";
    case MoveResult::kNothing: return "nothing";
    case MoveResult::kFailed: return "failed";
  }
  return "?";
}

Result<Frame> decode_shim_frame(std::string_view packet) {
  if (packet.size() != sizeof(Frame)) {
    return fail(Errc::kCorrupt, "shim frame: its size is {} bytes, it must be {}", packet.size(), sizeof(Frame));
  }
  Frame frame = make_frame(FrameKind::kHello);
  std::memcpy(&frame, packet.data(), sizeof frame);
  if (Status valid = check(frame); !valid) return fail(valid.error());
  return frame;
}

Frame make_frame(FrameKind kind) {
  Frame frame;
  std::memset(static_cast<void*>(&frame), 0, sizeof frame);
  frame.kind = kind;
  return frame;
}

std::string_view packet_of(const Frame& frame) {
  return {reinterpret_cast<const char*>(&frame), sizeof frame};
}

}  // namespace fairlead::wire
