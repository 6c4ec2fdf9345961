#include "chaos/life.h"

#include <thread>

#include "chaos/virtual_time.h"

namespace fairlead::chaos {
namespace {

constexpr EventQueueOptions kQueue{.limit = 60, .running_limit = 4, .first_retry = std::chrono::minutes(1)};

std::string tenant_header(net::HttpRequest& head) {
  return std::string(head.header("X-Fairlead-Tenant"));
}

}  // namespace

Life::Life(const std::string& folder, store::PowerCutDisk& disk, std::uint64_t seed) : folder_(folder), disk_(disk) {
  request_ids = RequestIds(seed);
}

Status Life::begin(const std::string& socket, Router& router) {
  auto opened = Store::open(io, folder_);
  if (!opened) return fail(opened.error());
  store_ = *std::move(opened);
  worker_ = std::make_unique<Worker>(io);
  events_ = std::make_unique<AsyncInvocations>(
      io, kQueue, *store_, functions, request_ids, invocations,
      FailureWords{.document = [](Outcome outcome) { return outcome.payload + outcome.failure.text; }, .text = {}},
      [] {});
  control_ =
      std::make_unique<FunctionControl>(io, ImageStoreOptions{.state_dir = folder_}, *worker_, *store_, functions,
                                        tenants, request_ids, driver, [this](const RegisteredFunction& function) {
                                          events_->function_removed(function.record.name);
                                          charges.forget(function.flow);
                                        });
  if (Status recovered = control_->recover(); !recovered) return recovered;
  auto waiting = store_->load_events();
  if (!waiting) return fail(waiting.error());
  found = *waiting;
  auto configs = store_->load_event_configs();
  if (!configs) return fail(configs.error());
  events_->restore(*std::move(waiting), *std::move(configs));
  http_ = std::make_unique<net::HttpServer>(
      io, net::HttpLimits{.connections = 64},
      [&router](net::HttpExchange exchange) { router.dispatch(std::move(exchange)); }, net::BodySinks{},
      net::RequestMemory{.bytes = kBudgetBytes,
                         .holder = [](net::HttpRequest& head) -> Result<std::string> { return tenant_header(head); }});
  if (const auto bound = http_->listen("unix:" + socket); !bound) return fail(bound.error());
  events_->submit();
  return {};
}

// An operation that does nothing. While it waits at the disk's gate, all that follows becomes one transaction.
void Life::plug() {
  while (store_->pending_writes() > 0) std::this_thread::yield();
  disk_.close_gate();
  ++plugs_;
  store_->list_dead_letters("", 1, [this](const Result<std::vector<DeadLetter>>&) { --plugs_; });
  disk_.await_gate();
}

bool Life::settle() {
  while (true) {
    plug();
    if (disk_.is_cut()) {
      disk_.open_gate();
      return false;
    }
    const std::size_t before = plugs_;
    const std::size_t done = VirtualTime::run(io) - (before - plugs_);
    const bool writes = store_->pending_writes() > 1;
    disk_.open_gate();
    if (done == 0 && !writes) return true;
  }
}

void Life::answered(InstanceId instance, InvocationId invocation, bool is_error, std::string payload) {
  if (!invocations.answered({.invocation = invocation, .is_error = is_error, .payload = std::move(payload)})) return;
  driver.tell([&](Core& core, Instant now, Actions& out) {
    const std::optional<DeviceUse> use = memory.report(instance, out);
    core.answered(now, invocation, is_error, charges.used(instance, use), out);
  });
}

bool Life::create(const std::string& name, FunctionConfig config, const std::string& code,
                  FunctionControl::Callback<FunctionRecord> done) {
  plug();
  bool over = disk_.is_cut();
  if (!over) {
    control_->create(name, std::move(config), {.folder = code},
                     [&over, done = std::move(done)](Result<FunctionRecord> record) {
                       over = true;
                       done(std::move(record));
                     });
    while (!over && store_->pending_writes() < 2) VirtualTime::run(io);
    over = true;  // what refers to it is called before settle() returns, or never
  }
  disk_.open_gate();
  return settle();
}

}  // namespace fairlead::chaos
