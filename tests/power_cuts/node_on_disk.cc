#include "power_cuts/node_on_disk.h"

#include <fmt/format.h>

#include <filesystem>

namespace fairlead::power_cuts {
namespace {

constexpr EventQueueOptions kQueue{.limit = 500, .running_limit = 4, .first_retry = std::chrono::minutes(1)};
constexpr const char* kTenant = "acme";
constexpr const char* kReceiver = "receiver";  // of events; it stays
constexpr Duration kPatience = std::chrono::seconds(30);

// Several sectors and pages, so that it can be torn; the word in front names it.
std::string payload_of(const std::string& word, std::size_t bytes) {
  std::string payload = word + " ";
  while (payload.size() < bytes) payload += word;
  return payload;
}

std::string word_of(const std::string& payload) {
  return payload.substr(0, payload.find(' '));
}

std::string value_of(const std::string& text) {
  return fmt::format("{}:{}", text.size(), std::hash<std::string>()(text));
}

}  // namespace

NodeOnDisk::NodeOnDisk(std::string folder, std::string code, Notebook& notebook, std::uint64_t seed)
    : folder_(std::move(folder)), code_(std::move(code)), notebook_(notebook), random_(seed) {
  request_ids = RequestIds(seed);
}

Status NodeOnDisk::start() {
  auto opened = Store::open(io, folder_);
  if (!opened) return fail(opened.error());
  store_ = *std::move(opened);
  const identity::KeyFile file(folder_);
  auto keyring = file.load();
  if (!keyring) return fail(keyring.error());
  desk_ = std::make_unique<identity::KeyDesk>(file, *std::move(keyring), [] { return std::int64_t{1}; });
  auto vault = identity::SecretVault::open(
      folder_, {.file = {}, .command = {}, .credential = {}, .made = folder_ + "/secret-key"});
  if (!vault) return fail(vault.error());
  vault_ = *std::move(vault);
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
  found_ = *waiting;
  events_->restore(*std::move(waiting), {});
  return {};
}

std::string NodeOnDisk::check() {
  std::map<std::string, std::string> there, events, keys, secrets;
  for (const auto& [name, function] : functions.all()) {
    there[name] = function.record.config.description;
    functions_.push_back(name);
    if (!std::filesystem::exists(function.record.code_path + "/bootstrap")) return name + " has lost its code";
  }
  for (const QueuedEvent& event : found_) {
    const std::string& payload = event.invocation.payload;
    events[word_of(payload)] = value_of(payload);
  }
  bool is_listed = false;
  store_->list_dead_letters("", 10'000, [&](const Result<std::vector<DeadLetter>>& letters) {
    if (letters) {
      for (const DeadLetter& letter : *letters) events[word_of(letter.payload)] = value_of(letter.payload);
    }
    is_listed = true;
  });
  wait_for(is_listed);
  for (const identity::ApiKey& key : desk_->keyring().keys()) {
    keys[key.note] = "issued";
    keys_.push_back(key.id);
  }
  for (const identity::SecretEntry& entry : vault_->list(kTenant)) {
    const auto value = vault_->reveal(kTenant, entry.name);
    if (!value) return value.error().message;
    secrets[entry.name] = value_of(*value);
    secrets_.push_back(entry.name);
  }
  const StateDamage& damage = store_->damage();
  // A count beside the database that is gone says nothing of a loss; it is the one finding that a power cut may leave.
  if (damage.damaged_events + damage.missing_events + damage.lost_changes > 0) return damage.findings.front();
  std::string wrong;
  note([&](Promised& promised) {
    for (const std::string& said : {promised.functions.found(there), promised.events.found(events),
                                    promised.keys.found(keys), promised.secrets.found(secrets)}) {
      if (wrong.empty()) wrong = said;
    }
  });
  return wrong;
}

void NodeOnDisk::wait_for(const bool& is_done) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!is_done && std::chrono::steady_clock::now() < until) {
    io.restart();
    io.run_one_for(std::chrono::milliseconds(100));
  }
  FL_CHECK(is_done, "the node has not answered");
}

std::string NodeOnDisk::fresh(char kind) {
  int number = 0;
  note([&](Promised& promised) { number = ++promised.last; });
  return kind + std::to_string(number);
}

void NodeOnDisk::work(int steps) {
  if (functions.find(kReceiver) == nullptr) deploy();
  for (int i = 0; i < steps; ++i) step();
  bool is_idle = false;  // what was asked is answered
  store_->list_dead_letters("", 1, [&](const Result<std::vector<DeadLetter>>&) { is_idle = true; });
  wait_for(is_idle);
}

void NodeOnDisk::step() {
  switch (random_() % 16) {
    case 0:
    case 1: deploy(); break;
    case 2: remove_function(); break;
    case 3:
    case 4: change_key(); break;
    case 5:
    case 6: change_secret(); break;
    case 7:
    case 8: let_run(); break;
    default: send_event();
  }
  if (random_() % 2 == 0) {
    io.restart();
    io.poll();
  }
}

void NodeOnDisk::send_event() {
  if (functions.find(kReceiver) == nullptr) return;
  const std::string word = fresh('e');
  InvokeRequest request;
  request.invocation = {.request_id = {}, .function = kReceiver, .payload = payload_of(word, random_() % 6000)};
  const std::string value = value_of(request.invocation.payload);
  note([&](Promised& promised) { promised.events.asked(word, value); });
  events_->accept(std::move(request), [this, word, value](const Result<std::string>& accepted) {
    if (accepted) note([&](Promised& promised) { promised.events.told(word, value); });
  });
}

// What was started is ready; what was delivered is answered, once with an error: it waits for another attempt then.
void NodeOnDisk::let_run() {
  events_->submit();
  for (const InstanceId instance : std::exchange(runner.started, {})) ready(instance);
  if (runner.delivered.empty()) return;
  const auto [instance, request] = runner.delivered.back();
  const std::string word = word_of(request.invocation.payload);
  const bool is_error = random_() % 3 == 0;
  if (!is_error) note([&](Promised& promised) { promised.events.asked(word, std::nullopt); });
  answer("\"done\"", is_error);
  runner.delivered.clear();
  idle(instance);
}

void NodeOnDisk::deploy() {
  const bool has_receiver = functions.find(kReceiver) != nullptr;
  const std::string name = has_receiver ? fresh('g') : kReceiver, description = "made as " + fresh('v');
  const FunctionConfig config{.description = description, .handler = "h", .tags = {{kTenantTag, kTenant}}};
  note([&](Promised& promised) { promised.functions.asked(name, description); });
  bool is_over = false;
  control_->create(name, config, {.folder = code_}, [&](const Result<FunctionRecord>& made) {
    is_over = true;
    if (!made) return;
    note([&](Promised& promised) { promised.functions.told(name, description); });
    functions_.push_back(name);
  });
  wait_for(is_over);
}

void NodeOnDisk::remove_function() {
  if (functions_.empty()) return;
  const std::string name = functions_[random_() % functions_.size()];
  if (name == kReceiver || functions.find(name) == nullptr) return;
  note([&](Promised& promised) { promised.functions.asked(name, std::nullopt); });
  bool is_over = false;
  control_->remove(name, [&](const Status& removed) {
    is_over = true;
    if (removed) note([&](Promised& promised) { promised.functions.told(name, std::nullopt); });
  });
  wait_for(is_over);
}

// Keys go by their notes: what id a new one has is known when it is issued.
void NodeOnDisk::change_key() {
  if (!keys_.empty() && random_() % 3 == 0) {
    const std::string id = keys_[random_() % keys_.size()];
    const identity::ApiKey* const key = desk_->keyring().find(id);
    if (key == nullptr) return;
    const std::string about = key->note;
    note([&](Promised& promised) { promised.keys.asked(about, std::nullopt); });
    const auto change = desk_->plan_revoke(id);
    if (change && desk_->carry_out(*change)) note([&](Promised& promised) { promised.keys.told(about, std::nullopt); });
    return;
  }
  const std::string about = fresh('k');
  note([&](Promised& promised) { promised.keys.asked(about, "issued"); });
  const auto change = desk_->plan_issue({.tenant = kTenant, .note = about});
  if (!change || !desk_->carry_out(*change)) return;
  note([&](Promised& promised) { promised.keys.told(about, "issued"); });
  keys_.push_back(change->issued->key.id);
}

void NodeOnDisk::change_secret() {
  const bool is_new = secrets_.empty() || random_() % 3 == 0;
  const std::string name = is_new ? fresh('s') : secrets_[random_() % secrets_.size()];
  if (!is_new && random_() % 3 == 0) {
    note([&](Promised& promised) { promised.secrets.asked(name, std::nullopt); });
    if (vault_->remove(kTenant, name)) note([&](Promised& promised) { promised.secrets.told(name, std::nullopt); });
    return;
  }
  const std::string text = payload_of(fresh('t'), 1 + random_() % 2000);
  note([&](Promised& promised) { promised.secrets.asked(name, value_of(text)); });
  if (!vault_->set(kTenant, name, text, 1)) return;
  note([&](Promised& promised) { promised.secrets.told(name, value_of(text)); });
  secrets_.push_back(name);
}

}  // namespace fairlead::power_cuts
