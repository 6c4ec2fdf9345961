#include "node/graph_runs.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "base/clock.h"
#include "model/function.h"
#include "model/tenant.h"

namespace fairlead {
namespace {

constexpr std::size_t kMaxErrorBytes = 1000;
constexpr std::size_t kRunIdDigits = 16;

std::string short_id(const std::string& uuid) {
  std::string id;
  std::copy_if(uuid.begin(), uuid.end(), std::back_inserter(id), [](char c) { return c != '-'; });
  return id.substr(0, kRunIdDigits);
}

void count(GraphRunStatus& status, GraphNodeState state) {
  switch (state) {
    case GraphNodeState::kWaiting: ++status.waiting; return;
    case GraphNodeState::kRunning: ++status.running; return;
    case GraphNodeState::kDone: ++status.done; return;
    case GraphNodeState::kFailed: ++status.failed; return;
    case GraphNodeState::kSkipped: ++status.skipped; return;
  }
}

tl::unexpected<Error> no_such_run(const std::string& tenant, const std::string& run) {
  return fail(Errc::kNotFound, "there is no run '{}' of tenant '{}'; a node forgets old ones, and all when it ends",
              run, tenant);
}

}  // namespace

struct GraphRuns::Run {
  Run(boost::asio::io_context& io, Graph of, GraphPlan plan)
      : graph(std::move(of)),
        created(monotonic_now()),
        created_ms(wall_clock_ms()),
        machine(graph, std::move(plan), created),
        nodes(graph.nodes.size()),
        timer(io) {}

  std::int64_t ms(Instant at) const {
    return created_ms + std::chrono::duration_cast<std::chrono::milliseconds>(at - created).count();
  }
  ObjectName object(const std::string& key) const { return {tenant, key}; }

  struct Node {
    NodeService::CancelHandle cancel;
    bool dropped = false;
    std::optional<std::string> result;
    std::optional<std::size_t> result_bytes;  // of one that is not kept
  };
  struct Waiter {
    std::uint64_t ticket = 0;
    std::optional<std::size_t> ended;
    Callback<GraphRunStatus> done;
    std::shared_ptr<boost::asio::steady_timer> patience;  // shared with its handler; goes with the waiter
  };

  Serial serial = 0;
  std::string tenant;
  Graph graph;
  const Instant created;
  const std::int64_t created_ms;
  GraphRun machine;
  std::vector<Node> nodes;
  std::vector<ObjectStore::WatchId> watches;
  std::vector<Waiter> waiters;
  ByteBudget::Lease results;
  boost::asio::steady_timer timer;
  Instant armed_at = Instant::max();
  std::deque<GraphRun::Action> pending;
  bool carrying_out = false;
  bool over = false;
};

GraphRuns::GraphRuns(boost::asio::io_context& io, NodeService& node, ObjectStore& objects, IsKernelTask is_kernel_task,
                     FailureText failure_text)
    : io_(io),
      node_(node),
      objects_(objects),
      is_kernel_task_(std::move(is_kernel_task)),
      failure_text_(std::move(failure_text)) {}

GraphRuns::~GraphRuns() = default;

// ---- before a run

Result<GraphCheck> GraphRuns::check(const std::string& tenant, Graph graph) {
  auto prepared = prepare(tenant, std::move(graph));
  if (!prepared) return fail(prepared.error());
  GraphCheck found{.nodes = prepared->graph.nodes.size(), .inputs = {}};
  for (const auto& [key, readers] : prepared->plan.inputs) found.inputs.push_back(key);
  return found;
}

Result<GraphRuns::Prepared> GraphRuns::prepare(const std::string& tenant, Graph graph) {
  const std::string run = graph.run.empty() ? short_id(ids_.next()) : graph.run;
  if (Status valid = validate_run_id(run); !valid) return fail(valid.error());
  name_run(graph, run);
  if (Status known = look_up_functions(tenant, graph); !known) return fail(known.error());
  auto plan = plan_graph(graph);
  if (!plan) return fail(plan.error());
  Prepared prepared{.graph = std::move(graph), .plan = *std::move(plan), .done = {}, .leftovers = {}};
  if (Status free = look_up_objects(tenant, prepared); !free) return fail(free.error());
  return prepared;
}

Status GraphRuns::look_up_functions(const std::string& tenant, Graph& graph) {
  struct Known {
    std::string tenant;
    bool is_kernel_task = false;
  };
  std::map<std::string, Known> known;
  for (GraphNode& node : graph.nodes) {
    auto bare = function_name_from(node.function);
    if (!bare) return fail(Errc::kInvalidArgument, "nodes.{}.function: {}", node.name, bare.error().message);
    node.function = *std::move(bare);
    auto it = known.find(node.function);
    if (it == known.end()) {
      const auto record = node_.get_function(node.function);
      if (!record) {
        return fail(Errc::kInvalidArgument, "nodes.{}.function is '{}'; there is no such function, deploy it first",
                    node.name, node.function);
      }
      it = known.emplace(node.function, Known{tenant_of(record->config.tags), is_kernel_task_(node.function)}).first;
    }
    if (it->second.is_kernel_task) use_call_keys(node);
    if (it->second.tenant == tenant || (node.reads.empty() && node.writes.empty())) continue;
    return fail(
        Errc::kInvalidArgument,
        "nodes.{}.function is '{}' of tenant '{}', which cannot read or write objects of tenant '{}', whose the "
        "graph is",
        node.name, node.function, it->second.tenant, tenant);
  }
  return {};
}

bool GraphRuns::is_there(const ObjectName& name) const {
  const auto info = objects_.info(name);
  return info && info->state != ObjectState::kPending && info->state != ObjectState::kFailed;
}

Status GraphRuns::look_up_objects(const std::string& tenant, Prepared& prepared) const {
  for (NodeIndex i = 0; i < prepared.graph.nodes.size(); ++i) {
    const GraphNode& node = prepared.graph.nodes[i];
    std::vector<std::string> present;
    for (const std::string& key : node.writes) {
      const ObjectName name{tenant, key};
      if (const auto writer = writing_.find(name); writer != writing_.end()) {
        return fail(Errc::kAlreadyExists, "nodes.{}.writes has '{}', which run '{}' is about to write", node.name, key,
                    active_.at(writer->second)->graph.run);
      }
      const auto info = objects_.info(name);
      if (!info || info->state == ObjectState::kFailed) continue;
      if (!prepared.graph.resume || info->state == ObjectState::kPending) {
        return fail(
            Errc::kAlreadyExists,
            "nodes.{}.writes has '{}', an object that exists ({}); objects do not change: delete it, take another "
            "key (with {{run}} in it), or send \"resume\": true to continue an earlier run",
            node.name, key, object_state_name(info->state));
      }
      present.push_back(key);
    }
    if (present.empty()) continue;
    if (present.size() == node.writes.size()) {
      prepared.done.insert(i);
    } else {
      prepared.leftovers.insert(prepared.leftovers.end(), present.begin(), present.end());
    }
  }
  return {};
}

// Nobody may have more than is left free: whoever comes later finds a place.
Status GraphRuns::take_place(const std::string& tenant) const {
  std::size_t held = 0;
  for (auto it = by_name_.lower_bound({tenant, ""}); it != by_name_.end() && it->first.first == tenant; ++it) ++held;
  if (active_.size() < kMaxActive && held < kMaxActive - active_.size()) return {};
  return fail(
      Errc::kResourceExhausted,
      "{} runs of graphs go on, {} of them tenant {}'s; at most {} may, a tenant's as many as are left free: try "
      "again when one has ended",
      active_.size(), held, tenant, kMaxActive);
}

Result<std::string> GraphRuns::submit(const std::string& tenant, Graph graph) {
  if (draining_) return fail(Errc::kUnavailable, "the node is shutting down; try again");
  if (Status room = take_place(tenant); !room) return fail(room.error());
  if (const Run* same = find({tenant, graph.run}); same != nullptr) {
    return fail(Errc::kAlreadyExists, "run is '{}'; a run of this id goes on", graph.run);
  }
  auto prepared = prepare(tenant, std::move(graph));
  if (!prepared) return fail(prepared.error());
  for (const std::string& key : prepared->leftovers) (void)objects_.remove({tenant, key}).has_value();

  const Serial serial = ++last_serial_;
  auto made = std::make_unique<Run>(io_, std::move(prepared->graph), std::move(prepared->plan));
  Run& run = *made;
  run.serial = serial;
  run.tenant = tenant;
  for (NodeIndex i = 0; i < run.nodes.size(); ++i) {
    if (prepared->done.contains(i)) continue;
    for (const std::string& key : run.graph.nodes[i].writes) {
      if (!writing_.emplace(run.object(key), serial).second) continue;  // said twice
      (void)objects_.reserve(run.object(key)).has_value();              // was free a moment ago
    }
  }
  std::string id = run.graph.run;
  if (const auto old = ended_.find({tenant, id}); old != ended_.end()) forget(old->second.serial);  // continued
  by_name_[{tenant, id}] = serial;
  active_[serial] = std::move(made);
  watch_inputs(run);
  tell(run, [&](GraphRun& machine, Instant now, GraphRun::Actions& out) { machine.begin(now, prepared->done, out); });
  return id;
}

// ---- inputs and answers

void GraphRuns::watch_inputs(Run& run) {
  for (const std::string& key : run.machine.awaited_inputs()) {
    run.watches.push_back(objects_.watch(
        run.object(key), [this, serial = run.serial, key](const Status& status) { on_input(serial, key, status); }));
  }
}

void GraphRuns::on_input(Serial serial, const std::string& key, const Status& status) {
  Run* run = find(serial);
  if (run == nullptr) return;
  if (status && writing_.contains(run->object(key))) return unfinished_[run->object(key)].push_back(serial);
  tell(*run, [&](GraphRun& machine, Instant now, GraphRun::Actions& out) {
    if (status) return machine.input_there(now, key, out);
    machine.input_lost(now, key, status.error().message.substr(0, kMaxErrorBytes), out);
  });
}

void GraphRuns::on_answer(Serial serial, NodeIndex node, GraphRun::Try tried, Result<Outcome> outcome) {
  Run* run = find(serial);
  if (run == nullptr || run->nodes[node].dropped) return;
  std::string why;
  bool throttled = false;
  if (!outcome) {
    throttled = outcome.error().code == Errc::kResourceExhausted;
    why = outcome.error().message;
  } else if (outcome->failed()) {
    why = failure_text_(*outcome);
    if (why.empty()) why = "the function failed and did not say why";
  } else if (Status written = check_written(*run, node); !written) {
    why = written.error().message;
  } else {
    keep_result(*run, node, std::move(outcome->payload));
  }
  tell(*run, [&](GraphRun& machine, Instant now, GraphRun::Actions& out) {
    if (why.empty()) return machine.succeeded(now, node, tried, out);
    if (throttled) return machine.throttled(now, node, tried, std::move(why), out);
    machine.failed(now, node, tried, std::move(why), out);
  });
}

Status GraphRuns::check_written(const Run& run, NodeIndex node) const {
  for (const std::string& key : run.graph.nodes[node].writes) {
    if (is_there(run.object(key))) continue;
    return fail(Errc::kNotFound, "function '{}' answered, but did not write '{}'", run.graph.nodes[node].function, key);
  }
  return {};
}

void GraphRuns::keep_result(Run& run, NodeIndex node, std::string payload) {
  if (payload.size() > kMaxKeptResultBytes || !may_keep(run, run.results.bytes() + payload.size())) {
    run.nodes[node].result_bytes = payload.size();
    return;
  }
  run.nodes[node].result = std::move(payload);
}

// ---- carrying out

// A function may be refused, or found to have failed, inside the call that invokes it: what follows waits its turn.
template <typename Call>
void GraphRuns::tell(Run& run, Call call) {
  GraphRun::Actions actions;
  call(run.machine, monotonic_now(), actions);
  run.pending.insert(run.pending.end(), actions.begin(), actions.end());
  if (run.carrying_out) return;
  run.carrying_out = true;
  while (!run.pending.empty()) {
    const GraphRun::Action action = run.pending.front();
    run.pending.pop_front();
    std::visit([&](const auto& a) { act(run, a); }, action);
  }
  run.carrying_out = false;
  if (run.over) return end(run);
  answer_waiters(run);
  arm_timer(run);
}

void GraphRuns::act(Run& run, const GraphRun::StartNode& action) {
  const GraphNode& node = run.graph.nodes[action.node];
  if (action.attempt > 1) clear_outputs(run, action.node);
  InvokeRequest request;
  request.invocation.function = node.function;
  request.invocation.payload = node.payload;
  run.nodes[action.node].cancel =
      node_.invoke(std::move(request), [this, serial = run.serial, action](Result<Outcome> outcome) {
        on_answer(serial, action.node, action.tried, std::move(outcome));
      });
}

void GraphRuns::act(Run& run, const GraphRun::DropNode& action) {
  Run::Node& node = run.nodes[action.node];
  node.dropped = true;
  if (node.cancel) std::exchange(node.cancel, nullptr)();
}

void GraphRuns::act(Run& run, const GraphRun::NodeEnded& action) {
  const GraphNodeState state = run.machine.view(action.node).state;
  if (state == GraphNodeState::kDone) ++counters_.nodes_done;
  if (state == GraphNodeState::kFailed) ++counters_.nodes_failed;
  if (state == GraphNodeState::kSkipped) ++counters_.nodes_skipped;
  run.nodes[action.node].cancel = nullptr;
  if (state != GraphNodeState::kDone) release_outputs(run, action.node);
  const Status done = state == GraphNodeState::kDone
                          ? Status()
                          : Status(fail(Errc::kUnavailable, "{}", run.machine.error_of(action.node)));
  for (const std::string& key : run.graph.nodes[action.node].writes) {
    writing_.erase(run.object(key));
    tell_readers(run.object(key), done);
  }
}

void GraphRuns::tell_readers(const ObjectName& name, const Status& status) {
  const auto readers = unfinished_.extract(name);
  if (readers.empty()) return;
  for (const Serial reader : readers.mapped()) on_input(reader, name.key, status);
}

void GraphRuns::act(Run& run, const GraphRun::RunEnded&) {
  run.over = true;
}

// So that another attempt finds what the first one found: nothing but reservations.
void GraphRuns::clear_outputs(const Run& run, NodeIndex node) {
  for (const std::string& key : run.graph.nodes[node].writes) {
    const ObjectName name = run.object(key);
    objects_.abandon(name, {Errc::kUnavailable, "the attempt that wrote it failed"});
    if (is_there(name)) (void)objects_.remove(name).has_value();
    (void)objects_.reserve(name).has_value();  // where it is not any more
  }
}

void GraphRuns::release_outputs(const Run& run, NodeIndex node) {
  const Error why{Errc::kUnavailable, run.machine.error_of(node)};
  const bool may_still_write = run.nodes[node].dropped;
  for (const std::string& key : run.graph.nodes[node].writes) {
    if (!may_still_write) {
      const ObjectName name = run.object(key);
      objects_.abandon(name, why);
      if (is_there(name)) (void)objects_.remove(name).has_value();
      (void)objects_.reserve(name).has_value();
    }
    objects_.release(run.object(key), why);
  }
}

void GraphRuns::arm_timer(Run& run) {
  const auto next = run.machine.next_wakeup();
  if (!next || *next == run.armed_at) return;
  run.armed_at = *next;
  run.timer.expires_at(std::chrono::steady_clock::time_point(next->time_since_epoch()));
  run.timer.async_wait([this, serial = run.serial](boost::system::error_code error) {
    Run* found = error ? nullptr : find(serial);  // an error: re-armed for another time
    if (found == nullptr) return;
    found->armed_at = Instant::max();
    tell(*found, [](GraphRun& machine, Instant now, GraphRun::Actions& out) { machine.wake(now, out); });
  });
}

// ---- asking

GraphRuns::Run* GraphRuns::find(Serial serial) {
  const auto it = active_.find(serial);
  return it == active_.end() ? nullptr : it->second.get();
}

GraphRuns::Run* GraphRuns::find(const RunName& name) {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : find(it->second);
}

void GraphRuns::wait(const std::string& tenant, const std::string& id, std::optional<std::size_t> ended,
                     Duration patience, Callback<GraphRunStatus> done) {
  Run* run = find({tenant, id});
  if (run == nullptr) {
    const auto it = ended_.find({tenant, id});
    if (it == ended_.end()) return done(no_such_run(tenant, id));
    return done(it->second.status);
  }
  if (patience <= Duration(0) || (ended && run->machine.ended() > *ended)) return done(status_of(*run, true));
  Run::Waiter waiter{.ticket = ++last_ticket_, .ended = ended, .done = std::move(done), .patience = nullptr};
  waiter.patience = std::make_shared<boost::asio::steady_timer>(io_, patience);
  waiter.patience->async_wait([this, serial = run->serial, ticket = waiter.ticket](boost::system::error_code error) {
    Run* found = error ? nullptr : find(serial);
    if (found == nullptr) return;
    const auto it = std::find_if(found->waiters.begin(), found->waiters.end(),
                                 [ticket](const Run::Waiter& one) { return one.ticket == ticket; });
    if (it == found->waiters.end()) return;
    const auto answer = std::move(it->done);
    found->waiters.erase(it);
    answer(status_of(*found, true));
  });
  run->waiters.push_back(std::move(waiter));
}

void GraphRuns::answer_waiters(Run& run) {
  const auto first = std::stable_partition(run.waiters.begin(), run.waiters.end(), [&](const Run::Waiter& waiter) {
    return !waiter.ended || run.machine.ended() <= *waiter.ended;
  });
  std::vector<Run::Waiter> ready(std::make_move_iterator(first), std::make_move_iterator(run.waiters.end()));
  run.waiters.erase(first, run.waiters.end());
  for (const Run::Waiter& waiter : ready) waiter.done(status_of(run, true));
}

std::vector<GraphRunStatus> GraphRuns::list(const std::string& tenant) {
  std::vector<GraphRunStatus> runs;
  for (auto it = active_.rbegin(); it != active_.rend(); ++it) {
    if (it->second->tenant == tenant) runs.push_back(status_of(*it->second, false));
  }
  for (auto it = ended_order_.rbegin(); it != ended_order_.rend(); ++it) {
    if (it->second.first != tenant) continue;
    GraphRunStatus status = ended_.at(it->second).status;
    status.nodes.clear();
    runs.push_back(std::move(status));
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const GraphRunStatus& a, const GraphRunStatus& b) { return a.created_ms > b.created_ms; });
  return runs;
}

Result<GraphRunStatus> GraphRuns::cancel(const std::string& tenant, const std::string& id) {
  if (Run* run = find({tenant, id}); run != nullptr) {
    tell(*run, [](GraphRun& machine, Instant now, GraphRun::Actions& out) {
      machine.cancel(now, "the run was cancelled", out);
    });
  }
  const auto it = ended_.find({tenant, id});
  if (it == ended_.end()) return no_such_run(tenant, id);
  return it->second.status;
}

GraphCounters GraphRuns::counters() const {
  GraphCounters counters = counters_;
  counters.active = active_.size();
  return counters;
}

void GraphRuns::drain() {
  draining_ = true;
  std::vector<Serial> serials;
  for (const auto& [serial, run] : active_) serials.push_back(serial);
  for (const Serial serial : serials) {
    Run* run = find(serial);
    if (run == nullptr) continue;
    tell(*run, [](GraphRun& machine, Instant now, GraphRun::Actions& out) {
      machine.cancel(now, "the node is shutting down; send the graph again with \"resume\": true", out);
    });
  }
}

GraphRunStatus GraphRuns::status_of(const Run& run, bool with_nodes) const {
  GraphRunStatus status;
  status.run = run.graph.run;
  status.tenant = run.tenant;
  status.name = run.graph.name;
  status.state = run.machine.state();
  status.error = run.machine.error();
  status.created_ms = run.created_ms;
  for (NodeIndex i = 0; i < run.nodes.size(); ++i) {
    const GraphRun::NodeView& view = run.machine.view(i);
    count(status, view.state);
    if (!with_nodes) continue;
    GraphNodeStatus node{.name = run.graph.nodes[i].name, .function = run.graph.nodes[i].function};
    node.state = view.state;
    node.attempts = view.attempts;
    if (view.started) node.started_ms = run.ms(*view.started);
    if (view.ended) node.ended_ms = run.ms(*view.ended);
    node.error = run.machine.error_of(i);
    node.result = run.nodes[i].result;
    node.result_bytes = run.nodes[i].result_bytes;
    status.nodes.push_back(std::move(node));
  }
  return status;
}

// ---- the end

void GraphRuns::end(Run& run) {
  for (const ObjectStore::WatchId watch : run.watches) objects_.unwatch(watch);
  const RunName name{run.tenant, run.graph.run};
  GraphRunStatus status = status_of(run, true);
  status.ended_ms = run.ms(monotonic_now());
  switch (status.state) {
    case GraphRunState::kDone: ++counters_.runs_done; break;
    case GraphRunState::kFailed: ++counters_.runs_failed; break;
    default: ++counters_.runs_cancelled;
  }
  const std::vector<Run::Waiter> waiters = std::move(run.waiters);
  results_.of_ended.add(run.tenant, run.serial, run.results.bytes());
  ended_order_[run.serial] = name;
  ended_[name] = {run.serial, status, std::move(run.results)};
  by_name_.erase(name);
  active_.erase(run.serial);  // with the run
  while (const auto too_much = results_.of_ended.to_forget()) forget(*too_much);
  for (const Run::Waiter& waiter : waiters) waiter.done(status);
}

bool GraphRuns::may_keep(Run& run, std::size_t bytes) {
  if (bytes > kMaxRunResultBytes) return false;
  if (!run.results) run.results.open(*results_.memory, run.tenant);
  return run.results.try_hold(bytes);
}

void GraphRuns::forget(Serial serial) {
  const auto place = ended_order_.find(serial);
  ended_.erase(place->second);
  ended_order_.erase(place);
  results_.of_ended.remove(serial);
}

}  // namespace fairlead
