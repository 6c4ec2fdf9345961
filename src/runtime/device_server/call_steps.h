// A call's kernels on a device that is paced, a piece at a time (decide/residency/kernel_pieces.h): at most two pieces are in flight, each
// with an event before it and one behind, so that the device has the next one when one ends and what each took is known.
//
//   lane   |begin| k k k |end|begin| k k |end|        then the next, as soon as the first has ended and the place is not over
//
// All kernels are on one stream here, in their order.
//
// Threads: the device server's loop.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "decide/residency/kernel_pieces.h"
#include "runtime/device_server/kernel_session.h"

namespace fairlead {

// Of one session: a call at a time.
class CallSteps {
 public:
  // `session` outlives it. waves[k]: how many blocks of kernel k the device holds together, or what it is launched on of the device. Errors:
  // the driver's, of making events.
  static Result<std::unique_ptr<CallSteps>> create(CudaContext& cuda, KernelSession& session,
                                                   const std::vector<std::uint64_t>& waves);
  ~CallSteps();
  CallSteps(const CallSteps&) = delete;
  CallSteps& operator=(const CallSteps&) = delete;

  void begin_call();  // REQUIRES: nothing is in flight
  // Puts on the lane what may be in flight beside what is, `left` of the place being there. Each piece ends with a call of `wake`.
  CUresult queue(LaunchLane& lane, const std::vector<CUdeviceptr>& addresses, Duration left, CUhostFn wake, void* data);
  // What has ended since: `used` grows by what it took on the device. An error is the device's.
  CUresult look(Duration& used);

  // The call ends where it is. REQUIRES: what is in flight ends before the session's next call.
  void abandon() { in_flight_.clear(); }
  void measured_whole(Duration took) { pieces_.measured_whole(took); }

  bool is_in_flight() const { return !in_flight_.empty(); }
  bool is_over() const { return pieces_.is_over() && in_flight_.empty(); }
  std::uint64_t pieces() const { return launched_; }  // of this call
  // What a call takes, as far as is known.
  std::optional<Duration> estimate() const { return pieces_.estimate(); }

 private:
  static constexpr std::size_t kInFlight = 2;
  struct Events {
    CUevent begin = nullptr, end = nullptr;
  };
  struct InFlight {
    KernelPieces::Piece piece;
    Events events;
  };
  CallSteps(CudaContext& cuda, KernelSession& session, KernelPieces pieces)
      : cuda_(cuda), session_(session), pieces_(std::move(pieces)) {}
  CUresult launch(const KernelPieces::Piece& piece, const Events& events, CUstream stream,
                  const std::vector<CUdeviceptr>& addresses);

  CudaContext& cuda_;
  KernelSession& session_;
  KernelPieces pieces_;
  std::array<Events, kInFlight> events_{};
  std::deque<InFlight> in_flight_;  // the oldest first
  std::uint64_t launched_ = 0;
};

}  // namespace fairlead
