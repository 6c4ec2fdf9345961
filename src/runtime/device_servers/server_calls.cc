#include "runtime/device_servers/server_calls.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {

const ServerCalls::Call* ServerCalls::find(InvocationId id) const {
  const auto found = calls_.find(id);
  return found == calls_.end() ? nullptr : &found->second;
}

std::vector<ServerRecovery::SentCall> ServerCalls::sent() const {
  std::vector<ServerRecovery::SentCall> sent;
  for (const InvocationId id : sent_) {
    const Call& call = calls_.at(id);
    sent.push_back({id, call.tenant, call.suspected, call.state == CallState::kUnwanted});
  }
  return sent;
}

// Nobody outside says that it happened, so it must be legal.
ServerCalls::Call& ServerCalls::take(InvocationId id, CallEvent event) {
  Call& call = calls_.at(id);
  const auto next = step(call.state, event);
  FL_CHECK(next, "call {}, {}: event {}", id.value(), name_of(call.state), static_cast<int>(event));
  call.state = *next;
  return call;
}

void ServerCalls::add(InvocationId id, InstanceId session, const std::string& tenant) {
  const bool is_new = calls_.try_emplace(id, Call{.session = session, .tenant = tenant}).second;
  FL_CHECK(is_new, "call {} is there already", id.value());
  unsent_.push_back(id);
}

void ServerCalls::remove(InvocationId id) {
  calls_.erase(id);
  if (sent_.erase(id) == 0) std::erase(unsent_, id);
}

void ServerCalls::keep(InvocationId id) {
  take(id, CallEvent::kKeep);
  sent_.erase(id);
}

std::optional<InvocationId> ServerCalls::send_next(const std::function<bool(InstanceId)>& is_ready) {
  const bool one_is_alone = std::any_of(sent_.begin(), sent_.end(), [this](InvocationId id) { return is_suspect(id); });
  if (one_is_alone) return std::nullopt;
  for (auto next = unsent_.begin(); next != unsent_.end(); ++next) {
    const InvocationId id = *next;
    const Call& call = calls_.at(id);
    if (call.state != CallState::kWaiting || !is_ready(call.session)) continue;
    if (is_suspect(id) && !sent_.empty()) return std::nullopt;
    take(id, CallEvent::kSend);
    unsent_.erase(next);
    sent_.insert(id);
    return id;
  }
  return std::nullopt;
}

bool ServerCalls::reopen(InvocationId id, bool is_first) {
  if (++calls_.at(id).reopened > kMaxReopened) {
    remove(id);
    return false;
  }
  take(id, CallEvent::kReopened);
  sent_.erase(id);
  is_first ? unsent_.push_front(id) : unsent_.push_back(id);
  return true;
}

void ServerCalls::run_again(const std::vector<ServerRecovery::Send>& calls) {
  sent_.clear();
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    Call& again = take(call->call, CallEvent::kReopened);
    if (call->is_suspect) ++again.suspected;
    unsent_.push_front(call->call);
  }
}

std::vector<InvocationId> ServerCalls::reopen_unsent() {
  for (const InvocationId id : unsent_) take(id, CallEvent::kReopened);
  return {unsent_.begin(), unsent_.end()};
}

std::vector<InvocationId> ServerCalls::move(const std::set<InstanceId>& sessions, ServerCalls& to) {
  FL_CHECK(sent_.empty(), "{} calls are on the device", sent_.size());
  const auto goes = [&](InvocationId id) { return sessions.contains(calls_.at(id).session); };
  std::vector<InvocationId> unsent;
  std::copy_if(unsent_.begin(), unsent_.end(), std::back_inserter(unsent), goes);
  std::erase_if(unsent_, goes);
  for (const InvocationId id : unsent) {
    take(id, CallEvent::kReopened);
    to.unsent_.push_back(id);
  }
  for (auto it = calls_.begin(); it != calls_.end();) {
    const auto next = std::next(it);
    if (sessions.contains(it->second.session)) to.calls_.insert(calls_.extract(it));
    it = next;
  }
  return unsent;
}

}  // namespace fairlead
