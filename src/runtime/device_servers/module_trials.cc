#include "runtime/device_servers/module_trials.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <utility>
#include <variant>

#include "base/log.h"

namespace fairlead {

ModuleTrials::ModuleTrials(boost::asio::io_context& io, Options options)
    : io_(io), options_(std::move(options)), order_(options_.at_once), passed_(options_.remembered) {}

void ModuleTrials::post(std::function<void()> call) {
  boost::asio::post(io_, [alive = std::weak_ptr<int>(alive_), call = std::move(call)] {
    if (!alive.expired()) call();
  });
}

std::string ModuleTrials::key(const Request& request, std::uint32_t module) {
  return fmt::format("{}:{}", request.gpu.value(), request.trial.modules[module].sha256);
}

std::vector<std::uint32_t> ModuleTrials::untried(const Request& request) {
  std::vector<std::uint32_t> modules;
  for (std::uint32_t m = 0; m < request.trial.modules.size(); ++m) {
    if (!passed_.has(key(request, m))) modules.push_back(m);
  }
  return modules;
}

void ModuleTrials::start(Request request, Done done) {
  forget(request.instance);
  if (untried(request).empty()) {  // waits for no trial, its tenant's own among them
    return post([done = std::move(done), session = request.trial.session] { done({.session = session}); });
  }
  const std::uint64_t id = ++last_;
  of_instance_[request.instance] = id;
  order_.add(id, request.tenant);
  trials_.emplace(id, Trial{.request = std::move(request), .done = std::move(done)});
  post([this] { start_next(); });
}

void ModuleTrials::forget(InstanceId instance) {
  const auto known = of_instance_.extract(instance);
  if (known.empty()) return;
  Trial& trial = trials_.at(known.mapped());
  trial.done = nullptr;
  if (!trial.process) end(known.mapped());
}

void ModuleTrials::start_next() {
  while (const auto id = order_.take_next()) begin(*id, trials_.at(*id));
}

void ModuleTrials::begin(std::uint64_t id, Trial& trial) {
  trial.left = untried(trial.request);  // others may have passed meanwhile
  if (trial.left.empty()) {
    answer(trial, "");
    return end(id);
  }
  std::vector<std::string> arguments = options_.arguments;
  arguments.emplace_back("--try-modules");
  auto process = ServerProcess::start(
      io_, {.program = options_.program, .arguments = std::move(arguments), .environment = trial.request.environment},
      {.frame = [this, id](const wire::FrameToNode& frame) { on_frame(id, frame); },
       // Posted: the process object must not go inside its own callback.
       .gone = [this, id](const std::string& reason) { post([this, id, reason] { on_gone(id, reason); }); }});
  if (!process) {
    answer(trial, "it could not be tried: " + process.error().message);
    return end(id);
  }
  trial.process = *std::move(process);
  wire::ModuleTrial order{.session = trial.request.trial.session, .modules = {}};
  for (const std::uint32_t m : trial.left) order.modules.push_back(trial.request.trial.modules[m]);
  trial.process->send(order);
  trial.timer = std::make_unique<boost::asio::steady_timer>(io_);
  arm(id, trial);
}

void ModuleTrials::arm(std::uint64_t id, Trial& trial) {
  trial.timer->expires_after(options_.patience);
  trial.timer->async_wait([this, id, alive = std::weak_ptr<int>(alive_)](boost::system::error_code error) {
    if (error || alive.expired()) return;
    const auto late = trials_.find(id);
    if (late == trials_.end()) return;
    late->second.late = true;
    late->second.process->kill();
  });
}

void ModuleTrials::on_frame(std::uint64_t id, const wire::FrameToNode& frame) {
  Trial& trial = trials_.at(id);
  const auto* ended = std::get_if<wire::TrialEnded>(&frame);
  if (ended == nullptr || trial.tried == trial.left.size() || ended->module != trial.tried)
    return trial.process->kill();
  if (!ended->error.empty()) return answer(trial, ended->error);
  passed_.add(key(trial.request, trial.left[trial.tried++]));
  if (trial.tried == trial.left.size()) return answer(trial, "");
  arm(id, trial);
}

void ModuleTrials::on_gone(std::uint64_t id, const std::string& reason) {
  Trial& trial = trials_.at(id);
  const std::string what =
      trial.late ? fmt::format("had not loaded it after {:.3g} s and was ended", to_seconds(options_.patience))
                 : fmt::format("ended ({}) while the driver loaded it", reason);
  if (trial.done) spdlog::warn("tenant {}: the trial of a module {}", trial.request.tenant, what);
  answer(trial, "it was loaded in a process of its own first, which " + what + "; no device server has loaded it");
  end(id);
}

// Of the module that is on trial, or of the last.
void ModuleTrials::answer(Trial& trial, const std::string& error) {
  if (!trial.done) return;
  of_instance_.erase(trial.request.instance);
  const auto last = static_cast<std::uint32_t>(trial.request.trial.modules.size() - 1);
  const std::uint32_t module = trial.tried < trial.left.size() ? trial.left[trial.tried] : last;
  std::exchange(trial.done, nullptr)({.session = trial.request.trial.session, .module = module, .error = error});
}

void ModuleTrials::end(std::uint64_t id) {
  order_.remove(id);
  trials_.erase(id);
  post([this] { start_next(); });
}

}  // namespace fairlead
