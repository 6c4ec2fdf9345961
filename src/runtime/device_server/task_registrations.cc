#include "runtime/device_server/task_registrations.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {

Result<std::string> read_module_image(const UniqueFd& file, std::uint64_t bytes) {
  std::string image(bytes, '\0');
  std::uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(file.get(), image.data() + done, bytes - done, static_cast<off_t>(done));
    if (got <= 0) return fail(Errc::kIo, "a module ends after {} of {} bytes", done, bytes);
    done += static_cast<std::uint64_t>(got);
  }
  return image;
}

Status supply_objects(DeviceObjects& objects, const std::vector<wire::SuppliedObject>& supplied,
                      std::span<const UniqueFd> descriptors, DeviceObjects::RangeIndex range) {
  for (const wire::SuppliedObject& object : supplied) {
    const auto index = static_cast<std::size_t>(object.descriptor);
    FL_CHECK(object.descriptor >= 0 && index < descriptors.size(), "descriptor {} of {}", index, descriptors.size());
    const Bytes bytes(static_cast<std::int64_t>(object.bytes));
    if (Status taken = objects.supply(ObjectId(object.object), bytes, descriptors[index], range); !taken) return taken;
  }
  return {};
}

void TaskRegistrations::begin(wire::RegisterSession& frame, std::span<const UniqueFd> descriptors) {
  TaskRegistration registration{.begun = monotonic_now(), .frame = std::move(frame)};
  Status prepared = prepare(registration, descriptors);
  if (!prepared || registration.on_trial.empty()) {
    return end(std::move(registration), std::move(prepared));
  }
  const std::uint64_t session = registration.frame.session;
  const RangeIndex range = registration.range;
  waiting_[session] = std::move(registration);
  if (!on_trial_.try_emplace(range, session).second) return held_back_[range].push_back(session);
  ask_for_trial(waiting_[session]);
}

void TaskRegistrations::measured(const wire::ModulesMeasured& frame) {
  const auto waiting = waiting_.find(frame.session);
  if (waiting == waiting_.end()) return;  // dropped meanwhile
  const TaskRegistration& registration = waiting->second;
  FL_CHECK(frame.variable_bytes.size() == registration.on_trial.size(), "{} modules measured of {}",
           frame.variable_bytes.size(), registration.on_trial.size());
  wire::VariablesPlaced placed{.session = frame.session, .addresses = {}, .to_load = {}};
  for (std::size_t i = 0; i < registration.on_trial.size(); ++i) {
    const std::string& key = registration.keys[registration.on_trial[i]];
    const auto address = modules_.place(registration.range, key, frame.variable_bytes[i]);
    if (!address) return end_trial(frame.session, of_module(registration, i, address.error()));
    placed.addresses.push_back(*address);
  }
  send_(placed);
}

void TaskRegistrations::fenced(wire::ModulesFenced& frame) {
  const auto waiting = waiting_.find(frame.session);
  if (waiting == waiting_.end()) return;
  TaskRegistration& registration = waiting->second;
  FL_CHECK(frame.modules.size() == registration.on_trial.size(), "{} modules fenced of {}", frame.modules.size(),
           registration.on_trial.size());
  for (std::size_t i = 0; i < registration.on_trial.size(); ++i) {
    const std::size_t module = registration.on_trial[i];
    FencedCode code{std::move(frame.modules[i].ptx), std::move(frame.modules[i].variables)};
    auto accepted = modules_.accept(registration.keys[module], std::move(code));
    if (!accepted) return end_trial(frame.session, of_module(registration, i, accepted.error()));
    registration.code[module] = *std::move(accepted);
  }
}

void TaskRegistrations::tried(const wire::TrialEnded& frame) {
  const auto waiting = waiting_.find(frame.session);
  if (waiting == waiting_.end()) return;
  if (frame.error.empty()) return end_trial(frame.session, {});
  end_trial(frame.session, of_module(waiting->second, frame.module, {Errc::kInvalidArgument, frame.error}));
}

// Of the `index`th module on trial.
Status TaskRegistrations::of_module(const TaskRegistration& registration, std::size_t index, const Error& why) {
  const std::size_t module = registration.on_trial.at(index);
  return fail(why.code, "module {}: {}", registration.task.modules[module].name, why.message);
}

void TaskRegistrations::end_trial(std::uint64_t session, Status outcome) {
  TaskRegistration registration = std::move(waiting_.extract(session).mapped());
  const RangeIndex range = registration.range;
  end(std::move(registration), std::move(outcome));
  begin_next_trial(range);
}

void TaskRegistrations::end(TaskRegistration registration, Status outcome) {
  if (!ended_(std::move(registration), std::move(outcome))) goes_on_ = false;
}

// The registrations that waited for the trial which is over, as far as the first that needs one of its own.
void TaskRegistrations::begin_next_trial(RangeIndex range) {
  on_trial_.erase(range);
  std::deque<std::uint64_t>& waiting = held_back_[range];
  while (!waiting.empty() && goes_on_) {
    const std::uint64_t session = waiting.front();
    waiting.pop_front();
    TaskRegistration& registration = waiting_.at(session);
    find_loaded(registration);
    if (!registration.on_trial.empty()) {
      on_trial_[range] = session;
      return ask_for_trial(registration);
    }
    end(std::move(waiting_.extract(session).mapped()), {});
  }
}

Result<TaskRegistrations::RangeIndex> TaskRegistrations::range_of(const std::string& tenant) {
  if (!modules_.are_fenced()) return 0;
  if (const auto found = tenants_.find(tenant); found != tenants_.end()) return found->second;
  auto range = objects_.add_range();
  if (range) tenants_[tenant] = *range;
  return range;
}

Status TaskRegistrations::prepare(TaskRegistration& registration, std::span<const UniqueFd> descriptors) {
  const auto range = range_of(registration.frame.tenant);
  if (!range) return fail(range.error());
  registration.range = *range;
  if (Status taken = supply_objects(objects_, registration.frame.supplied, descriptors, *range); !taken) return taken;
  auto task = wire::decode_kernel_task(registration.frame.task);
  if (!task) return fail(task.error());
  registration.task = *std::move(task);
  for (const wire::ModuleImage& image : registration.frame.modules) {
    registration.keys.push_back(modules_.key(*range, image.sha256));
    const auto index = static_cast<std::size_t>(image.descriptor);
    const bool is_there = image.descriptor >= 0 && index < descriptors.size();
    registration.images.emplace_back(is_there ? ::fcntl(descriptors[index].get(), F_DUPFD_CLOEXEC, 0) : -1);
  }
  registration.modules.resize(registration.keys.size());
  registration.code.resize(registration.keys.size());
  for (std::size_t m = 0; m < registration.modules.size(); ++m) {
    if (Status prepared = prepare_module(registration, m, descriptors); !prepared) {
      return fail(prepared.error().code, "module {}: {}", registration.task.modules[m].name, prepared.error().message);
    }
  }
  return {};
}

Status TaskRegistrations::prepare_module(TaskRegistration& registration, std::size_t module,
                                         std::span<const UniqueFd> descriptors) {
  const std::string& key = registration.keys[module];
  registration.modules[module] = modules_.find(key);
  const auto is_same = [&](std::size_t other) { return registration.keys[other] == key; };
  if (registration.modules[module] || std::ranges::any_of(registration.on_trial, is_same)) return {};
  const wire::ModuleImage& image = registration.frame.modules[module];
  const auto index = static_cast<std::size_t>(image.descriptor);
  FL_CHECK(image.descriptor >= 0 && index < descriptors.size(), "descriptor {} of {}", index, descriptors.size());
  auto code = read_module_image(descriptors[index], image.bytes);
  if (!code) return fail(code.error());
  if (options_.trials) {
    registration.code[module] = *std::move(code);
    registration.on_trial.push_back(module);
    return {};
  }
  auto loaded = modules_.load_image(registration.range, key, *std::move(code));
  if (!loaded) return fail(loaded.error());
  registration.modules[module] = *std::move(loaded);
  return {};
}

// What a trial before its own has loaded need not be tried.
void TaskRegistrations::find_loaded(TaskRegistration& registration) {
  std::erase_if(registration.on_trial, [&](std::size_t module) {
    registration.modules[module] = modules_.find(registration.keys[module]);
    return static_cast<bool>(registration.modules[module]);
  });
}

void TaskRegistrations::ask_for_trial(TaskRegistration& registration) {
  wire::ModuleTrial trial{.session = registration.frame.session, .modules = {}};
  for (const std::size_t module : registration.on_trial) {
    std::string& code = registration.code[module];
    trial.modules.push_back({.sha256 = std::string(as_text(sha256(code))), .code = code});
    if (modules_.are_fenced()) code.clear();  // ModulesFenced brings what is loaded
  }
  if (modules_.are_fenced()) {
    const fence::FenceOptions options = modules_.options_of(registration.range);
    trial.range_base = options.base;
    trial.range_bytes = options.bytes;
    trial.guard_bytes = options.guard_bytes;
    trial.architecture = options_.architecture;
  }
  send_(trial);
}

bool TaskRegistrations::drop(std::uint64_t session) {
  const auto dropped = waiting_.extract(session);
  if (dropped.empty()) return false;
  const TaskRegistration& registration = dropped.mapped();
  const auto on_trial = on_trial_.find(registration.range);
  if (on_trial == on_trial_.end() || on_trial->second != session) {
    std::erase(held_back_[registration.range], session);
    return true;
  }
  for (const std::size_t module : registration.on_trial) modules_.forget_unless_loaded(registration.keys[module]);
  begin_next_trial(registration.range);
  return true;
}

}  // namespace fairlead
