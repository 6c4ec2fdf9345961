#include "runtime/device_servers/server_recovery.h"

#include <algorithm>

namespace fairlead {

std::vector<ServerRecovery::Action> ServerRecovery::on_end(const End& end) {
  std::vector<Action> actions;
  if (!end.was_ready && ++failed_starts_ >= options_.max_failed_starts) {
    actions.emplace_back(GiveUp{});
    return actions;
  }
  const bool sessions_are_suspects = !end.names_calls && !end.registering.empty();
  const std::size_t suspects = sessions_are_suspects ? end.registering.size() + end.calls.size()
                                                     : (end.names_calls ? end.named.size() : end.calls.size());
  bool is_settled = false;  // the cause is gone from this server
  for (const SentCall& call : end.calls) {
    if (sessions_are_suspects) {
      actions.emplace_back(call.given_up ? Action(Forget{call.call}) : Action(Send{call.call, false}));
    } else {
      is_settled |= settle_call(end, call, suspects, actions);
    }
  }
  for (const RegisteringSession& session : end.registering) {
    if (sessions_are_suspects) is_settled |= settle_session(end, session, suspects == 1, actions);
  }
  actions.emplace_back(Restart{is_settled && end.is_shared ? Duration(0) : wait(end.now)});
  return actions;
}

// True: the call has caused the end.
bool ServerRecovery::settle_call(const End& end, const SentCall& call, std::size_t suspects,
                                 std::vector<Action>& actions) const {
  const bool is_suspect = !end.names_calls || end.named.contains(call.call);
  const bool has_caused = is_suspect && ((end.names_calls && suspects == 1) || call.suspected > 0);
  if (call.given_up) {
    actions.emplace_back(Forget{call.call});
  } else if (has_caused) {
    actions.emplace_back(Fail{call.call});
  } else {
    actions.emplace_back(Send{call.call, is_suspect});
  }
  if (has_caused && end.is_shared) actions.emplace_back(Quarantine{call.tenant});
  return has_caused;
}

bool ServerRecovery::settle_session(const End& end, const RegisteringSession& session, bool is_only,
                                    std::vector<Action>& actions) {
  const bool was_suspected = session.suspected > 0;
  if (end.is_shared && (is_only || was_suspected)) {
    actions.emplace_back(Suspect{session.session});
    actions.emplace_back(Quarantine{session.tenant});
    return true;
  }
  if (was_suspected) {
    actions.emplace_back(EndSession{session.session});
    return true;
  }
  actions.emplace_back(Suspect{session.session});
  return false;
}

Duration ServerRecovery::wait(Instant now) {
  if (now - started_ >= options_.calm) ends_ = 0;
  Duration waits{0};
  for (int i = 0; i < ends_ && waits < options_.longest_wait; ++i) {
    waits = waits == Duration(0) ? options_.first_wait : 2 * waits;
  }
  ++ends_;
  return std::min(waits, options_.longest_wait);
}

}  // namespace fairlead
