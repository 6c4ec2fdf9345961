// For tests: a NodeService that keeps functions in a map and answers invocations as it is told.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "edge/node_service.h"
#include "store/test_folder.h"

namespace fairlead {

// Says what it was asked, answers as it is told.
class FakeGraphs : public GraphService {
 public:
  Result<std::string> submitted = std::string("run-1");
  Result<GraphRunStatus> run = GraphRunStatus{.run = "run-1", .tenant = "default", .name = ""};
  std::string last_tenant, last_run;
  Graph last_graph;
  std::optional<std::size_t> last_ended;
  Duration last_patience{0};

  Result<GraphCheck> check(const std::string& tenant, Graph graph) override {
    last_tenant = tenant;
    last_graph = std::move(graph);
    return GraphCheck{.nodes = last_graph.nodes.size(), .inputs = {"in"}};
  }
  Result<std::string> submit(const std::string& tenant, Graph graph) override {
    last_tenant = tenant;
    last_graph = std::move(graph);
    return submitted;
  }
  void wait(const std::string& tenant, const std::string& id, std::optional<std::size_t> ended, Duration patience,
            Callback<GraphRunStatus> done) override {
    last_tenant = tenant;
    last_run = id;
    last_ended = ended;
    last_patience = patience;
    done(run);
  }
  std::vector<GraphRunStatus> list(const std::string& tenant) override {
    last_tenant = tenant;
    return {*run};
  }
  Result<GraphRunStatus> cancel(const std::string& tenant, const std::string& id) override {
    last_tenant = tenant;
    last_run = id;
    return run;
  }
  GraphCounters counters() const override { return {}; }
};

class FakeEvents : public EventService {
 public:
  std::map<std::string, EventInvokeConfig> configs;  // by function
  Result<RedriveResult> redriven = RedriveResult{.redriven = 2, .left = 1};
  std::string last_redriven;

  void set_config(std::string function, EventInvokeConfig config, Callback<EventInvokeConfig> done) override {
    if (Status valid = validate(config); !valid) return done(fail(valid.error()));
    config.last_modified_ms = 1'700'000'000'123;
    configs[function] = config;
    done(config);
  }
  Result<EventInvokeConfig> config(const std::string& function) override {
    if (configs.contains(function)) return configs.at(function);
    return fail(Errc::kNotFound, "The function {} doesn't have an EventInvokeConfig", function);
  }
  void remove_config(std::string function, std::function<void(Status)> done) override {
    if (configs.erase(function) == 0) return done(fail(Errc::kNotFound, "no EventInvokeConfig"));
    done({});
  }
  void redrive(std::string function, Callback<RedriveResult> done) override {
    last_redriven = std::move(function);
    done(redriven);
  }
  void when_over(Over callback) override { over = std::move(callback); }
  EventCounters counters() const override { return {}; }

  Over over;
};

class FakeScaling : public ScalingService {
 public:
  Status started;
  ProfileStatus known;
  ScalingStatus status;
  ProfileRequest last_request;
  FunctionProfile last_imported;
  bool is_stopped = false;

  Status start_profile(ProfileRequest request) override {
    last_request = std::move(request);
    return started;
  }
  Result<ProfileStatus> profile(const std::string&) override { return known; }
  Result<std::string> pipeline(const std::string& function) override {
    if (function != "chain") return fail(Errc::kInvalidArgument, "{} is no pipeline", function);
    return std::string(R"({"version": 1})");
  }
  Status stop_profile(const std::string&) override {
    is_stopped = true;
    return {};
  }
  void import_profile(std::string, FunctionProfile profile, Callback<FunctionProfile> done) override {
    last_imported = profile;
    done(std::move(profile));
  }
  Result<ScalingStatus> scaling(const std::string&) override { return status; }
  std::vector<ScalingStatus> all_scaling() override { return {status}; }
  std::vector<PlacementEntry> placed;
  std::vector<PlacementEntry> placements() override { return placed; }
};

class FakeVersions : public VersionService {
 public:
  std::map<std::string, std::map<std::uint64_t, FunctionRecord>> published;
  std::map<std::string, std::map<std::string, FunctionAlias>> named;
  std::function<Result<FunctionRecord>(const std::string&)> latest;
  std::string last_digest;

  void publish(PublishRequest request, Callback<FunctionRecord> done) override {
    auto record = latest(request.function);
    if (!record) return done(std::move(record));
    last_digest = request.code_sha256;
    record->version = published[request.function].size() + 1;
    if (request.description) record->config.description = *request.description;
    published[request.function][record->version] = *record;
    done(std::move(record));
  }
  Result<std::vector<FunctionRecord>> versions(const std::string& function) override {
    std::vector<FunctionRecord> all;
    for (const auto& [number, record] : published[function]) all.push_back(record);
    return all;
  }
  void remove_version(std::string function, std::uint64_t version, std::function<void(Status)> done) override {
    if (published[function].erase(version) == 0) return done(fail(Errc::kNotFound, "no version"));
    done({});
  }
  void put_alias(std::string function, FunctionAlias alias, bool is_new, Callback<FunctionAlias> done) override {
    if (Status valid = validate_alias(alias); !valid) return done(fail(valid.error()));
    if (is_new && named[function].contains(alias.name)) return done(fail(Errc::kAlreadyExists, "Alias already exists"));
    alias.revision_id = "revision-" + version_name(++revisions_);
    named[function][alias.name] = alias;
    done(alias);
  }
  Result<FunctionAlias> alias(const std::string& function, const std::string& name) override {
    if (!named[function].contains(name)) return fail(Errc::kNotFound, "Cannot find alias");
    return named[function][name];
  }
  Result<std::vector<FunctionAlias>> aliases(const std::string& function) override {
    std::vector<FunctionAlias> all;
    for (const auto& [name, alias] : named[function]) all.push_back(alias);
    return all;
  }
  void remove_alias(std::string function, std::string name, std::function<void(Status)> done) override {
    named[function].erase(name);
    done({});
  }
  Result<std::uint64_t> choose(const std::string& function, std::string_view qualifier, std::string_view id) override {
    if (qualifier.empty() || qualifier == kLatestVersion) return 0;
    const std::uint64_t number = version_number(qualifier);
    if (number > 0 && published[function].contains(number)) return number;
    const auto found = alias(function, std::string(qualifier));
    if (!found) return fail(Errc::kNotFound, "Function not found: {}:{}", function_arn(function), qualifier);
    return choose_version(*found, id);
  }
  Result<FunctionRecord> find(const std::string& function, std::string_view qualifier) override {
    const auto version = choose(function, qualifier, "");
    if (!version) return fail(version.error());
    if (*version == 0) return latest(function);
    if (!published[function].contains(*version)) return fail(Errc::kNotFound, "no version {}", *version);
    return published[function][*version];
  }

 private:
  std::uint64_t revisions_ = 0;
};

class FakeRequests : public RequestService {
 public:
  std::map<std::string, RequestTrace> known;
  Result<RequestTrace> trace(const std::string& request_id) override {
    if (!known.contains(request_id)) return fail(Errc::kNotFound, "there is no such request");
    return known.at(request_id);
  }
};

class FakeNode : public NodeService {
 public:
  // What the next invocations get; a pending one is kept until answer().
  Result<Outcome> reply = Outcome{};
  bool hold = false;
  Result<std::string> event_id = std::string("event-1");
  TaskRun last_run;
  NodeStatus node_status;
  int statuses = 0;            // how often the whole was asked for
  boost::asio::io_context io;  // of the object store
  store::TestFolder object_folder;
  std::unique_ptr<ObjectStore> object_store =
      ObjectStore::open(io, {.memory_dir = object_folder / "memory", .spill_dir = object_folder / "spill"}).value();
  FakeGraphs fake_graphs;
  FakeEvents fake_events;
  FakeScaling fake_scaling;
  FakeVersions fake_versions;
  FakeRequests fake_requests;
  std::string log_text;
  std::vector<DeadLetter> letters;
  std::map<std::uint64_t, HistoryPage> pages;  // by where they begin

  // What was asked.
  std::vector<InvokeRequest> invoked;
  std::vector<InvokeRequest> events;
  CodeSource last_code;
  std::string last_letters_function;
  std::size_t last_limit = 0;
  int cancelled = 0;
  std::vector<Callback<Outcome>> held;
  std::map<std::string, FunctionRecord> functions;

  void add(const std::string& name, FunctionConfig config = {}) {
    FunctionRecord record{.name = name, .config = std::move(config), .code_sha256 = "c2hh", .code_bytes = 7};
    record.revision_id = "revision-1";
    record.last_modified_ms = 1'700'000'000'123;
    functions[name] = record;
  }

  CancelHandle invoke(InvokeRequest request, Callback<Outcome> done) override {
    const bool known = functions.contains(request.invocation.function);
    const auto version = versions().choose(request.invocation.function, request.qualifier, "");
    invoked.push_back(std::move(request));
    if (known && !version) return done(fail(version.error())), CancelHandle();
    if (!known)
      return done(fail(Errc::kNotFound, "Function not found: {}", invoked.back().invocation.function)), CancelHandle();
    if (!hold) return done(reply), CancelHandle();
    held.push_back(std::move(done));
    return [this] { ++cancelled; };
  }
  Status run_elsewhere(const std::string&, Bytes, Job job) override {
    ++jobs;
    const std::function<void()> then = job();
    if (meanwhile) meanwhile();
    then();
    return {};
  }
  int jobs = 0;
  std::function<void()> meanwhile;  // between a job on another thread and what follows it
  CancelHandle run_task(TaskRun run, Callback<Outcome> done) override {
    last_run = std::move(run);
    if (!hold) return done(reply), CancelHandle();
    held.push_back(std::move(done));
    return [this] { ++cancelled; };
  }
  void invoke_event(InvokeRequest request, Callback<std::string> accepted) override {
    events.push_back(std::move(request));
    accepted(event_id);
  }
  Status check_invoke(const std::string& name) override {
    if (const auto record = get_function(name); !record) return fail(record.error());
    return {};
  }

  void create_function(std::string name, FunctionConfig config, CodeSource code,
                       Callback<FunctionRecord> done) override {
    last_code = std::move(code);
    if (functions.contains(name)) return done(fail(Errc::kAlreadyExists, "Function already exist: {}", name));
    if (Status valid = validate_config(config); !valid) return done(fail(valid.error()));
    add(name, std::move(config));
    done(functions[name]);
  }
  Result<FunctionRecord> get_function(const std::string& name) override {
    const auto it = functions.find(name);
    if (it == functions.end()) return fail(Errc::kNotFound, "Function not found: {}", name);
    return it->second;
  }
  std::vector<FunctionRecord> list_functions() override {
    std::vector<FunctionRecord> records;
    for (const auto& [name, record] : functions) records.push_back(record);
    return records;
  }
  std::optional<CallSignature> call_signature(const std::string& name) override {
    const auto it = signatures.find(name);
    return it == signatures.end() ? std::nullopt : std::optional(it->second);
  }
  std::map<std::string, CallSignature> signatures;
  void update_code(std::string name, CodeSource code, Callback<FunctionRecord> done) override {
    last_code = std::move(code);
    done(functions.at(name));
  }
  void update_config(std::string name, FunctionConfig config, Callback<FunctionRecord> done) override {
    if (Status valid = validate_config(config); !valid) return done(fail(valid.error()));
    functions.at(name).config = std::move(config);
    done(functions.at(name));
  }
  void delete_function(std::string name, std::function<void(Status)> done) override {
    if (functions.erase(name) == 0) return done(fail(Errc::kNotFound, "Function not found: {}", name));
    done({});
  }
  void set_reserved_concurrency(std::string name, std::optional<int> limit, Callback<FunctionRecord> done) override {
    if (!functions.contains(name)) return done(fail(Errc::kNotFound, "Function not found: {}", name));
    functions[name].reserved_concurrency = limit;
    done(functions[name]);
  }

  ObjectStore& objects() override { return *object_store; }
  GraphService& graphs() override { return fake_graphs; }
  EventService& event_service() override { return fake_events; }
  ScalingService& scaling() override { return fake_scaling; }
  VersionService& versions() override {
    fake_versions.latest = [this](const std::string& name) { return get_function(name); };
    return fake_versions;
  }
  RequestService& requests() override { return fake_requests; }
  NodeStatus status() override { return ++statuses, node_status; }
  bool drains() const override { return node_status.draining; }
  Result<std::string> log(const std::string& function, std::size_t tail_bytes) override {
    last_limit = tail_bytes;
    if (!functions.contains(function)) return fail(Errc::kNotFound, "Function not found: {}", function);
    return log_text;
  }
  Result<TimedLog> timed_log(const std::string& function, std::size_t tail_bytes) override {
    auto text = log(function, tail_bytes);
    if (!text) return fail(text.error());
    return TimedLog{.text = *std::move(text), .marks = log_marks};
  }
  std::vector<TimedLog::Mark> log_marks;
  void dead_letters(std::string function, std::size_t limit, Callback<std::vector<DeadLetter>> done) override {
    last_letters_function = std::move(function);
    last_limit = limit;
    done(letters);
  }
  void history(std::uint64_t from, Callback<HistoryPage> done) override {
    if (pages.empty()) return done(fail(Errc::kNotFound, "no history"));
    const auto page = pages.find(from);
    done(page == pages.end() ? HistoryPage{{}, from} : page->second);
  }
};

}  // namespace fairlead
