#include "edge/openfaas/rollouts.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "base/log.h"
#include "edge/openfaas/openfaas_error.h"

namespace fairlead::openfaas {

Rollouts::Ended Rollouts::begin(net::HttpExchange exchange, Rollout rollout) {
  const std::string function = rollout.function;
  // A second one of the same function is refused by the node, and what is known of the first stays.
  const Rollout* known = find(function);
  const bool is_first = known == nullptr || !known->error.empty();
  if (is_first) {
    forget(function);
    rollouts_.push_back(std::move(rollout));
  }
  const auto answer = std::make_shared<net::HttpExchange>(std::move(exchange));
  const auto timer = std::make_shared<boost::asio::steady_timer>(io_, patience_);
  timer->async_wait([answer, timer](const boost::system::error_code& error) {
    if (!error && *answer) answer->respond({.status = 202});
  });
  return [this, answer, timer, function, is_first](const Status& status) {
    timer->cancel();
    const bool was_told = !*answer;
    if (was_told && !status) spdlog::warn("the deployment of {} failed: {}", function, status.error().message);
    // Who was told so needs no second word.
    if (is_first) ended(function, was_told ? status : Status());
    if (was_told) return;
    status ? answer->respond({.status = 202}) : refuse(std::move(*answer), status.error());
  };
}

const Rollout* Rollouts::find(const std::string& function) const {
  const auto is_it = [&](const Rollout& rollout) { return rollout.function == function; };
  const auto found = std::find_if(rollouts_.begin(), rollouts_.end(), is_it);
  return found == rollouts_.end() ? nullptr : &*found;
}

void Rollouts::forget(const std::string& function) {
  std::erase_if(rollouts_,
                [&](const Rollout& rollout) { return rollout.function == function && !rollout.error.empty(); });
}

void Rollouts::ended(const std::string& function, const Status& status) {
  const auto is_it = [&](const Rollout& rollout) { return rollout.function == function; };
  const auto found = std::find_if(rollouts_.begin(), rollouts_.end(), is_it);
  if (found == rollouts_.end()) return;
  if (status) {
    rollouts_.erase(found);
    return;
  }
  found->error = status.error().message;
  const auto failures =
      std::count_if(rollouts_.begin(), rollouts_.end(), [](const auto& each) { return !each.error.empty(); });
  if (static_cast<std::size_t>(failures) <= kMostFailures) return;
  rollouts_.erase(
      std::find_if(rollouts_.begin(), rollouts_.end(), [](const auto& each) { return !each.error.empty(); }));
}

}  // namespace fairlead::openfaas
