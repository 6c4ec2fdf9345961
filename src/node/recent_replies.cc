#include "node/recent_replies.h"

namespace fairlead {
namespace {

std::size_t size_of(const Outcome& reply) {
  return sizeof(reply) + reply.payload.size() + reply.log_tail.size();
}

}  // namespace

void RecentReplies::put(Instant now, const std::string& tenant, const std::string& key, const Outcome& reply) {
  drop_expired(now);
  const std::size_t bytes = size_of(reply);
  if (bytes > kMaxBytes || by_key_.contains(key)) return;
  ByteBudget::Lease lease;
  lease.open(*memory_, tenant);
  lease.hold(bytes);
  const Item item = ++last_;
  by_age_.emplace(item, Kept{now, key, reply, std::move(lease)});
  by_key_[key] = item;
  held_.add(tenant, item, bytes);
  while (const auto too_much = held_.to_forget()) drop(*too_much);
}

const Outcome* RecentReplies::find(Instant now, const std::string& key) {
  drop_expired(now);
  const auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : &by_age_.at(it->second).reply;
}

void RecentReplies::drop(Item item) {
  const auto place = by_age_.find(item);
  by_key_.erase(place->second.key);
  by_age_.erase(place);
  held_.remove(item);
}

void RecentReplies::drop_expired(Instant now) {
  while (!by_age_.empty() && now - by_age_.begin()->second.since > kMaxAge) drop(by_age_.begin()->first);
}

}  // namespace fairlead
