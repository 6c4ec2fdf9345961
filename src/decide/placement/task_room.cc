#include "decide/placement/task_room.h"

#include <utility>

#include "base/check.h"

namespace fairlead {

void TaskRoom::set(InstanceId instance, SessionMemory memory) {
  remove(instance);
  Session& session = sessions_[instance];
  session.all = memory.call;
  for (const auto& [object, bytes] : memory.constants) session.all += bytes;
  ++servers_[memory.server].sessions;
  session.memory = std::move(memory);
}

void TaskRoom::set_residence(InstanceId instance, const SessionResidence& residence) {
  Session* session = sessions_.find(instance);
  if (session == nullptr) return;
  session->missing = residence.missing;
  servers_.at(session->memory.server).resident = residence.resident;
}

void TaskRoom::remove(InstanceId instance) {
  const Session* session = sessions_.find(instance);
  if (session == nullptr) return;
  end(instance);
  const auto server = servers_.find(session->memory.server);
  if (--server->second.sessions == 0) servers_.erase(server);
  sessions_.erase(instance);
}

void TaskRoom::begin(InstanceId instance) {
  Session* session = sessions_.find(instance);
  if (session == nullptr) return;
  FL_CHECK(!std::exchange(session->runs, true), "instance {} runs a call already", instance.value());
  Server& server = servers_.at(session->memory.server);
  server.held += unheld(*session, server);
  for (const auto& [object, bytes] : session->memory.constants) ++server.users[object];
  ++server.running;
}

void TaskRoom::end(InstanceId instance) {
  Session* session = sessions_.find(instance);
  if (session == nullptr || !std::exchange(session->runs, false)) return;
  Server& server = servers_.at(session->memory.server);
  for (const auto& [object, bytes] : session->memory.constants) {
    const auto users = server.users.find(object);
    if (--users->second == 0) server.users.erase(users);
  }
  server.held -= unheld(*session, server);
  --server.running;
}

bool TaskRoom::fits(InstanceId instance) const {
  const Session* session = sessions_.find(instance);
  if (session == nullptr || session->memory.device == Bytes(0)) return true;
  const Server& server = servers_.at(session->memory.server);
  if (server.running == 0 || server.held + session->all <= session->memory.device) return true;
  return server.held + unheld(*session, server) <= session->memory.device;
}

bool TaskRoom::evicts(InstanceId instance) const {
  const Session* session = sessions_.find(instance);
  if (session == nullptr || session->memory.device == Bytes(0) || session->missing == Bytes(0)) return false;
  const Server& server = servers_.at(session->memory.server);
  return server.resident + session->missing + session->memory.call > session->memory.device;
}

// An object that is named twice counts twice: more than it takes, for tasks that nobody writes.
Bytes TaskRoom::unheld(const Session& session, const Server& server) const {
  Bytes bytes = session.memory.call;
  for (const auto& [object, size] : session.memory.constants) {
    if (!server.users.contains(object)) bytes += size;
  }
  return bytes;
}

}  // namespace fairlead
