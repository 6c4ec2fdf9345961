#include "runtime/device_servers/server_life.h"

#include "base/check.h"

namespace fairlead {
namespace {

// Nobody outside says that it happened, so it must be legal.
template <typename State, typename Event>
void take(State& state, Event event) {
  const auto next = step(state, event);
  FL_CHECK(next, "{}: event {}", name_of(state), static_cast<int>(event));
  state = *next;
}

}  // namespace

// ---- the process

void ServerLife::start(Instant now, Actions& out) {
  take(phase_, ServerEvent::kStart);
  recovery_.on_start(now);
  out.emplace_back(StartProcess{});
}

void ServerLife::process_ready(Actions& out) {
  if (phase_ != ServerPhase::kStarting) return;  // it says so twice
  take(phase_, ServerEvent::kReady);
  recovery_.on_ready();
  for (auto& [id, session] : sessions_) register_if_opened(id, session, out);
}

void ServerLife::process_gone(Instant now, Actions& out) {
  const bool was_ready = phase_ == ServerPhase::kServing;
  take(phase_, ServerEvent::kEnd);
  if (is_idle()) {
    take(phase_, ServerEvent::kRetire);
    named_.reset();
    out.emplace_back(Retire{});
    return;
  }
  const ServerRecovery::End end = describe_end(now, was_ready);
  named_.reset();
  recover(end, out);
}

ServerRecovery::End ServerLife::describe_end(Instant now, bool was_ready) const {
  ServerRecovery::End end{.now = now, .was_ready = was_ready, .is_shared = is_shared_};
  end.names_calls = named_.has_value();
  if (named_) end.named = *named_;
  end.calls = calls_.sent();
  for (const auto& [id, session] : sessions_) {
    if (session.state != SessionState::kRegistering) continue;
    end.registering.push_back({id, session.tenant, session.suspected});
  }
  return end;
}

// What ServerRecovery decided. First what is over, then whose tenant leaves, last when the next process starts.
void ServerLife::recover(const ServerRecovery::End& end, Actions& out) {
  std::vector<ServerRecovery::Send> again;
  std::set<std::string> quarantined;
  Action last = Retire{};
  for (const ServerRecovery::Action& action : recovery_.on_end(end)) {
    if (const auto* send = std::get_if<ServerRecovery::Send>(&action)) {
      again.push_back(*send);
    } else if (const auto* caused = std::get_if<ServerRecovery::Fail>(&action)) {
      leave_session(caused->call);
      out.emplace_back(Fail{caused->call, Failure::kCausedEnd});
    } else if (const auto* forgotten = std::get_if<ServerRecovery::Forget>(&action)) {
      leave_session(forgotten->call);
      out.emplace_back(Forget{forgotten->call});
    } else if (const auto* suspect = std::get_if<ServerRecovery::Suspect>(&action)) {
      ++sessions_.at(suspect->session).suspected;
    } else if (const auto* ended = std::get_if<ServerRecovery::EndSession>(&action)) {
      out.emplace_back(EndSession{ended->session, SessionEnd::kCausedEnd});
    } else if (const auto* alone = std::get_if<ServerRecovery::Quarantine>(&action)) {
      quarantined.insert(alone->tenant);
    } else if (const auto* next = std::get_if<ServerRecovery::Restart>(&action)) {
      last = RestartAfter{next->after};
    } else {
      take(phase_, ServerEvent::kRetire);
      recovery_ = ServerRecovery(options_);
      for (const auto& [id, session] : sessions_) out.emplace_back(EndSession{id, SessionEnd::kNoServer});
    }
  }
  calls_.run_again(again);
  for (const std::string& tenant : quarantined) out.emplace_back(Quarantine{tenant});
  out.push_back(std::move(last));
}

void ServerLife::restart(Instant now, Actions& out) {
  if (phase_ != ServerPhase::kResting) return;
  if (sessions_.empty()) {
    take(phase_, ServerEvent::kRetire);
    out.emplace_back(Retire{});
    return;
  }
  start(now, out);
  for (auto& [id, session] : sessions_) {
    take(session.state, SessionEvent::kReopened);
    out.emplace_back(OpenConstants{id});
  }
  for (const InvocationId id : calls_.reopen_unsent()) out.emplace_back(OpenInputs{id});
}

void ServerLife::idle_over(Actions& out) {
  if (!is_idle()) return;
  named_.emplace();  // nobody: a session that comes before its end is no suspect of that
  out.emplace_back(EndProcess{});
}

// ---- sessions

void ServerLife::add_session(Instant now, InstanceId id, const std::string& tenant, Actions& out) {
  const bool is_new = sessions_.try_emplace(id, Session{.tenant = tenant}).second;
  FL_CHECK(is_new, "session {} is there already", id.value());
  if (phase_ == ServerPhase::kOver) start(now, out);
  out.emplace_back(OpenConstants{id});
}

void ServerLife::constants_opened(InstanceId id, Actions& out) {
  Session& session = sessions_.at(id);
  take(session.state, SessionEvent::kOpened);
  register_if_opened(id, session, out);
}

void ServerLife::register_if_opened(InstanceId id, Session& session, Actions& out) {
  if (phase_ != ServerPhase::kServing || session.state != SessionState::kOpened) return;
  take(session.state, SessionEvent::kRegister);
  out.emplace_back(Register{id});
}

void ServerLife::session_on_trial(InstanceId id, bool is_on_trial) {
  const auto session = sessions_.find(id);
  if (session == sessions_.end()) return;
  const auto next = step(session->second.state, is_on_trial ? SessionEvent::kTrial : SessionEvent::kTrialOver);
  if (next) session->second.state = *next;
}

void ServerLife::session_ready(InstanceId id, Actions& out) {
  const auto session = sessions_.find(id);
  const auto next = session == sessions_.end() ? std::nullopt : step(session->second.state, SessionEvent::kReady);
  if (!next) return;
  session->second.state = *next;
  session->second.suspected = 0;
  send_calls(out);  // of a server that was replaced
  out.emplace_back(Announce{id});
}

void ServerLife::remove_session(InstanceId id, Actions& out) {
  const auto node = sessions_.extract(id);
  if (node.empty()) return;
  const Session& session = node.mapped();
  if (session.call && calls_.on_device(*session.call)) {
    calls_.dropped(*session.call);
  } else if (session.call) {
    calls_.remove(*session.call);
    out.emplace_back(Forget{*session.call});
  }
  const bool is_known_there = session.state >= SessionState::kRegistering;
  if (phase_ == ServerPhase::kServing && is_known_there) out.emplace_back(DropSession{id});
  if (is_idle()) out.emplace_back(WatchIdle{});
  send_calls(out);
}

void ServerLife::move_tenant(Instant now, const std::string& tenant, ServerLife& to, Actions& out_of_other) {
  FL_CHECK(phase_ == ServerPhase::kResting, "{}", name_of(phase_));
  std::set<InstanceId> moved;
  for (auto& [id, session] : sessions_) {
    if (session.tenant != tenant) continue;
    moved.insert(id);
    to.add_session(now, id, tenant, out_of_other);
    Session& there = to.sessions_.at(id);
    there.suspected = session.suspected;
    there.call = session.call;
  }
  std::erase_if(sessions_, [&](const auto& session) { return moved.contains(session.first); });
  for (const InvocationId id : calls_.move(moved, to.calls_)) out_of_other.emplace_back(OpenInputs{id});
}

// ---- calls

void ServerLife::add_call(InvocationId id, InstanceId session_id, Actions& out) {
  Session& session = sessions_.at(session_id);
  FL_CHECK(!session.call, "session {} has a call already", session_id.value());
  session.call = id;
  calls_.add(id, session_id, session.tenant);
  out.emplace_back(OpenInputs{id});
}

void ServerLife::inputs_opened(InvocationId id, Actions& out) {
  calls_.opened(id);
  send_calls(out);
}

void ServerLife::send_calls(Actions& out) {
  if (phase_ != ServerPhase::kServing) return;
  const auto is_ready = [this](InstanceId id) {
    const auto session = sessions_.find(id);
    return session != sessions_.end() && session->second.state == SessionState::kReady;
  };
  while (const auto next = calls_.send_next(is_ready)) out.emplace_back(Run{*next});
}

void ServerLife::reopen(InvocationId id, bool is_first, Failure if_too_often, Actions& out) {
  const InstanceId session = calls_.find(id)->session;
  if (calls_.reopen(id, is_first)) {
    out.emplace_back(OpenInputs{id});
  } else {
    sessions_.at(session).call.reset();
    out.emplace_back(Fail{id, if_too_often});
  }
  send_calls(out);
}

// Its objects are about to be there: it goes first.
void ServerLife::objects_missing(InvocationId id, Actions& out) {
  reopen(id, true, Failure::kNoRoom, out);
}

void ServerLife::keep_outputs(InvocationId id, Actions& out) {
  calls_.keep(id);
  send_calls(out);
}

void ServerLife::outputs_lost(InvocationId id, Actions& out) {
  reopen(id, false, Failure::kOutputsLost, out);
}

void ServerLife::end_call(InvocationId id, Actions& out) {
  if (calls_.find(id) == nullptr) return;
  leave_session(id);
  if (is_idle()) out.emplace_back(WatchIdle{});
  send_calls(out);
}

void ServerLife::leave_session(InvocationId id) {
  const auto session = sessions_.find(calls_.find(id)->session);
  if (session != sessions_.end()) session->second.call.reset();
  calls_.remove(id);
}

void ServerLife::overdue(InvocationId id, Actions& out) {
  if (!calls_.on_device(id)) return;
  named_ = {id};
  out.emplace_back(EndProcess{});
}

// ---- views

std::vector<InstanceId> ServerLife::sessions() const {
  std::vector<InstanceId> ids;
  for (const auto& [id, session] : sessions_) ids.push_back(id);
  return ids;
}

}  // namespace fairlead
