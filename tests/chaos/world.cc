#include "chaos/world.h"

#include <fmt/format.h>

#include <filesystem>

#include "chaos/failing_memory.h"
#include "chaos/virtual_time.h"
#include "edge/lambda/lambda_edge.h"

namespace fairlead::chaos {
namespace {

constexpr const char* kNames[] = {"f", "g", "h"};
constexpr const char* kTenants[] = {"a", "b"};
constexpr std::size_t kMostClients = 10;
constexpr Duration kRest = std::chrono::minutes(45);  // more than all back-offs together

// Which incarnation a record is of is in its description, since that is kept.
int incarnation_of(const FunctionRecord& record) {
  return std::atoi(record.config.description.c_str());
}

}  // namespace

const char* strike_name(Strike strike) {
  switch (strike) {
    case Strike::kPowerCut: return "power cut";
    case Strike::kStop: return "stop and start";
    case Strike::kDisk: return "failing disk";
    case Strike::kMemory: return "no memory in SQLite";
    case Strike::kSpawner: return "spawner's death";
    case Strike::kWallClock: return "wall clock set";
    case Strike::kHangUp: return "client hung up";
    case Strike::kDelete: return "function deleted";
    case Strike::kRedrive: return "redrive";
    case Strike::kCount: break;
  }
  return "?";
}

// What the edges ask of the node: invocations go to the present life, and are written into the book on their way.
class Door final : public FakeNode {
 public:
  explicit Door(Book& book) : book_(book) {}
  void lead_to(Life* life) { life_ = life; }

  Result<FunctionRecord> get_function(const std::string& name) override {
    const auto function = life_->functions.get(name);
    if (!function) return fail(function.error());
    return (*function)->record;
  }
  CancelHandle invoke(InvokeRequest request, Callback<Outcome> done) override {
    const auto function = life_->functions.get(request.invocation.function);
    if (!function) return done(fail(function.error())), CancelHandle();
    book_.sent(request.invocation.payload, incarnation_of((*function)->record));
    return life_->invocations.invoke(**function, std::move(request), std::move(done));
  }
  void invoke_event(InvokeRequest request, Callback<std::string> accepted) override {
    const RegisteredFunction* const function = life_->functions.find(request.invocation.function);
    book_.sent(request.invocation.payload, function == nullptr ? -1 : incarnation_of(function->record));
    life_->asynchronous().accept(std::move(request), std::move(accepted));
  }

 private:
  Book& book_;
  Life* life_ = nullptr;
};

World::World(std::uint64_t seed)
    : rng_(seed), weather_(static_cast<unsigned>(rng_.next() & rng_.next()) | static_cast<unsigned>(rng_.below(512))) {
  code_.write("bootstrap", "#!/bin/sh\n");
  door_ = std::make_unique<Door>(book_);
  router_ = std::make_unique<Router>(document_errors());
  FL_CHECK(router_->add(lambda_edge(*door_)).has_value(), "the edge");
  begin_life();
}

World::~World() {
  disk_.heal();
  FailingMemory::fail_at(0);
}

bool World::strikes(Strike strike, unsigned one_in) {
  const bool does = rng_.below(one_in) == 0 && !is_calm_ && (weather_ >> static_cast<unsigned>(strike) & 1) != 0;
  if (does) ++struck_[static_cast<std::size_t>(strike)];
  return does;
}

// ---- lives

void World::begin_life() {
  disk_.heal();
  FailingMemory::fail_at(0);
  state_ = {};
  processes_.clear();
  clients_.clear();
  std::filesystem::remove(folder_ / "state.tally");  // it lies on another disk, which loses nothing
  life_ = std::make_unique<Life>(folder_.path(), disk_, rng_.next());
  door_->lead_to(life_.get());
  const Status begun = life_->begin(folder_ / "socket", *router_);
  book_.expect(begun.has_value(), begun ? "" : "the node does not start: " + begun.error().message);
  if (!begun) return;
  std::vector<int> functions;
  for (const auto& [name, function] : life_->functions.all()) functions.push_back(incarnation_of(function.record));
  std::vector<DeadLetter> letters;
  life_->disk_store().list_dead_letters("", 10'000,
                                        [&](Result<std::vector<DeadLetter>> all) { letters = *std::move(all); });
  const std::vector<QueuedEvent> found = life_->found;
  life_->settle();  // what is due is ordered, and none of it has run yet
  book_.check_start(functions, found, letters);
  const StateDamage& damage = life_->disk_store().damage();
  book_.expect(damage.damaged_events + damage.missing_events == 0, "the start found damage");
  take_orders();
}

// What was written goes on as a ghost, and what was not synced is lost, in part.
void World::end_life() {
  if (!state_.is_cut_soon) disk_.cut_after(1, {});
  life_.reset();
  disk_.restore(static_cast<unsigned>(rng_.next()));
}

void World::settle() {
  if (!life_->settle()) {
    end_life();
    return begin_life();
  }
  if (!state_.fails) book_.settled();
  take_orders();
  read_answers();
}

// ---- what the node tells the processes, and its clients

void World::take_orders() {
  FakeRunner& runner = life_->runner;
  for (const InstanceId instance : std::exchange(runner.started, {})) {
    Process process;
    const LiveInstance* const live = life_->instances.find(instance);
    if (live != nullptr) process.incarnation = incarnation_of(life_->functions.find(live->flow)->record);
    processes_[instance] = process;
  }
  for (auto& [instance, request] : std::exchange(runner.delivered, {})) {
    Process& process = processes_[instance];
    process.state = Process::State::kRunning;
    process.invocation = request.id;
    process.payload = request.invocation.payload;
    book_.delivered(process.payload, process.incarnation);
  }
  for (const InstanceId instance : std::exchange(runner.killed, {})) {
    const auto found = processes_.find(instance);
    if (found == processes_.end()) continue;
    if (found->second.state == Process::State::kRunning) book_.failed(found->second.payload);
    found->second.state = Process::State::kKilled;
  }
}

void World::read_answers() {
  for (auto client = clients_.begin(); client != clients_.end();) {
    if (!client->receive()) {
      ++client;
      continue;
    }
    if (client->is_event() && client->status() == 202) {
      book_.acknowledged(client->word(), client->header("x-amzn-RequestId"));
    } else if (client->status() == 200 && client->header("X-Amz-Function-Error").empty()) {
      book_.expect(client->body() == "\"" + client->word() + "\"",
                   client->word() + " has got another's answer: " + client->body().substr(0, 40));
    }
    client = clients_.erase(client);
  }
}

// ---- clients

void World::come() {
  if (clients_.size() >= kMostClients) return;
  const std::string function = kNames[rng_.below(std::size(kNames))];
  const std::size_t bytes = rng_.below(8) == 0 ? rng_.below(150'000) : rng_.below(200);
  const std::string word = (rng_.below(3) == 0 ? "c" : "e") + std::to_string(++sent_);
  clients_.emplace_back(folder_ / "socket", function, kTenants[rng_.below(std::size(kTenants))], word, bytes);
}

void World::send_pieces() {
  for (Client& client : clients_) client.send(rng_.below(4) == 0 ? 1 + rng_.below(5000) : 1 << 20);
}

void World::hang_up() {
  if (clients_.empty()) return;
  clients_.erase(std::next(clients_.begin(), static_cast<std::ptrdiff_t>(rng_.below(clients_.size()))));
}

// ---- processes

void World::let_work() {
  if (processes_.empty()) return;
  const auto chosen = std::next(processes_.begin(), static_cast<std::ptrdiff_t>(rng_.below(processes_.size())));
  work(chosen->first, chosen->second);
}

void World::work(InstanceId instance, Process& process) {
  const std::uint64_t chance = is_calm_ ? 0 : rng_.below(100);
  switch (process.state) {
    case Process::State::kStarting:
      if (!state_.has_spawner || chance >= 95) return end(instance, true);
      if (chance >= 88) return end(instance, false);
      process.state = Process::State::kIdle;
      return life_->ready(instance);
    case Process::State::kIdle: return;
    case Process::State::kRunning:
      if (chance >= 96) return;  // it hangs
      if (chance >= 90) return end(instance, chance >= 94);
      return answer(instance, process);
    case Process::State::kAnswered: process.state = Process::State::kIdle; return life_->idle(instance);
    case Process::State::kKilled: return end(instance, false);
  }
}

void World::answer(InstanceId instance, Process& process) {
  const bool is_error = !is_calm_ && rng_.below(4) == 0;
  const std::string word = process.payload.substr(0, process.payload.find(' '));
  is_error ? book_.failed(process.payload) : book_.succeeded(process.payload);
  process.state = Process::State::kAnswered;
  life_->answered(instance, process.invocation, is_error, "\"" + word + "\"");
}

void World::end(InstanceId instance, bool is_nodes_fault) {
  const Process process = processes_.at(instance);
  processes_.erase(instance);
  if (process.state == Process::State::kRunning) {
    is_nodes_fault ? book_.failed_by_node(process.payload) : book_.failed(process.payload);
  }
  life_->gone(instance, "ended", is_nodes_fault);
  take_orders();
}

// ---- what strikes

void World::pass_time() {
  const double mean_s = rng_.below(10) == 0 ? 300 : 3;
  VirtualTime::pass(from_seconds(rng_.exponential(mean_s)) + Duration(1));
  if (strikes(Strike::kWallClock, 12)) {
    VirtualTime::set_wall(std::chrono::minutes(static_cast<int>(rng_.below(240)) - 120));
  }
}

void World::deploy(const std::string& name) {
  if (book_.named(name) >= 0) return;
  const std::string tenant = kTenants[rng_.below(std::size(kTenants))];
  const int number = book_.add_incarnation(name, tenant);
  FunctionConfig config{.description = std::to_string(number), .handler = "h", .tags = {{kTenantTag, tenant}}};
  const int retries = static_cast<int>(rng_.below(3));
  const bool lives =
      life_->create(name, config, code_.path(), [this, name, number, retries](Result<FunctionRecord> made) {
        using enum Incarnation::State;
        book_.incarnation(number).state = made ? kThere : state_.fails ? kRefused : kGone;
        if (!made) return;
        life_->asynchronous().set_config(name, {.retries = retries},
                                         [this, number, retries](Result<EventInvokeConfig> set) {
                                           if (set) book_.incarnation(number).retries = retries;
                                         });
      });
  if (lives) return settle();
  end_life();
  begin_life();
}

void World::remove(const std::string& name) {
  const int number = book_.named(name);
  if (number < 0 || book_.incarnation(number).state != Incarnation::State::kThere) return;
  if (!strikes(Strike::kDelete, 1)) return;
  book_.incarnation(number).state = Incarnation::State::kLeaving;
  life_->control().remove(name, [this, number](const Status& removed) {
    using enum Incarnation::State;
    book_.incarnation(number).state = removed ? kGone : state_.fails ? kLeaving : kThere;
  });
}

void World::redrive() {
  if (!strikes(Strike::kRedrive, 1)) return;
  book_.lose_count();
  life_->asynchronous().redrive(rng_.below(2) == 0 ? "" : "f", [](const Result<RedriveResult>&) {});
}

void World::break_disk() {
  if (state_.fails) {
    state_.fails = false;
    disk_.heal();
    FailingMemory::fail_at(0);
  } else if (!state_.is_cut_soon && strikes(Strike::kDisk, 2)) {
    state_.fails = true;
    disk_.fail_at(1 + static_cast<int>(rng_.below(30)), rng_.below(2) == 0);
  } else if (strikes(Strike::kMemory, 2)) {
    state_.fails = true;
    FailingMemory::fail_at(1 + static_cast<int>(rng_.below(200)));
  }
  if (!state_.fails) return;
  state_.has_failed = true;
  book_.lose_count();
}

// All processes end with it; for a while, whoever is to start fails.
void World::change_spawner() {
  if (!state_.has_spawner) {
    state_.has_spawner = true;
    return life_->asynchronous().node_recovered();
  }
  if (!strikes(Strike::kSpawner, 1)) return;
  state_.has_spawner = false;
  for (const auto& [instance, process] : std::map(processes_)) {
    if (processes_.contains(instance)) end(instance, true);
  }
}

void World::step() {
  switch (const std::uint64_t choice = rng_.below(100); choice) {
    case 0:
      if (!state_.is_cut_soon && !state_.fails && strikes(Strike::kPowerCut, 1)) {
        state_.is_cut_soon = true;
        disk_.cut_after(1 + static_cast<int>(rng_.below(40)), {});
      }
      break;
    case 1:
      if (!state_.fails && strikes(Strike::kStop, 2)) {
        end_life();
        return begin_life();
      }
      break;
    case 2: remove(kNames[rng_.below(std::size(kNames))]); break;
    case 3: redrive(); break;
    case 4: break_disk(); break;
    case 5: change_spawner(); break;
    case 6:
    case 7:
      if (strikes(Strike::kHangUp, 1)) hang_up();
      break;
    case 8:
    case 9:
    case 10: return deploy(kNames[rng_.below(std::size(kNames))]);
    default:
      if (choice < 35) {
        come();
      } else if (choice < 75) {
        let_work();
      } else if (choice < 90) {
        pass_time();
      }
  }
  send_pieces();
  settle();
}

// Nothing strikes, everybody does what he should, and time passes.
void World::come_to_rest() {
  is_calm_ = true;
  state_.has_spawner = true;
  state_.fails = false;
  disk_.heal();
  FailingMemory::fail_at(0);
  life_->asynchronous().node_recovered();
  constexpr Duration kTick = std::chrono::seconds(15);
  for (Duration passed{0}; passed < kRest; passed += kTick) {
    for (int i = 0; i < 40 && book_.violation().empty(); ++i) {
      const std::size_t before = processes_.size();
      for (const auto& [instance, process] : std::map(processes_)) {
        if (processes_.contains(instance)) work(instance, processes_.at(instance));
      }
      send_pieces();
      settle();
      if (clients_.empty() && before == processes_.size()) break;
    }
    VirtualTime::pass(kTick);
    settle();
  }
}

std::string World::run(int steps) {
  for (const char* const name : kNames) deploy(name);
  for (int i = 0; i < steps && book_.violation().empty(); ++i) step();
  for (int life = 0; life < 2 && book_.violation().empty(); ++life) {  // what memory and disk say at rest
    come_to_rest();
    std::vector<DeadLetter> letters;
    life_->disk_store().list_dead_letters("", 10'000,
                                          [&](Result<std::vector<DeadLetter>> all) { letters = *std::move(all); });
    settle();
    settle();
    const EventCounters counters = life_->asynchronous().counters();
    book_.check_rest(letters, counters.waiting + counters.running, life_->held_bytes());
    // What a failing disk did not take, a dead letter or the end of an event, is on disk as an event, for the next life.
    if (!state_.has_failed) book_.check_kept({}, letters, "at rest");
    end_life();
    begin_life();
  }
  return book_.violation();
}

}  // namespace fairlead::chaos
