#include "runtime/device_servers/module_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/log.h"
#include "runtime/device_server/command_line.h"

namespace fairlead {

ModuleTrials::ModuleTrials(boost::asio::io_context& io, Options options)
    : io_(io), options_(std::move(options)), order_(options_.at_once), passed_(options_.remembered) {}

void ModuleTrials::post(std::function<void()> call) {
  boost::asio::post(io_, life_.guarded([call = std::move(call)] { call(); }));
}

// What the driver would get: fencing the same for the same addresses gives the same text.
std::string ModuleTrials::key(const Trial& trial, std::uint32_t module) {
  const wire::ModuleTrial& order = trial.request.trial;
  return fmt::format("{}:{}:{:x}+{:x}:{:x}", trial.request.gpu.value(), order.modules[module].sha256, order.range_base,
                     order.range_bytes, trial.addresses.empty() ? 0 : trial.addresses[module]);
}

std::vector<std::uint32_t> ModuleTrials::untried(const Trial& trial) {
  std::vector<std::uint32_t> modules;
  for (std::uint32_t m = 0; m < trial.request.trial.modules.size(); ++m) {
    if (!passed_.has(key(trial, m))) modules.push_back(m);
  }
  return modules;
}

void ModuleTrials::start(Request request, Tell tell) {
  forget(request.instance);
  const bool is_fenced = request.trial.range_bytes > 0;
  Trial trial{.request = std::move(request), .tell = std::move(tell)};
  if (is_fenced) trial.phase = Phase::kMeasuring;
  if (!is_fenced && untried(trial).empty()) {  // waits for no trial, its tenant's own among them
    return post([tell = std::move(trial.tell), session = trial.request.trial.session] {
      tell(wire::TrialEnded{.session = session});
    });
  }
  const std::uint64_t id = ++last_;
  of_instance_[trial.request.instance] = id;
  order_.add(id, trial.request.tenant);
  trials_.emplace(id, std::move(trial));
  post([this] { start_next(); });
}

void ModuleTrials::forget(InstanceId instance) {
  const auto known = of_instance_.extract(instance);
  if (known.empty()) return;
  Trial& trial = trials_.at(known.mapped());
  trial.tell = nullptr;
  if (!trial.process) return end(known.mapped());
  if (trial.phase != Phase::kLoading) trial.process->kill();  // it waits for an answer that nobody gives
}

void ModuleTrials::start_next() {
  while (const auto id = order_.take_next()) begin(*id, trials_.at(*id));
}

void ModuleTrials::begin(std::uint64_t id, Trial& trial) {
  if (trial.phase == Phase::kLoading) {
    trial.left = untried(trial);  // others may have passed meanwhile
    if (trial.left.empty()) {
      answer(trial, "");
      return end(id);
    }
  }
  std::vector<std::string> arguments = options_.arguments;
  arguments.emplace_back(kTryModules);
  auto process = ServerProcess::start(
      io_,
      {.program = options_.program,
       .arguments = std::move(arguments),
       .environment = trial.request.environment,
       .launcher = options_.launcher},
      {.frame = [this, id](wire::FrameToNode frame) { on_frame(id, frame); },
       // Posted: the process object must not go inside its own callback.
       .gone = [this, id](const std::string& reason) { post([this, id, reason] { on_gone(id, reason); }); }});
  if (!process) {
    answer(trial, "it could not be tried: " + process.error().message);
    return end(id);
  }
  trial.process = *std::move(process);
  trial.began = monotonic_now();
  wire::ModuleTrial order = trial.request.trial;
  if (trial.phase == Phase::kLoading) {
    order.modules.clear();
    for (const std::uint32_t m : trial.left) order.modules.push_back(trial.request.trial.modules[m]);
  }
  trial.process->send(order);
  for (wire::ModuleTrial::Module& module : trial.request.trial.modules) module.code.clear();
  trial.timer = std::make_unique<boost::asio::steady_timer>(io_);
  arm(id, trial);
}

void ModuleTrials::arm(std::uint64_t id, Trial& trial) {
  trial.timer->expires_after(options_.patience);
  trial.timer->async_wait(life_.on_success([this, id] {
    const auto late = trials_.find(id);
    if (late == trials_.end()) return;
    late->second.late = true;
    late->second.process->kill();
  }));
}

// False: it is not in that phase, or nobody waits.
bool ModuleTrials::advance(Trial& trial, Phase from, Phase to) {
  if (trial.phase != from || !trial.tell) return false;
  trial.phase = to;
  return true;
}

void ModuleTrials::on_frame(std::uint64_t id, wire::FrameToNode& frame) {
  Trial& trial = trials_.at(id);
  if (auto* measured = std::get_if<wire::ModulesMeasured>(&frame);
      measured != nullptr && advance(trial, Phase::kMeasuring, Phase::kPlacing)) {
    measured->session = trial.request.trial.session;
    trial.tell(std::move(*measured));
  } else if (auto* fenced = std::get_if<wire::ModulesFenced>(&frame);
             fenced != nullptr && advance(trial, Phase::kFencing, Phase::kLoading)) {
    fenced->session = trial.request.trial.session;
    trial.tell(std::move(*fenced));
    if (trial.left.empty()) return answer(trial, "");
  } else if (const auto* ended = std::get_if<wire::TrialEnded>(&frame)) {
    on_ended(trial, *ended);
  } else {
    return trial.process->kill();
  }
  arm(id, trial);
}

void ModuleTrials::place(InstanceId instance, wire::VariablesPlaced placed) {
  const auto known = of_instance_.find(instance);
  if (known == of_instance_.end()) return;
  Trial& trial = trials_.at(known->second);
  if (placed.addresses.size() != trial.request.trial.modules.size()) return;
  if (!advance(trial, Phase::kPlacing, Phase::kFencing)) return;
  trial.addresses = placed.addresses;
  trial.left = untried(trial);
  placed.to_load.assign(trial.left.begin(), trial.left.end());
  trial.process->send(placed);
  arm(known->second, trial);
}

// Of a module that it loaded; or, with an error, of one that cannot be fenced.
void ModuleTrials::on_ended(Trial& trial, const wire::TrialEnded& ended) {
  if (trial.phase != Phase::kLoading) {
    if (ended.error.empty() || ended.module >= trial.request.trial.modules.size()) return trial.process->kill();
    return answer(trial, ended.error, ended.module);
  }
  if (trial.tried == trial.left.size()) return;
  if (!ended.error.empty()) return answer(trial, ended.error, module_at_hand(trial));
  passed_.add(key(trial, trial.left[trial.tried++]));
  if (trial.tried == trial.left.size()) answer(trial, "");
}

void ModuleTrials::on_gone(std::uint64_t id, const std::string& reason) {
  Trial& trial = trials_.at(id);
  const char* const doing = trial.phase == Phase::kLoading ? "loaded" : "fenced";
  const std::string what =
      trial.late ? fmt::format("had not {} it after {:.3g} s and was ended", doing, to_seconds(options_.patience))
                 : fmt::format("ended ({}) while it was {}", reason, doing);
  if (trial.tell) spdlog::warn("tenant {}: the trial of a module {}", trial.request.tenant, what);
  answer(trial,
         fmt::format("it was {} in a process of its own first, which {}; no device server has loaded it", doing, what),
         module_at_hand(trial));
  const bool passed = trial.phase == Phase::kLoading && trial.tried == trial.left.size();
  passed ? end(id) : end_failed(id);
}

// The module that is being loaded, or the last one.
std::uint32_t ModuleTrials::module_at_hand(const Trial& trial) const {
  const auto last = static_cast<std::uint32_t>(trial.request.trial.modules.size() - 1);
  return trial.tried < trial.left.size() ? trial.left[trial.tried] : last;
}

void ModuleTrials::answer(Trial& trial, const std::string& error) {
  answer(trial, error, static_cast<std::uint32_t>(trial.request.trial.modules.size() - 1));
}

void ModuleTrials::answer(Trial& trial, const std::string& error, std::uint32_t module) {
  if (!trial.tell) return;
  of_instance_.erase(trial.request.instance);
  const wire::TrialEnded ended{.session = trial.request.trial.session, .module = module, .error = error};
  std::exchange(trial.tell, nullptr)(ended);
}

void ModuleTrials::end(std::uint64_t id) {
  order_.remove(id);
  trials_.erase(id);
  post([this] { start_next(); });
}

void ModuleTrials::end_failed(std::uint64_t id) {
  const Duration took = monotonic_now() - trials_.at(id).began;
  trials_.erase(id);
  order_.rest(id);
  const auto rest = rests_.try_emplace(id, io_, std::min(options_.rests * took, options_.longest_rest)).first;
  rest->second.async_wait(life_.on_success([this, id] {
    rests_.erase(id);
    order_.remove(id);
    start_next();
  }));
  post([this] { start_next(); });
}

}  // namespace fairlead
