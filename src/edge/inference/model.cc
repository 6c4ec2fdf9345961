#include "edge/inference/model.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "model/tenant.h"

namespace fairlead::inference {

const char* platform_of(const Model& model) {
  return model.signature.form == CallForm::kBuffers ? "fairlead_kernel_task" : "fairlead_program";
}

Result<Model> find_model(NodeService& node, const Principal& who, const std::string& name, std::string_view version) {
  if (!version.empty() && version != kVersion) {
    return fail(Errc::kNotFound, "{} has no version '{}'; it has {}", name, version, kVersion);
  }
  const auto record = node.get_function(name);
  if (!record || !who.sees(tenant_of(record->config.tags))) {
    return fail(Errc::kNotFound, "there is no model '{}'", name);
  }
  auto signature = node.call_signature(name);
  if (!signature) {
    return fail(Errc::kInvalidArgument,
                "{} is no model: it does not say which tensors it takes. Kernel tasks do, and programs by the tags "
                "gpu:model-inputs and gpu:model-outputs; invoke it as a function",
                name);
  }
  std::optional<BatchRule> batch;
  if (signature->form == CallForm::kSafetensors) batch = batch_rule_of(record->config).value_or(std::nullopt);
  return Model{name, tenant_of(record->config.tags), *std::move(signature), batch};
}

std::vector<Model> models_of(NodeService& node, const Principal& who) {
  std::vector<Model> models;
  for (const FunctionRecord& record : node.list_functions()) {
    if (!who.sees(tenant_of(record.config.tags))) continue;
    if (auto signature = node.call_signature(record.name)) {
      models.push_back({record.name, tenant_of(record.config.tags), *std::move(signature), std::nullopt});
    }
  }
  return models;
}

std::vector<Statistics> statistics_of(NodeService& node, const std::vector<Model>& models) {
  const auto nanoseconds = [](Duration sum) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, std::chrono::nanoseconds(sum).count()));
  };
  std::vector<Statistics> list;
  for (const FunctionStatus& function : node.status().functions) {
    const auto is_it = [&](const Model& model) { return model.name == function.name; };
    if (std::ranges::none_of(models, is_it)) continue;
    const FunctionStats& stats = function.stats;
    const std::uint64_t failed = stats.errors + stats.timeouts + stats.crashes;
    const std::uint64_t succeeded = stats.invocations - std::min(stats.invocations, failed);
    list.push_back({.name = function.name,
                    .success = {succeeded, nanoseconds(stats.queue_time + stats.service)},
                    .fail = {failed, 0},
                    .queue = {stats.invocations, nanoseconds(stats.queue_time)},
                    .compute = {succeeded, nanoseconds(stats.service)}});
  }
  return list;
}

}  // namespace fairlead::inference
