// The store's operations as statements of one transaction, and its values from rows. Each may run twice: after a rollback, or where
// nobody knows whether a commit took place.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "store/postgres/connection.h"
#include "store/postgres/statement_group.h"
#include "store/shared_store.h"

namespace fairlead::postgres {

inline constexpr std::int64_t kMaxDeadLetters = 10'000;  // as many as one node keeps (store/records.h)

// What statements of a node are written under.
struct Writer {
  std::int64_t epoch = 0;
  std::int64_t ahead_ms =
      0;  // by so much the store's clock is ahead of this node's; times in the store are the store's
};

// Functions, and what goes by their names. Each of these is seen by other nodes.
Result<Statements> put_function(const FunctionRecord& record, const std::string& state_dir);
Statements delete_function(const std::string& name);
Statements put_event_config(const std::string& function, const EventInvokeConfig& config);
Statements delete_event_config(const std::string& function);
Result<Statements> put_version(const FunctionRecord& version, const std::string& state_dir);
Statements delete_version(const std::string& function, std::uint64_t version);
Statements put_alias(const std::string& function, const FunctionAlias& alias);
Statements delete_alias(const std::string& function, const std::string& alias);
// The place of the statement that says whether a function could be put: no row, it is another tenant's.
inline constexpr std::size_t kPutFunctionAt = 1;
Statements put_profile(const FunctionProfile& profile);

// Events. put_event writes no row where its function was deleted, or the epoch has ended.
Row put_event(const QueuedEvent& event, const Writer& writer);
// Whether it did, of what its statement gave. `row`: its place there.
bool is_put(const Rows& rows, std::size_t row, const std::string& request_id);
Statements retry_event(const QueuedEvent& event, const Writer& writer);  // of this epoch
Row finish_event(const std::string& request_id);                         // of whichever: it has run
Statements bury_event(const DeadLetter& letter, const Writer& writer);
// `claim` is a number that grows with each of this node's. The second takes one back of which nobody knows whether it was committed,
// and which may still be on its way: it gets nothing any more.
Statements claim_events(const std::vector<std::string>& functions, std::size_t limit, std::int64_t claim,
                        const Writer& writer);
Statements void_claim(std::int64_t claim, const Writer& writer);
Statements take_over(std::int64_t earlier_epoch, const Writer& writer);  // all of one's own; they follow
std::vector<QueuedEvent> events_of(const Rows& rows, const Writer& writer);

Statements list_dead_letters(const std::string& function, std::size_t limit);
std::vector<DeadLetter> letters_of(const Rows& rows, const Writer& writer);
Statements redrive(const std::string& function, std::size_t limit, std::int64_t accepted_ms, std::int64_t claim,
                   const Writer& writer);
Redriven redriven_of(const Rows& rows, const Writer& writer);
Statements trim_dead_letters();

// Documents. Changes wait for each other at the clock's row.
Statements change_documents(const DocumentChanges& changes);
Result<std::int64_t> revision_of(const std::vector<Rows>& rows, const DocumentChanges& changes);  // kNotFound
// With the revision in each row: one that names nothing where there are none.
inline constexpr const char* kAskDocuments =
    "SELECT c.revision, d.kind, d.name, d.body FROM document_clock c LEFT JOIN documents d ON true ORDER BY d.kind, "
    "d.name";
SharedDocuments documents_of(const Rows& rows);

// Reading functions.
Result<std::vector<FunctionRecord>> functions_of(const Rows& rows, const std::string& state_dir);  // name, record
Statements load_published(const std::string& function);  // "": of all; three statements
Result<PublishedState> published_of(const std::vector<Rows>& rows, std::size_t first, const std::string& state_dir);
std::map<std::string, EventInvokeConfig> event_configs_of(const Rows& rows);

}  // namespace fairlead::postgres
