#include "edge/openfaas/callbacks.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "base/log.h"

namespace fairlead::openfaas {

std::size_t Callbacks::bytes_of(const Callback& callback) {
  std::size_t bytes = callback.request.body.size() + callback.request.target.size();
  for (const net::Header& header : callback.request.headers) bytes += header.name.size() + header.value.size();
  return bytes;
}

void Callbacks::post(Callback callback) {
  const std::size_t bytes = bytes_of(callback);
  const std::string& tenant = callback.tenant;
  const bool has_place = places_.try_add(tenant, 1);
  if (!has_place || !bytes_.try_add(tenant, bytes)) {
    if (has_place) places_.subtract(tenant, 1);
    ++counters_.dropped;
    spdlog::warn(
        "a callback to {} is dropped: {} callbacks of {} bytes wait, {} of {} tenant {}'s; the most are {} of {}, and "
        "for "
        "a tenant what is left free",
        callback.url.authority(), counters_.held, counters_.bytes, places_.held_by(tenant), bytes_.held_by(tenant),
        tenant, kMostCallbacks, kMostBytes);
    return;
  }
  ++counters_.held;
  counters_.bytes += bytes;
  wait(std::make_shared<Held>(Held{std::move(callback)}));
  start_next();
}

void Callbacks::wait(const HeldPtr& held) {
  const std::string& tenant = held->callback.tenant;
  const auto [waiting, is_new] = waiting_.try_emplace(tenant);
  if (is_new) turns_.push_back(tenant);
  waiting->second.push_back(held);
}

void Callbacks::start_next() {
  while (start_one()) {
  }
}

bool Callbacks::start_one() {
  const auto next = std::find_if(turns_.begin(), turns_.end(),
                                 [this](const std::string& tenant) { return under_way_.try_add(tenant, 1); });
  if (next == turns_.end()) return false;
  const auto waiting = waiting_.find(*next);
  const HeldPtr held = std::move(waiting->second.front());
  waiting->second.pop_front();
  turns_.erase(next);
  if (waiting->second.empty()) {
    waiting_.erase(waiting);
  } else {
    turns_.push_back(held->callback.tenant);
  }
  ++counters_.under_way;
  ++held->tries;
  send_(held->callback, life_.guarded([this, held](const Status& status) { tried(held, status); }));
  return true;
}

void Callbacks::tried(const HeldPtr& held, const Status& status) {
  --counters_.under_way;
  under_way_.subtract(held->callback.tenant, 1);
  if (status) {
    ++counters_.delivered;
    forget(*held);
  } else if (held->tries >= kTries) {
    ++counters_.dropped;
    spdlog::warn("a callback to {} is dropped after {} tries: {}", held->callback.url.authority(), held->tries,
                 status.error().message);
    forget(*held);
  } else {
    const auto pause = std::make_shared<boost::asio::steady_timer>(io_, first_pause_ * (held->tries == 1 ? 1 : 4));
    pause->async_wait([this, held, pause, life = life_.watch()](const boost::system::error_code& error) {
      if (error || life.ended()) return;
      wait(held);
      start_next();
    });
  }
  start_next();
}

void Callbacks::forget(const Held& held) {
  --counters_.held;
  counters_.bytes -= bytes_of(held.callback);
  places_.subtract(held.callback.tenant, 1);
  bytes_.subtract(held.callback.tenant, bytes_of(held.callback));
}

}  // namespace fairlead::openfaas
