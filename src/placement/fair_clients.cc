#include "placement/fair_clients.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {
namespace {

// 0.9 old + 0.1 new, as the queueing policies estimate; the first value counts whole.
void average(Duration& mean, Duration value) {
  mean = mean == Duration(0) ? value : mean + (value - mean) / 10;
}

}  // namespace

FairClients::Client& FairClients::at(FlowId id) {
  const auto found = clients_.find(id);
  FL_CHECK(found != clients_.end(), "client {} was never added", id.value());
  return found->second;
}

void FairClients::add(FlowId id) {
  const bool added = clients_.emplace(id, Client{.runtime = minimum_}).second;
  FL_CHECK(added, "client {} is there already", id.value());
}

void FairClients::arrive(Instant now, FlowId id) {
  Client& client = at(id);
  if (!client.busy()) client.runtime = std::max(client.runtime, minimum_);
  client.waiting.push_back(now);
  raise_minimum();
}

void FairClients::begin(FlowId id, GpuId gpu, Duration reload) {
  Client& client = at(id);
  FL_CHECK(!client.waiting.empty(), "client {} has nothing waiting", id.value());
  client.waiting.erase(client.waiting.begin());
  const Duration charge = client.mean_gpu_time + reload;
  client.charged.push_back(charge);
  client.runtime += charge;
  client.own = gpu;
  raise_minimum();
}

void FairClients::end(FlowId id, const WorkerPool::Spent& spent) {
  Client& client = at(id);
  FL_CHECK(!client.charged.empty(), "client {} has nothing running", id.value());
  client.runtime += spent.gpu_time - client.charged.front();
  client.charged.erase(client.charged.begin());
  average(client.mean_gpu_time, spent.gpu_time);
  average(client.mean_latency, spent.latency);
  raise_minimum();
}

void FairClients::raise_minimum() {
  Duration least = Duration::max();
  for (const auto& [id, client] : clients_) {
    if (client.busy()) least = std::min(least, client.runtime);
  }
  if (least != Duration::max()) minimum_ = std::max(minimum_, least);
}

}  // namespace fairlead
