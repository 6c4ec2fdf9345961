#include "store/postgres/watch.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/read_file.h"
#include "base/replace_file.h"
#include "store/postgres/kept_answers.h"
#include "store/postgres/record_json.h"
#include "store/postgres/schema.h"

namespace fairlead::postgres {
namespace {

constexpr const char* kEpochFile = "store-epoch";
constexpr Duration kFirstRetry = std::chrono::milliseconds(100), kLongestRetry = std::chrono::seconds(2);

// Clocks that agree as well as clocks do are taken for one.
std::int64_t clock_ahead(std::int64_t store_ms) {
  constexpr std::int64_t kAgrees = 500;
  const std::int64_t ahead = store_ms - wall_clock_ms();
  return std::abs(ahead) < kAgrees ? 0 : ahead;
}

}  // namespace

EpochMark read_epoch(const std::string& state_dir) {
  EpochMark mark;
  const auto text = read_whole_file(state_dir + "/" + kEpochFile);
  if (!text) return mark;
  const std::size_t between = text->find(' ');
  if (between == std::string::npos) return mark;
  mark.epoch = std::strtoll(text->c_str(), nullptr, 10);
  mark.token = text->substr(between + 1);
  return mark;
}

Watch::Watch(boost::asio::io_context& io, Target target, WatchOptions options, Lease& lease)
    : io_(io),
      target_(std::move(target)),
      options_(std::move(options)),
      lease_(lease),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Watch::~Watch() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  ::eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
  if (!connection_ || connection_->lost() || epoch_ == 0) return;
  if (auto ended = connection_->run({"UPDATE nodes SET ended = true WHERE epoch = $1::bigint", {epoch_}}); !ended) {
    spdlog::warn("others wait {:.0f} s for this node's events: {}", to_seconds(kEventLease), ended.error().message);
  }
}

Result<std::int64_t> Watch::begin(std::unique_ptr<Connection> connection) {
  connection_ = std::move(connection);
  const EpochMark earlier = read_epoch(options_.state_dir);
  if (Status begun = begin_epoch(earlier); !begun) return fail(begun.error());
  return earlier.epoch;
}

void Watch::start(SharedStore::Watcher watcher, std::set<std::string> known, std::int64_t revision) {
  watcher_ = std::make_shared<const SharedStore::Watcher>(std::move(watcher));
  seen_.functions = std::move(known);
  seen_.revision = revision;
  thread_ = std::thread([this] { run(); });
}

template <typename Call>
void Watch::tell(Call call) {
  boost::asio::post(io_, [watcher = watcher_, call = std::move(call)]() mutable { call(*watcher); });
}

bool Watch::stops() const {
  const MutexLock lock(mutex_);
  return stopping_;
}

void Watch::run() {
  bool listens = false;
  while (!stops()) {
    if (!connection_) listens = false;
    if (!connection_ && !connect()) continue;
    Status done;
    if (!listens) {  // also of the first connection, which began the epoch
      if (auto listening = connection_->run({"LISTEN fairlead", {}}); !listening) done = fail(listening.error());
      seen_.compares = is_notified_ = listens = true;
    }
    if (done) done = tick();
    if (!done) spdlog::warn("the store of the cluster: {}", done.error().message);
    const Instant next = monotonic_now() + options_.renewal;
    while (!connection_->lost() && !stops() && monotonic_now() < next && !is_notified_) {
      is_notified_ = connection_->wait_for_notice(wake_.get(), next);
    }
    if (connection_->lost()) connection_.reset();
  }
}

bool Watch::connect() {
  auto opened = open_migrated(target_);
  if (opened) {
    if (std::exchange(server_.is_said_away, false)) spdlog::info("{}: the lease is asked for again", target_.label);
    connection_ = *std::move(opened);
    server_.retry = kFirstRetry;
    server_.steadiness.interrupted();
    return true;
  }
  if (!std::exchange(server_.is_said_away, true)) {
    spdlog::error("the lease cannot be renewed: {}; no event is started until it is", opened.error().message);
  }
  pollfd wait{.fd = wake_.get(), .events = POLLIN, .revents = 0};
  ::poll(&wait, 1, static_cast<int>(to_ms(server_.retry)));
  server_.retry = std::min(server_.retry * 2, kLongestRetry);
  return false;
}

Status Watch::tick() {
  Status done = epoch_ == 0 ? begin_epoch(read_epoch(options_.state_dir)) : renew();
  if (done && epoch_ == 0) done = begin_epoch(read_epoch(options_.state_dir));
  if (done) done = end_others();
  if (done && seen_.compares) done = compare_names();
  const bool reads = std::exchange(is_notified_, false) || monotonic_now() >= seen_.next_reading;
  if (done && reads) {
    done = read_documents();
    if (done) done = read_changes();
    seen_.next_reading = monotonic_now() + options_.reading;
  }
  if (done) done = keep_what_is_known();
  if (done) done = look_for_events();
  // By the server's clock, which may have been set.
  if (done && monotonic_now() >= next_house_ && server_.steadiness.holds(monotonic_now())) {
    done = keep_house();
    next_house_ = monotonic_now() + options_.housekeeping;
  }
  return done;
}

// ---- the epoch

// Numbered by the clock: a server that is restored from a backup would give numbers of a sequence again, to other nodes.
Status Watch::begin_epoch(const EpochMark& earlier) {
  const Instant asked = monotonic_now();
  const auto rows = connection_->transact(
      {{"UPDATE nodes SET ended = true WHERE epoch = $1::bigint AND token = $2::text", {earlier.epoch, earlier.token}},
       {"INSERT INTO nodes (epoch, name, token, lease_until) OVERRIDING SYSTEM VALUE VALUES ((extract(epoch FROM "
        "clock_timestamp()) * 1000000)::bigint, $1::text, gen_random_uuid()::text, clock_timestamp() + "
        "interval '5 s') RETURNING epoch, token, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, "
        "(extract(epoch FROM lease_until) * 1000000)::bigint",
        {options_.node_name}}});
  if (!rows) return fail(rows.error());
  const Rows& made = rows->back();
  const std::int64_t epoch = made.integer(0, 0);
  const std::string mark = fmt::format("{} {}", epoch, made.text(0, 1));
  // Not written, a start of this node would wait for the lease like all others.
  if (Status kept = replace_file(options_.state_dir, kEpochFile, mark); !kept) spdlog::warn("{}", kept.error().message);
  epoch_ = epoch;
  lease_.begun(epoch);
  took_lease(asked, made.integer(0, 2), made.integer(0, 3));
  return {};
}

Status Watch::renew() {
  const Instant asked = monotonic_now();
  const auto rows = connection_->run(
      {"WITH earlier AS (SELECT lease_until FROM nodes WHERE epoch = $1::bigint AND NOT ended FOR UPDATE) "
       "UPDATE nodes SET lease_until = clock_timestamp() + interval '5 s' FROM earlier WHERE epoch = $1::bigint "
       "RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint, "
       "(extract(epoch FROM nodes.lease_until) * 1000000)::bigint, "
       "(extract(epoch FROM earlier.lease_until) * 1000000)::bigint",
       {epoch_}});
  if (!rows) return fail(rows.error());
  if (rows->size() == 0) {
    lose_lease("it ran out, and another node ended it");
    return {};
  }
  if (rows->integer(0, 2) < server_.granted_us) {
    spdlog::error(
        "{} has lost what was written last: it was restored from a backup, or another server took over. Events "
        "that it has from before run again when their node is started again",
        target_.label);
    read_anew();
  }
  took_lease(asked, rows->integer(0, 0), rows->integer(0, 1));
  return {};
}

void Watch::took_lease(Instant asked, std::int64_t store_ms, std::int64_t until_us) {
  server_.granted_us = until_us;
  server_.steadiness.renewed({.asked = asked, .answered = monotonic_now(), .store_ms = store_ms});
  lease_.renewed(asked, clock_ahead(store_ms));
}

// An epoch is missing, too, where a server was restored from a backup.
void Watch::lose_lease(std::string_view why) {
  spdlog::warn("this node's lease on events is lost ({}): what it has not started is claimed anew", why);
  epoch_ = 0;
  read_anew();
  tell([](const SharedStore::Watcher& watcher) { watcher.lease_lost(); });
}

void Watch::read_anew() {
  seen_.revision = 0;
  seen_.kept_revision = seen_.documents = -1;
  seen_.compares = is_notified_ = true;
}

// The row is locked for that: a lease that is being renewed meanwhile has not run out. While the server was away nobody could renew:
// not before all had the time of a lease to do so, and not by a statement that lay there for long, which this node's own lease shows. A lease
// that ends later than any can was granted before the server's clock was set back.
Status Watch::end_others() {
  if (!server_.steadiness.holds(monotonic_now())) return {};
  const auto ended = connection_->run(
      {"UPDATE nodes SET ended = true WHERE NOT ended AND (lease_until < clock_timestamp() OR lease_until > "
       "clock_timestamp() + interval '10 s') AND EXISTS (SELECT 1 FROM nodes own WHERE own.epoch = $1::bigint AND "
       "own.lease_until > clock_timestamp() + interval '3 s') RETURNING name",
       {epoch_}});
  if (!ended) return fail(ended.error());
  for (int row = 0; row < ended->size(); ++row) {
    spdlog::warn("node '{}' did not renew its lease: its events are others' now", ended->text(row, 0));
  }
  return {};
}

Status Watch::look_for_events() {
  const auto found = connection_->run(
      {"SELECT 1 FROM nodes n WHERE n.ended AND EXISTS (SELECT 1 FROM events e WHERE e.owner = n.epoch) LIMIT 1", {}});
  if (!found) return fail(found.error());
  if (found->size() > 0) tell([](const SharedStore::Watcher& watcher) { watcher.claimable(); });
  return {};
}

// ---- functions

Status Watch::read_changes() {
  while (true) {
    const auto rows = connection_->run(
        {"SELECT name, record, revision, deleted FROM functions WHERE revision > $1::bigint ORDER BY revision LIMIT 50",
         {seen_.revision}});
    if (!rows) return fail(rows.error());
    if (rows->size() == 0) return {};
    std::vector<FunctionChange> changes;
    for (int row = 0; row < rows->size(); ++row) {
      const std::string name = rows->text(row, 0);
      if (rows->integer(row, 3) != 0) {
        seen_.functions.erase(name);
        changes.push_back({.function = name, .record = {}, .published = {}, .event_config = {}});
      } else if (Status read = read_one(name, rows->text(row, 1), changes); !read) {
        return read;
      }
    }
    seen_.revision = rows->integer(rows->size() - 1, 2);
    tell([changes = std::move(changes)](const SharedStore::Watcher& watcher) mutable {
      watcher.changed(std::move(changes));
    });
  }
}

// All of them, when any has changed: they are few, and change rarely.
Status Watch::read_documents() {
  if (!watcher_->documents) return {};
  const auto clock = connection_->run({"SELECT revision FROM document_clock", {}});
  if (!clock) return fail(clock.error());
  if (clock->size() == 0 || clock->integer(0, 0) == seen_.documents) return {};
  const auto rows = connection_->run({kAskDocuments, {}});
  if (!rows) return fail(rows.error());
  SharedDocuments documents = documents_of(*rows);
  documents.is_anew = seen_.documents < 0;
  seen_.documents = documents.revision;
  tell([documents = std::move(documents)](const SharedStore::Watcher& watcher) mutable {
    watcher.documents(std::move(documents));
  });
  return {};
}

Status Watch::read_one(const std::string& name, const std::string& record, std::vector<FunctionChange>& changes) {
  Statements statements = load_published(name);
  statements.push_back(
      {"SELECT function, retries, age_seconds, last_modified_ms FROM event_configs WHERE function = $1::text", {name}});
  const auto rows = connection_->transact(statements);
  if (!rows) return fail(rows.error());
  auto decoded = decode_record(name, record, options_.state_dir);
  auto published = published_of(*rows, 0, options_.state_dir);
  if (!decoded || !published) {  // the others are none the worse for it
    spdlog::error("{}", (decoded ? published.error() : decoded.error()).message);
    return {};
  }
  seen_.functions.insert(name);
  FunctionChange change{
      .function = name, .record = *std::move(decoded), .published = *std::move(published), .event_config = {}};
  const auto configs = event_configs_of(rows->back());
  if (const auto config = configs.find(name); config != configs.end()) change.event_config = config->second;
  changes.push_back(std::move(change));
  return {};
}

// Marks of deleted functions are not kept for ever: who was away longer finds the names gone.
Status Watch::compare_names() {
  const auto rows = connection_->run({"SELECT name FROM functions WHERE NOT deleted", {}});
  if (!rows) return fail(rows.error());
  std::set<std::string> there;
  for (int row = 0; row < rows->size(); ++row) there.insert(rows->text(row, 0));
  std::vector<FunctionChange> gone;
  for (const std::string& name : seen_.functions) {
    if (!there.contains(name)) gone.push_back({.function = name, .record = {}, .published = {}, .event_config = {}});
  }
  for (const FunctionChange& change : gone) seen_.functions.erase(change.function);
  seen_.compares = false;
  if (!gone.empty()) {
    tell([gone = std::move(gone)](const SharedStore::Watcher& watcher) mutable { watcher.changed(std::move(gone)); });
  }
  return {};
}

// What nobody needs any more. Code that was stored lately may be of a function that is about to be.
Status Watch::keep_house() {
  Statements statements = trim_dead_letters();
  statements.push_back({"DELETE FROM functions WHERE deleted AND changed < now() - interval '1 day'", {}});
  statements.push_back(
      {"DELETE FROM nodes n WHERE n.ended AND n.lease_until < now() - interval '1 hour' AND NOT EXISTS "
       "(SELECT 1 FROM events e WHERE e.owner = n.epoch)",
       {}});
  statements.push_back(
      {"DELETE FROM code_heads h WHERE stored < now() - interval '1 hour' AND NOT EXISTS (SELECT 1 FROM functions "
       "f WHERE f.code_digest = h.digest) AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.code_digest = h.digest)",
       {}});
  statements.push_back(
      {"DELETE FROM code c WHERE NOT EXISTS (SELECT 1 FROM code_heads h WHERE h.digest = c.digest)", {}});
  const auto kept = connection_->transact(statements);
  return kept ? Status() : Status(fail(kept.error()));
}

// All of them each time, so that it takes a tenth of the thread's time at most, however many functions there are.
Status Watch::keep_what_is_known() {
  const Instant began = monotonic_now();
  if (seen_.revision == seen_.kept_revision || began < seen_.next_keeping) return {};
  if (Status kept = keep_answers(options_.state_dir, target_, *connection_); !kept) return kept;
  seen_.kept_revision = seen_.revision;
  seen_.next_keeping = monotonic_now() + 10 * (monotonic_now() - began);
  return {};
}

}  // namespace fairlead::postgres
