#include "node/peers/cluster_node.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/wall_clock.h"
#include "decide/cluster/one_hop.h"
#include "model/tenant.h"
#include "node/peers/no_versions.h"
#include "node/peers/peer_stream.h"

namespace fairlead {
namespace {

constexpr const char* kCallTarget = "/fairlead/v1/peers/call";
constexpr double kUnknownSeconds = 0.05;  // of a call of a function that nobody has seen yet
constexpr std::size_t kMostSeconds = 10'000;
constexpr unsigned kMisdirected = 421;

std::uint64_t key_of(const FunctionRecord& record) {
  return function_key(tenant_of(record.config.tags), record.name);
}

// An answer of two parts: what nodes tell each other, and what the function said.
net::HttpResponse two_parts(unsigned status, std::string head, std::string payload) {
  net::HttpResponse response{.status = status};
  response.headers.push_back({"X-Fairlead-Head", std::to_string(head.size())});
  response.body = payload.empty() ? std::move(head) : std::move(head.append(payload));
  return response;
}

Result<std::size_t> head_size(const net::ClientResponse& answer) {
  const std::string_view text = answer.header("X-Fairlead-Head");
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error == std::errc() && end == text.data() + text.size() && size <= answer.body.size()) return size;
  return fail(Errc::kCorrupt, "an answer of a node has no head");
}

Result<Outcome> read_answer(net::ClientResponse answer) {
  const auto head = head_size(answer);
  if (!head) return fail(head.error());
  auto outcome = read_outcome(std::string_view(answer.body).substr(0, *head));
  if (!outcome) return outcome;
  outcome->payload = std::move(answer.body);
  outcome->payload.erase(0, *head);
  return outcome;
}

// A run of a graph calls functions on its own node.
class NoGraphs final : public GraphService {
 public:
  Result<GraphCheck> check(const std::string&, Graph) override { return fail(nobody()); }
  Result<std::string> submit(const std::string&, Graph) override { return fail(nobody()); }
  void wait(const std::string&, const std::string& run, std::optional<std::size_t>, Duration,
            Callback<GraphRunStatus> done) override {
    done(fail(Errc::kNotFound, "there is no run {}: this node has no GPUs and runs nothing (--gpus 0)", run));
  }
  std::vector<GraphRunStatus> list(const std::string&) override { return {}; }
  Result<GraphRunStatus> cancel(const std::string&, const std::string& run) override {
    return fail(Errc::kNotFound, "there is no run {}: this node has no GPUs and runs nothing (--gpus 0)", run);
  }
  GraphCounters counters() const override { return {}; }

 private:
  static Error nobody() {
    return {Errc::kUnavailable, "this node has no GPUs and runs nothing (--gpus 0): send graphs to a node that has"};
  }
};

}  // namespace

// A call that this gateway took, until its caller is answered.
struct ClusterNode::Forward {
  InvokeRequest request;
  bool is_event = false;
  std::string tenant;
  std::uint64_t function = 0;
  Callback<Outcome> done;  // of an event: its request id alone
  std::vector<NodeId> tried;
  unsigned attempts = 0;              // that crossed the network and were read
  double seconds = 0;                 // expected
  NodeId at;                          // where it is counted; none: nowhere
  CancelHandle cancel;                // of where it is now
  std::shared_ptr<PeerStream> parts;  // while it is elsewhere, of a caller who wants the answer as it is made
  bool is_over = false;
  struct Trace {
    Tracer* to = nullptr;          // null: there are no traces, or this call leaves none
    std::optional<SpanIds> spans;  // from the first time on that it was given to another node
    Instant began;
    std::string peer;
  } trace;

  void trace_sent(const std::string& name) {
    trace.peer = name;
    if (trace.to == nullptr || trace.spans) return;
    trace.began = monotonic_now();
    trace.spans = trace.to->begin_forward(request.invocation.trace_id);
    if (!trace.spans) trace.to = nullptr;
  }
  void trace_over(OutcomeKind kind, std::string failure) {
    if (trace.to == nullptr || !trace.spans) return;
    constexpr std::size_t kMostFailureBytes = 256;
    if (failure.size() > kMostFailureBytes) failure.resize(kMostFailureBytes);
    TracedRequest traced{.ids = *std::exchange(trace.spans, std::nullopt), .request = {}, .peer = trace.peer};
    traced.request.function = request.invocation.function;
    traced.request.tenant = tenant;
    traced.request.outcome = kind;
    traced.request.failure = std::move(failure);
    traced.over = monotonic_now() - trace.began;
    traced.began_ns = wall_clock_ns() - traced.over.count();
    trace.to->over(std::move(traced));
  }
};

Result<std::unique_ptr<ClusterNode>> ClusterNode::create(boost::asio::io_context& io, NodeService& node,
                                                         ClusterOptions options) {
  std::unique_ptr<ClusterNode> cluster(new ClusterNode(io, node, options.runs_nothing));
  cluster->forwards_.tracer = options.tracer;
  auto sync = FunctionSync::open(node, options.state_dir, options.peers.name);
  if (!sync) return fail(sync.error());
  cluster->brought_.functions = *std::move(sync);
  cluster->brought_.tenants =
      std::make_unique<ClusterTenants>(options.runs_nothing ? TenantPorts() : std::move(options.tenants));
  if (options.has_common_store) cluster->brought_.functions->stand_aside();
  ClusterNode* const self = cluster.get();
  auto peers = Peers::create(io, std::move(options.peers),
                             {.load = [self](std::uint64_t incarnation) { return self->own_load(incarnation); },
                              .functions = [self] { return self->brought_.functions->digest(); },
                              .differs = [self](NodeId peer) { self->brought_.functions->pull(peer, nullptr); },
                              .advanced = [self] { self->brought_.tenants->advanced(self->peers_->view()); }});
  if (!peers) return fail(peers.error());
  cluster->peers_ = *std::move(peers);
  cluster->brought_.functions->connect(*cluster->peers_);
  if (options.objects != nullptr) {
    cluster->brought_.objects = std::make_unique<PeerObjects>(io, *cluster->peers_, *options.objects);
  }
  return cluster;
}

ClusterNode::ClusterNode(boost::asio::io_context& io, NodeService& node, bool runs_nothing)
    : node_(node),
      runs_nothing_(runs_nothing),
      absent_{std::make_unique<NoGraphs>(), std::make_unique<NoVersions>(node)},
      graphs_(runs_nothing ? absent_.graphs.get() : &node.graphs()),
      load_count_(monotonic_now, [this] { return count_load(); }),
      linger_(io, kLinger, [this] {
        lingers_ = false;
        tell_if_idle();
        return false;
      }) {}

void ClusterNode::tell_if_idle() {
  if (forwards_.under_way == 0 && !lingers_ && idle_) std::exchange(idle_, nullptr)();
}

ClusterNode::~ClusterNode() = default;

void ClusterNode::drain() {
  lingers_ = true;
  linger_.start();
  say_that_it_drains();
}

void ClusterNode::give_way() {
  if (!is_draining()) say_that_it_drains();
}

Status ClusterNode::resume() {
  if (lingers_ || node_.drains())
    return fail(Errc::kConflict, "node '{}' is about to end: it takes no more calls", name());
  drain_number_.reset();
  peers_->announce();
  return {};
}

void ClusterNode::say_that_it_drains() {
  drain_number_ = 0;  // from here on its words say so
  peers_->announce();
  drain_number_ = peers_->view().last_word(peers_->view().self()).number;
}

void ClusterNode::when_idle(std::function<void()> callback) {
  idle_ = std::move(callback);
  tell_if_idle();
}

// What it has accepted is the sum of what is queued and runs, at what calls of each function took lately.
OwnLoad ClusterNode::count_load() {
  OwnLoad load;
  if (runs_nothing_) return load;
  const NodeStatus status = node_.status();
  for (const GpuStatus& gpu : status.gpus) {
    if (gpu.view.serves) load.tokens += static_cast<double>(gpu.view.slots);
  }
  load.tokens = std::min(load.tokens, kMostTokens);
  auto warm = std::make_shared<WarmFunctions>();
  for (const FunctionStatus& function : status.functions) {
    const double each = to_seconds(function.flow.service_estimate);
    load.backlog_s +=
        static_cast<double>(function.flow.queued + function.flow.in_flight) * (each > 0 ? each : kUnknownSeconds);
    const std::size_t instances = function.instances_idle + function.instances_busy + function.instances_starting;
    if (instances > 0 && warm->size() < kMostWarmFunctions)
      warm->push_back(function_key(function.settings.tenant, function.name));
  }
  load.backlog_s = std::min(load.backlog_s, kMostBacklogSeconds);
  std::sort(warm->begin(), warm->end());
  load.warm = std::move(warm);
  return load;
}

OwnLoad ClusterNode::own_load(std::uint64_t incarnation) {
  OwnLoad load = load_count_.now();
  load.is_draining = drains();
  load.tenants = brought_.tenants->say(incarnation);
  return load;
}

std::optional<HomeChoice> ClusterNode::home_of(const FunctionRecord& record) {
  return peers_->view().choose(key_of(record));
}

double ClusterNode::expected_seconds(std::uint64_t function) const {
  const auto known = seconds_.find(function);
  return known == seconds_.end() ? kUnknownSeconds : known->second;
}

void ClusterNode::learn(std::uint64_t function, const Outcome& outcome) {
  const double seconds = std::clamp(to_seconds(outcome.gpu_time), 0.0, 3600.0);
  if (seconds_.size() >= kMostSeconds) seconds_.clear();
  const auto [known, is_new] = seconds_.emplace(function, seconds);
  if (!is_new) known->second += 0.2 * (seconds - known->second);
}

NodeStatus ClusterNode::status() {
  NodeStatus status = node_.status();
  status.draining = status.draining || is_draining();
  status.is_gateway = runs_nothing_;
  brought_.tenants->show(peers_->view(), status.tenants);
  return status;
}

// ---- calls of clients

NodeService::CancelHandle ClusterNode::invoke(InvokeRequest request, Callback<Outcome> done) {
  const auto record = node_.get_function(request.invocation.function);
  if (!record) return node_.invoke(std::move(request), std::move(done));  // which says so
  const auto version = absent_.versions->choose(request.invocation.function, request.qualifier, "");
  if (!version) return done(fail(version.error())), CancelHandle();
  auto call = std::make_shared<Forward>();
  call->request = std::move(request);
  call->tenant = tenant_of(record->config.tags);
  call->function = key_of(*record);
  call->done = std::move(done);
  call->trace.to = forwards_.tracer;
  call->seconds = expected_seconds(call->function);
  place(call);
  return [this, call] {
    if (call->is_over) return;
    const CancelHandle cancel = std::exchange(call->cancel, nullptr);
    leave(call);
    if (cancel) cancel();
  };
}

void ClusterNode::invoke_event(InvokeRequest request, Callback<std::string> accepted) {
  const auto record = node_.get_function(request.invocation.function);
  if (!record) return node_.invoke_event(std::move(request), std::move(accepted));
  const auto version = absent_.versions->choose(request.invocation.function, request.qualifier, "");
  if (!version) return accepted(fail(version.error()));
  auto call = std::make_shared<Forward>();
  call->request = std::move(request);
  call->is_event = true;
  call->trace.to = forwards_.tracer;
  call->tenant = tenant_of(record->config.tags);
  call->function = key_of(*record);
  call->seconds = expected_seconds(call->function);
  call->done = [accepted = std::move(accepted)](Result<Outcome> outcome) {
    if (!outcome) return accepted(fail(outcome.error()));
    accepted(std::move(outcome->request_id));
  };
  place(call);
}

void ClusterNode::place(const std::shared_ptr<Forward>& call) {
  ClusterView& view = peers_->view();
  const auto chosen = view.choose(call->function, call->tried);
  if (!chosen) {
    // Nobody may live but this node itself, before its first word or while it drains.
    if (!runs_nothing_ && call->tried.empty()) return run_here(call);
    ++counters_.unplaced;
    return finish(call, fail(Errc::kUnavailable,
                             "no node can take a call of {} now: {} nodes are known, none that has GPUs is left to try",
                             call->request.invocation.function, view.size()));
  }
  if (chosen->node == view.self()) return run_here(call);
  send_to(call, chosen->node);
}

void ClusterNode::run_here(const std::shared_ptr<Forward>& call) {
  ++counters_.local;
  call->at = peers_->view().self();
  peers_->view().sent(call->at, call->seconds);
  if (call->is_event) {
    return node_.invoke_event(std::move(call->request), [this, call](Result<std::string> id) {
      if (!id) return finish(call, fail(id.error()));
      finish(call, Outcome{.request_id = *std::move(id)});
    });
  }
  CancelHandle cancel = node_.invoke(std::move(call->request), [this, call](Result<Outcome> outcome) {
    if (outcome) learn(call->function, *outcome);
    finish(call, std::move(outcome));
  });
  if (!call->is_over) call->cancel = std::move(cancel);
}

void ClusterNode::send_to(const std::shared_ptr<Forward>& call, NodeId node) {
  PeerLink* const link = peers_->link(node, PeerUse::kCalls);
  call->tried.push_back(node);
  if (link == nullptr) return place(call);
  ClusterView& view = peers_->view();
  call->trace_sent(view.name(node));
  const PeerCall forwarded{.request = {.invocation = {.function = call->request.invocation.function,
                                                      .client_context = call->request.invocation.client_context,
                                                      .trace_id = call->request.invocation.trace_id,
                                                      .deadline_ms = call->request.invocation.deadline_ms,
                                                      .http = call->request.invocation.http},
                                       .sdk_invocation_id = call->request.sdk_invocation_id,
                                       .want_log_tail = call->request.want_log_tail},
                           .is_event = call->is_event,
                           .wants_parts = call->request.stream != nullptr,
                           .tenant = call->tenant,
                           .role = std::string(role_name(Role::kInvoker)),
                           .hops = 1,
                           .known_number = view.last_word(node).number};
  ++counters_.forwarded;
  if (PeerCounters* const counters = peers_->counters_of(node)) ++counters->forwarded;
  call->at = node;
  view.sent(node, call->seconds);
  ++forwards_.under_way;
  if (call->request.stream) {
    call->parts = std::make_shared<PeerStream>(call->request.stream,
                                               [this, held = std::weak_ptr<Forward>(call)](const Error& error) {
                                                 if (const auto cut_off = held.lock()) cut(cut_off, error);
                                               });
  }
  call->cancel = link->send({.target = kCallTarget,
                             .head = write_call(forwarded, wall_clock_ms()),
                             .body = call->request.invocation.payload,
                             .patience = std::nullopt,
                             .taker = call->parts},
                            [this, call, node](Result<net::ClientResponse> answer) {
                              --forwards_.under_way;
                              peers_->view().answered(node, call->seconds);
                              call->at = {};
                              call->cancel = nullptr;
                              answered(call, node, std::move(answer));
                              tell_if_idle();
                            });
}

void ClusterNode::answered(const std::shared_ptr<Forward>& call, NodeId node, Result<net::ClientResponse> answer) {
  const std::shared_ptr<PeerStream> parts = std::exchange(call->parts, nullptr);
  const bool in_parts = parts && parts->has_begun();
  if (parts && !in_parts) parts->stop();
  PeerCounters* const counters = peers_->counters_of(node);
  const std::string& name = peers_->view().name(node);
  if (!answer && answer.error().code == Errc::kUnavailable) {
    // It cannot have read any of it.
    if (counters != nullptr) ++counters->failed;
    ++counters_.retried;
    peers_->unreachable(node);
    return place(call);
  }
  if (!answer && answer.error().code == Errc::kResourceExhausted) return finish(call, fail(answer.error()));
  if (!answer) {
    if (counters != nullptr) ++counters->failed;
    ++counters_.lost;
    return finish(call, fail(Errc::kUnavailable,
                             "node '{}' was given this call of {} and did not answer ({}); it may have run, so it was "
                             "not given to another node",
                             name, call->request.invocation.function, answer.error().message));
  }
  if (answer->status == kMisdirected) {
    ++counters_.misdirected;
    if (counters != nullptr) ++counters->misdirected;
    peers_->absorb(node, answer->body);
    if (after_misdirected(++call->attempts) == AfterMisdirected::kTryAgain) return place(call);
    return finish(call, fail(Errc::kUnavailable,
                             "two nodes, the last of them '{}', sent this call of {} back: it is at home on neither",
                             name, call->request.invocation.function));
  }
  if (answer->status == 200) {
    auto outcome = in_parts ? parts->end() : read_answer(*std::move(answer));
    if (!outcome) ++counters_.lost;
    if (outcome && !call->is_event) learn(call->function, *outcome);
    return finish(call, std::move(outcome));
  }
  Error error = read_error(answer->body);
  if (error.code == Errc::kCorrupt) error = {Errc::kUnavailable, fmt::format("answers {} to a call", answer->status)};
  finish(call, fail(error.code, "node '{}': {}", name, error.message));
}

void ClusterNode::finish(const std::shared_ptr<Forward>& call, Result<Outcome> outcome) {
  if (call->is_over) return;
  if (call->at == peers_->view().self()) peers_->view().answered(call->at, call->seconds);
  call->is_over = true;
  call->cancel = nullptr;
  call->trace_over(outcome ? outcome->kind : OutcomeKind::kCancelled,
                   outcome ? outcome->failure.text : outcome.error().message);
  const Callback<Outcome> done = std::move(call->done);
  done(std::move(outcome));
}

// Its caller has gone.
void ClusterNode::leave(const std::shared_ptr<Forward>& call) {
  call->is_over = true;
  call->trace_over(OutcomeKind::kCancelled, "its caller has gone");
  call->parts.reset();
  if (!call->at) return;
  peers_->view().answered(call->at, call->seconds);
  if (call->at == peers_->view().self()) return;
  --forwards_.under_way;
  tell_if_idle();
}

// Of an answer in parts that cannot be handed on: the home sees the connection go, and ends the function's.
void ClusterNode::cut(const std::shared_ptr<Forward>& call, const Error& error) {
  if (call->is_over) return;
  const CancelHandle cancel = std::exchange(call->cancel, nullptr);
  const Callback<Outcome> done = std::move(call->done);
  leave(call);
  if (cancel) cancel();
  done(fail(error));
}

// ---- calls of other gateways

void ClusterNode::serve(net::HttpExchange exchange, std::string_view head, std::string payload) {
  auto call = read_call(head, wall_clock_ms());
  const auto refuse = [&exchange](unsigned status, const Error& error) {
    exchange.respond({.status = status, .body = write_error(error)});
  };
  if (!call) return refuse(400, call.error());
  if (payload.size() > (call->is_event ? kMaxAsyncPayloadBytes : kMaxSyncPayloadBytes)) {
    return refuse(413, {Errc::kTooLarge, fmt::format("the payload of a forwarded call has {} bytes", payload.size())});
  }
  const auto record = node_.get_function(call->request.invocation.function);
  const bool is_there = record && tenant_of(record->config.tags) == call->tenant;
  const OwnView own{.epoch = drain_number_.value_or(0),
                    .is_chosen = false,
                    .may_run = !runs_nothing_ && is_there && !is_draining(),
                    .knows_other = true};
  switch (judge_hop({.hops = call->hops, .is_from_peer = true, .sender_epoch = call->known_number}, own)) {
    case HopVerdict::kRefuse:
      return refuse(400,
                    {Errc::kInvalidArgument, fmt::format("a call was forwarded {} times; once is all", call->hops)});
    case HopVerdict::kForward:
    case HopVerdict::kMisdirected: return exchange.respond({.status = kMisdirected, .body = peers_->own_word()});
    case HopVerdict::kUnavailable: return refuse(503, {Errc::kUnavailable, "this node takes no calls"});
    case HopVerdict::kRun: break;
  }
  ++counters_.received;
  call->request.invocation.payload = std::move(payload);
  if (call->wants_parts && !call->is_event) {
    return StreamedAnswer::invoke(node_, std::move(exchange), peer_framing([](Outcome& outcome) {
                                    std::string said = write_outcome(outcome);
                                    return two_parts(200, std::move(said), std::move(outcome.payload));
                                  }),
                                  std::move(call->request));
  }
  const auto answer =
      std::make_shared<net::HttpExchange>(std::move(exchange));  // shared by the reply and this function
  const auto failed = [answer](const Error& error) { answer->respond({.status = 500, .body = write_error(error)}); };
  if (call->is_event) {
    return node_.invoke_event(std::move(call->request), [answer, failed](Result<std::string> id) {
      if (!id) return failed(id.error());
      answer->respond(two_parts(200, write_outcome({.request_id = *std::move(id)}), ""));
    });
  }
  CancelHandle cancel = node_.invoke(std::move(call->request), [answer, failed](Result<Outcome> outcome) {
    if (!outcome) return failed(outcome.error());
    std::string said = write_outcome(*outcome);
    answer->respond(two_parts(200, std::move(said), std::move(outcome->payload)));
  });
  if (*answer && cancel) answer->on_disconnect(std::move(cancel));
}

// ---- what only a node with GPUs does itself

NodeService::CancelHandle ClusterNode::run_task(TaskRun run, Callback<Outcome> done) {
  if (!runs_nothing_) return node_.run_task(std::move(run), std::move(done));
  done(fail(Errc::kUnavailable,
            "this node has no GPUs and runs nothing (--gpus 0): send one-off kernel tasks to one that has"));
  return nullptr;
}

Status ClusterNode::run_elsewhere(const std::string& tenant, Bytes bytes, Job job) {
  return node_.run_elsewhere(tenant, bytes, std::move(job));
}

// ---- changes of functions

NodeService::Callback<FunctionRecord> ClusterNode::told(std::string name, std::string zip,
                                                        Callback<FunctionRecord> done) {
  return [this, name = std::move(name), zip = std::move(zip),
          done = std::move(done)](Result<FunctionRecord> record) mutable {
    if (!record) return done(std::move(record));
    brought_.functions->keep_zip(record->code_sha256, std::move(zip));
    brought_.functions->changed(name, false, [record = *std::move(record), done] { done(record); });
  };
}

void ClusterNode::create_function(std::string name, FunctionConfig config, CodeSource code,
                                  Callback<FunctionRecord> done) {
  auto then = told(name, code.zip, std::move(done));
  node_.create_function(std::move(name), std::move(config), std::move(code), std::move(then));
}

void ClusterNode::update_code(std::string name, CodeSource code, Callback<FunctionRecord> done) {
  auto then = told(name, code.zip, std::move(done));
  node_.update_code(std::move(name), std::move(code), std::move(then));
}

void ClusterNode::update_config(std::string name, FunctionConfig config, Callback<FunctionRecord> done) {
  auto then = told(name, "", std::move(done));
  node_.update_config(std::move(name), std::move(config), std::move(then));
}

void ClusterNode::delete_function(std::string name, std::function<void(Status)> done) {
  node_.delete_function(name, [this, name, done = std::move(done)](Status deleted) {
    if (!deleted) return done(deleted);
    brought_.functions->changed(name, true, [done] { done({}); });
  });
}

void ClusterNode::set_reserved_concurrency(std::string name, std::optional<int> limit, Callback<FunctionRecord> done) {
  auto then = told(name, "", std::move(done));
  node_.set_reserved_concurrency(std::move(name), limit, std::move(then));
}

}  // namespace fairlead
