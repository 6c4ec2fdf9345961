// `fairlead plan`: how a function would be cut for the slices that are free, and why.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "base/read_file.h"
#include "cli/commands.h"
#include "cli/profile_runs.h"
#include "cli/table.h"
#include "decide/pipeline/mig_geometry.h"
#include "decide/pipeline/planner.h"
#include "sim/pipelines/applications.h"
#include "wire/pipeline_json.h"

namespace fairlead::cli {
namespace {

struct PlanCommand {
  std::string file, free = "4g,2g,1g", gpu = "a100-80", planner = std::string(kDefaultPlanner);
  double wanted = 0, hop_ms = -1, objective_ms = -1;
  bool explain = false;
  bool check = false;
};

// A file, an application that is built in, or a function of the node.
Result<Dag> dag_of(Cli& cli, const std::string& file) {
  if (file.find('/') == std::string::npos && !file.ends_with(".json")) {
    auto known = sim::application_named(file);
    if (known) return std::move(known->dag);
    const auto deployed = cli.node().call("GET", native_path(file, "/pipeline"));
    if (deployed) return wire::pipeline_from_json(deployed->dump());
    return fail(deployed.error().code, "{}; and of the node: {}", known.error().message, deployed.error().message);
  }
  const auto text = read_whole_file(file);
  if (!text) return fail(text.error());
  return wire::pipeline_from_json(*text);
}

std::string slices_text(const PipelineModel& model, const PipelinePlan& plan) {
  std::string text;
  const auto& stages = model.partitions()[plan.partition].stages;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i > 0) text += stages[i].rank == stages[i - 1].rank ? " | " : " ";
    std::string types;
    for (const std::size_t type : plan.slices[i]) types += (types.empty() ? "" : "+") + model.types()[type].name;
    text += types.empty() ? "host" : types;
  }
  return text;
}

nlohmann::ordered_json plan_json(const PipelineModel& model, const PipelinePlan& plan) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  const auto& shapes = model.partitions()[plan.partition].stages;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    nlohmann::ordered_json one = {{"rank", shapes[i].rank}, {"components", nlohmann::ordered_json::array()}};
    for (const std::size_t component : shapes[i].components)
      one["components"].push_back(model.dag().components[component].name);
    one["slices"] = nlohmann::ordered_json::array();
    for (const std::size_t type : plan.slices[i]) one["slices"].push_back(model.types()[type].name);
    stages.push_back(std::move(one));
  }
  return {{"stages", stages},
          {"rate_per_s", plan.rate_per_s},
          {"latency_ms", to_ms(plan.latency)},
          {"compute_slices", plan.compute}};
}

void print_plans(Cli& cli, const PipelineModel& model, const PlanAnswer& answer) {
  using enum Table::Align;
  Table table({{"PIPELINE"}, {"SLICES"}, {"PER SECOND", kRight}, {"LATENCY", kRight}, {"COMPUTE", kRight}});
  for (const PipelinePlan& plan : answer.plans) {
    table.add_row({model.partitions()[plan.partition].text(model.dag()), slices_text(model, plan),
                   fmt::format("{:.1f}", plan.rate_per_s), fmt::format("{:.1f} ms", to_ms(plan.latency)),
                   std::to_string(plan.compute)});
  }
  cli.out() << table.text();
  cli.out() << fmt::format("{:.1f} requests per second; no plan passes {:.1f}\n", answer.rate_per_s,
                           answer.bound_per_s);
}

// One line for each file of a folder, or for the one: what the node would say of it.
int run_check(Cli& cli, const PlanCommand& command) {
  std::vector<std::string> files = {command.file};
  std::error_code error;
  if (std::filesystem::is_directory(command.file, error)) {
    files.clear();
    for (const auto& entry : std::filesystem::directory_iterator(command.file, error))
      files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
  }
  int refused = 0;
  for (const std::string& file : files) {
    const auto text = read_whole_file(file);
    if (!text) return cli.report(text.error());
    const auto dag = wire::pipeline_from_json(*text);
    refused += dag ? 0 : 1;
    cli.out() << fmt::format("{}: {}\n", file, dag ? "accepted" : dag.error().message);
  }
  return refused == 0 ? kOk : kUsage;
}

int run_plan(Cli& cli, const PlanCommand& command) {
  if (command.check) return run_check(cli, command);
  auto dag = dag_of(cli, command.file);
  if (!dag) return cli.report(dag.error());
  const auto geometry = mig_geometry(command.gpu);
  if (!geometry) return cli.report(geometry.error());
  const auto free = slices_from_text(**geometry, command.free);
  if (!free) return cli.report(free.error());
  const auto planner = planner_named(command.planner);
  if (!planner) return cli.report(planner.error());
  if (command.objective_ms >= 0) dag->objective = from_seconds(command.objective_ms / 1000);
  const HopCosts hop = command.hop_ms < 0 ? HopCosts{} : paper_hop(from_seconds(command.hop_ms / 1000));
  const PipelineModel model(std::move(*dag), (*geometry)->types(), hop);
  const PlanRequest request{.free = *free, .wanted_per_s = command.wanted, .objective = model.dag().objective};
  PlanAnswer answer = (*planner)->fill(model, request);
  answer.bound_per_s = fluid_bound(model, *free);
  const auto considered =
      explain(model, request, answer.plans.empty() ? std::nullopt : std::optional(answer.plans.front()));
  if (cli.json()) {
    nlohmann::ordered_json all = {{"planner", command.planner},
                                  {"rate_per_s", answer.rate_per_s},
                                  {"bound_per_s", answer.bound_per_s},
                                  {"plans", nlohmann::ordered_json::array()},
                                  {"considered", nlohmann::ordered_json::array()}};
    for (const PipelinePlan& plan : answer.plans) all["plans"].push_back(plan_json(model, plan));
    for (const PlanConsidered& one : considered) {
      all["considered"].push_back({{"partition", one.partition}, {"cv", one.cv}, {"passed_over", one.why}});
    }
    cli.out() << all.dump(2) << '\n';
    return kOk;
  }
  if (answer.plans.empty()) cli.out() << "no pipeline fits these slices and meets the objective\n";
  if (!answer.plans.empty()) print_plans(cli, model, answer);
  if (!command.explain && !answer.plans.empty()) return kOk;
  Table table({{"CV", Table::Align::kRight}, {"PARTITION"}, {"PASSED OVER"}});
  constexpr std::size_t kMostRows = 64;
  for (std::size_t i = 0; i < considered.size() && i < kMostRows; ++i) {
    table.add_row({fmt::format("{:.3f}", considered[i].cv), considered[i].partition,
                   considered[i].why.empty() ? "taken" : considered[i].why});
  }
  cli.out() << '\n' << table.text();
  if (considered.size() > kMostRows)
    cli.out() << fmt::format("and {} more; --json has all\n", considered.size() - kMostRows);
  return kOk;
}

}  // namespace

void add_plan(Cli& cli) {
  auto plan = std::make_shared<PlanCommand>();  // shared: the parser writes it, the command reads it
  CLI::App& command = cli.add_command("plan", "How a pipeline would be cut for the slices that are free, and why",
                                      [&cli, plan] { return run_plan(cli, *plan); });
  command
      .add_option("file", plan->file,
                  "A pipeline.json, a function of the node, or an application: app0-small ... app3-large")
      ->required();
  command.add_option("--free", plan->free, "Slices, as 4g,2g,1g or 8x4g,8x2g");
  command.add_option("--gpu", plan->gpu, "Whose slices: a100-40, a100-80, h100-80, h200-141, a30-24");
  command.add_option("--planner", plan->planner, "cv, need, exact, replicas, esg, infless");
  command.add_option("--wanted", plan->wanted, "Requests per second that are enough; 0: all that can be had")
      ->check(CLI::Range(0.0, 1e9));
  command
      .add_option("--hop-ms", plan->hop_ms,
                  "What each hop takes, as in the paper's runtime (10 to 40); else its bytes over the link")
      ->check(CLI::Range(0.0, 60'000.0));
  command.add_option("--objective-ms", plan->objective_ms, "In place of the pipeline's own; 0: none")
      ->check(CLI::Range(0.0, 3'600'000.0));
  command.add_flag("--check", plan->check,
                   "Only whether a node would read the file, or each file of a folder, and why not");
  command.add_flag("--explain", plan->explain, "Every partition by its CV, and why it was passed over");
}

}  // namespace fairlead::cli
