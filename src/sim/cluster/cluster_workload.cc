#include "sim/cluster/cluster_workload.h"

#include <algorithm>
#include <cmath>

namespace fairlead::sim {

ClusterWorkload::ClusterWorkload(const ClusterRunOptions& options, std::size_t gateways, Instant measured_from)
    : gateways_(gateways),
      hot_from_(measured_from + std::chrono::seconds(10)),
      hot_until_(measured_from + std::chrono::seconds(20)),
      rng_(options.seed) {
  Rng rng(options.seed * 77 + 1);
  for (std::size_t t = 0; t < std::max<std::size_t>(1, options.tenant_loads.size()); ++t) add_tenant(options, t, rng);
  for (const ClusterFunction& function : functions_) cumulative_.push_back(rate_ += function.share);
  hot_function_ = functions_.size() / 10;
  hot_extra_ = functions_[hot_function_].share * (std::max(1.0, options.hot_factor) - 1) / rate_;
  next_arrival_ = Instant(from_seconds(rng_.exponential(1 / rate_)));
}

void ClusterWorkload::add_tenant(const ClusterRunOptions& options, std::size_t tenant, Rng& rng) {
  const bool has_tenants = !options.tenant_loads.empty();
  const auto nodes = static_cast<double>(options.nodes), gpus = static_cast<double>(options.gpus);
  const double per_node =
      has_tenants ? options.tenant_functions[tenant] : static_cast<double>(options.functions_per_node);
  const auto count = std::max<std::size_t>(1, static_cast<std::size_t>(per_node * nodes));
  const std::size_t first = functions_.size();
  double work = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ClusterFunction function{.key = function_key(std::to_string(tenant), std::to_string(i)), .tenant = tenant};
    function.mean_s = std::exp2(3.2 * rng.uniform() - 1.6) * 0.5;
    function.share = std::pow(static_cast<double>(i + 1), -options.exponent);
    work += function.mean_s * function.share;
    functions_.push_back(function);
  }
  const double load = has_tenants ? options.tenant_loads[tenant] : options.load;
  for (std::size_t i = first; i < functions_.size(); ++i) {
    functions_[i].share *= load * nodes * gpus / work;  // calls per second
  }
}

std::size_t ClusterWorkload::function_at(double part) const {
  const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), part * rate_);
  return std::min(functions_.size() - 1, static_cast<std::size_t>(found - cumulative_.begin()));
}

double ClusterWorkload::heat(Instant now) const {
  return now >= hot_from_ && now < hot_until_ ? hot_extra_ : 0;
}

std::optional<ClusterCall> ClusterWorkload::next(Instant end) {
  if (next_arrival_ >= end) return std::nullopt;
  const double part = rng_.uniform() * (1 + heat(next_arrival_));
  const std::size_t function = part >= 1 ? hot_function_ : function_at(part);
  const double work = functions_[function].mean_s * (0.7 + 0.6 * rng_.uniform());
  const ClusterCall call{function, rng_.below(gateways_), next_arrival_, from_seconds(work)};
  next_arrival_ += from_seconds(rng_.exponential(1 / (rate_ * (1 + heat(next_arrival_)))));
  return call;
}

}  // namespace fairlead::sim
