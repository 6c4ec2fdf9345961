#include "node/recent_replies.h"

namespace fairlead {
namespace {

std::size_t size_of(const Outcome& reply) {
  return sizeof(reply) + reply.payload.size() + reply.log_tail.size();
}

}  // namespace

void RecentReplies::put(Instant now, const std::string& key, const Outcome& reply) {
  drop_expired(now);
  const std::size_t bytes = size_of(reply);
  if (bytes > kMaxBytes || by_key_.contains(key)) return;
  while (by_age_.size() >= kMaxReplies || bytes_ + bytes > kMaxBytes) drop_oldest();
  by_age_.push_back({now, key, reply});
  by_key_[key] = &by_age_.back();
  bytes_ += bytes;
}

const Outcome* RecentReplies::find(Instant now, const std::string& key) {
  drop_expired(now);
  const auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : &it->second->reply;
}

void RecentReplies::drop_oldest() {
  bytes_ -= size_of(by_age_.front().reply);
  by_key_.erase(by_age_.front().key);
  by_age_.pop_front();
}

void RecentReplies::drop_expired(Instant now) {
  while (!by_age_.empty() && now - by_age_.front().since > kMaxAge) drop_oldest();
}

}  // namespace fairlead
