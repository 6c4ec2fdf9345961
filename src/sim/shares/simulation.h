// Instances on one modelled device, in virtual time. Who may put kernels on the device is decided by the node's own schedulers of places
// (sharing/pacing), line for line; kernels, clients and the device are modelled.
//
//   request ──asks──> PlaceScheduler ──Open until──> kernel, kernel, kernel │until is over: the last one drains
//
// A gate is modelled as it is built: a kernel may begin while the place is open, and up to `leash` after that, which is what was launched
// ahead; a kernel that runs cannot be stopped. What was used is told before every decision. SMs are not counted: a width that was granted
// is there. Bandwidth is: client_model.h says how kernels stretch each other.
//
// Time: its own, from 0. Threads: not thread-safe. Determinism: the same setup gives the same result on every machine; the n-th kernel and
// the n-th request of a client are alike under every scheduler.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "decide/pacing/place_scheduler.h"
#include "sim/shares/client_model.h"
#include "sim/virtual_clock.h"

namespace fairlead::sim {

struct SharesSetup {
  std::vector<ShareClient> clients;  // at most kMostPlaces
  std::string scheduler = "pacer";
  PlaceOptions options;
  Duration leash{0};            // of kernels launched ahead of the device
  bool tells_deadlines = true;  // when a request is due; a process's page says nothing of that
  Duration warm_up = std::chrono::seconds(2);
  Duration length = std::chrono::seconds(20);  // after the warm-up
  Duration drawn{0};                           // of that, from its beginning on: what SharesResult::spans has
  std::uint64_t seed = 1;
};

// A kernel, or the place in which kernels may begin; from the end of the warm-up.
struct SharesSpan {
  std::size_t client = 0;
  bool is_place = false;
  Duration begin{0}, end{0};
};

struct SharesResult {
  std::vector<ShareClientResult> clients;
  double sm_share = 0;           // of the SMs and the time, held by kernels
  double best_effort_share = 0;  // of those without a request
  double best_effort_gap = 0;    // of a window: the most that two of them differ in SM time
  double busy = 0;  // of the time: somebody has a kernel in flight, or is between two of a train (ShareClient::gap)
  double occupancy = 0;  // of the SMs and the time: SMs that kernels had blocks for
  std::uint64_t decisions = 0, opened = 0, revoked = 0, kernels = 0;
  std::uint64_t state_hash = 0;
  std::vector<SharesSpan> spans;  // in the order in which they end
};

class SharesSimulation final : private ClockParty {
 public:
  // REQUIRES: a known scheduler, valid shares.
  explicit SharesSimulation(SharesSetup setup);
  SharesResult run();

 private:
  enum class Kind : std::uint8_t { kArrives, kHostEnds, kKernelEnds, kGateCloses, kTick, kSample };
  struct Request {
    Instant arrived;
    Duration left;
  };
  struct Client {
    const ShareClient* model = nullptr;
    Rng kernels{0}, arrivals{0};
    std::deque<Request> queue;
    Instant open_until;
    bool is_open = false;      // as the scheduler said, not drained yet
    bool runs = false;         // a kernel is in flight
    Instant began;             // the kernel, or since the last report
    Instant opened, launched;  // the place and the kernel, for spans
    Duration kernel{0};        // alone on the device
    Duration unreported{0};    // GPU time
    Duration total{0};         // GPU time since the beginning
    std::vector<Duration> samples;
    ShareClientResult result;
  };

  void happen(const Event& event) override;
  void arrive(std::size_t index);
  void expect_arrival(std::size_t index);
  void add_request(Client& client, Duration work);
  void begin_request(std::size_t index);
  void ask(std::size_t index);
  void begin_kernel(std::size_t index, Instant at);
  void kernel_ends(std::size_t index);
  void leave_place(std::size_t index);
  void leave_place_idle(std::size_t index);
  void finish_request(Client& client);
  void count_kernels(int more);
  void bring_up_to_date(Client& client);
  void report(std::size_t index);
  void close_place(std::size_t index);
  void keep_span(const SharesSpan& span, Instant began);
  void tick();
  void carry_out();
  void sample();
  void summarise();
  double stretch(const Client& client) const;
  bool may_launch(const Client& client, Instant at) const;

  const SharesSetup setup_;
  VirtualClock clock_;
  EventsOf<Kind> events_{clock_, *this};
  std::unique_ptr<PlaceScheduler> scheduler_;
  std::vector<Client> clients_;
  PlaceActions actions_;
  std::optional<Instant> tick_at_;
  std::uint64_t tick_number_ = 0;
  double bandwidth_ = 0;  // asked for by the kernels in flight
  int in_flight_ = 0;     // kernels
  Instant busy_since_;    // where one is
  SharesResult result_;
};

}  // namespace fairlead::sim
