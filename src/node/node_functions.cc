// Function control: every change is validated, made durable, and only then seen by the core.
#include <utility>

#include "base/clock.h"
#include "node/container_spec.h"
#include "node/node.h"

namespace fairlead {
namespace {

Status validate(const std::string& name, const FunctionConfig& config) {
  if (Status valid = validate_function_name(name); !valid) return valid;
  if (Status valid = validate_config(config); !valid) return valid;
  if (const auto gpu = gpu_settings(config); !gpu) return fail(gpu.error());
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
}

}  // namespace

void Node::prepare_code(CodeSource code, std::function<void(Result<PreparedCode>)> done) {
  if (!code.image.empty()) {
    return image_worker_->run([this, image = std::move(code.image)] { return images_->add(image); },
                              [done = std::move(done)](Result<CodeBundle> bundle) {
                                if (!bundle) return done(fail(bundle.error()));
                                done(PreparedCode{*std::move(bundle), nullptr});
                              });
  }
  worker_->run(
      [state_dir = options_.state_dir, code = std::move(code)]() -> Result<PreparedCode> {
        auto bundle = code.folder.empty() ? store_zip(state_dir, code.zip) : store_folder(state_dir, code.folder);
        if (!bundle) return fail(bundle.error());
        PreparedCode prepared{*std::move(bundle), nullptr};
        if (!is_kernel_task(prepared.bundle.path)) return prepared;
        auto task = read_kernel_task(prepared.bundle.path);
        if (!task) return fail(task.error());
        prepared.kernel_task = std::make_shared<const BundledTask>(*std::move(task));
        return prepared;
      },
      std::move(done));
}

void Node::save(FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task, Callback<FunctionRecord> done) {
  if (Status program = check_image_program(record); !program) {
    functions_.end_change(record.name);
    return done(fail(program.error()));
  }
  record.revision_id = request_ids_.next();
  record.last_modified_ms = wall_clock_ms();
  FunctionRecord durable = record;
  store_->put_function(std::move(durable),
                       [this, record = std::move(record), kernel_task, done](Status written) mutable {
                         functions_.end_change(record.name);
                         if (!written) return done(fail(written.error()));
                         Actions actions;
                         if (RegisteredFunction* function = functions_.find(record.name)) {
                           // The image too: two with the same files may start different programs.
                           const bool same_program = function->record.config == record.config &&
                                                     function->record.code_path == record.code_path &&
                                                     function->record.image == record.image;
                           function->record = record;
                           function->kernel_task = kernel_task;
                           const FlowSpec spec = flow_spec(function->flow, record, tenants_);
                           if (same_program) {
                             core_.set_max_concurrency(monotonic_now(), spec.flow, spec.max_concurrency, actions);
                           } else {
                             core_.update_function(monotonic_now(), spec, actions);
                           }
                         } else {
                           const RegisteredFunction& added = functions_.add(record, kernel_task);
                           core_.add_function(flow_spec(added.flow, record, tenants_));
                         }
                         if (kernel_task) {
                           core_.prepare(functions_.find(record.name)->flow);
                           core_.wake(monotonic_now(), actions);
                         }
                         carry_out(std::move(actions));
                         done(std::move(record));
                       });
}

void Node::create_function(std::string name, FunctionConfig config, CodeSource code, Callback<FunctionRecord> done) {
  if (Status valid = validate(name, config); !valid) return done(fail(valid.error()));
  if (functions_.find(name) != nullptr) return done(fail(Errc::kAlreadyExists, "Function already exist: {}", name));
  if (Status begun = functions_.begin_change(name); !begun) return done(fail(begun.error()));

  prepare_code(std::move(code), [this, name, config = std::move(config), done](Result<PreparedCode> prepared) mutable {
    if (!prepared) {
      functions_.end_change(name);
      return done(fail(prepared.error()));
    }
    FunctionRecord record{.name = name, .config = std::move(config)};
    set_code(record, std::move(prepared->bundle));
    save(std::move(record), std::move(prepared->kernel_task), std::move(done));
  });
}

Result<FunctionRecord> Node::get_function(const std::string& name) {
  const auto function = functions_.get(name);
  if (!function) return fail(function.error());
  return (*function)->record;
}

std::vector<FunctionRecord> Node::list_functions() {
  std::vector<FunctionRecord> records;
  for (const auto& [name, function] : functions_.all()) records.push_back(function.record);
  return records;
}

void Node::update_code(std::string name, CodeSource code, Callback<FunctionRecord> done) {
  const auto function = functions_.get(name);
  if (!function) return done(fail(function.error()));
  if (Status begun = functions_.begin_change(name); !begun) return done(fail(begun.error()));

  prepare_code(std::move(code), [this, name, done](Result<PreparedCode> prepared) mutable {
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

void Node::update_config(std::string name, FunctionConfig config, Callback<FunctionRecord> done) {
  const auto function = functions_.get(name);
  if (!function) return done(fail(function.error()));
  if (Status valid = validate(name, config); !valid) return done(fail(valid.error()));
  if (Status same = validate_same_tenant((*function)->record.config, config); !same) return done(fail(same.error()));
  if (Status begun = functions_.begin_change(name); !begun) return done(fail(begun.error()));
  FunctionRecord record = (*function)->record;
  record.config = std::move(config);
  save(std::move(record), (*function)->kernel_task, std::move(done));
}

void Node::set_reserved_concurrency(std::string name, std::optional<int> limit, Callback<FunctionRecord> done) {
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

void Node::delete_function(std::string name, std::function<void(Status)> done) {
  const auto function = functions_.get(name);
  if (!function) return done(fail(function.error()));
  if (Status begun = functions_.begin_change(name); !begun) return done(begun);

  store_->delete_function(name, [this, name, done](Status written) {
    functions_.end_change(name);
    if (!written) return done(written);
    for (const QueuedEvent& event : events_.remove_function(name))
      store_->finish_event(event.invocation.request_id, {});
    Actions actions;
    books_.forget(functions_.find(name)->flow);
    core_.remove_function(monotonic_now(), functions_.find(name)->flow, actions);
    carry_out(std::move(actions));
    functions_.remove(name);
    done({});
  });
}

InstanceSpec Node::instance_spec(const StartInstance& action, const RegisteredFunction& function) const {
  const FunctionConfig& config = function.record.config;
  InstanceSpec spec{.instance = action.instance, .function = function.record.name};
  spec.arn = function_arn(spec.function);
  spec.handler = config.handler;
  spec.code_path = function.record.code_path;
  if (function.record.image) {
    const GpuAccess access = container_gpu_access(options_.gpu_access, action.gpu.value() - 1);
    spec.binds = access.binds;
    describe_container(function.record, access.environment, spec);
  } else {
    spec.binds = options_.gpu_access.binds;
    spec.environment = options_.gpu_access.environment;
    for (const auto& [name, value] : config.environment) spec.environment[name] = value;
  }
  spec.memory_limit = mib(config.memory_mib);
  spec.tmp_limit = mib(config.ephemeral_storage_mib);
  sharing_->give_share(spec, action.gpu, gpu_settings(config).value_or(GpuSettings()));
  return spec;
}

}  // namespace fairlead
