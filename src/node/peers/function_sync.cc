#include "node/peers/function_sync.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/read_file.h"
#include "base/replace_file.h"
#include "node/peers/fields.h"
#include "store/zip_writer.h"

namespace fairlead {
namespace {

constexpr const char* kVersionsFile = "peer-functions";
constexpr const char* kVersionsTarget = "/fairlead/v1/peers/versions";
constexpr const char* kFunctionTarget = "/fairlead/v1/peers/function";
constexpr const char* kChangedTarget = "/fairlead/v1/peers/changed";
constexpr Duration kPullPatience = std::chrono::seconds(60);  // with one function
constexpr Duration kRetryAfter = std::chrono::seconds(5);
// Of versions that are refused, which come with each gossip.
constexpr Duration kWarnAgainAfter = std::chrono::seconds(60);
constexpr std::size_t kMostKeptZip = 8 << 20, kMostKeptZips = 32 << 20;

std::string write_map(const std::map<std::string, std::string>& map) {
  std::string text;
  for (const auto& [key, value] : map)
    text += FieldWriter().text('k', FieldWriter().text('n', key).text('v', value).take()).take();
  return text;
}

std::string write_list(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& value : list) text += FieldWriter().text('k', FieldWriter().text('v', value).take()).take();
  return text;
}

// Calls `take` with the fields of each element.
template <typename Take>
Status read_elements(std::string_view text, Take take) {
  while (!text.empty()) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), size);
    const auto head = static_cast<std::size_t>(end - text.data()) + 1;
    if (text.front() != 'k' || error != std::errc() || head > text.size() || *end != ':' || size > text.size() - head) {
      return fail(Errc::kCorrupt, "a list in a function's configuration is damaged");
    }
    const auto fields = Fields::parse(text.substr(head, size));
    if (!fields) return fail(fields.error());
    take(*fields);
    text.remove_prefix(head + size);
  }
  return {};
}

std::string write_record(const FunctionRecord& record) {
  const FunctionConfig& config = record.config;
  FieldWriter out;
  out.text('d', config.description).text('r', config.role).text('h', config.handler).text('u', config.runtime);
  out.number('m', config.memory_mib).number('t', config.timeout_seconds).number('s', config.ephemeral_storage_mib);
  out.text('e', write_map(config.environment)).text('g', write_map(config.tags));
  if (record.reserved_concurrency) out.number('c', *record.reserved_concurrency);
  if (config.package_type == PackageType::kImage) {
    out.text('i', record.image ? record.image->uri : "");
    out.text('E', write_list(config.image_config.entry_point)).text('C', write_list(config.image_config.command));
    out.text('W', config.image_config.working_directory);
  }
  return out.take();
}

// Bounds are the node's to check, as of any client's function.
struct ReadRecord {
  FunctionConfig config;
  std::optional<int> reserved_concurrency;
  std::string image;
};
Result<ReadRecord> read_record(std::string_view text) {
  const auto fields = Fields::parse(text);
  if (!fields) return fail(fields.error());
  ReadRecord record;
  FunctionConfig& config = record.config;
  config.description = fields->text('d');
  config.role = fields->text('r');
  config.handler = fields->text('h');
  config.runtime = fields->text('u');
  const auto memory = fields->number<int>('m', config.memory_mib),
             timeout = fields->number<int>('t', config.timeout_seconds),
             storage = fields->number<int>('s', config.ephemeral_storage_mib), reserved = fields->number<int>('c', 0);
  for (const auto* number : {&memory, &timeout, &storage, &reserved}) {
    if (!*number) return fail(number->error());
  }
  config.memory_mib = *memory;
  config.timeout_seconds = *timeout;
  config.ephemeral_storage_mib = *storage;
  if (fields->has('c')) record.reserved_concurrency = *reserved;
  const auto into = [](std::map<std::string, std::string>& map) {
    return [&map](const Fields& entry) { map.emplace(entry.text('n'), entry.text('v')); };
  };
  const auto append = [](std::vector<std::string>& list) {
    return [&list](const Fields& entry) { list.emplace_back(entry.text('v')); };
  };
  Status read = read_elements(fields->text('e'), into(config.environment));
  if (read) read = read_elements(fields->text('g'), into(config.tags));
  if (read) read = read_elements(fields->text('E'), append(config.image_config.entry_point));
  if (read) read = read_elements(fields->text('C'), append(config.image_config.command));
  if (!read) return fail(read.error());
  if (fields->has('i')) {
    config.package_type = PackageType::kImage;
    config.image_config.working_directory = fields->text('W');
    record.image = fields->text('i');
  }
  return record;
}

}  // namespace

Result<std::unique_ptr<FunctionSync>> FunctionSync::open(NodeService& node, const std::string& state_dir,
                                                         std::string own_name) {
  std::unique_ptr<FunctionSync> sync(new FunctionSync(node, state_dir, std::move(own_name)));
  if (const auto text = read_whole_file(state_dir + "/" + kVersionsFile)) {
    auto versions = FunctionVersions::parse(*text);
    if (!versions) return fail(Errc::kCorrupt, "{}/{}: {}", state_dir, kVersionsFile, versions.error().message);
    sync->versions_ = *std::move(versions);
  } else if (text.error().code != Errc::kNotFound) {
    return fail(text.error());
  }
  for (const FunctionRecord& record : node.list_functions()) {
    const FunctionVersion* const known = sync->versions_.find(record.name);
    if (known != nullptr && !known->is_deleted) continue;
    sync->versions_.set(record.name, {.ms = record.last_modified_ms, .node = sync->own_name_});
  }
  if (const TooFarAhead ahead = sync->versions_.too_far_ahead(wall_clock_ms()); ahead.count > 0) {
    spdlog::warn(
        "peers: {}, and is kept: this clock is behind, or was ahead then. Set it right; peers refuse the function "
        "while that is more than {} hours ahead of their clocks",
        ahead.text(), FunctionVersions::kMostAheadMs / 3'600'000);
  }
  return sync;
}

void FunctionSync::save() {
  saved_digest_ = digest();
  if (Status saved = replace_file(state_dir_, kVersionsFile, versions_.text()); !saved) {
    spdlog::error("peers: versions of functions are not on disk: {}", saved.error().message);
  }
}

void FunctionSync::keep_zip(const std::string& code_sha256, std::string zip) {
  if (zip.empty() || zip.size() > kMostKeptZip) return;
  zip_bytes_ += zip.size();
  zips_.emplace_back(code_sha256, std::make_shared<const std::string>(std::move(zip)));
  while (zip_bytes_ > kMostKeptZips) {
    zip_bytes_ -= zips_.front().second->size();
    zips_.pop_front();
  }
}

// ---- a change of this node's own

void FunctionSync::changed(const std::string& function, bool is_deleted, std::function<void()> done) {
  if (stands_aside_) return done();
  FunctionVersion version = versions_.next(function, wall_clock_ms(), own_name_);
  version.is_deleted = is_deleted;
  versions_.set(function, std::move(version));
  save();
  const std::vector<NodeId> others = peers_->others(PeerLife::kAlive);
  if (others.empty()) return done();
  const auto left = std::make_shared<std::size_t>(others.size());  // shared by the answers
  for (const NodeId peer : others) {
    const auto answered = [this, peer, left, done, function](const Result<net::ClientResponse>& answer) {
      if (!answer || answer->status != 200) {
        spdlog::warn("peers: '{}' was not told of function {}: {}; it pulls it when it is back",
                     peers_->view().name(peer), function,
                     answer ? read_error(answer->body).message : answer.error().message);
      }
      if (--*left == 0) done();
    };
    PeerLink* const link = peers_->link(peer, PeerUse::kTalk);
    if (link == nullptr) {
      if (--*left == 0) done();
      continue;
    }
    link->send({.target = kChangedTarget, .head = {}, .body = {}, .patience = kPatience}, answered);
  }
}

// ---- what a peer has newer

void FunctionSync::pull(NodeId peer, std::function<void()> done) {
  if (stands_aside_) return done ? done() : void();
  const auto known = pulls_.find(peer);
  if (known != pulls_.end()) {
    if (done) {  // whoever waits wants what is there now
      known->second->again = true;
      known->second->done.push_back(std::move(done));
    }
    return;
  }
  auto pull = std::make_shared<Pull>();
  pull->peer = peer;
  if (done) pull->done.push_back(std::move(done));
  pulls_[peer] = pull;
  ask_versions(pull);
}

void FunctionSync::ask_versions(const std::shared_ptr<Pull>& pull) {
  pull->again = false;
  PeerLink* const link = peers_->link(pull->peer, PeerUse::kTalk);
  if (link == nullptr) return end(pull);
  link->send({.target = kVersionsTarget, .head = {}, .body = {}, .patience = kPatience},
             [this, pull](Result<net::ClientResponse> answer) {
               if (!answer || answer->status != 200 || answer->body.size() > kMostVersionsBytes) return end(pull);
               auto theirs = FunctionVersions::parse(answer->body);
               if (!theirs) {
                 spdlog::warn("peers: '{}' is not believed: {}", peers_->view().name(pull->peer),
                              theirs.error().message);
                 return end(pull);
               }
               pull->theirs = *std::move(theirs);
               const FunctionVersions::Missing missing = versions_.missing(pull->theirs, wall_clock_ms());
               if (missing.refused.count > 0) warn_refused(pull->peer, missing.refused);
               pull->names.assign(missing.names.begin(), missing.names.end());
               next(pull);
             });
}

void FunctionSync::warn_refused(NodeId peer, const TooFarAhead& refused) {
  const Instant now = monotonic_now();
  const auto [last, is_first] = refusals_.try_emplace(peer, now);
  if (!is_first && now - last->second < kWarnAgainAfter) return;
  last->second = now;
  spdlog::warn(
      "peers: of '{}', {}, and is not taken: at most {} hours are believed. Set the clock that is wrong, its or "
      "this node's; its other functions are taken",
      peers_->view().name(peer), refused.text(), FunctionVersions::kMostAheadMs / 3'600'000);
}

// Whether the next name needs work that ends later: then that is under way, and calls next().
bool FunctionSync::begin(const std::shared_ptr<Pull>& pull, const std::string& name) {
  const FunctionVersion version = *pull->theirs.find(name);
  const FunctionVersion* const known = versions_.find(name);
  if (known != nullptr && !(*known < version)) return false;  // it came from elsewhere meanwhile
  const auto failure = failures_.find(name);
  if (failure != failures_.end() && failure->second.first == version &&
      monotonic_now() - failure->second.second < kRetryAfter) {
    return false;
  }
  if (version.is_deleted && !node_.get_function(name)) {
    versions_.set(name, version);
    return false;
  }
  if (version.is_deleted) {
    node_.delete_function(name, [this, pull, name, version](Status deleted) {
      deleted ? versions_.set(name, version) : failed(name, version, deleted.error());
      next(pull);
    });
    return true;
  }
  PeerLink* const link = peers_->link(pull->peer, PeerUse::kTalk);
  if (link == nullptr) return false;
  link->send({.target = kFunctionTarget, .head = name, .body = {}, .patience = kPullPatience},
             [this, pull, name](Result<net::ClientResponse> answer) { take(pull, name, std::move(answer)); });
  return true;
}

void FunctionSync::next(const std::shared_ptr<Pull>& pull) {
  while (!pull->names.empty()) {
    const std::string name = std::move(pull->names.front());
    pull->names.pop_front();
    if (begin(pull, name)) return;
  }
  pull->again ? ask_versions(pull) : end(pull);
}

void FunctionSync::take(const std::shared_ptr<Pull>& pull, const std::string& name,
                        Result<net::ClientResponse> answer) {
  const FunctionVersion version = *pull->theirs.find(name);
  if (!answer || answer->status != 200) {
    failed(name, version, answer ? read_error(answer->body) : answer.error());
    return next(pull);
  }
  const auto fields = Fields::parse(answer->body);
  if (!fields || !fields->has('h')) {
    failed(name, version, {Errc::kCorrupt, "the answer is no function"});
    return next(pull);
  }
  apply(name, {.head = std::string(fields->text('h')), .code = std::string(fields->text('z'))},
        [this, pull, name, version](Status applied) {
          if (!applied) {
            failed(name, version, applied.error());
          } else {
            ++counters_.pulled;
            failures_.erase(name);
            versions_.set(name, version);
            spdlog::info("peers: function {} is taken from '{}'", name, peers_->view().name(pull->peer));
          }
          next(pull);
        });
}

void FunctionSync::failed(const std::string& name, const FunctionVersion& version, const Error& error) {
  ++counters_.failed;
  if (failures_.size() > FunctionVersions::kMost) failures_.clear();
  failures_[name] = {version, monotonic_now()};
  spdlog::warn("peers: function {} cannot be taken over: {}", name, error.message);
}

// As a client would: what is not valid here is refused here.
void FunctionSync::apply(const std::string& name, const Packed& packed, std::function<void(Status)> done) {
  auto record = read_record(packed.head);
  if (!record) return done(fail(record.error()));
  CodeSource code;
  code.zip = packed.code;
  code.image = record->image;
  const auto reserve = [this, name, reserved = record->reserved_concurrency, zip = packed.code,
                        done](const Result<FunctionRecord>& made) {
    if (!made) return done(fail(made.error()));
    keep_zip(made->code_sha256, zip);
    if (made->reserved_concurrency == reserved) return done({});
    node_.set_reserved_concurrency(name, reserved, [done](const Result<FunctionRecord>& set) {
      done(set ? Status() : Status(fail(set.error())));
    });
  };
  if (!node_.get_function(name)) return node_.create_function(name, record->config, std::move(code), reserve);
  node_.update_code(name, std::move(code),
                    [this, name, config = record->config, reserve](Result<FunctionRecord> updated) {
                      if (!updated) return reserve(updated);
                      node_.update_config(name, config, reserve);
                    });
}

void FunctionSync::end(const std::shared_ptr<Pull>& pull) {
  pulls_.erase(pull->peer);
  if (digest() != saved_digest_) save();
  for (const auto& done : std::exchange(pull->done, {})) done();
}

// ---- what others ask for

void FunctionSync::pack(const std::string& function, std::function<void(Result<Packed>)> done) {
  const auto record = node_.get_function(function);
  if (!record) return done(fail(record.error()));
  if (record->in_place) {  // deployed before this node had peers
    return done(fail(Errc::kInvalidArgument,
                     "function {} runs in place from a folder of one machine, and stays there; deploy a copy of it",
                     function));
  }
  Packed packed{.head = write_record(*record), .code = {}};
  if (record->config.package_type == PackageType::kImage) return done(std::move(packed));
  for (const auto& [digest, zip] : zips_) {
    if (digest != record->code_sha256) continue;
    packed.code = *zip;
    return done(std::move(packed));
  }
  const Bytes held(record->code_bytes);
  const Status accepted = node_.run_elsewhere(tenant_of(record->config.tags), held,
                                              [packed, path = record->code_path, done]() -> std::function<void()> {
                                                auto zip = std::make_shared<Result<std::string>>(zip_folder(path));
                                                return [packed, zip, done]() mutable {
                                                  if (!*zip) return done(fail(zip->error()));
                                                  packed.code = *std::move(*zip);
                                                  done(std::move(packed));
                                                };
                                              });
  if (!accepted) done(fail(accepted.error()));
}

}  // namespace fairlead
