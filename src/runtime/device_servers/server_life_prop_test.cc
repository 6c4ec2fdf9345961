// Lives of servers under events in any order: tenants, their sessions and calls, of which some end whatever process they are
// in, for as many processes as it takes. Actions are carried out as device_servers.h does, without processes.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/device_servers/quarantine.h"
#include "runtime/device_servers/server_life.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using Life = ServerLife;

constexpr Duration kQuarantine = 600s;

// What may go wrong beside calls that end servers.
struct Mishaps {
  bool registrations = false;  // some end servers
  bool others = false;         // processes that others kill or that do not start, calls and sessions that are given up
};

enum class Outcome { kNone, kAnswered, kFailed, kNobodyWaits };

class World {
 public:
  World(std::uint64_t seed, Mishaps mishaps, bool one_for_all)
      : random_(seed), mishaps_(mishaps), one_for_all_(one_for_all) {}

  void something_happens() {
    switch (below(12)) {
      case 0: return start_session();
      case 1:
      case 2: return deliver();
      case 3: return one_in(2) ? pass(Duration(std::chrono::milliseconds(below(3000)))) : pass(30s);
      case 4: return mishaps_.others ? give_up_or_kill() : void();
      default: (void)server_happens(/*calm=*/false);
    }
  }

  // From now on nothing new comes, and only those that end servers do so.
  void settle() {
    for (int i = 0; i < 20'000 && !is_settled(); ++i) {
      if (!server_happens(/*calm=*/true)) pass(1s);
    }
    RC_ASSERT(is_settled());
  }

  void check_end() const {
    for (const auto& [id, call] : calls_) {
      RC_ASSERT(call.outcome != Outcome::kNone);
      RC_ASSERT((call.outcome == Outcome::kNobodyWaits) == call.is_given_up);
    }
    for (const auto& [number, starts] : starts_) check_starts(starts);
  }

 private:
  struct Session {
    std::string tenant, place;
    bool ends_servers = false;
    bool announced = false;
    InvocationId call;
  };
  struct Call {
    InstanceId session;
    bool ends_servers = false;
    bool is_given_up = false;
    Outcome outcome = Outcome::kNone;
  };
  struct Starts {
    std::vector<Instant> at;       // of processes
    std::vector<Instant> settled;  // ends whose cause left a server for all
  };
  struct Server {
    Life life;
    int number = 0;
    bool has_process = false, is_ready = false, is_ending = false, is_watched = false;
    std::optional<Instant> restart_at;
    int ends = 0;  // since it last ran for a minute, but those whose cause has left
    bool cause_left = false;
    Instant started;
    std::set<InstanceId> opening_constants, registering, on_trial, ready;
    std::set<InvocationId> opening_inputs, opened, on_device, keeping;
  };

  int below(int bound) { return static_cast<int>(random_() % static_cast<std::uint64_t>(bound)); }
  bool one_in(int n) { return below(n) == 0; }
  template <typename Container>
  auto one_of(const Container& container) {
    return *std::next(container.begin(), below(static_cast<int>(container.size())));
  }

  // ---- what a life decides

  template <typename... Parameters, typename... Arguments>
  void happens(Server& server, void (Life::*event)(Parameters...), Arguments&&... arguments) {
    Life::Actions actions;
    (server.life.*event)(std::forward<Arguments>(arguments)..., actions);
    carry_out(server, actions);
  }

  void carry_out(Server& server, const Life::Actions& actions) {
    for (const Life::Action& action : actions) {
      std::visit([&](const auto& one) { act(server, one); }, action);
    }
  }

  void act(Server& server, const Life::StartProcess&) {
    RC_ASSERT(!server.has_process);
    server.has_process = true;
    server.restart_at.reset();
    server.started = now_;
    starts_[server.number].at.push_back(now_);
  }
  void act(Server& server, const Life::EndProcess&) { server.is_ending = true; }
  void act(Server& server, const Life::RestartAfter& next) {
    RC_ASSERT(!server.has_process);
    if (!std::exchange(server.cause_left, false)) {
      if (now_ - server.started >= 60s) server.ends = 0;
      const Duration wait = server.ends == 0 ? 0ms : std::min<Duration>(100ms * (1 << (server.ends - 1)), 10s);
      RC_ASSERT(next.wait == wait);
      server.ends = std::min(server.ends + 1, 20);
    } else {
      RC_ASSERT(next.wait == Duration(0));
    }
    if (next.wait == Duration(0)) return happens(server, &Life::restart, now_);
    server.restart_at = now_ + next.wait;
  }
  void act(Server& server, const Life::WatchIdle&) { server.is_watched = true; }
  void act(Server& server, const Life::Retire&) {
    if (server.life.phase() != ServerPhase::kOver) return;
    RC_ASSERT(!server.has_process && server.life.sessions().empty());
    std::erase_if(servers_, [&](const auto& entry) { return &entry.second == &server; });
  }
  void act(Server& server, const Life::OpenConstants& open) {
    server.registering.erase(open.session);
    server.opening_constants.insert(open.session);
  }
  void act(Server& server, const Life::Register& opened) {
    RC_ASSERT(server.is_ready && !server.opening_constants.contains(opened.session));
    RC_ASSERT(server.registering.insert(opened.session).second);
  }
  void act(Server& server, const Life::Announce& ready) {
    RC_ASSERT(server.is_ready && server.ready.contains(ready.session));
    sessions_.at(ready.session).announced = true;
  }
  void act(Server& server, const Life::DropSession& dropped) {
    RC_ASSERT(server.is_ready);
    server.registering.erase(dropped.session);
    server.ready.erase(dropped.session);
  }
  void act(Server& server, const Life::EndSession& ended) {
    if (ended.why == Life::SessionEnd::kNoServer) server.ends = 0;
    RC_ASSERT(mishaps_.registrations || mishaps_.others);
    end_session(ended.session);
    if (mishaps_.others && one_in(3)) start_session();  // who hears of it starts another one
  }
  void act(Server& server, const Life::OpenInputs& open) {
    RC_ASSERT(!server.on_device.contains(open.call));
    server.opened.erase(open.call);
    server.opening_inputs.insert(open.call);
  }
  void act(Server& server, const Life::Run& run) {
    RC_ASSERT(server.is_ready && server.ready.contains(calls_.at(run.call).session));
    RC_ASSERT(server.opened.erase(run.call) == 1u);
    const auto is_suspect = [&](InvocationId id) { return server.life.calls().find(id)->suspected > 0; };
    const auto& others = server.on_device;
    RC_ASSERT(others.empty() || !is_suspect(run.call));
    RC_ASSERT(std::none_of(others.begin(), others.end(), is_suspect));
    server.on_device.insert(run.call);
  }
  void act(Server&, const Life::Fail& failed) {
    // Without others who end processes it is known who did, once one call of several has run alone.
    const bool is_known = failed.why != Life::Failure::kCausedEnd || mishaps_.others;
    RC_ASSERT(is_known || calls_.at(failed.call).ends_servers);
    answer(failed.call, Outcome::kFailed);
  }
  void act(Server&, const Life::Forget& forgotten) {
    RC_ASSERT(calls_.at(forgotten.call).outcome == Outcome::kNobodyWaits);
  }
  void act(Server& server, const Life::Quarantine& alone) {
    RC_ASSERT(one_for_all_ && !quarantine_.has(alone.tenant, now_));  // it has a server of its own until that is over
    RC_ASSERT(mishaps_.registrations || mishaps_.others || has_culprit(alone.tenant));
    quarantine_.add(alone.tenant, now_);
    starts_[server.number].settled.push_back(now_);
    server.cause_left = true;
    Server* own = nullptr;
    std::set<InvocationId> keeping;
    for (const InstanceId id : server.life.sessions()) {
      Session& session = sessions_.at(id);
      if (session.tenant != alone.tenant) continue;
      own = &server_for(session.tenant, session.place);
      server.opening_constants.erase(id);
      if (!session.call) continue;
      server.opening_inputs.erase(session.call);
      server.opened.erase(session.call);
      if (server.keeping.erase(session.call) == 1) own->keeping.insert(session.call);
    }
    if (own == nullptr) return;
    Life::Actions actions;
    server.life.move_tenant(now_, alone.tenant, own->life, actions);
    carry_out(*own, actions);
  }

  // ---- what the node does

  Server& server_for(const std::string& tenant, std::string& place) {
    const bool is_shared = one_for_all_ && !quarantine_.has(tenant, now_);
    place = is_shared ? "*" : tenant;
    const auto found = servers_.find(place);
    if (found != servers_.end()) return found->second;
    return servers_.emplace(place, Server{.life = Life({}, is_shared), .number = ++last_server_}).first->second;
  }
  Server& server_of(InstanceId session) { return servers_.at(sessions_.at(session).place); }

  void start_session() {
    if (sessions_.size() >= 6) return;
    const InstanceId id(++last_);
    Session session{.tenant = std::string(1, static_cast<char>('a' + below(3)))};
    session.ends_servers = mishaps_.registrations && one_in(5);
    Server& server = server_for(session.tenant, session.place);
    sessions_[id] = session;
    tenants_[id] = session.tenant;
    happens(server, &Life::add_session, now_, id, session.tenant);
  }

  void deliver() {
    std::vector<InstanceId> free;
    for (const auto& [id, session] : sessions_) {
      if (session.announced && !session.call) free.push_back(id);
    }
    if (free.empty()) return;
    const InstanceId session = one_of(free);
    const InvocationId id(++last_);
    calls_[id] = {.session = session, .ends_servers = one_in(5)};
    sessions_.at(session).call = id;
    happens(server_of(session), &Life::add_call, id, session);
  }

  void answer(InvocationId id, Outcome outcome) {
    Call& call = calls_.at(id);
    RC_ASSERT(call.outcome == Outcome::kNone);
    call.outcome = outcome;
    const auto session = sessions_.find(call.session);
    RC_ASSERT(session != sessions_.end());
    session->second.call = InvocationId();
    Server& server = server_of(call.session);
    server.opening_inputs.erase(id);
    server.opened.erase(id);
    server.keeping.erase(id);
    happens(server, &Life::end_call, id);
    if (one_in(2)) deliver();  // the next one, from inside the answer
  }

  void end_session(InstanceId id) {
    Server& server = server_of(id);
    const InvocationId call = sessions_.at(id).call;
    sessions_.erase(id);
    server.opening_constants.erase(id);
    if (call) {
      calls_.at(call).outcome = Outcome::kNobodyWaits;
      calls_.at(call).is_given_up = true;
      server.opening_inputs.erase(call);
      server.opened.erase(call);
      server.keeping.erase(call);
    }
    happens(server, &Life::remove_session, id);
  }

  void give_up_or_kill() {
    if (one_in(2) && !sessions_.empty()) return end_session(one_of(sessions_).first);
    if (servers_.empty()) return;
    Server& server = servers_.at(one_of(servers_).first);
    if (one_in(2) && !server.on_device.empty()) {
      happens(server, &Life::overdue, one_of(server.on_device));
    } else if (server.has_process) {
      process_ends(server);
    }
  }

  void pass(Duration time) {
    const Instant until = now_ + time;
    while (true) {
      const auto sooner = [](const auto& a, const auto& b) {
        return a.second.restart_at.value_or(Instant::max()) < b.second.restart_at.value_or(Instant::max());
      };
      const auto next = std::min_element(servers_.begin(), servers_.end(), sooner);
      if (next == servers_.end() || next->second.restart_at.value_or(Instant::max()) > until) break;
      now_ = *std::exchange(next->second.restart_at, std::nullopt);
      happens(next->second, &Life::restart, now_);
    }
    now_ = until;
  }

  // ---- what processes do

  // False: nothing can happen but that time passes.
  bool server_happens(bool calm) {
    std::vector<std::string> places;
    for (const auto& [place, server] : servers_) {
      if (can_happen(server)) places.push_back(place);
    }
    if (places.empty()) return false;
    Server& server = servers_.at(one_of(places));
    switch (below(6)) {
      case 0: process_happens(server, calm); break;
      case 1: registration_happens(server, calm); break;
      case 2: constants_open(server, calm); break;
      case 3: inputs_open(server, calm); break;
      case 4: call_happens(server, calm); break;
      default: outputs_are_kept(server, calm);
    }
    return true;
  }

  static bool can_happen(const Server& server) {
    return server.is_ending || server.is_watched || (server.has_process && !server.is_ready) ||
           !server.opening_constants.empty() || !server.opening_inputs.empty() || !server.registering.empty() ||
           !server.on_device.empty() || !server.keeping.empty();
  }

  void process_happens(Server& server, bool calm) {
    if (server.is_watched && std::exchange(server.is_watched, false)) return happens(server, &Life::idle_over);
    if (!server.has_process) {
      server.is_ending = false;
    } else if (server.is_ending) {
      process_ends(server);
    } else if (!server.is_ready && !calm && mishaps_.others && one_in(2)) {
      process_ends(server);
    } else if (!server.is_ready) {
      server.is_ready = true;
      happens(server, &Life::process_ready);
    }
  }

  void process_ends(Server& server) {
    const std::set<InvocationId> lost = server.keeping;
    server.has_process = server.is_ready = server.is_ending = false;
    server.registering.clear(), server.on_trial.clear(), server.ready.clear();
    server.on_device.clear();
    happens(server, &Life::process_gone, now_);
    for (const InvocationId call : lost) {  // nobody fetches their outputs any more
      const auto session = sessions_.find(calls_.at(call).session);
      if (session == sessions_.end() || session->second.call != call) continue;
      Server& runs = server_of(session->first);
      if (runs.keeping.erase(call) == 1) happens(runs, &Life::outputs_lost, call);
    }
  }

  // With a word of who was on the device, or of who did it, or without one: then a registration is blamed, if there is one.
  void process_ends_by(Server& server, InvocationId culprit) {
    const bool says_so = !mishaps_.registrations && !mishaps_.others && !server.registering.empty();
    const int words = below(says_so ? 2 : 3);
    if (words == 0) server.life.process_faulted(server.on_device);
    if (words == 1) server.life.process_faulted({culprit});
    process_ends(server);
  }

  void constants_open(Server& server, bool calm) {
    if (server.opening_constants.empty()) return;
    const InstanceId id = one_of(server.opening_constants);
    if (!calm && mishaps_.others && one_in(5)) return end_session(id);  // there is no such object
    server.opening_constants.erase(id);
    happens(server, &Life::constants_opened, id);
  }

  void inputs_open(Server& server, bool calm) {
    if (server.opening_inputs.empty()) return;
    const InvocationId id = one_of(server.opening_inputs);
    if (!calm && mishaps_.others && one_in(5)) return answer(id, Outcome::kFailed);
    server.opening_inputs.erase(id);
    server.opened.insert(id);
    happens(server, &Life::inputs_opened, id);
  }

  void registration_happens(Server& server, bool calm) {
    if (server.registering.empty()) return;
    const InstanceId id = one_of(server.registering);
    if (!calm && one_in(4)) {
      const bool begins = server.on_trial.insert(id).second;
      if (!begins) server.on_trial.erase(id);
      return server.life.session_on_trial(id, begins);
    }
    if (server.on_trial.erase(id) == 1) server.life.session_on_trial(id, false);
    if (sessions_.at(id).ends_servers) return process_ends(server);
    server.registering.erase(id);
    server.ready.insert(id);
    happens(server, &Life::session_ready, id);
  }

  void call_happens(Server& server, bool calm) {
    if (server.on_device.empty()) return;
    const InvocationId id = one_of(server.on_device);
    const Call& call = calls_.at(id);
    if (call.ends_servers) return process_ends_by(server, id);
    server.on_device.erase(id);
    if (call.is_given_up) return happens(server, &Life::end_call, id);
    if (!calm && one_in(4)) return happens(server, &Life::objects_missing, id);
    if (!calm && one_in(5)) return answer(id, Outcome::kFailed);
    if (one_in(2)) return answer(id, Outcome::kAnswered);
    server.keeping.insert(id);
    happens(server, &Life::keep_outputs, id);
  }

  void outputs_are_kept(Server& server, bool calm) {
    if (server.keeping.empty()) return;
    const InvocationId id = one_of(server.keeping);
    if (calm || one_in(2)) return answer(id, Outcome::kAnswered);
    server.keeping.erase(id);
    happens(server, &Life::outputs_lost, id);
  }

  // ---- what must hold

  bool has_culprit(const std::string& tenant) const {
    return std::any_of(calls_.begin(), calls_.end(), [&](const auto& entry) {
      const auto session = tenants_.find(entry.second.session);
      return entry.second.ends_servers && session != tenants_.end() && session->second == tenant;
    });
  }

  bool is_settled() const {
    return std::all_of(servers_.begin(), servers_.end(),
                       [](const auto& entry) { return !can_happen(entry.second) && !entry.second.restart_at; });
  }

  // The waits 0, 0.1, 0.2, ... 6.4, 10, 10 s leave room for 14 starts in a minute; who left is nobody's cause to wait.
  static void check_starts(const Starts& starts) {
    constexpr std::size_t kMost = 14;
    for (const Instant from : starts.at) {
      const auto within = [&](Instant at) { return from <= at && at < from + 60s; };
      const auto count = std::count_if(starts.at.begin(), starts.at.end(), within);
      const auto settled = std::count_if(starts.settled.begin(), starts.settled.end(), within);
      RC_ASSERT(static_cast<std::size_t>(count) <= kMost + static_cast<std::size_t>(settled));
    }
  }

  std::mt19937_64 random_;
  const Mishaps mishaps_;
  const bool one_for_all_;
  Instant now_{Duration(1'000'000s)};
  Quarantine quarantine_{kQuarantine};
  std::map<std::string, Server> servers_;
  std::map<InstanceId, Session> sessions_;
  std::map<InstanceId, std::string> tenants_;  // of all sessions that ever were
  std::map<InvocationId, Call> calls_;
  std::map<int, Starts> starts_;  // by server
  std::uint64_t last_ = 0;
  int last_server_ = 0;
};

// The choices are a seed's: a shorter list of them would be another story.
void live(Mishaps mishaps) {
  const auto seed = *rc::gen::resize(rc::kNominalSize, rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>()));
  World world(seed, mishaps, /*one_for_all=*/seed % 2 == 0);
  for (int i = 0; i < 300; ++i) world.something_happens();
  world.settle();
  world.check_end();
}

RC_GTEST_PROP(ServerLifeProperty, EveryCallHasOneAnswerAndOnlyTheOneThatEndsServersIsBlamed, ()) {
  live({});
}
RC_GTEST_PROP(ServerLifeProperty, ARegistrationThatEndsServersIsNoCallsFault, ()) {
  live({.registrations = true});
}
RC_GTEST_PROP(ServerLifeProperty, EveryCallHasOneAnswerWhateverHappens, ()) {
  live({.registrations = true, .others = true});
}

}  // namespace
}  // namespace fairlead
