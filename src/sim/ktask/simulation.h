// Kernel tasks on several modelled GPUs, in virtual time. Who is served where is decided by the node's own queueing
// policies (queueing/policy.h), what is on a device by the device server's own cache (residency/object_cache.h); machine,
// kernels and clients are modelled.
//
//   client ──> CPU, half ──> FlowQueue ──> objects over the link ──> kernels ──> output over the link ──> CPU, half ──> client
//                                 └ eTask: another client's process goes, one starts (CPU), and its memory is empty
//
// A lane is held from the choice until the output is copied. With one lane, copies and kernels therefore take turns, as in the
// paper's executor; with several, those of one request go on beside another's. A request that first loads constants takes its
// lane when they are there (placement/task_lanes.h), and how many lanes there are is measured (sharing/measured_lanes.h).
//
// Time: its own, from 0. Threads: not thread-safe. Determinism: the same setup gives the same result on every machine;
// KtaskResult::state_hash shows it. The n-th request of a client varies alike under every system.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "decide/placement/task_lanes.h"
#include "decide/residency/pending_copies.h"
#include "decide/sharing/measured_lanes.h"
#include "sim/histogram.h"
#include "sim/ktask/compute_model.h"
#include "sim/ktask/setup.h"
#include "sim/virtual_clock.h"

namespace fairlead::sim {

// Of requests that were due, or answers that came, after the warm-up.
struct KtaskClientResult {
  std::uint64_t answered = 0;  // within the measured time
  Histogram latency;
};

struct KtaskResult {
  std::vector<KtaskClientResult> clients;
  Histogram latency;  // of all
  double seconds = 0;
  std::uint64_t sent = 0, served = 0, cold_starts = 0;  // over the whole run; served is sent when it ends
  std::uint64_t state_hash = 0;
  ObjectCacheCounters objects;
  double gpu_busy = 0;  // share of the whole run in which a GPU had kernels, mean over GPUs

  double throughput() const;
  double work(const KtaskSetup& setup) const;  // answered kernel time, alone on a device, per second
  double spread() const;                       // the greatest client's throughput over the least's
};

class KtaskSimulation final : private Placeable, private ClockParty {
 public:
  // REQUIRES: check(setup).
  explicit KtaskSimulation(const KtaskSetup& setup);

  // To the last answer.
  KtaskResult run();

 private:
  enum class Kind : std::uint8_t { kDue, kCpuEnds, kLoaded, kKernelsEnd, kCopiedOut, kForget, kChance };
  enum class Part : std::uint8_t { kBefore, kProcessStart, kAfter };  // of a request, on a CPU

  struct CpuWork {
    std::uint64_t request;
    Part part;
    Duration takes;
  };
  struct Client {
    std::uint64_t sent = 0;
    Duration told_setup{0};  // FlowQueue::set_setup, as told last
    Rng arrivals{0};
  };
  struct Request {
    std::size_t client = 0;
    std::uint64_t number = 0;  // of its client
    Instant due, kernels_began, kernels_ended;
    Duration loading{0};
    GpuId gpu;
    GpuId source;  // lends its constants until they are copied
    bool has_lane = false;
  };
  struct Gpu {
    std::unique_ptr<ObjectCache> cache;
    ObjectCacheCounters past;  // of processes that are gone
    std::map<std::size_t, Instant> constants_there;
    std::map<std::size_t, std::size_t> users;  // of a client's constants: requests that are assigned
    Bytes pinned{0};                           // what those that are assigned need, constants once
    std::vector<std::uint64_t> no_room;        // assigned, waiting for memory
    std::array<Instant, kCopyLanes> in_free;
    Instant out_free, peer_free;
    ComputeModel compute;
    TaskLanes lanes;
    std::optional<MeasuredLanes> measured;  // none: as many as setup.lanes
    FlowId worker;                          // eTask: whose process is there; none at first
    std::size_t processes = 0;
  };

  struct Kept {  // objects of an answered request
    Instant until;
    std::uint64_t request;
    GpuId gpu;
    std::size_t process;  // which of the GPU's
  };

  bool can_run(FlowId client) const override;
  Obstacle obstacle(FlowId client) const override;
  std::vector<Place> places(FlowId client) const override;
  std::optional<Place> place(FlowId client, GpuId gpu) const override;
  std::vector<GpuId> free_gpus() const override;
  bool has_constants(std::size_t client, const Gpu& gpu) const;
  GpuId peer_with(std::size_t client, const Gpu& gpu) const;
  Duration reload(std::size_t client, const Gpu& gpu) const;
  bool has_lane(std::size_t client, const Gpu& gpu) const;
  bool has_room(std::size_t client, const Gpu& gpu) const;
  Bytes unpinned_need(std::size_t client, const Gpu& gpu) const;

  void send(std::size_t client, Instant due);
  void expect_due(std::size_t client);
  void happen(const Event& event) override;
  void use_cpu(std::uint64_t request, Part part, Duration takes);
  void start_cpu_work();
  void cpu_ends(std::uint64_t request, Part part);
  void queue(std::uint64_t request);
  void assign_all();
  void tell_setups();
  GpuId quickest(FlowId client) const;
  void begin(const FlowQueue::Choice& choice);
  void bring(std::uint64_t request);
  void replace_process(Gpu& gpu);
  void pin(const Request& request);
  void unpin(const Request& request);
  bool load(std::uint64_t request);
  Instant copy_constants(std::uint64_t request);
  void loaded(std::uint64_t request);
  void retry(Gpu& gpu);
  void take_lane(Request& request, std::uint64_t id);
  void tell_residency(std::size_t client);
  Instant copy_in(Gpu& gpu, Bytes bytes) const;
  void run_kernels(std::uint64_t request);
  void kernels_end(Gpu& gpu, GpuId id);
  void complete(std::uint64_t request);
  void answer(std::uint64_t request);
  void expect_kernels_end(Gpu& gpu, GpuId id);

  std::vector<ObjectNeed> needs_of(std::uint64_t request) const;
  static void forget_objects(Gpu& gpu, std::uint64_t request);
  void forget_oldest();
  const KtaskWorkload& workload(std::size_t client) const { return setup_.clients[client]; }
  Gpu& gpu(GpuId id) { return gpus_[id.value() - 1]; }
  Duration copy_time(Bytes bytes) const;
  static Duration copy_time(Bytes bytes, double bytes_per_second);
  Duration varied(Duration typical, const Request& request, std::uint64_t what) const;
  bool measured(Instant at) const { return at >= begin_ && at < end_; }
  void hash(std::uint64_t value);

  const KtaskSetup setup_;
  const Instant begin_, end_;  // of what is measured
  std::unique_ptr<FlowQueue> policy_;
  std::vector<Client> clients_;
  std::vector<Gpu> gpus_;
  std::map<std::uint64_t, Request> requests_;  // not answered yet
  VirtualClock clock_;
  EventsOf<Kind> events_{clock_, *this};
  std::size_t cores_free_;
  std::deque<CpuWork> cpu_queue_;
  std::deque<Kept> kept_;          // oldest first
  std::optional<Instant> chance_;  // the kChance that is scheduled
  Instant now_;
  std::uint64_t next_request_ = 1;
  KtaskResult result_;
};

// Poisson arrivals at KtaskSetup::rate, or at `load` of the peak: what the same setup answers a second when every client
// keeps four requests with it. Clients of one workload send alike; in a mixture each workload has its part of the peak.
struct KtaskOnline {
  double peak = 0, rate = 0;
  KtaskResult result;
};
KtaskOnline run_online(KtaskSetup setup, double load);

}  // namespace fairlead::sim
