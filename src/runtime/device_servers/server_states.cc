#include "runtime/device_servers/server_states.h"

namespace fairlead {

std::optional<ServerPhase> step(ServerPhase state, ServerEvent event) {
  const bool has_process = state == ServerPhase::kStarting || state == ServerPhase::kServing;
  switch (event) {
    case ServerEvent::kStart:
      if (!has_process) return ServerPhase::kStarting;
      break;
    case ServerEvent::kReady:
      if (state == ServerPhase::kStarting) return ServerPhase::kServing;
      break;
    case ServerEvent::kEnd:
      if (has_process) return ServerPhase::kResting;
      break;
    case ServerEvent::kRetire:
      if (state == ServerPhase::kResting) return ServerPhase::kOver;
      break;
  }
  return std::nullopt;
}

std::optional<SessionState> step(SessionState state, SessionEvent event) {
  switch (event) {
    case SessionEvent::kOpened:
      if (state == SessionState::kOpening) return SessionState::kOpened;
      break;
    case SessionEvent::kRegister:
      if (state == SessionState::kOpened) return SessionState::kRegistering;
      break;
    case SessionEvent::kTrial:
      if (state == SessionState::kRegistering) return SessionState::kOnTrial;
      break;
    case SessionEvent::kTrialOver:
      if (state == SessionState::kOnTrial) return SessionState::kRegistering;
      break;
    case SessionEvent::kReady:
      if (state == SessionState::kRegistering || state == SessionState::kOnTrial) return SessionState::kReady;
      break;
    case SessionEvent::kReopened: return SessionState::kOpening;
  }
  return std::nullopt;
}

std::optional<CallState> step(CallState state, CallEvent event) {
  switch (event) {
    case CallEvent::kOpened:
      if (state == CallState::kOpening) return CallState::kWaiting;
      break;
    case CallEvent::kSend:
      if (state == CallState::kWaiting) return CallState::kSent;
      break;
    case CallEvent::kKeep:
      if (state == CallState::kSent) return CallState::kKeeping;
      break;
    case CallEvent::kReopened:
      if (state != CallState::kUnwanted) return CallState::kOpening;
      break;
    case CallEvent::kDropped:
      if (state == CallState::kSent) return CallState::kUnwanted;
      break;
  }
  return std::nullopt;
}

std::string_view name_of(ServerPhase state) {
  constexpr std::string_view kNames[] = {"over", "starting", "serving", "resting"};
  return kNames[static_cast<int>(state)];
}

std::string_view name_of(SessionState state) {
  constexpr std::string_view kNames[] = {"opening", "opened", "registering", "on trial", "ready"};
  return kNames[static_cast<int>(state)];
}

std::string_view name_of(CallState state) {
  constexpr std::string_view kNames[] = {"opening", "waiting", "sent", "keeping", "unwanted"};
  return kNames[static_cast<int>(state)];
}

}  // namespace fairlead
