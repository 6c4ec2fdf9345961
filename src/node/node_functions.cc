// Function control: every change is validated, made durable, and only then seen by the core.
#include <utility>

#include "base/clock.h"
#include "node/node.h"

namespace fairlead {
namespace {

Status validate(const std::string& name, const FunctionConfig& config) {
  if (Status valid = validate_function_name(name); !valid) return valid;
  if (Status valid = validate_config(config); !valid) return valid;
  if (const auto gpu = gpu_settings(config); !gpu) return fail(gpu.error());
  return {};
}

}  // namespace

void Node::prepare_code(CodeSource code, std::function<void(Result<CodeBundle>)> done) {
  worker_->run(
      [state_dir = options_.state_dir, code = std::move(code)] {
        return code.folder.empty() ? store_zip(state_dir, code.zip) : store_folder(state_dir, code.folder);
      },
      std::move(done));
}

void Node::save(FunctionRecord record, Callback<FunctionRecord> done) {
  record.revision_id = request_ids_.next();
  record.last_modified_ms = wall_clock_ms();
  FunctionRecord durable = record;
  store_->put_function(std::move(durable), [this, record = std::move(record), done](Status written) mutable {
    functions_.end_change(record.name);
    if (!written) return done(fail(written.error()));
    Actions actions;
    if (RegisteredFunction* function = functions_.find(record.name)) {
      const bool same_program =
          function->record.config == record.config && function->record.code_path == record.code_path;
      function->record = record;
      const FlowSpec spec = flow_spec(function->flow, record);
      if (same_program) {
        core_.set_max_concurrency(monotonic_now(), spec.flow, spec.max_concurrency, actions);
      } else {
        core_.update_function(monotonic_now(), spec, actions);
      }
    } else {
      const RegisteredFunction& added = functions_.add(record);
      core_.add_function(flow_spec(added.flow, record));
    }
    carry_out(std::move(actions));
    done(std::move(record));
  });
}

void Node::create_function(std::string name, FunctionConfig config, CodeSource code, Callback<FunctionRecord> done) {
  if (Status valid = validate(name, config); !valid) return done(fail(valid.error()));
  if (functions_.find(name) != nullptr) return done(fail(Errc::kAlreadyExists, "Function already exist: {}", name));
  if (Status begun = functions_.begin_change(name); !begun) return done(fail(begun.error()));

  prepare_code(std::move(code), [this, name, config = std::move(config), done](Result<CodeBundle> bundle) mutable {
    if (!bundle) {
      functions_.end_change(name);
      return done(fail(bundle.error()));
    }
    FunctionRecord record{.name = name, .config = std::move(config)};
    record.code_sha256 = bundle->sha256_base64;
    record.code_bytes = bundle->bytes;
    record.code_path = bundle->path;
    save(std::move(record), std::move(done));
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

  prepare_code(std::move(code), [this, name, done](Result<CodeBundle> bundle) mutable {
    const auto current = functions_.get(name);
    if (!bundle || !current) {
      functions_.end_change(name);
      return done(fail(bundle ? current.error() : bundle.error()));
    }
    FunctionRecord record = (*current)->record;
    record.code_sha256 = bundle->sha256_base64;
    record.code_bytes = bundle->bytes;
    record.code_path = bundle->path;
    save(std::move(record), std::move(done));
  });
}

void Node::update_config(std::string name, FunctionConfig config, Callback<FunctionRecord> done) {
  const auto function = functions_.get(name);
  if (!function) return done(fail(function.error()));
  if (Status valid = validate(name, config); !valid) return done(fail(valid.error()));
  if (Status begun = functions_.begin_change(name); !begun) return done(fail(begun.error()));
  FunctionRecord record = (*function)->record;
  record.config = std::move(config);
  save(std::move(record), std::move(done));
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
  save(std::move(record), std::move(done));
}

void Node::delete_function(std::string name, std::function<void(Status)> done) {
  const auto function = functions_.get(name);
  if (!function) return done(fail(function.error()));
  if (Status begun = functions_.begin_change(name); !begun) return done(begun);

  store_->delete_function(name, [this, name, done](Status written) {
    functions_.end_change(name);
    if (!written) return done(written);
    for (const QueuedEvent& event : events_.remove_function(name)) store_->finish_event(event.request_id, {});
    Actions actions;
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
  spec.environment = options_.gpu_access.environment;
  for (const auto& [name, value] : config.environment) spec.environment[name] = value;
  spec.environment["CUDA_VISIBLE_DEVICES"] = std::to_string(action.gpu.value() - 1);
  spec.memory_limit = mib(config.memory_mib);
  spec.tmp_limit = mib(config.ephemeral_storage_mib);
  spec.binds = options_.gpu_access.binds;
  return spec;
}

}  // namespace fairlead
