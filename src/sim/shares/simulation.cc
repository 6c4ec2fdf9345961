#include "sim/shares/simulation.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSample = 50ms;  // windows begin at every multiple
constexpr Duration kForEver = std::chrono::hours(24 * 365);

InstanceId id_of(std::size_t index) {
  return InstanceId(index + 1);
}

double bandwidth_of(const ShareClient& client) {
  return kBandwidthOfAllSms * client.intensity * client.share.width_percent / kWholeDevice;
}

}  // namespace

SharesSimulation::SharesSimulation(SharesSetup setup) : setup_(std::move(setup)), clients_(setup_.clients.size()) {
  auto made = make_place_scheduler(setup_.scheduler, setup_.options);
  FL_CHECK(made, "{}", made.error().message);
  scheduler_ = std::move(*made);
  Rng seeds(setup_.seed);
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    clients_[i].model = &setup_.clients[i];
    clients_[i].kernels = Rng(seeds.next());
    clients_[i].arrivals = Rng(seeds.next());
    const Status known = scheduler_->set_share(Instant(), id_of(i), setup_.clients[i].share, actions_);
    FL_CHECK(known, "{}", known.error().message);
  }
}

SharesResult SharesSimulation::run() {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    const Work work = clients_[i].model->work;
    if (work == Work::kEndless || work == Work::kClosed) {
      arrive(i);
    } else {
      expect_arrival(i);
    }
  }
  events_.add(Instant(), Kind::kSample, 0);
  clock_.run_until(Instant() + setup_.warm_up + setup_.length);
  summarise();
  return std::move(result_);
}

void SharesSimulation::happen(const Event& event) {
  switch (EventsOf<Kind>::kind_of(event)) {
    case Kind::kArrives:
      arrive(event.subject);
      expect_arrival(event.subject);
      break;
    case Kind::kHostEnds: ask(event.subject); break;
    case Kind::kKernelEnds: kernel_ends(event.subject); break;
    case Kind::kGateCloses:
      if (clients_[event.subject].is_open && !clients_[event.subject].runs) {
        if (may_launch(clients_[event.subject], clock_.now())) {
          begin_kernel(event.subject, clock_.now());  // another frame came meanwhile
        } else {
          leave_place(event.subject);
        }
      }
      break;
    case Kind::kTick:
      if (event.detail == tick_number_) tick();
      break;
    case Kind::kSample: sample(); break;
  }
}

// ---- requests

void SharesSimulation::expect_arrival(std::size_t index) {
  Client& client = clients_[index];
  const double mean_gap = client.model->burst / client.model->rate_per_s;
  events_.add(clock_.now() + from_seconds(client.arrivals.exponential(mean_gap)), Kind::kArrives, index);
}

void SharesSimulation::arrive(std::size_t index) {
  Client& client = clients_[index];
  const Work work = client.model->work;
  const int count = work == Work::kBursts ? client.model->burst : work == Work::kClosed ? client.model->users : 1;
  for (int i = 0; i < count; ++i) {
    add_request(client, work == Work::kEndless ? kForEver : client.model->request);
  }
  if (std::ssize(client.queue) == count) begin_request(index);
}

void SharesSimulation::begin_request(std::size_t index) {
  const Duration host = clients_[index].model->host;
  if (host > 0s) {
    events_.add(clock_.now() + host, Kind::kHostEnds, index);
  } else {
    ask(index);
  }
}

void SharesSimulation::add_request(Client& client, Duration work) {
  client.queue.push_back({clock_.now(), work});
}

void SharesSimulation::ask(std::size_t index) {
  Client& client = clients_[index];
  const Request& next = client.queue.front();
  std::optional<Instant> due;
  if (setup_.tells_deadlines && client.model->objective > 0s) {
    due = next.arrived + client.model->objective - next.left;
  }
  scheduler_->asks(clock_.now(), id_of(index), due, actions_);
  carry_out();
}

void SharesSimulation::finish_request(Client& client) {
  const Duration took = clock_.now() - client.queue.front().arrived;
  client.queue.pop_front();
  if (clock_.now() >= Instant() + setup_.warm_up) {
    ++client.result.answered;
    client.result.latency.add(took);
    if (client.model->objective > 0s && took > client.model->objective) ++client.result.missed;
  }
  if (client.model->work == Work::kClosed) add_request(client, client.model->request);
}

// ---- kernels

bool SharesSimulation::may_launch(const Client& client, Instant at) const {
  return client.is_open && at < client.open_until + setup_.leash;
}

double SharesSimulation::stretch(const Client& client) const {
  return 1 + client.model->intensity * std::max(0.0, bandwidth_ - 1);
}

// It is in flight from `at` on, which is now or a gap later.
void SharesSimulation::begin_kernel(std::size_t index, Instant at) {
  Client& client = clients_[index];
  const ShareClient& model = *client.model;
  const Duration span = model.most_kernel - model.least_kernel;
  client.kernel = model.least_kernel +
                  Duration(static_cast<Duration::rep>(client.kernels.uniform() * static_cast<double>(span.count())));
  client.kernel = std::min(client.kernel, client.queue.front().left);
  client.runs = true;
  client.began = client.launched = at;
  bandwidth_ += bandwidth_of(model);
  count_kernels(1);
  const auto takes = static_cast<Duration::rep>(static_cast<double>(client.kernel.count()) * stretch(client));
  events_.add(at + Duration(std::max<Duration::rep>(takes, 1)), Kind::kKernelEnds, index);
  ++result_.kernels;
}

void SharesSimulation::kernel_ends(std::size_t index) {
  Client& client = clients_[index];
  bring_up_to_date(client);
  client.runs = false;
  keep_span({.client = index, .is_place = false}, client.launched);
  bandwidth_ = std::max(0.0, bandwidth_ - bandwidth_of(*client.model));
  count_kernels(-1);
  client.queue.front().left -= client.kernel;
  const bool is_finished = client.queue.front().left <= 0s;
  if (is_finished) finish_request(client);
  if (client.queue.empty()) return leave_place_idle(index);
  if (is_finished && client.model->host > 0s) {
    leave_place_idle(index);
    return begin_request(index);
  }
  const Instant next = clock_.now() + client.model->gap;
  if (may_launch(client, next)) {
    begin_kernel(index, next);
  } else if (client.is_open && next < client.open_until + setup_.leash + client.model->gap &&
             client.open_until > clock_.now()) {
    events_.add(client.open_until, Kind::kGateCloses, index);
  } else {
    leave_place(index);
  }
}

// The gate is closed and nothing is in flight. Who has more to launch asked when the gate closed, before the place is free: else
// others would be given its room while it is not in the queue. The second time is for a gate that closed at this very instant.
void SharesSimulation::leave_place(std::size_t index) {
  report(index);
  ask(index);
  close_place(index);
  scheduler_->drained(clock_.now(), id_of(index), actions_);
  ask(index);
}

// Nothing is in flight and nothing is ready.
void SharesSimulation::leave_place_idle(std::size_t index) {
  report(index);
  close_place(index);
  scheduler_->idle(clock_.now(), id_of(index), actions_);
  carry_out();
}

void SharesSimulation::close_place(std::size_t index) {
  if (!std::exchange(clients_[index].is_open, false)) return;
  keep_span({.client = index, .is_place = true}, clients_[index].opened);
}

void SharesSimulation::keep_span(const SharesSpan& span, Instant began) {
  const Instant from = Instant() + setup_.warm_up;
  if (setup_.drawn == 0s || clock_.now() <= from || began >= from + setup_.drawn) return;
  SharesSpan kept = span;
  kept.begin = std::max(began - from, Duration(0));
  kept.end = std::min(clock_.now() - from, setup_.drawn);
  result_.spans.push_back(kept);
}

void SharesSimulation::count_kernels(int more) {
  const Instant from = std::max(busy_since_, Instant() + setup_.warm_up);
  if (in_flight_ > 0 && clock_.now() > from)
    result_.busy += to_seconds(clock_.now() - from) / to_seconds(setup_.length);
  busy_since_ = clock_.now();
  in_flight_ += more;
}

// ---- what the scheduler is told, and says

void SharesSimulation::bring_up_to_date(Client& client) {
  if (!client.runs || client.began >= clock_.now()) return;
  const Duration used = clock_.now() - client.began;
  client.unreported += used;
  client.total += used;
  client.began = clock_.now();
}

void SharesSimulation::report(std::size_t index) {
  Client& client = clients_[index];
  bring_up_to_date(client);
  scheduler_->used(clock_.now(), id_of(index), client.unreported);
  client.unreported = 0s;
}

void SharesSimulation::tick() {
  tick_at_.reset();
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i].is_open) report(i);
  }
  scheduler_->tick(clock_.now(), actions_);
  ++result_.decisions;
  carry_out();
}

void SharesSimulation::carry_out() {
  // A kernel that begins asks nothing of the scheduler, so the list does not grow while it is read.
  for (const PlaceAction& action : actions_) {
    const std::size_t index = action.instance.value() - 1;
    Client& client = clients_[index];
    result_.state_hash = result_.state_hash * 31 +
                         static_cast<std::uint64_t>(action.until.time_since_epoch().count()) * 64 +
                         action.instance.value();
    switch (action.kind) {
      case PlaceAction::Kind::kOpen:
        if (!client.is_open) {
          ++result_.opened;
          client.opened = clock_.now();
        }
        client.is_open = true;
        client.open_until = action.until;
        if (!client.runs && !client.queue.empty()) begin_kernel(index, clock_.now());
        break;
      case PlaceAction::Kind::kClose: client.open_until = std::min(client.open_until, clock_.now()); break;
      case PlaceAction::Kind::kRevoke: ++result_.revoked; break;  // its kernel runs on; it drains, and asks again
    }
  }
  actions_.clear();
  const auto next = scheduler_->next_tick();
  if (next && next != tick_at_) {
    tick_at_ = next;
    events_.add(std::max(*next, clock_.now()), Kind::kTick, 0, ++tick_number_);
  }
}

// ---- what came of it

void SharesSimulation::sample() {
  const bool is_measured = clock_.now() >= Instant() + setup_.warm_up;
  for (Client& client : clients_) {
    bring_up_to_date(client);
    if (is_measured) client.samples.push_back(client.total);
  }
  events_.add(clock_.now() + kSample, Kind::kSample, 0);
}

void SharesSimulation::summarise() {
  const auto window = static_cast<std::size_t>(setup_.options.window / kSample);
  count_kernels(0);
  std::vector<double> least, most;  // of best-effort flows, in each window: SM time
  for (Client& client : clients_) {
    bring_up_to_date(client);
    const PacedShare& share = client.model->share;
    client.result.gpu_time = client.samples.empty() ? 0s : client.total - client.samples.front();
    const double part = static_cast<double>(share.width_percent) / kWholeDevice;
    const double taken = part * to_seconds(client.result.gpu_time) / to_seconds(setup_.length);
    result_.sm_share += taken;
    result_.occupancy += taken * std::min(1.0, client.model->fills_percent / share.width_percent);
    if (share.request_percent == 0) result_.best_effort_share += taken;
    for (std::size_t from = 0; from + window < client.samples.size(); ++from) {
      const double given =
          to_seconds(client.samples[from + window] - client.samples[from]) / to_seconds(setup_.options.window);
      if (share.request_percent > 0) {
        client.result.worst_part = std::min(client.result.worst_part, 100 * given / share.request_percent);
        continue;
      }
      if (least.size() <= from) {
        least.push_back(given * part);
        most.push_back(given * part);
      }
      least[from] = std::min(least[from], given * part);
      most[from] = std::max(most[from], given * part);
    }
    result_.clients.push_back(std::move(client.result));
  }
  for (std::size_t i = 0; i < least.size(); ++i) {
    result_.best_effort_gap = std::max(result_.best_effort_gap, most[i] - least[i]);
  }
}

}  // namespace fairlead::sim
