// The pacer of one device, live: a thread that hears when a process asks or has drained, and opens and closes gates in pages that it
// shares with the processes (wire/shim_page.h). What it decides is decided in pacing/live_places.h.
//
//   process ── asking += 1, bell ──> thread wakes ── events ──> LivePlaces ── orders ──> page: open until, grant, gate; wake
//
// Example: a device with two instances. A asks, is granted 2 ms, and holds on for frame after frame with one store each; B asks: A's
// gate is closed at the frame's end, A's shim says that it has drained, B's gate opens. Nobody spins; no message is sent.
//
// The thread sleeps until a bell rings or the next decision is due. A process that rings without end is heard kRings times in kQuiet,
// and is deaf to us no more than that. SCHED_FIFO where the system allows it: a thread that ends frames has to be in time.
//
// Threads: thread-safe. What is told is told on the driver's thread, with no lock held.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "decide/pacing/live_places.h"
#include "node/pacing/bells.h"
#include "wire/shim_page.h"

namespace fairlead {

struct PaceDriverOptions {
  PlaceOptions places;
  bool waits_for_bells = true;  // false: looks every 0.5 ms, as where the kernel has no futex_waitv
  // An instance that does not keep to the rules, and what it did. May be empty.
  std::function<void(InstanceId, const std::string& what)> named;
};

struct PaceSnapshot {
  std::vector<DeliveredService> instances;  // by id
  std::vector<PlaceSpan> spans;             // the last of them, oldest first
  Duration frame{0};
  bool is_realtime = false;  // the thread has SCHED_FIFO
  bool polls = false;        // the kernel has no futex_waitv
  std::uint64_t late = 0;    // decisions more than 0.5 ms after they were due
  std::uint64_t wakes = 0;   // of the thread
};

class PaceDriver {
 public:
  // A page stays mapped for as long as the driver has it.
  using Page = std::shared_ptr<wire::ShimPage>;

  // Throws std::system_error: there is no thread to be had.
  explicit PaceDriver(PaceDriverOptions options);
  // Gates of the pages that it still has are open afterwards.
  ~PaceDriver();
  PaceDriver(const PaceDriver&) = delete;
  PaceDriver& operator=(const PaceDriver&) = delete;

  // A new instance, or other terms of a known one, while it runs too. Errors: PlaceScheduler::set_share.
  Status set_share(InstanceId instance, const PacedShare& share) FL_EXCLUDES(mutex_);
  // Its pages are left with open gates.
  void remove_instance(InstanceId instance) FL_EXCLUDES(mutex_);

  // A process of the instance: from now on it needs a place. `let_in`: called whenever its gate has opened, for one that does not wait for
  // the word itself; on any thread, and it must not wait. kInvalidArgument: the instance is not known, or the process's shim is older than
  // places.
  using LetIn = std::function<void()>;
  Status add_page(InstanceId instance, ProcessPage number, Page page, LetIn let_in = {}) FL_EXCLUDES(mutex_);
  // It is gone, or has lost its connection. Its gate is left open. Unknown: nothing happens.
  void remove_page(ProcessPage number) FL_EXCLUDES(mutex_);

  // What the device says of the instance's processes, since they began: held against what they tell (LivePlaces::device_says). What there
  // is to be told since then, of this instance and of others.
  std::vector<LivePlaces::Finding> device_says(InstanceId instance, Duration used) FL_EXCLUDES(mutex_);

  bool knows(InstanceId instance) const FL_EXCLUDES(mutex_);
  PaceSnapshot snapshot() const FL_EXCLUDES(mutex_);
  std::vector<DeliveredService> delivered() const FL_EXCLUDES(mutex_);  // of the snapshot

 private:
  struct Heard {
    InstanceId instance;
    Page page;
    LetIn let_in;
    std::uint32_t bell = 0;  // when it was looked at last
    int rings = 0;           // since `quiet_at`
    Instant quiet_at;
  };
  using Pages = std::map<ProcessPage, Heard>;

  void run() FL_EXCLUDES(mutex_);
  void look(Instant now) FL_REQUIRES(mutex_);
  void carry_out() FL_REQUIRES(mutex_);
  std::optional<Instant> listen(Instant now, std::vector<Page>& pages) FL_REQUIRES(mutex_);
  void set_leashes() FL_REQUIRES(mutex_);
  static void wake(const Heard& heard);
  static void let_go(const Heard& heard);
  void tell(const std::vector<LivePlaces::Finding>& findings) const;

  const PaceDriverOptions options_;
  Bells bells_;  // of the thread, once it runs
  std::atomic<std::uint32_t> own_bell_{0};
  std::atomic<bool> polls_{false};
  std::atomic<bool> is_realtime_{false};

  mutable Mutex mutex_;
  mutable LivePlaces places_ FL_GUARDED_BY(mutex_);
  Pages pages_ FL_GUARDED_BY(mutex_);
  std::map<InstanceId, PacedShare> shares_ FL_GUARDED_BY(mutex_);
  std::uint64_t late_ FL_GUARDED_BY(mutex_) = 0;
  std::uint64_t wakes_ FL_GUARDED_BY(mutex_) = 0;
  bool stops_ FL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace fairlead
