// libFuzzer: any bytes are a pipeline or refused with an error; a pipeline has groups with each component once, reads back as it was written, and
// its requests run through a stage for each group to the end.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "decide/pipeline/request_flow.h"
#include "wire/pipeline_json.h"

namespace fairlead::wire {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// Every scalar is as its component's condition wants it.
StageReport all_run(const Dag& dag, const RequestFlow::Run& run) {
  StageReport report{.ran = run.components, .scalars = {}};
  for (const Component& other : dag.components) {
    if (!other.when) continue;
    const bool is_ours =
        std::find(run.components.begin(), run.components.end(), *other.when->value.component) != run.components.end();
    const bool is_known = std::any_of(report.scalars.begin(), report.scalars.end(),
                                      [&](const auto& one) { return one.first == other.when->value; });
    if (is_ours && !is_known) report.scalars.emplace_back(other.when->value, other.when->is);
  }
  return report;
}

void run_through(const Dag& dag, const std::vector<DagGroup>& groups) {
  std::vector<FlowStage> stages;
  for (const DagGroup& group : groups) stages.push_back({group.components, 1});
  auto flow = RequestFlow::make(dag, stages, {});
  require(flow.has_value());
  RequestFlow::Actions out;
  flow->offer({}, PipelineRequestId(1), {}, out);
  bool answered = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const RequestFlow::Action action = out[i];
    if (const auto* run = std::get_if<RequestFlow::Run>(&action)) {
      flow->done({}, run->stage, run->replica, run->tried, all_run(dag, *run), out);
    } else {
      answered = true;
      flow->taken({}, PipelineRequestId(1), out);
    }
  }
  require(answered && flow->is_empty());
}

void read(std::string_view bytes) {
  const auto dag = pipeline_from_json(bytes);
  if (!dag) return require(!dag.error().message.empty());
  const auto groups = linearise(*dag);
  std::vector<bool> seen(dag->components.size());
  for (const DagGroup& group : groups) {
    for (const std::size_t one : group.components) {
      require(!seen[one]);
      seen[one] = true;
    }
  }
  require(std::count(seen.begin(), seen.end(), true) == static_cast<std::ptrdiff_t>(seen.size()));
  require(pipeline_from_json(pipeline_to_json(*dag)).has_value());
  run_through(*dag, groups);
}

}  // namespace
}  // namespace fairlead::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fairlead::wire::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
