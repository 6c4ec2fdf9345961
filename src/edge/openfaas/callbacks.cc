#include "edge/openfaas/callbacks.h"

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
  if (counters_.held >= kMostCallbacks || counters_.bytes + bytes > kMostBytes) {
    ++counters_.dropped;
    spdlog::warn("a callback to {} is dropped: {} callbacks of {} bytes wait, the most are {} of {}",
                 callback.url.authority(), counters_.held, counters_.bytes, kMostCallbacks, kMostBytes);
    return;
  }
  ++counters_.held;
  counters_.bytes += bytes;
  waiting_.push_back(std::make_shared<Held>(Held{std::move(callback)}));
  start_next();
}

void Callbacks::start_next() {
  while (!waiting_.empty() && counters_.under_way < kMostAtOnce) {
    const HeldPtr held = std::move(waiting_.front());
    waiting_.pop_front();
    ++counters_.under_way;
    ++held->tries;
    send_(held->callback, life_.guarded([this, held](const Status& status) { tried(held, status); }));
  }
}

void Callbacks::tried(const HeldPtr& held, const Status& status) {
  --counters_.under_way;
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
      waiting_.push_back(held);
      start_next();
    });
  }
  start_next();
}

void Callbacks::forget(const Held& held) {
  --counters_.held;
  counters_.bytes -= bytes_of(held.callback);
}

}  // namespace fairlead::openfaas
