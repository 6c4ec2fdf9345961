// libFuzzer: any bytes are a graph or refused with an error; a graph that can be planned runs to its end when every node that
// starts is done and every input comes.
#include <cstdint>
#include <cstdlib>

#include "decide/graph/graph_plan.h"
#include "decide/graph/graph_run.h"
#include "wire/graph_json.h"

namespace fairlead::wire {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void run(const Graph& graph, const GraphPlan& plan) {
  const Instant now{};
  GraphRun run(graph, plan, now);
  GraphRun::Actions actions;
  run.begin(now, {}, actions);
  for (const std::string& key : run.awaited_inputs()) run.input_there(now, key, actions);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const auto* start = std::get_if<GraphRun::StartNode>(&actions[i]);
    if (start == nullptr) continue;
    const GraphRun::StartNode started = *start;  // what follows may move it
    run.succeeded(now, started.node, started.tried, actions);
  }
  require(run.state() == GraphRunState::kDone && run.ended() == graph.nodes.size());
}

void read(std::string_view bytes) {
  auto graph = graph_from_json(bytes);
  if (!graph) return require(!graph.error().message.empty());
  name_run(*graph, "r");
  for (GraphNode& node : graph->nodes) use_call_keys(node);
  if (const auto plan = plan_graph(*graph)) run(*graph, *plan);
}

}  // namespace
}  // namespace fairlead::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fairlead::wire::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
