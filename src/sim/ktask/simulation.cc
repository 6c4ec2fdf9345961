#include "sim/ktask/simulation.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace fairlead::sim {
namespace {

constexpr Duration kCopyLatency = std::chrono::microseconds(20);  // of one copy, however small
constexpr std::uint64_t kDynamic = std::uint64_t{1} << 40;        // ids below are constants
constexpr std::uint64_t kLent = std::uint64_t{1} << 62;           // what holds constants that are copied to another GPU
constexpr std::size_t kPeakOutstanding = 4;

ObjectId constants_of(std::size_t client) {
  return ObjectId(client + 1);
}
ObjectId input_of(std::uint64_t request) {
  return ObjectId(kDynamic + 2 * request);
}
ObjectId output_of(std::uint64_t request) {
  return ObjectId(kDynamic + 2 * request + 1);
}

FlowId flow_of(std::size_t client) {
  return FlowId(client + 1);
}
std::size_t client_of(FlowId flow) {
  return flow.value() - 1;
}

void add(ObjectCacheCounters& sum, const ObjectCacheCounters& more) {
  sum.hits += more.hits;
  sum.host_hits += more.host_hits;
  sum.misses += more.misses;
  sum.evictions += more.evictions;
  sum.write_backs += more.write_backs;
  sum.loaded += more.loaded;
  sum.written_back += more.written_back;
}

// The same for all clients of one workload.
std::vector<double> shares_of_peak(const KtaskSetup& setup, const KtaskResult& peak, double load) {
  std::map<std::string, std::pair<double, double>> answered;  // of a workload: requests, clients
  for (std::size_t i = 0; i < setup.clients.size(); ++i) {
    auto& [requests, clients] = answered[setup.clients[i].name];
    requests += static_cast<double>(peak.clients[i].answered);
    clients += 1;
  }
  std::vector<double> rates;
  for (const KtaskWorkload& client : setup.clients) {
    const auto& [requests, clients] = answered[client.name];
    rates.push_back(load * std::max(1.0, requests) / clients / peak.seconds);
  }
  return rates;
}

std::unique_ptr<ObjectCache> empty_device(const KtaskSetup& setup) {
  // Host memory holds everything: the paper's machine has 244 GiB for 64 GB of constants.
  return std::make_unique<ObjectCache>(ObjectCacheOptions{.device = setup.memory,
                                                          .host = gib(1 << 20),
                                                          .eviction = setup.eviction,
                                                          .load_bytes_per_second = setup.link_bytes_per_second});
}

}  // namespace

double KtaskResult::throughput() const {
  std::uint64_t answered = 0;
  for (const KtaskClientResult& client : clients) answered += client.answered;
  return static_cast<double>(answered) / seconds;
}

double KtaskResult::work(const KtaskSetup& setup) const {
  double work = 0;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    work += static_cast<double>(clients[i].answered) * to_seconds(setup.clients[i].gpu);
  }
  return work / seconds;
}

double KtaskResult::spread() const {
  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  for (const KtaskClientResult& client : clients) {
    least = std::min(least, client.answered);
    most = std::max(most, client.answered);
  }
  return static_cast<double>(most) / static_cast<double>(std::max<std::uint64_t>(1, least));
}

KtaskSimulation::KtaskSimulation(const KtaskSetup& setup)
    : setup_(setup), begin_(setup.warm_up), end_(begin_ + setup.duration), gpus_(setup.gpus), cores_free_(setup.cores) {
  PolicyOptions options = setup.policy_options;
  options.seed = setup.seed;
  auto policy = make_policy(setup.policy, options);
  FL_CHECK(policy, "the setup was not checked");
  policy_ = std::move(*policy);
  for (Gpu& gpu : gpus_) {
    gpu.cache = empty_device(setup_);
    gpu.lanes = {.lanes = setup.lanes, .loads_at_once = setup.loads_at_once};
    if (setup.lanes == 0) gpu.lanes.lanes = gpu.measured.emplace(MeasuredLanes::Options()).lanes();
  }
  clients_.resize(setup.clients.size());
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    policy_->add_flow(flow_of(i), {});
    policy_->set_supply(flow_of(i), Supply::kReady);  // every GPU knows every kernel task
    clients_[i].arrivals = Rng(setup.seed * 1'000'003 + i);
    tell_residency(i);
  }
  result_.clients.resize(clients_.size());
  result_.seconds = to_seconds(setup.duration);
}

KtaskResult KtaskSimulation::run() {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (!setup_.rates.empty()) {
      expect_due(i);
    } else {
      for (std::size_t n = 0; n < setup_.outstanding; ++n) send(i, now_);
    }
  }
  clock_.run();
  FL_CHECK(requests_.empty(), "{} requests were never answered", requests_.size());
  double busy = 0;
  for (Gpu& gpu : gpus_) {
    add(result_.objects, gpu.past);
    add(result_.objects, gpu.cache->counters());
    busy += to_seconds(gpu.compute.busy());
  }
  result_.gpu_busy = busy / to_seconds(now_.time_since_epoch()) / static_cast<double>(gpus_.size());
  return std::move(result_);
}

void KtaskSimulation::happen(const Event& event) {
  now_ = clock_.now();
  switch (EventsOf<Kind>::kind_of(event)) {
    case Kind::kDue:
      send(event.subject, now_);
      expect_due(event.subject);
      break;
    case Kind::kCpuEnds:
      ++cores_free_;
      start_cpu_work();
      cpu_ends(event.subject, static_cast<Part>(event.detail));
      break;
    case Kind::kLoaded: loaded(event.subject); break;
    case Kind::kKernelsEnd:
      if (event.detail == gpu(GpuId(event.subject)).compute.epoch()) {
        kernels_end(gpu(GpuId(event.subject)), GpuId(event.subject));
      }
      break;
    case Kind::kCopiedOut: complete(event.subject); break;
    case Kind::kForget: forget_oldest(); break;
    case Kind::kChance:
      chance_.reset();
      assign_all();
      break;
  }
}

void KtaskSimulation::expect_due(std::size_t client) {
  const Instant due = now_ + from_seconds(clients_[client].arrivals.exponential(1 / setup_.rates[client]));
  if (due < end_) events_.add(due, Kind::kDue, client);
}

void KtaskSimulation::send(std::size_t client, Instant due) {
  const std::uint64_t id = next_request_++;
  Request& request = requests_[id];
  request = {.client = client, .number = clients_[client].sent++, .due = due};
  ++result_.sent;
  use_cpu(id, Part::kBefore, varied(workload(client).cpu / 2, request, 0));
}

void KtaskSimulation::use_cpu(std::uint64_t request, Part part, Duration takes) {
  if (takes == Duration(0)) return cpu_ends(request, part);
  cpu_queue_.push_back({request, part, takes});
  start_cpu_work();
}

void KtaskSimulation::start_cpu_work() {
  for (; cores_free_ > 0 && !cpu_queue_.empty(); --cores_free_) {
    const CpuWork work = cpu_queue_.front();
    cpu_queue_.pop_front();
    events_.add(now_ + work.takes, Kind::kCpuEnds, work.request, static_cast<std::uint64_t>(work.part));
  }
}

void KtaskSimulation::cpu_ends(std::uint64_t request, Part part) {
  switch (part) {
    case Part::kBefore: return queue(request);
    case Part::kProcessStart: return bring(request);
    case Part::kAfter: return answer(request);
  }
}

void KtaskSimulation::queue(std::uint64_t id) {
  policy_->on_arrival(now_, flow_of(requests_.at(id).client), InvocationId(id));
  assign_all();
}

void KtaskSimulation::assign_all() {
  tell_setups();
  while (const auto next = policy_->choose(now_, *this)) {
    begin(*next);
    tell_setups();
  }
  const auto chance = policy_->next_chance();
  if (!chance || (chance_ && *chance_ <= *chance)) return;
  chance_ = chance;
  events_.add(*chance, Kind::kChance, 0);
}

// What a policy that does not choose the GPU is told of each client: the least loading on any GPU with a free lane.
void KtaskSimulation::tell_setups() {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (policy_->queued(flow_of(i)) == 0) continue;
    Duration least = Duration::max();
    for (const Gpu& gpu : gpus_) {
      if (gpu.lanes.takes_any()) least = std::min(least, reload(i, gpu));
    }
    if (least == Duration::max() || least == clients_[i].told_setup) continue;
    clients_[i].told_setup = least;
    policy_->set_setup(flow_of(i), least);
  }
}

// As the node's placer: where it begins soonest, then where least runs.
GpuId KtaskSimulation::quickest(FlowId client) const {
  const std::vector<Place> all = places(client);
  const auto rank = [](const Place& place) { return std::tuple(!place.free, place.setup, place.running, place.gpu); };
  return std::min_element(all.begin(), all.end(), [&](const Place& a, const Place& b) { return rank(a) < rank(b); })
      ->gpu;
}

void KtaskSimulation::begin(const FlowQueue::Choice& choice) {
  const std::uint64_t id = choice.invocation.value();
  Request& request = requests_.at(id);
  request.gpu = choice.gpu ? choice.gpu : quickest(choice.flow);
  ++gpu(request.gpu).lanes.running;
  pin(request);
  hash(id);
  hash(request.gpu.value());
  hash(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  if (setup_.loads_at_once == 0 || has_constants(request.client, gpu(request.gpu))) take_lane(request, id);
  if (setup_.processes() && gpu(request.gpu).worker != choice.flow) {
    gpu(request.gpu).worker = choice.flow;
    replace_process(gpu(request.gpu));
    ++result_.cold_starts;
    return use_cpu(id, Part::kProcessStart, varied(workload(request.client).cold_start, request, 1));
  }
  bring(id);
}

void KtaskSimulation::bring(std::uint64_t id) {
  if (!load(id)) gpu(requests_.at(id).gpu).no_room.push_back(id);
}

void KtaskSimulation::replace_process(Gpu& gpu) {
  add(gpu.past, gpu.cache->counters());
  gpu.cache = empty_device(setup_);
  gpu.constants_there.clear();
  ++gpu.processes;
}

std::vector<ObjectNeed> KtaskSimulation::needs_of(std::uint64_t id) const {
  const Request& request = requests_.at(id);
  const KtaskWorkload& work = workload(request.client);
  std::vector<ObjectNeed> needs;
  if (work.constants > Bytes(0)) needs.push_back({constants_of(request.client), work.constants, ObjectKind::kConstant});
  const Bytes in(work.dynamic.count() / 2);
  needs.push_back({input_of(id), in, ObjectKind::kInput});
  needs.push_back({output_of(id), work.dynamic - in, ObjectKind::kOutput});
  return needs;
}

// What a request needs stays while it is assigned.
void KtaskSimulation::pin(const Request& request) {
  Gpu& on = gpu(request.gpu);
  on.pinned += unpinned_need(request.client, on);
  ++on.users[request.client];
}

void KtaskSimulation::unpin(const Request& request) {
  Gpu& on = gpu(request.gpu);
  if (--on.users[request.client] == 0) on.users.erase(request.client);
  on.pinned -= unpinned_need(request.client, on);
}

Bytes KtaskSimulation::unpinned_need(std::size_t client, const Gpu& gpu) const {
  const KtaskWorkload& work = workload(client);
  return work.dynamic + (gpu.users.contains(client) ? Bytes(0) : work.constants);
}

// False: others' requests hold the memory; nothing has changed.
bool KtaskSimulation::load(std::uint64_t id) {
  Request& request = requests_.at(id);
  Gpu& on = gpu(request.gpu);
  const KtaskWorkload& work = workload(request.client);
  const bool brings_constants = !has_constants(request.client, on);
  const Duration constants_take = reload(request.client, on);
  CacheActions actions;
  const Status acquired = on.cache->acquire(now_, RequestId(id), needs_of(id), Bytes(0), actions);
  if (!acquired) {
    FL_CHECK(acquired.error().code == Errc::kResourceExhausted, "{}", acquired.error().message);
    return false;
  }
  const Bytes input(work.dynamic.count() / 2);
  request.loading = copy_time(input) + constants_take;
  Instant there = copy_in(on, input);
  if (brings_constants) on.constants_there[request.client] = copy_constants(id);
  if (!request.has_lane) ++on.lanes.loading;
  if (work.constants > Bytes(0)) there = std::max(there, on.constants_there[request.client]);
  for (const CacheAction& action : actions) {
    const auto* evicted = std::get_if<EvictObject>(&action);
    if (evicted && evicted->object.value() < kDynamic) tell_residency(evicted->object.value() - 1);
  }
  if (brings_constants) tell_residency(request.client);
  events_.add(there, Kind::kLoaded, id);
  return true;
}

// From a GPU that has them, which keeps them meanwhile, where GPUs are linked; else from the host.
Instant KtaskSimulation::copy_constants(std::uint64_t id) {
  Request& request = requests_.at(id);
  Gpu& on = gpu(request.gpu);
  const Bytes constants = workload(request.client).constants;
  request.source = peer_with(request.client, on);
  if (!request.source) return copy_in(on, constants);
  CacheActions ignored;
  const std::vector<ObjectNeed> lent = {{constants_of(request.client), constants, ObjectKind::kConstant}};
  const Status held = gpu(request.source).cache->acquire(now_, RequestId(kLent + id), lent, Bytes(0), ignored);
  FL_CHECK(held, "{}", held.error().message);
  on.peer_free = std::max(on.peer_free, now_) + copy_time(constants, setup_.peer_bytes_per_second);
  return on.peer_free;
}

void KtaskSimulation::loaded(std::uint64_t id) {
  Request& request = requests_.at(id);
  if (request.source) {
    CacheActions ignored;
    Gpu& lender = gpu(request.source);
    lender.cache->release(RequestId(kLent + id), true, ignored);
    request.source = GpuId();
    retry(lender);
  }
  run_kernels(id);
  if (request.has_lane) return;
  --gpu(request.gpu).lanes.loading;
  take_lane(request, id);
  assign_all();
}

// It holds one from now on.
void KtaskSimulation::take_lane(Request& request, std::uint64_t id) {
  request.has_lane = true;
  Gpu& on = gpu(request.gpu);
  if (on.measured) on.measured->begin(now_, InvocationId(id), flow_of(request.client));
}

// What a client's next request would wait for, GPU by GPU.
void KtaskSimulation::tell_residency(std::size_t client) {
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    policy_->set_setup_on(flow_of(client), GpuId(i + 1), reload(client, gpus_[i]));
  }
}

// Copies take turns on their stream. What eviction writes back (outputs that nobody fetched) never waits here: outputs are
// fetched as soon as they are there.
Instant KtaskSimulation::copy_in(Gpu& gpu, Bytes bytes) const {
  const CopyLane lane =
      setup_.copy_streams > 1 ? copy_lane_of(static_cast<std::uint64_t>(bytes.count())) : CopyLane::kSmall;
  Instant& free = gpu.in_free[static_cast<std::size_t>(lane)];
  free = std::max(free, now_) + copy_time(bytes);
  return free;
}

void KtaskSimulation::run_kernels(std::uint64_t id) {
  Request& request = requests_.at(id);
  const KtaskWorkload& work = workload(request.client);
  request.kernels_began = now_;
  Gpu& on = gpu(request.gpu);
  on.compute.start(now_, id, varied(work.gpu, request, 2), work.gpu_share);
  expect_kernels_end(on, request.gpu);
}

void KtaskSimulation::expect_kernels_end(Gpu& gpu, GpuId id) {
  if (const auto end = gpu.compute.next_end()) {
    events_.add(std::max(*end, now_), Kind::kKernelsEnd, id.value(), gpu.compute.epoch());
  }
}

void KtaskSimulation::kernels_end(Gpu& gpu, GpuId gpu_id) {
  const std::uint64_t id = gpu.compute.finish(now_);
  expect_kernels_end(gpu, gpu_id);
  Request& request = requests_.at(id);
  request.kernels_ended = now_;
  const Bytes output(workload(request.client).dynamic.count() - workload(request.client).dynamic.count() / 2);
  gpu.out_free = std::max(gpu.out_free, now_) + copy_time(output);
  events_.add(gpu.out_free, Kind::kCopiedOut, id);
}

void KtaskSimulation::complete(std::uint64_t id) {
  const Request request = requests_.at(id);
  Gpu& on = gpu(request.gpu);
  CacheActions ignored;
  on.cache->written_back(output_of(id));
  on.cache->release(RequestId(id), true, ignored);
  if (setup_.dynamic_kept == Duration(0)) {
    forget_objects(on, id);
  } else {
    kept_.push_back({now_ + setup_.dynamic_kept, id, request.gpu, on.processes});
    events_.add(kept_.back().until, Kind::kForget, 0);
  }
  retry(on);
  const Duration gpu_time = request.loading + (request.kernels_ended - request.kernels_began);
  --on.lanes.running;
  if (on.measured) {
    on.measured->end(now_, InvocationId(id));
    on.lanes.lanes = on.measured->lanes();
  }
  unpin(request);
  policy_->on_completion(now_, flow_of(request.client), InvocationId(id), gpu_time);
  assign_all();
  use_cpu(id, Part::kAfter, varied(workload(request.client).cpu / 2, request, 3));
}

// What was assigned and found no memory: some is free now.
void KtaskSimulation::retry(Gpu& gpu) {
  std::vector<std::uint64_t> again;
  std::swap(again, gpu.no_room);
  for (const std::uint64_t request : again) bring(request);
}

void KtaskSimulation::forget_objects(Gpu& gpu, std::uint64_t request) {
  CacheActions ignored;
  gpu.cache->remove(input_of(request), ignored);
  gpu.cache->remove(output_of(request), ignored);
}

void KtaskSimulation::forget_oldest() {
  const Kept oldest = kept_.front();
  kept_.pop_front();
  Gpu& on = gpu(oldest.gpu);
  if (on.processes == oldest.process) forget_objects(on, oldest.request);
}

void KtaskSimulation::answer(std::uint64_t id) {
  const Request request = requests_.at(id);
  requests_.erase(id);
  ++result_.served;
  KtaskClientResult& client = result_.clients[request.client];
  if (measured(now_)) ++client.answered;
  if (measured(request.due)) {
    client.latency.add(now_ - request.due);
    result_.latency.add(now_ - request.due);
  }
  if (setup_.rates.empty() && now_ < end_) send(request.client, now_);
}

bool KtaskSimulation::has_constants(std::size_t client, const Gpu& gpu) const {
  return workload(client).constants == Bytes(0) || gpu.cache->on_device(constants_of(client));
}

// Another GPU from which the client's constants, which are there, can be copied; none: there is no such GPU.
GpuId KtaskSimulation::peer_with(std::size_t client, const Gpu& gpu) const {
  if (setup_.peer_bytes_per_second <= 0) return GpuId();
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const Gpu& peer = gpus_[i];
    if (&peer == &gpu || !has_constants(client, peer)) continue;
    const auto there = peer.constants_there.find(client);
    if (there != peer.constants_there.end() && there->second <= now_) return GpuId(i + 1);
  }
  return GpuId();
}

Duration KtaskSimulation::reload(std::size_t client, const Gpu& gpu) const {
  if (has_constants(client, gpu)) return Duration(0);
  const Bytes constants = workload(client).constants;
  return peer_with(client, gpu) ? copy_time(constants, setup_.peer_bytes_per_second) : copy_time(constants);
}

bool KtaskSimulation::can_run(FlowId client) const {
  const std::vector<Place> all = places(client);
  return std::any_of(all.begin(), all.end(), [](const Place& place) { return place.free; });
}

std::vector<Placeable::Place> KtaskSimulation::places(FlowId client) const {
  std::vector<Place> places;
  for (std::size_t i = 0; i < gpus_.size(); ++i) places.push_back(*place(client, GpuId(i + 1)));
  return places;
}

Obstacle KtaskSimulation::obstacle(FlowId flow) const {
  if (can_run(flow)) return Obstacle::kNothing;
  const std::size_t client = client_of(flow);
  const bool has_lane_somewhere =
      std::any_of(gpus_.begin(), gpus_.end(), [&](const Gpu& on) { return has_lane(client, on); });
  return has_lane_somewhere ? Obstacle::kMemory : Obstacle::kSlots;
}

// Constants that are on their way are waited for in the queue.
bool KtaskSimulation::has_lane(std::size_t client, const Gpu& on) const {
  const auto there = on.constants_there.find(client);
  const bool on_their_way = setup_.loads_at_once > 0 && there != on.constants_there.end() && there->second > now_;
  return !on_their_way && on.lanes.takes(!has_constants(client, on));
}

// Beside what those that run need.
bool KtaskSimulation::has_room(std::size_t client, const Gpu& on) const {
  return on.pinned + unpinned_need(client, on) <= setup_.memory;
}

std::optional<Placeable::Place> KtaskSimulation::place(FlowId flow, GpuId id) const {
  const Gpu& on = gpus_[id.value() - 1];
  const std::size_t client = client_of(flow);
  const Bytes constants = has_constants(client, on) ? Bytes(0) : workload(client).constants;
  return Place{.gpu = id,
               .setup = reload(client, on),
               .running = on.lanes.running,
               .free = has_lane(client, on) && has_room(client, on),
               .evicts = on.cache->device_used() + constants + workload(client).dynamic > setup_.memory};
}

std::vector<GpuId> KtaskSimulation::free_gpus() const {
  std::vector<GpuId> free;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i].lanes.takes(false)) free.emplace_back(i + 1);
  }
  const auto running = [this](GpuId gpu) { return gpus_[gpu.value() - 1].lanes.running; };
  std::stable_sort(free.begin(), free.end(), [&](GpuId a, GpuId b) { return running(a) < running(b); });
  return free;
}

// By client, number and part: the same under every system.
Duration KtaskSimulation::varied(Duration typical, const Request& request, std::uint64_t part) const {
  Rng rng((setup_.seed * 1'000'003 + request.client) * 1'000'003 + request.number * 4 + part);
  const double factor = 1 + setup_.noise * (2 * rng.uniform() - 1);
  return Duration(static_cast<Duration::rep>(static_cast<double>(typical.count()) * factor));
}

void KtaskSimulation::hash(std::uint64_t value) {
  result_.state_hash = (result_.state_hash ^ value) * 0x100000001b3u;
}

KtaskOnline run_online(KtaskSetup setup, double load) {
  KtaskOnline online;
  const std::size_t clients = setup.clients.size();
  if (setup.rate) {
    setup.rates.assign(clients, *setup.rate / static_cast<double>(clients));
  } else {
    KtaskSetup busy = setup;
    busy.outstanding = kPeakOutstanding;
    const KtaskResult peak = KtaskSimulation(busy).run();
    online.peak = peak.throughput();
    setup.rates = shares_of_peak(busy, peak, load);
  }
  for (const double rate : setup.rates) online.rate += rate;
  online.result = KtaskSimulation(setup).run();
  return online;
}

Duration KtaskSimulation::copy_time(Bytes bytes) const {
  return copy_time(bytes, setup_.link_bytes_per_second);
}

Duration KtaskSimulation::copy_time(Bytes bytes, double bytes_per_second) {
  return kCopyLatency + from_seconds(static_cast<double>(bytes.count()) / bytes_per_second);
}

}  // namespace fairlead::sim
