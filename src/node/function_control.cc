#include "node/function_control.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>

#include "base/log.h"
#include "decide/core/hold_desk.h"
#include "model/autoscale_tag.h"
#include "model/egress_list.h"
#include "model/model_tags.h"
#include "model/warmth_tags.h"
#include "node/container_spec.h"
#include "node/pipeline_folder.h"
#include "store/user_rights.h"
#include "store/zip_writer.h"

namespace fairlead {
namespace {

// REQUIRES: a valid configuration. A pipeline's slices are its own: there is nothing to hold.
WarmHold hold_of(const FunctionRecord& record, const BundledTask* task) {
  return task != nullptr && task->pipeline ? WarmHold() : held_as(record.config.tags).value_or(WarmHold());
}

// Who wants an instance somewhere while nobody calls has one started.
bool is_pinned(const FunctionRecord& record) {
  const auto pin = record.config.tags.find(std::string(kPinTag));
  return pin != record.config.tags.end() && pin->second != pin_name(PinKind::kNone);
}

bool has_instance(const Core& core, FlowId flow) {
  const std::vector<InstanceView> all = core.instances();
  return std::any_of(all.begin(), all.end(), [&](const InstanceView& one) { return one.flow == flow; });
}

Status validate(const std::string& name, const FunctionConfig& config) {
  if (Status valid = validate_function_name(name); !valid) return valid;
  if (Status valid = validate_config(config); !valid) return valid;
  if (const auto gpu = gpu_settings(config); !gpu) return fail(gpu.error());
  if (const auto scaled = autoscale_of(config); !scaled) return fail(scaled.error());
  return {};
}

// What a function has queued and running is counted for its tenant.
Status validate_same_tenant(const FunctionConfig& before, const FunctionConfig& after) {
  const std::string was = gpu_settings(before).value_or(GpuSettings()).tenant, is = gpu_settings(after)->tenant;
  if (was == is) return {};
  return fail(
      Errc::kInvalidArgument,
      "tag gpu:tenant is '{}', but the function is of tenant '{}' for as long as it exists; delete it and create "
      "it anew",
      is, was);
}

void set_code(FunctionRecord& record, CodeBundle bundle) {
  record.code_sha256 = std::move(bundle.sha256);
  record.code_bytes = bundle.bytes;
  record.code_path = std::move(bundle.path);
  record.image = std::move(bundle.image);
  record.in_place = bundle.in_place;
}

// A tag that nobody follows would be taken for a way out that is there. What was asked for before is never refused.
Status check_egress(const RegisteredFunction* known, const FunctionRecord& record, const BundledTask* task) {
  const auto tag = record.config.tags.find(kEgressTag);
  if (task == nullptr || tag == record.config.tags.end()) return {};
  const Result<EgressList> asked = EgressList::parse(tag->second);
  if (asked && asked->is_none()) return {};
  if (known != nullptr && known->kernel_task && known->record.config.tags.contains(kEgressTag)) return {};
  return fail(
      Errc::kInvalidArgument,
      "tag {} is '{}', and {} connect nowhere: leave the tag out, or set it to none; a program of a function's own, "
      "with a bootstrap, may have a way out",
      kEgressTag, tag->second, task->pipeline ? "the components of a pipeline" : "kernel tasks");
}

// Their own buffers say it.
Status check_model(const RegisteredFunction* known, const FunctionRecord& record, const BundledTask* task) {
  for (const std::string_view tag : {kModelInputsTag, kModelOutputsTag, kBatchTag}) {
    if (task == nullptr || !record.config.tags.contains(std::string(tag))) continue;
    if (known != nullptr && known->kernel_task && known->record.config.tags.contains(std::string(tag))) continue;
    return fail(Errc::kInvalidArgument, "tag {} is of programs, and {} say their tensors by themselves: leave it out",
                tag, task->pipeline ? "pipelines" : "kernel tasks");
  }
  return {};
}

// Of a function that was registered before: what was valid then is now.
std::shared_ptr<const BundledTask> kernel_task_of(const FunctionRecord& record) {
  if (record.in_place)
    return nullptr;  // whatever its author has put into the folder since, the node reads nothing of it
  if (!is_kernel_task(record.code_path) && !is_pipeline(record.code_path)) return nullptr;
  auto task = is_pipeline(record.code_path) ? read_pipeline(record.code_path, tenant_of(record.config.tags))
                                            : read_kernel_task(record.code_path);
  if (task) return std::make_shared<const BundledTask>(*std::move(task));
  spdlog::error("kernel task {} cannot be read any more: {}", record.name, task.error().message);
  return nullptr;
}

bool has_code(const FunctionRecord& record) {
  std::error_code error;
  return std::filesystem::is_directory(record.code_path, error);
}

// Folders of code that no known function uses; what a crash left half filled counts too.
std::size_t unused_folders(const std::string& parent, const std::vector<std::string>& used) {
  std::error_code error;
  const std::filesystem::directory_iterator folders(parent, error), end;
  return error ? 0 : static_cast<std::size_t>(std::count_if(folders, end, [&](const auto& entry) {
    return std::find(used.begin(), used.end(), entry.path().string()) == used.end();
  }));
}

// Who puts the lost state.db back finds functions whose code is here still.
void remove_unused(const StateDamage& damage, const std::string& state_dir, const std::vector<std::string>& used) {
  if (!damage.may_lack_changes) {
    remove_unused_bundles(state_dir, used);
    remove_unused_images(state_dir, used);
    return;
  }
  const std::string folder = std::filesystem::absolute(state_dir).lexically_normal().string();
  const std::size_t code = unused_folders(folder + "/code", used), images = unused_folders(folder + "/images", used);
  if (code + images == 0) return;
  spdlog::warn(
      "{}: {} folders of code and {} images that no known function uses are kept, since state.db may lack functions; "
      "the next start that finds no damage removes them: before it, stop the node and put state.db and state.db-wal "
      "back, or deploy the functions again",
      folder, code, images);
}

// What is published of one function, out of all.
PublishedState published_of(const std::string& function, PublishedState& all) {
  PublishedState own;
  const auto is_its = [&](const FunctionRecord& version) { return version.name == function; };
  std::copy_if(all.versions.begin(), all.versions.end(), std::back_inserter(own.versions), is_its);
  std::erase_if(all.versions, is_its);
  if (auto number = all.last_numbers.extract(function)) own.last_numbers.insert(std::move(number));
  if (auto aliases = all.aliases.extract(function)) own.aliases.insert(std::move(aliases));
  return own;
}

// Functions of other nodes, whose code or a version's is not here yet, with what is published of them.
void set_late_apart(std::vector<FunctionRecord>& records, PublishedState& published,
                    std::vector<FunctionChange>& late) {
  std::set<std::string> names;
  for (const auto* some : {&records, &published.versions}) {
    for (const FunctionRecord& record : *some) {
      if (!has_code(record)) names.insert(record.name);
    }
  }
  for (FunctionRecord& record : records) {
    record.seats.clear();  // another node's, or this one's of an earlier start
    if (!names.contains(record.name)) continue;
    late.push_back({.function = record.name,
                    .record = record,
                    .published = published_of(record.name, published),
                    .event_config = {}});
  }
  std::erase_if(records, [&](const FunctionRecord& record) { return names.contains(record.name); });
}

}  // namespace

FunctionControl::FunctionControl(boost::asio::io_context& io, ImageStoreOptions images, Worker& worker, Store& store,
                                 Functions& functions, Tenants& tenants, RequestIds& request_ids, CoreDriver& driver,
                                 Removed removed)
    : state_dir_(images.state_dir),
      worker_(worker),
      store_(store),
      functions_(functions),
      tenants_(tenants),
      request_ids_(request_ids),
      driver_(driver),
      removed_(std::move(removed)),
      versions_({.store = store_,
                 .functions = functions_,
                 .tenants = tenants_,
                 .request_ids = request_ids_,
                 .driver = driver_,
                 .shares = shares_,
                 .removed = removed_,
                 .seats_changed = [this] { settle_shares(); }}),
      images_(std::make_unique<ImageStore>(std::move(images))),
      image_worker_(io) {}

FunctionControl::~FunctionControl() {
  images_->stop();  // else the worker's end would wait for a registry
}

Status FunctionControl::recover(std::vector<FunctionChange>* late) {
  auto records = store_.load_functions();
  if (!records) return fail(records.error());
  auto published = store_.load_published();
  if (!published) return fail(published.error());
  std::vector<std::string> used;
  for (const auto* some : {&*records, &published->versions}) {
    for (const FunctionRecord& record : *some) used.push_back(record.code_path);
  }
  if (late != nullptr) set_late_apart(*records, *published, *late);
  for (FunctionRecord& record : *records) {
    const RegisteredFunction& function = functions_.add(record, kernel_task_of(record));
    shares_.recover(record, function.kernel_task != nullptr);
    driver_.core().add_function(spec_of(function));
    if (function.kernel_task && !function.is_pipeline()) driver_.core().prepare(function.flow);
    Actions none;  // there is no instance yet
    HoldDesk(driver_.core()).set(Instant(), function.flow, hold_of(record, function.kernel_task.get()), none);
    if (is_pinned(record)) driver_.core().prepare(function.flow);
  }
  remove_unused(store_.damage(), state_dir_, used);
  versions_.recover(*std::move(published), kernel_task_of);
  versions_.recover_seats();
  return {};
}

// On the worker. By what is in it, so that what another node unpacks of it can be compared.
Status FunctionControl::keep_code(const CodeBundle& bundle, std::string_view zip) {
  if (shared_ == nullptr) return {};
  const std::string digest = bundle.path.substr(bundle.path.rfind('/') + 1);
  if (!zip.empty()) return shared_->put_code(digest, zip);
  const auto packed = zip_folder(bundle.path);
  if (!packed) return fail(packed.error());
  return shared_->put_code(digest, *packed);
}

void FunctionControl::fetch_code(std::vector<FunctionRecord> records, std::function<void(Status)> done) {
  std::erase_if(records, has_code);
  if (records.empty()) return done({});
  const bool has_images =
      std::any_of(records.begin(), records.end(), [](const auto& one) { return one.image.has_value(); });
  const auto fetch = [this, records = std::move(records)]() -> Status {
    for (const FunctionRecord& record : records) {
      Result<CodeBundle> bundle = fail(Errc::kInternal, "not fetched");
      if (record.image) {
        bundle = images_->add(record.image->resolved_uri);
      } else {
        const auto zip = shared_->fetch_code(record.code_path.substr(record.code_path.rfind('/') + 1));
        if (!zip) return fail(zip.error());
        bundle = store_zip(state_dir_, *zip);
      }
      if (!bundle) return fail(bundle.error());
      if (bundle->path == record.code_path) continue;
      return fail(Errc::kCorrupt, "the code of function {} is {} here, and {} for the node that deployed it",
                  record.name, bundle->path, record.code_path);
    }
    return {};
  };
  (has_images ? image_worker_ : worker_).run(fetch, std::move(done));
}

Status FunctionControl::take_in(FunctionRecord record) {
  const RegisteredFunction* const known = functions_.find(record.name);
  record.seats = known != nullptr ? known->record.seats : std::vector<std::string>();
  const auto task = kernel_task_of(record);
  const auto before = shares_.entry(record.name);
  if (Status admitted = shares_.admit(record, task != nullptr); !admitted) {
    shares_.restore(record.name, before);
    return admitted;
  }
  tell_core(record, task);
  versions_.function_changed(record.name);
  settle_shares();
  return {};
}

void FunctionControl::take_in_published(const std::string& function, PublishedState published) {
  versions_.replace(function, std::move(published), kernel_task_of);
}

// As it stands now: it is looked at again whenever an instance starts.
void FunctionControl::prepare_in_place(const FunctionConfig& config, CodeSource code,
                                       std::function<void(Result<PreparedCode>)> done) {
  if (Status may = check_in_place(code.folder, tenant_of(config.tags), in_place_); !may) return done(fail(may.error()));
  worker_.run(
      [code = std::move(code), deployment = request_ids_.next()]() -> Result<PreparedCode> {
        auto bundle = folder_in_place(code.folder, code.reader, deployment);
        if (!bundle) return fail(bundle.error());
        return PreparedCode{*std::move(bundle), nullptr};
      },
      std::move(done));
}

void FunctionControl::prepare_code(const FunctionConfig& config, CodeSource code,
                                   std::function<void(Result<PreparedCode>)> done) {
  if (code.in_place) return prepare_in_place(config, std::move(code), std::move(done));
  if (!code.image.empty()) {
    // The tool that reads a layout has the rights to do so of no user but the node's.
    if (code.image.starts_with("oci:") && code.reader && *code.reader != 0 && *code.reader != ::geteuid()) {
      return done(fail(Errc::kForbidden,
                       "Code.ImageUri is '{}': layouts on the node's machine are for the node's user and root, not for "
                       "user {}; push it to a registry",
                       code.image, *code.reader));
    }
    return image_worker_.run([this, image = std::move(code.image)] { return images_->add(image); },
                             [done = std::move(done)](Result<CodeBundle> bundle) {
                               if (!bundle) return done(fail(bundle.error()));
                               done(PreparedCode{*std::move(bundle), nullptr});
                             });
  }
  worker_.run(
      [this, state_dir = state_dir_, code = std::move(code),
       tenant = tenant_of(config.tags)]() -> Result<PreparedCode> {
        auto bundle =
            code.folder.empty() ? store_zip(state_dir, code.zip) : store_folder(state_dir, code.folder, code.reader);
        if (!bundle) return fail(bundle.error());
        if (Status kept = keep_code(*bundle, code.folder.empty() ? code.zip : ""); !kept) return fail(kept.error());
        PreparedCode prepared{*std::move(bundle), nullptr};
        const bool is_dag = is_pipeline(prepared.bundle.path);
        if (!is_dag && !is_kernel_task(prepared.bundle.path)) return prepared;
        auto task = is_dag ? read_pipeline(prepared.bundle.path, tenant) : read_kernel_task(prepared.bundle.path);
        if (!task) return fail(task.error());
        prepared.kernel_task = std::make_shared<const BundledTask>(*std::move(task));
        return prepared;
      },
      std::move(done));
}

void FunctionControl::save(FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task,
                           Callback<FunctionRecord> done) {
  if (Status program = check_image_program(record); !program) {
    functions_.end_change(record.name);
    return done(fail(program.error()));
  }
  if (Status given = check_egress(functions_.find(record.name), record, kernel_task.get()); !given) {
    functions_.end_change(record.name);
    return done(fail(given.error()));
  }
  if (Status said = check_model(functions_.find(record.name), record, kernel_task.get()); !said) {
    functions_.end_change(record.name);
    return done(fail(said.error()));
  }
  if (Status held = check_hold(record, kernel_task.get()); !held) {
    functions_.end_change(record.name);
    return done(fail(held.error()));
  }
  const auto before = shares_.entry(record.name);
  if (Status admitted = shares_.admit(record, kernel_task != nullptr); !admitted) {
    functions_.end_change(record.name);
    return done(fail(admitted.error()));
  }
  if (Status admitted = versions_.admit(record); !admitted) {
    shares_.restore(record.name, before);
    functions_.end_change(record.name);
    return done(fail(admitted.error()));
  }
  record.revision_id = request_ids_.next();
  record.last_modified_ms = wall_clock_ms();
  FunctionRecord durable = record;
  store_.put_function(std::move(durable),
                      [this, record = std::move(record), kernel_task, before, done](Status written) mutable {
                        functions_.end_change(record.name);
                        if (!written) {
                          shares_.restore(record.name, before);
                          versions_.function_changed(record.name);
                          settle_shares();
                          tell_seats({record.name});  // they may have moved while it was written
                          return done(fail(written.error()));
                        }
                        tell_core(record, kernel_task);
                        versions_.function_changed(record.name);
                        settle_shares();
                        keep_seats(record.name);
                        done(std::move(record));
                      });
}

// What was asked for before is never refused.
Status FunctionControl::check_hold(const FunctionRecord& record, const BundledTask* task) {
  const WarmHold hold = hold_of(record, task);
  const RegisteredFunction* const known = functions_.find(record.name);
  const Result<GpuSettings> gpu = gpu_settings(record.config);
  if (!gpu) return fail(gpu.error());
  if (known != nullptr) {
    const bool is_as_before =
        hold_of(known->record, known->kernel_task.get()) == hold &&
        gpu_settings(known->record.config).value_or(GpuSettings()).share.memory == gpu->share.memory;
    if (is_as_before) return {};
  }
  if (hold.pin == PinKind::kDevice && task != nullptr) {
    return fail(
        Errc::kInvalidArgument,
        "gpu:pin is device; the data of kernel tasks is in the cache of their device server: it must be host or none");
  }
  return HoldDesk(driver_.core())
      .check(known == nullptr ? FlowId() : known->flow, tenants_.id_of(gpu->tenant), hold,
             gpu->share.memory.value_or(Bytes(0)));
}

void FunctionControl::tell_core(const FunctionRecord& record, std::shared_ptr<const BundledTask> kernel_task) {
  driver_.tell([&](Core& core, Instant now, Actions& out) {
    if (RegisteredFunction* function = functions_.find(record.name)) {
      // The image too: two with the same files may start different programs.
      // And the deployment, where the folder is in place: nobody knows what is in it now.
      const bool same_content = !record.in_place || function->record.code_sha256 == record.code_sha256;
      const bool same_code =
          function->record.code_path == record.code_path && function->record.image == record.image && same_content;
      const bool same_program = same_code && function->record.config == record.config;
      const bool same_process = same_code && is_same_process(function->record.config, record.config);
      if (!same_program) function->start_failure.clear();
      function->record = record;
      function->kernel_task = kernel_task;
      const FlowSpec spec = spec_of(*function);
      if (same_program) {
        core.set_max_concurrency(now, spec.flow, spec.max_concurrency, out);
      } else {
        core.update_function(now, spec, out, same_process ? Core::Instances::kKept : Core::Instances::kReplaced);
      }
    } else {
      const RegisteredFunction& added = functions_.add(record, kernel_task);
      core.add_function(spec_of(added));
    }
    const FlowId flow = functions_.find(record.name)->flow;
    HoldDesk(core).set(now, flow, hold_of(record, kernel_task.get()), out);
    const bool starts_now = is_pinned(record) && !has_instance(core, flow);
    if (starts_now || (kernel_task && !kernel_task->pipeline)) core.prepare(flow);
    if (starts_now || kernel_task || !record.seats.empty()) core.wake(now, out);
  });
}

FlowSpec FunctionControl::spec_of(const RegisteredFunction& function) {
  FlowSpec spec = flow_spec(function, tenants_);
  if (function.is_pipeline()) return spec;
  shares_.describe(flow_name(function.record), spec);
  return spec;
}

void FunctionControl::settle_shares() {
  const std::vector<std::string> changed = shares_.settle();
  if (changed.empty()) return;
  tell_seats(changed);
  for (const std::string& name : changed) keep_seats(name);
}

// So that the next start finds them where they are. While the function is being changed its new record is on its way to the disk, and an
// old one must not follow it: this is called again after that.
void FunctionControl::keep_seats(const std::string& name) {
  if (shared_ != nullptr) return;
  RegisteredFunction* function = functions_.find(name);
  const auto entry = shares_.entry(name);
  if (function == nullptr || !entry || entry->last == function->record.seats || functions_.is_changing(name)) return;
  function->record.seats = entry->last;
  store_.put_function(function->record, [name](const Status& written) {
    if (written) return;
    spdlog::error("where function {} has seats is not on disk: {}; after a restart it may get others", name,
                  written.error().message);
  });
}

void FunctionControl::tell_seats(const std::vector<std::string>& changed, std::vector<InstanceId> parked_to_stop) {
  Tuning tuning{.parked_to_stop = std::move(parked_to_stop)};
  for (const std::string& name : changed) {
    const RegisteredFunction* function = functions_.find_flow(name);
    if (function != nullptr) tuning.seats.emplace_back(function->flow, spec_of(*function).seats);
  }
  driver_.tell([&](Core& core, Instant now, Actions& out) { core.retune(now, tuning, out); });
}

void FunctionControl::create(std::string name, FunctionConfig config, CodeSource code, Callback<FunctionRecord> done) {
  if (Status valid = validate(name, config); !valid) return done(fail(valid.error()));
  if (functions_.find(name) != nullptr) return done(fail(Errc::kAlreadyExists, "Function already exist: {}", name));
  if (Status begun = functions_.begin_change(name); !begun) return done(fail(begun.error()));

  prepare_code(config, std::move(code), [this, name, config, done](Result<PreparedCode> prepared) mutable {
    if (!prepared) {
      functions_.end_change(name);
      return done(fail(prepared.error()));
    }
    FunctionRecord record{.name = name, .config = std::move(config)};
    set_code(record, std::move(prepared->bundle));
    save(std::move(record), std::move(prepared->kernel_task), std::move(done));
  });
}

void FunctionControl::update_code(std::string name, CodeSource code, Callback<FunctionRecord> done) {
  const auto function = functions_.get(name);
  if (!function) return done(fail(function.error()));
  if (Status begun = functions_.begin_change(name); !begun) return done(fail(begun.error()));

  const FunctionConfig& config = (*function)->record.config;
  prepare_code(config, std::move(code), [this, name, done](Result<PreparedCode> prepared) mutable {
    const auto current = functions_.get(name);
    if (!prepared || !current) {
      functions_.end_change(name);
      return done(fail(prepared ? current.error() : prepared.error()));
    }
    FunctionRecord record = (*current)->record;
    set_code(record, std::move(prepared->bundle));
    save(std::move(record), std::move(prepared->kernel_task), std::move(done));
  });
}

void FunctionControl::update_config(std::string name, FunctionConfig config, Callback<FunctionRecord> done) {
  const auto function = functions_.get(name);
  if (!function) return done(fail(function.error()));
  if (Status valid = validate(name, config); !valid) return done(fail(valid.error()));
  if (Status same = validate_same_tenant((*function)->record.config, config); !same) return done(fail(same.error()));
  if (Status begun = functions_.begin_change(name); !begun) return done(fail(begun.error()));
  FunctionRecord record = (*function)->record;
  record.config = std::move(config);
  save(std::move(record), (*function)->kernel_task, std::move(done));
}

void FunctionControl::set_reserved_concurrency(std::string name, std::optional<int> limit,
                                               Callback<FunctionRecord> done) {
  const auto function = functions_.get(name);
  if (!function) return done(fail(function.error()));
  if (limit && *limit < 0) {
    return done(fail(Errc::kInvalidArgument, "ReservedConcurrentExecutions is {}, the least is 0", *limit));
  }
  if (Status begun = functions_.begin_change(name); !begun) return done(fail(begun.error()));
  FunctionRecord record = (*function)->record;
  record.reserved_concurrency = limit;
  save(std::move(record), (*function)->kernel_task, std::move(done));
}

Status FunctionControl::add_trial(FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task) {
  if (Status admitted = shares_.admit(record, kernel_task != nullptr); !admitted) return admitted;
  tell_core(record, std::move(kernel_task));
  return {};
}

Shares::Placed FunctionControl::scale(const std::string& name, const Share& share, const Shares::Wanted& wanted,
                                      std::vector<InstanceId> parked_to_stop) {
  const auto before = shares_.entry(name);
  const bool is_other = !before || before->asked.share != share;
  // What an instance was started with is its width, and its memory.
  const bool same_process =
      before && before->asked.share.width_percent == share.width_percent && before->asked.share.memory == share.memory;
  Shares::Placed placed = shares_.scale(name, share, wanted);
  if (!is_other) {
    tell_seats({name}, std::move(parked_to_stop));
  } else {
    const FlowSpec spec = spec_of(*functions_.find(name));
    driver_.tell([&](Core& core, Instant now, Actions& out) {
      core.update_function(now, spec, out, same_process ? Core::Instances::kKept : Core::Instances::kReplaced);
      core.wake(now, out);
    });
  }
  if (before && shares_.entry(name)->seats.size() < before->seats.size()) settle_shares();
  return placed;
}

void FunctionControl::remove_trial(const std::string& name) {
  forget(name);
}

// After the core: what that gave back is forgotten too.
void FunctionControl::forget(const std::string& name) {
  const RegisteredFunction& known = *functions_.find(name);
  versions_.function_removed(name);
  driver_.tell([&](Core& core, Instant now, Actions& out) { core.remove_function(now, known.flow, out); });
  removed_(known);
  functions_.remove(name);
  shares_.release(name);
  settle_shares();
}

void FunctionControl::remove(std::string name, std::function<void(Status)> done) {
  const auto function = functions_.get(name);
  if (!function) return done(fail(function.error()));
  if (Status begun = functions_.begin_change(name); !begun) return done(begun);

  (*function)->is_leaving = true;
  store_.delete_function(name, [this, name, done](Status written) {
    functions_.end_change(name);
    functions_.find(name)->is_leaving = static_cast<bool>(written);
    if (!written) return done(written);
    forget(name);
    done({});
  });
}

}  // namespace fairlead
