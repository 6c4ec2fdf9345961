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
// From a decision to an instance that answers, as far as is known before one has started: idle for twice as long, a seat goes.
constexpr Duration kStart = std::chrono::seconds(1);
constexpr int kMostQuota = 97;          // per cent: what admission gives one instance of an idle device
constexpr int kMostSeats = 256;         // of one function
constexpr std::size_t kMostAtOnce = 8;  // seats that one decision asks for: each may be tried on every GPU
constexpr std::size_t kLeastNotes = 4;

Autoscale wanted_by(const FunctionRecord& record) {
  return autoscale_of(record.config).value_or(Autoscale::kOff);
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

void Autoscaler::tick() {
  std::vector<std::string> names;
  for (const auto& [name, function] : functions_.all()) {
    if (wanted_by(function.record) != Autoscale::kOff) names.push_back(name);
  }
  std::erase_if(scaled_, [&](const auto& one) { return !std::binary_search(names.begin(), names.end(), one.first); });
  for (const std::string& name : names) look_at(name);
  arm();
}

void Autoscaler::called(const std::string& function) {
  const auto known = scaled_.find(function);
  if (known == scaled_.end() || !known->second.scaler || known->second.is_due) return;
  const auto share = control_.shares().entry(function);
  if (share && !share->seats.empty()) return;
  known->second.is_due = true;
  // Not from inside the call.
  boost::asio::post(io_, [this, function] {
    const auto still = scaled_.find(function);
    if (still == scaled_.end()) return;
    still->second.is_due = false;
    look_at(function);
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
  if (function.kernel_task) {
    scaled.lacking = "it is a kernel task, whose calls run in a device server that is not paced";
    return;
  }
  if (profile == nullptr) {
    scaled.lacking =
        "nothing was measured of this code on this GPU: fairlead profile " + function.record.name + " --sample FILE";
    return;
  }
  const GpuSettings gpu = gpu_settings(function.record.config).value_or(GpuSettings());
  scaled.terms = {.objective = std::chrono::milliseconds(gpu.objective_ms.value_or(0)),
                  .memory = gpu.share.memory.value_or(profile->memory()),
                  .device_memory = device_memory_(),
                  .device_clients = 0};
  const ThroughputModel model{profile->fixed_ms, profile->work_ms, profile->saturation_percent};
  ScalerSettings settings{.terms = scaled.terms, .sizes = sizes_on_node(model, options_.has_widths, kMostQuota)};
  settings.return_time = kStart;
  settings.burst = 0;
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
  spdlog::info("function {} is scaled: {} % of the SMs x {} % of the time, {:.1f} requests/s an instance",
               function.record.name, size->width_percent, size->quota_percent, size->rate_per_s);
}

void Autoscaler::look_at(const std::string& name) {
  const RegisteredFunction* const function = functions_.find(name);
  if (function == nullptr || !is_started_ || functions_.is_changing(name)) return;
  Scaled& scaled = scaled_[name];
  if (scaled.revision != function->record.revision_id) {
    refresh(*function, scaled);
    // Where it has seats of another size they become this one's.
    if (scaled.scaler) {
      const auto share = control_.shares().entry(name);
      control_.scale(name, share_of(scaled), {.kept = share ? share->seats : ShareBook::Seats(), .serving = serving()});
    }
  }
  if (!scaled.scaler) return;
  leave_lost_devices(name, scaled);
  const ScalerView view = view_of(*function, scaled);
  if (scaled.wanted == Autoscale::kPinned) return;
  carry_out(name, scaled, scaled.scaler->decide(monotonic_now(), view));
}

std::vector<GpuId> Autoscaler::serving() const {
  std::vector<GpuId> gpus;
  for (const GpuView& gpu : driver_.core().gpus()) {
    if (gpu.serves) gpus.push_back(gpu.gpu);
  }
  return gpus;
}

// Seats of devices that do not serve, or went, are taken elsewhere, as far as there is room.
void Autoscaler::leave_lost_devices(const std::string& name, Scaled& scaled) {
  const auto share = control_.shares().entry(name);
  if (!share) return;
  Shares::Wanted wanted{.serving = serving()};
  for (const GpuId gpu : share->seats) {
    const bool serves = std::find(wanted.serving.begin(), wanted.serving.end(), gpu) != wanted.serving.end();
    serves ? wanted.kept.push_back(gpu) : void(++wanted.more);
  }
  if (wanted.more == 0) return;
  const std::size_t lost = wanted.more;
  const auto placed = control_.scale(name, share_of(scaled), wanted);
  ScalingNote made{.at_ms = wall_clock_ms(), .saw = fmt::format("{} seats are on a GPU that does not serve", lost)};
  made.did.push_back(fmt::format("{} of them are elsewhere now", placed.added.size()));
  if (!placed.lacking.empty()) made.rejected.push_back(placed.lacking);
  note(scaled, std::move(made));
}

ScalerView Autoscaler::view_of(const RegisteredFunction& function, Scaled& scaled) const {
  ScalerView view;
  const FlowView flow = driver_.core().flow(function.flow);
  const std::uint64_t arrived = function.stats.invocations + flow.queued + flow.in_flight;
  view.arrived = arrived > scaled.arrived ? arrived - scaled.arrived : 0;
  scaled.arrived = std::max(arrived, scaled.arrived);
  view.waiting = flow.queued;
  for (const InstanceView& one : driver_.core().instances()) {
    if (one.flow != function.flow || !one.entitled) continue;
    view.instances.push_back(
        {.id = one.instance,
         .size = scaled.size,
         .stage = one.state == InstanceState::kStarting ? InstanceStage::kStarting : InstanceStage::kReady,
         .is_busy = one.state == InstanceState::kBusy,
         .idle_since = one.last_used});
  }
  // Seats whose instance has not begun to start.
  const auto share = control_.shares().entry(function.record.name);
  while (share && view.instances.size() < share->seats.size()) {
    view.instances.push_back({.id = InstanceId(), .size = scaled.size, .stage = InstanceStage::kStarting});
  }
  return view;
}

Share Autoscaler::share_of(const Scaled& scaled) const {
  Share share{.width_percent = scaled.size.width_percent};
  share.request_percent = scaled.size.quota_percent;
  share.limit_percent = 100;  // beyond its request it may have what others leave
  if (scaled.terms.memory > Bytes(0)) share.memory = scaled.terms.memory;
  return share;
}

void Autoscaler::carry_out(const std::string& name, Scaled& scaled, ScalingDecision decision) {
  const auto share = control_.shares().entry(name);
  ShareBook::Seats kept = share ? share->seats : ShareBook::Seats();
  std::size_t more = 0;
  ScalingNote made{.at_ms = wall_clock_ms(), .saw = std::move(decision.saw)};
  made.rejected = std::move(decision.rejected);
  for (const ScalingStep& step : decision.steps) {
    if (step.verb == ScalingVerb::kStart || step.verb == ScalingVerb::kStartParked) ++more;
    if (step.verb != ScalingVerb::kPark && step.verb != ScalingVerb::kStop) continue;
    for (const InstanceView& one : driver_.core().instances()) {
      if (one.instance != step.instance) continue;
      if (const auto seat = std::find(kept.begin(), kept.end(), one.gpu); seat != kept.end()) kept.erase(seat);
      made.did.push_back(fmt::format("instance {} on GPU {} stops", one.instance.value(), one.gpu.value()));
    }
  }
  more = std::min(more, kMostAtOnce);
  if (more == 0 && made.did.empty()) return note(scaled, std::move(made));
  const std::size_t before = kept.size();
  const auto placed = control_.scale(name, share_of(scaled), {.kept = kept, .more = more, .serving = serving()});
  for (std::size_t i = 0; i < placed.added.size(); ++i) {
    made.did.push_back(fmt::format("an instance starts on GPU {}", placed.added[i].value()));
  }
  if (placed.added.size() < more) {
    made.rejected.push_back(
        fmt::format("{} more would start beside {}: {}", more - placed.added.size(), before, placed.lacking));
  }
  note(scaled, std::move(made));
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

ScalingStatus Autoscaler::status_of(const std::string& name, const Scaled& scaled, bool with_notes) const {
  ScalingStatus status{.function = name, .lacking = scaled.lacking};
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
  for (const InstanceView& one : driver_.core().instances()) {
    if (function == nullptr || one.flow != function->flow) continue;
    if (one.state == InstanceState::kStarting) {
      ++status.starting;
    } else {
      one.entitled ? ++status.ready : ++status.parked;
    }
  }
  status.gpus = static_cast<double>(status.seats) * status.gpus_per_instance;
  if (with_notes) status.notes.assign(scaled.notes.begin(), scaled.notes.end());
  return status;
}

Result<ScalingStatus> Autoscaler::status(const std::string& function) {
  const auto known = scaled_.find(function);
  if (known != scaled_.end()) return status_of(function, known->second, true);
  return fail(Errc::kInvalidArgument,
              "{} is not scaled by the node: deploy it with --objective-ms and --sample, which sets tag gpu:autoscale",
              function);
}

std::vector<ScalingStatus> Autoscaler::all() {
  std::vector<ScalingStatus> list;
  for (const auto& [name, scaled] : scaled_) list.push_back(status_of(name, scaled, false));
  return list;
}

}  // namespace fairlead
