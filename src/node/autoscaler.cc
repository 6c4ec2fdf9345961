#include "node/autoscaler.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "decide/scaling/profile_experiment.h"

namespace fairlead {
namespace {

constexpr Duration kPeriod = std::chrono::milliseconds(100);
constexpr Duration kWaits = std::chrono::milliseconds(10);  // calls that wait are looked at no more often
constexpr Duration kStart =
    std::chrono::seconds(1);        // from a decision to an instance that answers, before one has started
constexpr double kHoldStarts = 30;  // a parked instance that is too many stays idle for as many times a start
// From parked to ready: what a turn of the node takes, and memory that leaves and memory that comes in its place, at 6 GB/s.
constexpr Duration kReturn = std::chrono::milliseconds(120);
constexpr double kLinkBytesPerSecond = 6e9;
constexpr Duration kRefusal =
    std::chrono::milliseconds(500);  // where there was no room for a seat, nobody asks again before
constexpr Duration kMovesInVain = std::chrono::seconds(60);
constexpr Duration kMovesEvery = std::chrono::seconds(5);  // a move costs a start
constexpr int kMostQuota = 97;          // per cent: what admission gives one instance of an idle device
constexpr int kMostSeats = 256;         // of one function
constexpr std::size_t kMostAtOnce = 8;  // seats that one decision asks for: each may be tried on every GPU
constexpr std::size_t kLeastNotes = 4;
constexpr Duration kSparesEvery = std::chrono::seconds(1);  // of one function; or a start, where that is longer
constexpr std::size_t kFreeInPool = 2;                      // a spare leaves so many instances of the pool to others

Duration return_time(Bytes memory) {
  return std::max(kReturn, from_seconds(2 * static_cast<double>(memory.count()) / kLinkBytesPerSecond));
}

// Of what was there before a decision and is there after it. `seats`: the new ones.
std::vector<std::string> changes(const std::vector<InstanceView>& before, const std::vector<InstanceView>& after,
                                 std::vector<GpuId> seats) {
  std::vector<std::string> did;
  const auto take_seat = [&](GpuId gpu) {
    const auto seat = std::find(seats.begin(), seats.end(), gpu);
    if (seat != seats.end()) seats.erase(seat);
  };
  for (const InstanceView& was : before) {
    const auto is =
        std::find_if(after.begin(), after.end(), [&](const auto& one) { return one.instance == was.instance; });
    const std::uint64_t id = was.instance.value(), gpu = was.gpu.value();
    if (is == after.end()) {
      did.push_back(fmt::format("{}instance {} on GPU {} stops", was.entitled ? "" : "parked ", id, gpu));
    } else if (was.entitled && !is->entitled) {
      did.push_back(fmt::format("instance {} on GPU {} parks", id, gpu));
    } else if (!was.entitled && is->entitled) {
      take_seat(was.gpu);
      did.push_back(was.state == InstanceState::kStarting
                        ? fmt::format("an instance starts on GPU {}: {}, which a call had begun", gpu, id)
                        : fmt::format("instance {} on GPU {} is unparked{}", id, gpu,
                                      was.state == InstanceState::kBusy ? ", in the middle of a call" : ""));
    }
  }
  for (const GpuId gpu : seats) did.push_back(fmt::format("an instance starts on GPU {}", gpu.value()));
  return did;
}

std::optional<Duration> objective_of(const FunctionRecord& record) {
  const auto gpu = gpu_settings(record.config);
  if (!gpu || !gpu->objective_ms) return std::nullopt;
  return std::chrono::milliseconds(*gpu->objective_ms);
}

Autoscale wanted_by(const FunctionRecord& record) {
  return autoscale_of(record.config).value_or(Autoscale::kOff);
}

// On each device, of instances that were last used before then.
std::map<GpuId, std::size_t> idle_seats(const std::vector<InstanceView>& instances, Instant before) {
  std::map<GpuId, std::size_t> idle;
  for (const InstanceView& one : instances) {
    if (one.entitled && one.state == InstanceState::kIdle && one.last_used <= before) ++idle[one.gpu];
  }
  return idle;
}

ShareBook::Seats ready_seats(const std::vector<InstanceView>& instances) {
  ShareBook::Seats ready;
  for (const InstanceView& one : instances) {
    if (one.entitled && one.state != InstanceState::kStarting) ready.push_back(one.gpu);
  }
  return ready;
}

std::map<GpuId, DeviceRoom> rooms(const std::vector<GpuId>& serving, Bytes memory, std::size_t clients) {
  std::map<GpuId, DeviceRoom> devices;
  for (const GpuId gpu : serving) devices[gpu] = {.memory = memory, .clients = clients};
  return devices;
}

// False: it has none there.
bool give_up_seat(FunctionControl& control, const std::string& name, const Share& share, GpuId gpu) {
  ShareBook::Seats kept = control.shares().entry(name)->seats;
  const auto seat = std::ranges::find(kept, gpu);
  if (seat == kept.end()) return false;
  kept.erase(seat);
  control.scale(name, share, {.kept = std::move(kept), .more = 0, .serving = {}});
  return true;
}

}  // namespace

Autoscaler::Autoscaler(boost::asio::io_context& io, CoreDriver& driver, FunctionControl& control, Functions& functions,
                       ProfileOf profile_of, DeviceMemory device_memory)
    : io_(io),
      driver_(driver),
      control_(control),
      functions_(functions),
      profile_of_(std::move(profile_of)),
      device_memory_(std::move(device_memory)),
      timer_(io) {}

Share Autoscaler::Scaled::share() const {
  Share made{.width_percent = size.width_percent};
  made.request_percent = size.quota_percent;
  made.limit_percent = 100;  // beyond its request it may have what others leave
  if (terms.memory > Bytes(0)) made.memory = terms.memory;
  return made;
}

void Autoscaler::start(Options options) {
  options_ = options;
  is_started_ = true;
  arm();
}

void Autoscaler::arm() {
  timer_.expires_after(kPeriod);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

Autoscaler::Sight Autoscaler::sight() const {
  Sight sight{.now = monotonic_now()};
  for (const GpuView& gpu : driver_.core().gpus()) {
    if (!gpu.serves) continue;
    sight.serving.push_back(gpu.gpu);
    if (gpu.instances + kFreeInPool < options_.pool) sight.with_room.push_back(gpu.gpu);
  }
  for (const InstanceView& one : driver_.core().instances()) sight.by_flow[one.flow].push_back(one);
  return sight;
}

const std::vector<InstanceView>& Autoscaler::Sight::instances(FlowId flow) const {
  static const std::vector<InstanceView> none;
  const auto found = by_flow.find(flow);
  return found == by_flow.end() ? none : found->second;
}

void Autoscaler::tick() {
  std::vector<std::string> names;
  for (const auto& [name, function] : functions_.all()) {
    if (wanted_by(function.record) != Autoscale::kOff) names.push_back(name);
  }
  std::vector<std::string> gone;
  for (const auto& [name, scaled] : scaled_) {
    if (!std::binary_search(names.begin(), names.end(), name)) gone.push_back(name);
  }
  for (const std::string& name : gone) forget(name);
  if (!names.empty()) {
    if (!placed_.moving.empty()) finish_moves(sight());
    const Sight seen = sight();
    look_at_devices(seen);
    for (const std::string& name : names) look_at(name, seen, false);
    empty_a_device(seen.now);
    const Sight now = sight();  // after what was decided
    for (auto& [name, scaled] : scaled_) write_books(name, scaled, now);
  }
  arm();
}

// A profile is of a model of device: where devices came or went it may mean something, or nothing, from now on.
void Autoscaler::look_at_devices(const Sight& sight) {
  if (sight.serving == served_) return;
  served_ = sight.serving;
  for (auto& [name, scaled] : scaled_) {
    const RegisteredFunction* const function = functions_.find(name);
    const bool has_profile = function != nullptr && profile_of_(function->record) != nullptr;
    if (has_profile != (scaled.scaler != nullptr)) scaled.revision.clear();
  }
}

void Autoscaler::called(const std::string& function) {
  const auto known = scaled_.find(function);
  if (known == scaled_.end() || !known->second.scaler || known->second.is_due) return;
  const auto share = control_.shares().entry(function);
  const RegisteredFunction* const registered = functions_.find(function);
  if (registered == nullptr) return;
  const bool has_seat = share && !share->seats.empty();
  if (has_seat) {
    const Instant now = monotonic_now();
    if (driver_.core().flow(registered->flow).queued == 0 || now - known->second.waited_at < kWaits) return;
    known->second.waited_at = now;
  }
  known->second.is_due = true;
  // Not from inside the call.
  boost::asio::post(io_, [this, function] {
    const auto still = scaled_.find(function);
    if (still == scaled_.end()) return;
    still->second.is_due = false;
    look_at(function, sight(), true);
  });
}

void Autoscaler::profiled(const std::string& function) {
  if (const auto known = scaled_.find(function); known != scaled_.end()) known->second.revision.clear();
}

// Its author changed it, or it was measured: another size, or none.
void Autoscaler::refresh(const RegisteredFunction& function, Scaled& scaled) {
  scaled.revision = function.record.revision_id;
  scaled.wanted = wanted_by(function.record);
  scaled.scaler.reset();
  const FunctionProfile* const profile = profile_of_(function.record);
  if (function.is_pipeline()) {
    scaled.lacking = "it is a pipeline, whose stages have slices of their own";
    return;
  }
  if (profile == nullptr) {
    scaled.lacking =
        "nothing was measured of this code on this GPU: fairlead profile " + function.record.name + " --sample FILE";
    return;
  }
  const GpuSettings gpu = gpu_settings(function.record.config).value_or(GpuSettings());
  scaled.terms = {.objective = std::chrono::milliseconds(gpu.objective_ms.value_or(0)),
                  // Sessions of a kernel task share its constants, so what one of them sees is not what one more takes.
                  .memory = gpu.share.memory.value_or(function.kernel_task ? Bytes(0) : profile->memory()),
                  .device_memory = device_memory_(),
                  .device_clients = 0};
  const ThroughputModel model{profile->fixed_ms, profile->work_ms, profile->saturation_percent};
  ScalerSettings settings{
      .terms = scaled.terms,
      .sizes = sizes_on_node(model, options_.has_widths && !function.kernel_task, kMostQuota, profile->slowdown())};
  settings.return_time = return_time(scaled.terms.memory);
  settings.cold_start = kStart;
  settings.burst = options_.ahead;
  if (options_.ahead > 0) settings.ahead_predictor = "holt";
  settings.hold_starts = kHoldStarts;
  settings.keeps_one = true;
  settings.keep = options_.keep;
  settings.most = kMostSeats;
  auto scaler = make_scaler("fleet", settings);
  const auto size = best_size_of(settings.sizes, scaled.terms);
  if (!scaler || !size) {
    scaled.lacking = scaler ? "no size is usable" : scaler.error().message;
    return;
  }
  scaled.lacking.clear();
  // What came before there was a scaler is no load of one period.
  const FlowView flow = driver_.core().flow(function.flow);
  scaled.arrived = function.stats.invocations + flow.queued + flow.in_flight;
  scaled.size = *size;
  scaled.scaler = *std::move(scaler);
  double least_s = size->area() / size->rate_per_s;  // of a request, at any size that it may have
  for (const InstanceSize& one : settings.sizes) {
    if (why_unusable(one, scaled.terms).empty()) least_s = std::min(least_s, one.area() / one.rate_per_s);
  }
  scaled.ledger.set_terms(wall_clock_ms(), size->area(), least_s);
  spdlog::info("function {} is scaled: {} % of the SMs x {} % of the time, {:.1f} requests/s an instance",
               function.record.name, size->width_percent, size->quota_percent, size->rate_per_s);
}

void Autoscaler::look_at(const std::string& name, const Sight& sight, bool is_event) {
  const RegisteredFunction* const function = functions_.find(name);
  if (function == nullptr || !is_started_ || functions_.is_changing(name)) return;
  Scaled& scaled = scaled_[name];
  if (scaled.revision != function->record.revision_id) {
    refresh(*function, scaled);
    const auto share = control_.shares().entry(name);
    const ShareBook::Seats seats = share ? share->seats : ShareBook::Seats();
    // Where it has seats of another size they become this one's; what nobody can use is nobody's.
    if (scaled.scaler) {
      control_.scale(name, scaled.share(), {.kept = seats, .serving = sight.serving});
    } else if (!seats.empty()) {
      give_back(name, scaled, {}, scaled.lacking);
    }
    return;  // what was seen is not so any more
  }
  if (!scaled.scaler) {
    if (measure_ && profile_of_(function->record) == nullptr) {
      if (std::string said = measure_(function->record); !said.empty()) scaled.lacking = std::move(said);
    }
    return;
  }
  // Pinned seats stay: nothing here would ask for them again.
  const unsigned failed = driver_.core().learnt(function->flow).failed;
  if (scaled.wanted != Autoscale::kPinned && scaled.backoff.note(sight.now, failed)) {
    return give_back(name, scaled, ready_seats(sight.instances(function->flow)), scaled.backoff.why());
  }
  leave_lost_devices(name, scaled, sight);
  const ScalerView view = view_of(*function, scaled, sight);
  const auto share = control_.shares().entry(name);
  const bool has_seat = share && !share->seats.empty();
  if (!is_event || !has_seat) scaled.arrived += view.arrived;
  if (scaled.wanted == Autoscale::kPinned) return;
  carry_out(*function, scaled,
            is_event && has_seat ? scaled.scaler->waits(sight.now, view) : scaled.scaler->decide(sight.now, view), view,
            sight);
}

// Seats of devices that do not serve, or went, are taken elsewhere, as far as there is room.
void Autoscaler::leave_lost_devices(const std::string& name, Scaled& scaled, const Sight& sight) {
  const auto share = control_.shares().entry(name);
  if (!share) return;
  Shares::Wanted wanted{.serving = sight.serving};
  for (const GpuId gpu : share->seats) {
    const bool serves = std::find(wanted.serving.begin(), wanted.serving.end(), gpu) != wanted.serving.end();
    serves ? wanted.kept.push_back(gpu) : void(++wanted.more);
  }
  if (wanted.more == 0) return;
  const std::size_t lost = wanted.more;
  wanted.more = scaled.backoff.allowed(sight.now, wanted.more);
  const auto placed = control_.scale(name, scaled.share(), wanted);
  ScalingNote made{.at_ms = wall_clock_ms(), .saw = fmt::format("{} seats are on a GPU that does not serve", lost)};
  made.did.push_back(fmt::format("{} of them are elsewhere now", placed.added.size()));
  if (!placed.lacking.empty()) made.rejected.push_back(placed.lacking);
  note(scaled, std::move(made));
}

// But those that are kept.
void Autoscaler::give_back(const std::string& name, Scaled& scaled, ShareBook::Seats kept, const std::string& why) {
  const auto share = control_.shares().entry(name);
  if (!share) return;
  const std::size_t given = share->seats.size() - std::min(kept.size(), share->seats.size());
  ScalingNote made{.at_ms = wall_clock_ms(), .saw = fmt::format("{} seats that it cannot use", given)};
  control_.scale(name, share->asked.share, {.kept = std::move(kept), .serving = {}});
  made.did.push_back(fmt::format("{} seats are given back", given));
  made.rejected.push_back(why);
  spdlog::warn("function {} gives {} seats back: {}", name, given, why);
  note(scaled, std::move(made));
}

ScalerView Autoscaler::view_of(const RegisteredFunction& function, const Scaled& scaled, const Sight& sight) const {
  ScalerView view;
  const FlowView flow = driver_.core().flow(function.flow);
  const std::uint64_t arrived = function.stats.invocations + flow.queued + flow.in_flight;
  view.arrived = arrived > scaled.arrived ? arrived - scaled.arrived : 0;
  view.waiting = flow.queued;
  view.cold_start = driver_.core().learnt(function.flow).cold_start.value_or(Duration(0));
  std::size_t seated = 0;
  for (const InstanceView& one : sight.instances(function.flow)) {
    // What runs in a slot is parked and busy: it can have a seat.
    const bool starts = one.state == InstanceState::kStarting;
    const InstanceStage stage = !one.entitled ? InstanceStage::kParked
                                : starts      ? InstanceStage::kStarting
                                              : InstanceStage::kReady;
    seated += one.entitled ? 1 : 0;
    view.instances.push_back({.id = one.instance,
                              .size = scaled.size,
                              .stage = stage,
                              .is_busy = one.state != InstanceState::kIdle,
                              .idle_since = one.last_used});
  }
  // Seats whose instance has not begun to start.
  const auto share = control_.shares().entry(function.record.name);
  for (; share && seated < share->seats.size(); ++seated) {
    view.instances.push_back({.id = InstanceId(), .size = scaled.size, .stage = InstanceStage::kStarting});
  }
  return view;
}

void Autoscaler::Scaled::bound(Shares::Wanted& asked, std::vector<std::string>& rejected, Instant now) const {
  asked.more = std::min(asked.more, kMostAtOnce);
  const std::size_t allowed = backoff.allowed(now, asked.more);
  if (allowed < asked.more) rejected.push_back(backoff.why());
  asked.more = allowed;
  if (refused.empty() || now - refused_at >= kRefusal) return;
  if (asked.more > 0) rejected.push_back(refused);
  asked.more = 0;
}

SpareRoom Autoscaler::spare_room(const Scaled& asks, const ScalerView& view, const Sight& sight) const {
  SpareRoom room{.serving = sight.serving.size(),
                 .pool = options_.pool,
                 .device_memory = asks.terms.device_memory,
                 .with_room = sight.with_room};
  room.is_due = sight.now - asks.spare_at >= std::max(kSparesEvery, view.cold_start) && !asks.backoff.holds(sight.now);
  for (const auto& [name, scaled] : scaled_) {
    const RegisteredFunction* const function = functions_.find(name);
    if (function == nullptr) continue;
    for (const InstanceView& one : sight.instances(function->flow)) room.parked += one.entitled ? 0 : 1;
  }
  return room;
}

std::vector<SeatTaken> Autoscaler::seats_taken(const Sight& sight, const std::string& but, Duration idle_for) const {
  std::vector<SeatTaken> taken;
  const auto add_seats = [&](const std::string& name, FlowId flow, std::optional<Duration> idle) {
    const auto share = control_.shares().entry(name);
    if (!share || share->seats.empty()) return;
    std::map<GpuId, std::size_t> movable =
        idle ? idle_seats(sight.instances(flow), sight.now - *idle) : std::map<GpuId, std::size_t>();
    for (const GpuId gpu : share->seats) {
      const bool may_move = movable[gpu] > 0;
      if (may_move) --movable[gpu];
      taken.push_back({name, control_.shares().paced(name, flow, true), gpu, may_move});
    }
  };
  for (const auto& [name, known] : functions_.all()) {
    const auto scales = scaled_.find(name);
    const bool is_scaled = scales != scaled_.end() && scales->second.scaler && scales->second.wanted == Autoscale::kOn;
    // Who waits for a start, or cannot start, would be no better off elsewhere.
    const auto share = control_.shares().entry(name);
    const bool is_ready = share && share->seats.size() == ready_seats(sight.instances(known.flow)).size();
    const bool may_move =
        is_scaled && is_ready && scales->second.backoff.why().empty() && name != but && !functions_.is_changing(name);
    add_seats(name, known.flow, may_move ? std::optional(idle_for) : std::nullopt);
  }
  for (const auto& [version, known] : functions_.versions()) add_seats(version, known.flow, std::nullopt);
  return taken;
}

// Looked for once in a while: nobody waits for it.
void Autoscaler::empty_a_device(Instant now) {
  if (served_.size() < 2 || !placed_.moving.empty() || now - placed_.emptied_at < options_.empties_every) return;
  placed_.emptied_at = now;
  const Sight seen = sight();
  const auto plan = plan_emptying(rooms(seen.serving, device_memory_(), options_.has_widths ? options_.pool : 0),
                                  seats_taken(seen, "", options_.settled));
  for (const SeatMove& move : plan) {
    Scaled& scaled = scaled_.at(move.function);
    const auto share = control_.shares().entry(move.function);
    const auto placed =
        control_.scale(move.function, scaled.share(), {.kept = share->seats, .more = 1, .serving = {move.to}});
    // What was to be empty is not, so the others stay. The books know what plans do not see, and will know it for a while.
    if (placed.added.empty()) return void(placed_.emptied_at = now + kMovesInVain);
    placed_.moving.push_back({move, now});
    ScalingNote made{.at_ms = wall_clock_ms()};
    made.saw = fmt::format("all on GPU {} are idle and find room elsewhere", move.from.value());
    made.did.push_back(fmt::format("an instance starts on GPU {}, and its seat on GPU {} goes when that is ready",
                                   move.to.value(), move.from.value()));
    note(scaled, std::move(made));
  }
}

void Autoscaler::finish_moves(const Sight& sight) {
  std::vector<Placed::Moving> still;
  for (const Placed::Moving& one : placed_.moving) {
    const auto& [function, from, to] = one.move;
    const auto scaled = scaled_.find(function);
    const auto share = control_.shares().entry(function);
    const RegisteredFunction* const known = functions_.find(function);
    if (scaled == scaled_.end() || !share || known == nullptr) continue;
    const auto seats = std::ranges::count(share->seats, to);
    const bool is_undone = seats == 0 || std::ranges::find(share->seats, from) == share->seats.end();
    if (is_undone) continue;  // the scaler gave one of the two up
    const std::vector<InstanceView>& instances = sight.instances(known->flow);
    const bool is_ready = std::ranges::count(ready_seats(instances), to) >= seats;
    const bool is_idle = idle_seats(instances, sight.now)[from] > 0;
    const bool is_late = sight.now - one.began > options_.moves_take || !scaled->second.backoff.why().empty();
    ScalingNote made{.at_ms = wall_clock_ms()};
    if (is_ready && is_idle && give_up_seat(control_, function, scaled->second.share(), from)) {
      made.saw = fmt::format("an instance is ready on GPU {}", to.value());
      made.did.push_back(fmt::format("its seat moves from GPU {} to GPU {}", from.value(), to.value()));
    } else if (is_late && give_up_seat(control_, function, scaled->second.share(), to)) {
      made.saw = is_ready ? fmt::format("its instance on GPU {} is in use", from.value())
                          : fmt::format("no instance got ready on GPU {}", to.value());
      made.did.push_back(fmt::format("its seat stays on GPU {}", from.value()));
      placed_.emptied_at = sight.now + kMovesInVain;
    } else {
      still.push_back(one);
      continue;
    }
    note(scaled->second, std::move(made));
  }
  placed_.moving = std::move(still);
}

// True: it sits there now. The new seat is taken before the old one is given up, which others may want.
bool Autoscaler::move_seat(const SeatMove& move, const std::string& why) {
  const auto share = control_.shares().entry(move.function);
  Scaled& scaled = scaled_.at(move.function);
  Shares::Wanted wanted{.kept = share->seats, .more = 1, .serving = {move.to}};
  if (std::ranges::find(wanted.kept, move.from) == wanted.kept.end()) return false;
  const auto placed = control_.scale(move.function, scaled.share(), wanted);
  if (placed.added.empty()) return false;  // somebody else was there first
  give_up_seat(control_, move.function, scaled.share(), move.from);
  ScalingNote made{.at_ms = wall_clock_ms(), .saw = why};
  made.did.push_back(fmt::format("its seat moves from GPU {} to GPU {}", move.from.value(), move.to.value()));
  note(scaled, std::move(made));
  return true;
}

// Its seats that there was room for then.
std::vector<GpuId> Autoscaler::make_room(const RegisteredFunction& function, Scaled& scaled, const Sight& sight,
                                         ScalingNote& made) {
  const std::string& name = function.record.name;
  if (sight.now - placed_.moved_at < kMovesEvery && placed_.moved_at != Instant()) return {};
  const auto plan =
      plan_room(rooms(sight.serving, scaled.terms.device_memory, options_.has_widths ? options_.pool : 0),
                seats_taken(sight, name, Duration(0)), control_.shares().paced(name, function.flow, true));
  if (!plan) return {};
  for (const SeatMove& move : plan->moves) {
    if (!move_seat(move, "another function has no room, and an instance here is idle")) return {};
    placed_.moved_at = sight.now;
    made.did.push_back(fmt::format("the seat of an idle instance of another function moves from GPU {} to GPU {}",
                                   move.from.value(), move.to.value()));
  }
  const auto share = control_.shares().entry(name);
  auto placed = control_.scale(name, scaled.share(), {.kept = share->seats, .more = 1, .serving = {plan->gpu}});
  if (placed.added.empty()) placed_.moved_at = sight.now + kMovesInVain;  // the books say what plans do not see
  return placed.added;
}

void Autoscaler::carry_out(const RegisteredFunction& function, Scaled& scaled, ScalingDecision decision,
                           const ScalerView& view, const Sight& sight) {
  const std::string& name = function.record.name;
  const std::vector<InstanceView>& before = sight.instances(function.flow);
  const auto share = control_.shares().entry(name);
  Shares::Wanted wanted{.kept = share ? share->seats : ShareBook::Seats(), .serving = sight.serving};
  const std::size_t had = wanted.kept.size();
  std::vector<InstanceId> to_stop;
  ScalingNote made{.at_ms = wall_clock_ms(), .saw = std::move(decision.saw)};
  made.rejected = std::move(decision.rejected);
  const AllowedStarts starts = allowed_starts(decision, view, before, spare_room(scaled, view, sight));
  if (!starts.refused.empty()) made.rejected.push_back(starts.refused);
  wanted.more = starts.allowed;
  if (starts.spare_on) {
    wanted.serving = {starts.spare_on};
    scaled.spare_at = sight.now;
  }
  for (const ScalingStep& step : decision.steps) {
    const auto at =
        std::find_if(before.begin(), before.end(), [&](const auto& one) { return one.instance == step.instance; });
    if (at == before.end()) continue;
    if (step.verb == ScalingVerb::kReturn) ++wanted.more, wanted.first.push_back(at->gpu);
    if (step.verb != ScalingVerb::kPark && step.verb != ScalingVerb::kStop) continue;
    const auto seat = std::find(wanted.kept.begin(), wanted.kept.end(), at->gpu);
    if (at->entitled && seat != wanted.kept.end()) wanted.kept.erase(seat);
    if (step.verb == ScalingVerb::kStop) to_stop.push_back(step.instance);
  }
  scaled.bound(wanted, made.rejected, sight.now);
  if (wanted.more == 0 && wanted.kept.size() == had && to_stop.empty()) return note(scaled, std::move(made));
  const std::size_t kept = wanted.kept.size();
  auto placed = control_.scale(name, scaled.share(), wanted, std::move(to_stop));
  const Sight after = this->sight();
  made.did = changes(before, after.instances(function.flow), placed.added);
  if (placed.added.empty() && wanted.more > 0 && !starts.spare_on) {
    for (const GpuId gpu : make_room(function, scaled, after, made)) {
      placed.added.push_back(gpu);
      made.did.push_back(fmt::format("an instance starts on GPU {}", gpu.value()));
    }
  }
  if (starts.spare_on && placed.added.size() == wanted.more) {
    made.did.push_back("ahead of need: what is too many parks once it has started");
  }
  scaled.refused.clear();
  if (placed.added.size() < wanted.more && !starts.spare_on) {
    scaled.refused =
        fmt::format("{} more would start beside {}: {}", wanted.more - placed.added.size(), kept, placed.lacking);
    scaled.refused_at = sight.now;
    made.rejected.push_back(scaled.refused);
  }
  note(scaled, std::move(made));
}

void Autoscaler::forget(const std::string& function) {
  scaled_.erase(function);
  placed_.log.forget(function);
}

bool Autoscaler::arrived(const std::string& function, std::int64_t now_ms) {
  const auto known = scaled_.find(function);
  if (known == scaled_.end()) return false;
  known->second.ledger.arrived(now_ms);
  return true;
}

void Autoscaler::answered(const std::string& function, std::int64_t arrived_ms, Duration took, bool failed) {
  const auto known = scaled_.find(function);
  if (known == scaled_.end()) return;
  const RegisteredFunction* const registered = functions_.find(function);
  const auto objective = registered == nullptr ? std::nullopt : objective_of(registered->record);
  known->second.ledger.answered(arrived_ms, failed || (objective && took > *objective));
}

void Autoscaler::write_books(const std::string& name, Scaled& scaled, const Sight& sight) {
  const RegisteredFunction* const function = functions_.find(name);
  const auto share = control_.shares().entry(name);
  if (function == nullptr || !share) return;
  LedgerInstances there{.seats = static_cast<std::uint32_t>(share->seats.size())};
  for (const InstanceView& one : sight.instances(function->flow)) {
    if (one.state == InstanceState::kStarting) continue;
    one.entitled ? ++there.ready : ++there.parked;
  }
  const std::int64_t now_ms = wall_clock_ms();
  scaled.ledger.has(now_ms, there);
  PlacementEntry entry{.at_ms = now_ms,
                       .function = name,
                       .width_percent = scaled.size.width_percent,
                       .quota_percent = scaled.size.quota_percent};
  for (const GpuId gpu : share->seats) ++entry.seats[gpu];
  placed_.log.note(std::move(entry));
}

// What changed nothing and rejected the same as before only counts.
void Autoscaler::note(Scaled& scaled, ScalingNote made) const {
  std::deque<ScalingNote>& notes = scaled.notes;
  if (made.did.empty() && !notes.empty() && (made.rejected.empty() || notes.front().rejected == made.rejected)) {
    ++notes.front().repeats;
    return;
  }
  if (made.did.empty() && made.rejected.empty()) return;
  notes.push_front(std::move(made));
  const std::size_t most =
      std::clamp(kMostAllNotes / std::max<std::size_t>(1, scaled_.size()), kLeastNotes, kMostNotes);
  while (notes.size() > most) notes.pop_back();
}

ScalingStatus Autoscaler::status_of(const std::string& name, const Scaled& scaled, const Sight& sight) const {
  ScalingStatus status{.function = name, .lacking = scaled.scaler ? scaled.backoff.why() : scaled.lacking};
  status.state = !scaled.scaler ? "best effort" : scaled.wanted == Autoscale::kPinned ? "pinned" : "scaled";
  if (scaled.scaler) {
    status.width_percent = scaled.size.width_percent;
    status.quota_percent = scaled.size.quota_percent;
    status.rate_per_s = scaled.size.rate_per_s;
    status.execution_ms = to_ms(scaled.size.execution);
    status.gpus_per_instance = scaled.terms.cost(scaled.size);
  }
  const RegisteredFunction* const function = functions_.find(name);
  if (const auto share = control_.shares().entry(name)) status.seats = share->seats.size();
  for (const InstanceView& one : sight.instances(function == nullptr ? FlowId() : function->flow)) {
    if (one.state == InstanceState::kStarting) {
      ++status.starting;
    } else {
      one.entitled ? ++status.ready : ++status.parked;
    }
  }
  status.gpus = static_cast<double>(status.seats) * status.gpus_per_instance;
  if (function != nullptr) status.objective_ms = to_ms(objective_of(function->record).value_or(Duration(0)));
  status.totals = scaled.ledger.totals(wall_clock_ms());
  return status;
}

Result<ScalingStatus> Autoscaler::status(const std::string& function) {
  const auto known = scaled_.find(function);
  if (known != scaled_.end()) {
    ScalingStatus status = status_of(function, known->second, sight());
    status.notes.assign(known->second.notes.begin(), known->second.notes.end());
    status.seconds.assign(known->second.ledger.seconds().begin(), known->second.ledger.seconds().end());
    return status;
  }
  return fail(Errc::kInvalidArgument,
              "{} is not scaled by the node: deploy it with --objective-ms and --sample, which sets tag gpu:autoscale",
              function);
}

std::vector<ScalingStatus> Autoscaler::all() {
  std::vector<ScalingStatus> list;
  const Sight seen = sight();
  for (const auto& [name, scaled] : scaled_) list.push_back(status_of(name, scaled, seen));
  return list;
}

}  // namespace fairlead
