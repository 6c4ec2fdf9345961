// What a device server, a session in it and a call of a session can be, as the node sees them, and what happens to them. An
// event makes the next state, or means nothing in that state and is refused. Pure: no process, socket or clock.
//
// A server:
//   over ──kStart──> starting ──kReady──> serving
//    ^                │ ^                    │ kEnd
//    │          kEnd  v │ kStart             v
//    └──kRetire────── resting <──────────────┘    its next process starts after a wait
//
// A session; kReopened is another process, or another server, and leads back to opening from everywhere:
//   opening ──kOpened──> opened ──kRegister──> registering ──kReady──> ready
//                                            kTrial │ ^ kTrialOver       ^
//                                                   v │                  │
//                                                 on trial ──kReady──────┘
//
// A call:
//   opening ──kOpened──> waiting ──kSend──> sent ──kKeep──> keeping, until its outputs are in the data layer
//      ^                    │                │ │                │
//      └─────kReopened──────┴────────────────┴─│────────────────┘   its objects, its process or its outputs were lost
//                                              └──kDropped──> unwanted, until the server says that it is over, or ends
//
// An answer ends a call and a stop ends a session in every state: what is over has none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fairlead {

enum class ServerPhase : std::uint8_t { kOver, kStarting, kServing, kResting };
enum class ServerEvent : std::uint8_t {
  kStart,   // a process is started
  kReady,   // it said so
  kEnd,     // it is gone
  kRetire,  // no other one is needed, or none can be started
};

enum class SessionState : std::uint8_t {
  kOpening,      // its constants are looked for in the data layer
  kOpened,       // they are there, and the server is not ready yet
  kRegistering,  // the server was told of it
  kOnTrial,      // the server waits for the node, which tries its modules, and does nothing for it
  kReady,        // it may have calls
};
enum class SessionEvent : std::uint8_t { kOpened, kRegister, kTrial, kTrialOver, kReady, kReopened };

enum class CallState : std::uint8_t {
  kOpening,   // its inputs are looked for
  kWaiting,   // they are there; it waits for its session, or for others to leave the device
  kSent,      // it may be on the device
  kKeeping,   // it ran; nobody may see its outputs before they are in the data layer
  kUnwanted,  // as sent, and nobody waits for its answer
};
enum class CallEvent : std::uint8_t { kOpened, kSend, kKeep, kReopened, kDropped };

// Empty: refused.
std::optional<ServerPhase> step(ServerPhase state, ServerEvent event);
std::optional<SessionState> step(SessionState state, SessionEvent event);
std::optional<CallState> step(CallState state, CallEvent event);

std::string_view name_of(ServerPhase state);
std::string_view name_of(SessionState state);
std::string_view name_of(CallState state);

}  // namespace fairlead
