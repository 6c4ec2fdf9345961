// TaskExecutor's registrations: from a kernel task's frame to a session. Where modules are tried first, a process of their
// own fences and loads them, and everything else goes on: what a stranger wrote is read by no thread that others wait for.
//
//   frame ─> objects taken ─┬─ all modules are loaded already ─────────────────────────────> kernels found ─> SessionReady
//                           └─ ModuleTrial ─> ModulesMeasured ─> room taken, VariablesPlaced       │
//                              ModulesFenced ─> variables copied ─> TrialEnded ─> modules loaded ──┘
//
// A range has one trial at a time: the registrations behind it wait for its end, since they may be of the same modules.
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

// What is made ready for a session's first call at most: of device memory, and pinned.
constexpr Bytes kMostPreparedRoom{64 << 20};
constexpr Bytes kMostPreparedStaging{1 << 20};

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

Bytes rounded(const BufferSpec& buffer) {
  return Bytes(static_cast<std::int64_t>(RangeAllocator::round_up(static_cast<std::uint64_t>(buffer.bytes.count()))));
}

// What a call brings and takes, if all of it travels inside the call.
Bytes bytes_of_calls(const KernelTask& task) {
  Bytes bytes{0};
  for (const BufferSpec& buffer : task.buffers) {
    if (buffer.role != BufferRole::kConstant && buffer.role != BufferRole::kTemporary) bytes += rounded(buffer);
  }
  return bytes;
}

// Where pages are made when they are first written, as on the software GPU, a call finds its first ones made. Waited for, since
// the memory is anybody's next. REQUIRES: nothing runs.
void touch(CudaContext& cuda, DeviceObjects& objects, const DeviceObjects::Scratch& scratch, CUstream stream) {
  CUresult code = objects.wait(stream, {}, scratch, {});
  const auto bytes = static_cast<std::size_t>(std::min(scratch.bytes, kMostPreparedStaging).count());
  if (code == CUDA_SUCCESS) code = cuda.fill_zero(objects.address(scratch), bytes, stream);
  if (code == CUDA_SUCCESS) (void)cuda.synchronize(stream);
}

std::string sha256(const std::string& bytes) {
  std::string digest(crypto_hash_sha256_BYTES, '\0');
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(digest.data()),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return digest;
}

}  // namespace

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

void TaskExecutor::on(wire::RegisterSession& frame, std::span<const UniqueFd> descriptors) {
  Registration registration{.begun = monotonic_now(), .frame = std::move(frame)};
  Status prepared = prepare(registration, descriptors);
  if (!prepared || registration.on_trial.empty()) return finish(std::move(registration), std::move(prepared));
  const std::uint64_t session = registration.frame.session;
  const DeviceObjects::RangeIndex range = registration.range;
  registrations_[session] = std::move(registration);
  if (!on_trial_.try_emplace(range, session).second) return held_back_[range].push_back(session);
  ask_for_trial(registrations_[session]);
}

void TaskExecutor::on(wire::ModulesMeasured& frame, std::span<const UniqueFd>) {
  const auto waiting = registrations_.find(frame.session);
  if (waiting == registrations_.end()) return;  // dropped meanwhile
  Registration& registration = waiting->second;
  FL_CHECK(frame.variable_bytes.size() == registration.on_trial.size(), "{} modules measured of {}",
           frame.variable_bytes.size(), registration.on_trial.size());
  wire::VariablesPlaced placed{.session = frame.session, .addresses = {}, .to_load = {}};
  for (std::size_t i = 0; i < registration.on_trial.size(); ++i) {
    const std::string key = module_key(registration, registration.on_trial[i]);
    const auto address =
        with_room([&] { return fenced_.place(monotonic_now(), registration.range, key, frame.variable_bytes[i]); });
    if (!address) return end_trial(frame.session, of_module(registration, i, address.error()));
    placed.addresses.push_back(*address);
  }
  send_(placed);
}

void TaskExecutor::on(wire::ModulesFenced& frame, std::span<const UniqueFd>) {
  const auto waiting = registrations_.find(frame.session);
  if (waiting == registrations_.end()) return;
  Registration& registration = waiting->second;
  FL_CHECK(frame.modules.size() == registration.on_trial.size(), "{} modules fenced of {}", frame.modules.size(),
           registration.on_trial.size());
  for (std::size_t i = 0; i < registration.on_trial.size(); ++i) {
    const std::size_t module = registration.on_trial[i];
    FencedCode code{std::move(frame.modules[i].ptx), std::move(frame.modules[i].variables)};
    auto accepted = fenced_.accept(module_key(registration, module), std::move(code));
    if (!accepted) return end_trial(frame.session, of_module(registration, i, accepted.error()));
    registration.code[module] = *std::move(accepted);
  }
}

void TaskExecutor::on(wire::TrialEnded& frame, std::span<const UniqueFd>) {
  const auto waiting = registrations_.find(frame.session);
  if (waiting == registrations_.end()) return;
  if (frame.error.empty()) return end_trial(frame.session, {});
  end_trial(frame.session, of_module(waiting->second, frame.module, {Errc::kInvalidArgument, frame.error}));
}

void TaskExecutor::on(wire::ModuleTrial&, std::span<const UniqueFd>) {
  spdlog::error("device server: asked for a trial of modules, which a process of its own is for");
}

void TaskExecutor::on(wire::VariablesPlaced&, std::span<const UniqueFd>) {
  spdlog::error("device server: told where variables are, which is its own to say");
}

// Of the `index`th module on trial.
Status TaskExecutor::of_module(const Registration& registration, std::size_t index, const Error& why) {
  const std::size_t module = registration.on_trial.at(index);
  return fail(why.code, "module {}: {}", registration.task.modules[module].name, why.message);
}

void TaskExecutor::end_trial(std::uint64_t session, Status outcome) {
  Registration registration = std::move(registrations_.extract(session).mapped());
  const DeviceObjects::RangeIndex range = registration.range;
  finish(std::move(registration), std::move(outcome));
  begin_next_trial(range);
}

// The registrations that waited for the trial which is over, as far as the first that needs one of its own.
void TaskExecutor::begin_next_trial(DeviceObjects::RangeIndex range) {
  on_trial_.erase(range);
  std::deque<std::uint64_t>& waiting = held_back_[range];
  while (!waiting.empty() && !lost_) {
    const std::uint64_t session = waiting.front();
    waiting.pop_front();
    Registration& registration = registrations_.at(session);
    find_loaded(registration);
    if (!registration.on_trial.empty()) {
      on_trial_[range] = session;
      return ask_for_trial(registration);
    }
    finish(std::move(registrations_.extract(session).mapped()), {});
  }
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
  const auto is_same = [&](std::size_t other) { return module_key(registration, other) == key; };
  if (registration.modules[module] || std::ranges::any_of(registration.on_trial, is_same)) return {};
  const wire::ModuleImage& image = registration.frame.modules[module];
  const auto index = static_cast<std::size_t>(image.descriptor);
  FL_CHECK(image.descriptor >= 0 && index < descriptors.size(), "descriptor {} of {}", index, descriptors.size());
  auto code = read_image(descriptors[index], image.bytes);
  if (!code) return fail(code.error());
  registration.code[module] = *std::move(code);
  if (trials_) {
    registration.on_trial.push_back(module);
    return {};
  }
  code = code_for_driver(registration.range, key, std::move(registration.code[module]));
  if (!code) return fail(code.error());
  auto loaded = load_module(key, *code);
  if (!loaded) {
    fenced_.forget(key);
    return fail(loaded.error());
  }
  registration.modules[module] = *std::move(loaded);
  return {};
}

// What a trial before its own has loaded need not be tried.
void TaskExecutor::find_loaded(Registration& registration) {
  std::erase_if(registration.on_trial, [&](std::size_t module) {
    registration.modules[module] = modules_.find(module_key(registration, module));
    return static_cast<bool>(registration.modules[module]);
  });
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

void TaskExecutor::ask_for_trial(Registration& registration) {
  wire::ModuleTrial trial{.session = registration.frame.session, .modules = {}};
  for (const std::size_t module : registration.on_trial) {
    std::string& code = registration.code[module];
    trial.modules.push_back({.sha256 = sha256(code), .code = code});
    if (spaces_ == AddressSpaces::kPerTenant) code.clear();  // ModulesFenced brings what is loaded
  }
  if (spaces_ == AddressSpaces::kPerTenant) {
    const fence::FenceOptions options = fenced_.options_of(registration.range);
    trial.range_base = options.base;
    trial.range_bytes = options.bytes;
    trial.guard_bytes = options.guard_bytes;
    trial.architecture = cuda_.architecture();
  }
  send_(trial);
}

void TaskExecutor::finish(Registration registration, Status so_far) {
  wire::SessionReady ready{.session = registration.frame.session};
  auto session = so_far ? load_session(registration) : Result<Session>(fail(so_far.error()));
  leave_rooms(registration);
  if (session) {
    note_constants(registration.frame, session->kernels->task());
    preload(registration.frame, *session->kernels, session->range);
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
    if (!module) module = modules_.find(key);  // the same as one before it
    if (!module) {
      auto loaded = load_module(key, registration.code[m]);
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
  lane_events_ = std::max(lane_events_, (*kernels)->plan().events);
  for (const auto& lane : lanes_) {
    if (Status events = lane->need_events(cuda_, lane_events_); !events) return fail(events.error());
  }
  session.kernels = *std::move(kernels);
  return session;
}

// What was fenced and is not loaded is not known any more: the room of its variables is for others.
void TaskExecutor::leave_rooms(const Registration& registration) {
  for (const std::size_t module : registration.on_trial) {
    const std::string key = module_key(registration, module);
    if (!modules_.find(key)) fenced_.forget(key);
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
// it. If it cannot be done, the first call brings them, and says what is wrong. With them comes what the driver has to be asked
// for: memory that a call works in, and pinned memory for what it brings and takes. Both are anybody's afterwards.
void TaskExecutor::preload(const wire::RegisterSession& frame, const KernelSession& kernels, std::uint32_t range) {
  const KernelTask& task = kernels.task();
  std::vector<ObjectNeed> needs;
  Bytes bytes{0};
  for (const wire::BoundObject& bound : frame.constants) {
    const ObjectId object(bound.object);
    const bool named_before =
        std::any_of(needs.begin(), needs.end(), [&](const auto& n) { return n.object == object; });
    if (named_before || objects_->cache().on_device(object)) continue;
    if (!objects_->available(object)) return;
    needs.push_back({object, task.buffers[bound.buffer].bytes, ObjectKind::kConstant});
    bytes += rounded(task.buffers[bound.buffer]);
  }
  const Bytes free = objects_->cache().device_free();
  if (bytes > free) return;
  const Bytes inlined = bytes_of_calls(task);
  DeviceObjects::Scratch scratch{.range = range, .bytes = kernels.temporary_bytes() + inlined};
  // While others run, making room in one piece may wait for them.
  const bool has_room = running_.empty() && scratch.bytes <= std::min(kMostPreparedRoom, free - bytes);
  if (!has_room) scratch.bytes = Bytes(0);
  if (needs.empty() && scratch.bytes == Bytes(0)) return;
  const auto times = take_times();
  if (!times) return;
  Times copies = *times;
  const RequestId request(++last_request_);
  if (objects_->acquire(monotonic_now(), request, needs, scratch, copies.load)) {
    if (scratch.bytes > Bytes(0)) touch(cuda_, *objects_, scratch, lanes_.front()->main());
    objects_->release(request, true, scratch);
  }
  free_times_.push_back(copies);
  if (inlined > kMostPreparedStaging) return;
  if (const auto staging = pinned_.take(static_cast<std::uint64_t>(inlined.count()))) pinned_.give_back(*staging);
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

// What was unloaded.
void TaskExecutor::forget(const std::vector<std::string>& modules) {
  for (const std::string& key : modules) fenced_.forget(key);
}

void TaskExecutor::drop(const Registration& waiting) {
  const auto on_trial = on_trial_.find(waiting.range);
  if (on_trial == on_trial_.end() || on_trial->second != waiting.frame.session) {
    std::erase(held_back_[waiting.range], waiting.frame.session);
    return;
  }
  leave_rooms(waiting);
  begin_next_trial(waiting.range);
}

void TaskExecutor::on(wire::DropSession& frame, std::span<const UniqueFd>) {
  if (auto waiting = registrations_.extract(frame.session); !waiting.empty()) return drop(waiting.mapped());
  const auto session = sessions_.find(frame.session);
  if (session == sessions_.end()) return;
  session->second.dropped = true;
  residency_.remove(frame.session);
  erase_if_dropped(frame.session);
}

}  // namespace fairlead
