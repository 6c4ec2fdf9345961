// TaskExecutor's registrations: from a kernel task's frame to a session. Where modules are tried first, a registration waits
// for the node to say how that ended, and everything else goes on.
//
//   frame ─> objects taken, modules fenced ─┬─ all of them loaded already ────────────────> kernels found ─> SessionReady
//                                           └─ ModuleTrial ─> node ─> TrialEnded ─> loaded ──────┘
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "runtime/device_server/task_executor.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

Result<std::string> read_image(const UniqueFd& file, std::uint64_t bytes) {
  std::string image(bytes, '\0');
  std::uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(file.get(), image.data() + done, bytes - done, static_cast<off_t>(done));
    if (got <= 0) return fail(Errc::kIo, "a module ends after {} of {} bytes", done, bytes);
    done += static_cast<std::uint64_t>(got);
  }
  return image;
}

std::string sha256(const std::string& bytes) {
  std::string digest(crypto_hash_sha256_BYTES, '\0');
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(digest.data()),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return digest;
}

}  // namespace

void TaskExecutor::on(wire::RegisterSession& frame, std::span<const UniqueFd> descriptors) {
  Registration registration{.begun = monotonic_now(), .frame = std::move(frame)};
  Status prepared = prepare(registration, descriptors);
  if (prepared && !registration.on_trial.empty()) return ask_for_trial(std::move(registration));
  finish(std::move(registration), std::move(prepared));
}

void TaskExecutor::on(wire::TrialEnded& frame, std::span<const UniqueFd>) {
  auto waiting = registrations_.extract(frame.session);
  if (waiting.empty()) return;  // dropped meanwhile
  Registration registration = std::move(waiting.mapped());
  Status passed;
  if (!frame.error.empty()) {
    const std::size_t module = registration.on_trial.at(frame.module);
    passed = fail(Errc::kInvalidArgument, "module {}: {}", registration.task.modules[module].name, frame.error);
  }
  finish(std::move(registration), std::move(passed));
}

void TaskExecutor::on(wire::ModuleTrial&, std::span<const UniqueFd>) {
  spdlog::error("device server: asked for a trial of modules, which a process of its own is for");
}

Result<DeviceObjects::RangeIndex> TaskExecutor::range_of(const std::string& tenant) {
  if (spaces_ == AddressSpaces::kOne) return 0;
  if (const auto found = tenants_.find(tenant); found != tenants_.end()) return found->second;
  auto range = objects_->add_range();
  if (range) tenants_[tenant] = *range;
  return range;
}

Status TaskExecutor::prepare(Registration& registration, std::span<const UniqueFd> descriptors) {
  const auto range = range_of(registration.frame.tenant);
  if (!range) return fail(range.error());
  registration.range = *range;
  if (Status supplied = supply(registration.frame.supplied, descriptors, *range); !supplied) return supplied;
  auto task = wire::decode_kernel_task(registration.frame.task);
  if (!task) return fail(task.error());
  registration.task = *std::move(task);
  registration.modules.resize(registration.frame.modules.size());
  registration.code.resize(registration.frame.modules.size());
  for (std::size_t m = 0; m < registration.modules.size(); ++m) {
    if (Status prepared = prepare_module(registration, m, descriptors); !prepared) {
      return fail(prepared.error().code, "module {}: {}", registration.task.modules[m].name, prepared.error().message);
    }
  }
  return {};
}

// With several tenants, the same code of two of them is two modules.
std::string TaskExecutor::module_key(const Registration& registration, std::size_t module) const {
  const std::string& sha256 = registration.frame.modules[module].sha256;
  return spaces_ == AddressSpaces::kPerTenant ? fmt::format("{}:{}", registration.range, sha256) : sha256;
}

Status TaskExecutor::prepare_module(Registration& registration, std::size_t module,
                                    std::span<const UniqueFd> descriptors) {
  const std::string key = module_key(registration, module);
  registration.modules[module] = modules_.find(key);
  if (registration.modules[module]) return {};
  std::shared_ptr<const std::string>& code = registration.code[module];
  code = untried_[key].lock();
  if (!code) {
    const wire::ModuleImage& image = registration.frame.modules[module];
    const auto index = static_cast<std::size_t>(image.descriptor);
    FL_CHECK(image.descriptor >= 0 && index < descriptors.size(), "descriptor {} of {}", index, descriptors.size());
    auto read = read_image(descriptors[index], image.bytes);
    if (read) read = code_for_driver(registration.range, key, *std::move(read));
    if (!read) {
      untried_.erase(key);
      return fail(read.error());
    }
    code = std::make_shared<const std::string>(*std::move(read));
    untried_[key] = code;
  }
  if (trials_) {
    registration.on_trial.push_back(module);
    return {};
  }
  auto loaded = load_module(key, *code);
  if (!loaded) return fail(loaded.error());
  registration.modules[module] = *std::move(loaded);
  return {};
}

// Once more without the modules that nobody uses, where there was no room.
template <typename Attempt>
auto TaskExecutor::with_room(Attempt attempt) {
  auto made = attempt();
  const bool lacks_room =
      !made && (made.error().code == Errc::kTooLarge || made.error().code == Errc::kResourceExhausted);
  if (!lacks_room) return made;
  forget(modules_.unload_unused());
  return attempt();
}

Result<std::string> TaskExecutor::code_for_driver(DeviceObjects::RangeIndex range, const std::string& key,
                                                  std::string image) {
  if (spaces_ == AddressSpaces::kOne) return image;
  return with_room([&] {
    auto fenced = fenced_.fence(monotonic_now(), range, key, image);
    if (!fenced) fenced_.forget(key);
    return fenced;
  });
}

Result<KernelCache::Lease> TaskExecutor::load_module(const std::string& key, const std::string& code) {
  return with_room([&] { return modules_.load(key, code); });
}

void TaskExecutor::ask_for_trial(Registration registration) {
  wire::ModuleTrial trial{.session = registration.frame.session, .modules = {}};
  for (const std::size_t module : registration.on_trial) {
    const std::string& code = *registration.code[module];
    trial.modules.push_back({.sha256 = sha256(code), .code = code});
  }
  registrations_[trial.session] = std::move(registration);
  send_(trial);
}

void TaskExecutor::finish(Registration registration, Status so_far) {
  wire::SessionReady ready{.session = registration.frame.session};
  auto session = so_far ? load_session(registration) : Result<Session>(fail(so_far.error()));
  leave_code(registration);
  if (session) {
    note_constants(registration.frame, session->kernels->task());
    preload(registration.frame, session->kernels->task(), session->range);
    session->constants = std::move(registration.frame.constants);
    sessions_[ready.session] = *std::move(session);
  } else {
    ready.error = session.error().message;
  }
  tell_missing_constants();
  if (!ready.error.empty() && context_is_lost()) return;
  ready.init_ns = (monotonic_now() - registration.begun).count();
  send_(ready);
}

Result<TaskExecutor::Session> TaskExecutor::load_session(Registration& registration) {
  Session session{.range = registration.range};
  std::vector<CUmodule> modules;
  std::vector<std::vector<KernelSignature>> signatures;
  for (std::size_t m = 0; m < registration.modules.size(); ++m) {
    KernelCache::Lease& module = registration.modules[m];
    const std::string key = module_key(registration, m);
    if (!module) module = modules_.find(key);  // of another session that waited for the same
    if (!module) {
      auto loaded = load_module(key, *registration.code[m]);
      if (!loaded) {
        return fail(loaded.error().code, "module {}: {}", registration.task.modules[m].name, loaded.error().message);
      }
      module = *std::move(loaded);
    }
    if (spaces_ == AddressSpaces::kPerTenant) signatures.push_back(fenced_.signatures(key));
    modules.push_back(module.module());
    session.modules.push_back(std::move(module));
  }
  if (spaces_ == AddressSpaces::kPerTenant) {
    // The node has checked the module as it came. What the driver got was read by another parser, and one byte of argument
    // too few would be one of this process's.
    if (Status valid = validate_task(registration.task, signatures, cuda_.limits()); !valid) return fail(valid.error());
  }
  Cublas* const cublas = cublas_for(registration.task);
  auto kernels = KernelSession::create(cuda_, std::move(registration.task), modules, launching_, cublas);
  if (!kernels) return fail(kernels.error());
  for (const auto& lane : lanes_) {
    if (Status events = lane->need_events(cuda_, (*kernels)->plan().events); !events) return fail(events.error());
  }
  session.kernels = *std::move(kernels);
  return session;
}

// What was not loaded and nobody else waits for is not known any more.
void TaskExecutor::leave_code(Registration& registration) {
  for (std::size_t m = 0; m < registration.code.size(); ++m) {
    if (!registration.code[m]) continue;
    registration.code[m].reset();
    const auto untried = untried_.find(module_key(registration, m));
    if (untried == untried_.end() || !untried->second.expired()) continue;
    if (!modules_.find(untried->first)) fenced_.forget(untried->first);
    untried_.erase(untried);
  }
}

void TaskExecutor::note_constants(const wire::RegisterSession& frame, const KernelTask& task) {
  std::vector<SessionResidency::Constant> constants;
  for (const wire::BoundObject& bound : frame.constants) {
    const ObjectId object(bound.object);
    constants.push_back({object, task.buffers[bound.buffer].bytes, objects_->cache().on_device(object)});
  }
  residency_.add(frame.session, constants);
}

// Constants come with the session where memory is free, so that its first call does not wait for them. Nothing is evicted for
// it. If it cannot be done, the first call brings them, and says what is wrong.
void TaskExecutor::preload(const wire::RegisterSession& frame, const KernelTask& task, std::uint32_t range) {
  std::vector<ObjectNeed> needs;
  Bytes bytes{0};
  for (const wire::BoundObject& bound : frame.constants) {
    const ObjectId object(bound.object);
    const bool named_before =
        std::any_of(needs.begin(), needs.end(), [&](const auto& n) { return n.object == object; });
    if (named_before || objects_->cache().on_device(object)) continue;
    if (!objects_->available(object)) return;
    needs.push_back({object, task.buffers[bound.buffer].bytes, ObjectKind::kConstant});
    const auto size = static_cast<std::uint64_t>(task.buffers[bound.buffer].bytes.count());
    bytes += Bytes(static_cast<std::int64_t>(RangeAllocator::round_up(size)));
  }
  if (needs.empty() || bytes > objects_->cache().device_free()) return;
  const auto times = take_times();
  if (!times) return;
  Times copies = *times;
  DeviceObjects::Scratch none{.range = range};
  const RequestId request(++last_request_);
  if (objects_->acquire(monotonic_now(), request, needs, none, copies.load)) objects_->release(request, true, none);
  free_times_.push_back(copies);
}

void TaskExecutor::tell_missing_constants() {
  for (const ObjectId object : objects_->take_moved()) residency_.moved(object, objects_->cache().on_device(object));
  wire::ConstantsMissing missing{.sessions = {}, .bytes_per_second = load_bytes_per_second_};
  for (const SessionResidency::Missing& change : residency_.take_changes()) {
    missing.sessions.push_back({change.session, static_cast<std::uint64_t>(change.bytes.count())});
  }
  missing.resident = static_cast<std::uint64_t>(residency_.resident().count());
  if (!missing.sessions.empty()) send_(missing);
}

// What was unloaded: but where a registration is about to load it again, its variables' room is in the code.
void TaskExecutor::forget(const std::vector<std::string>& modules) {
  for (const std::string& key : modules) {
    const auto untried = untried_.find(key);
    if (untried == untried_.end() || untried->second.expired()) fenced_.forget(key);
  }
}

void TaskExecutor::on(wire::DropSession& frame, std::span<const UniqueFd>) {
  if (auto waiting = registrations_.extract(frame.session); !waiting.empty()) return leave_code(waiting.mapped());
  const auto session = sessions_.find(frame.session);
  if (session == sessions_.end()) return;
  session->second.dropped = true;
  residency_.remove(frame.session);
  erase_if_dropped(frame.session);
}

}  // namespace fairlead
