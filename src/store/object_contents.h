// Bytes of objects, wherever they are: room for new ones, one copy of what is equal, to disk and back. Carries out what
// the ledger decides, with the files, on a worker thread. Knows no keys.
//
// Threads: everything on the io_context's thread; callbacks too. Jobs of the worker run in order.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/lifetime.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "store/object_files.h"
#include "store/object_ledger.h"

namespace fairlead::store {

// Room in a tenant's quota for bytes that come later, until it goes or is assigned another. May outlive its contents.
class QuotaClaim {
 public:
  QuotaClaim() = default;
  QuotaClaim(ObjectLedger& ledger, Lifetime::Watch life, std::string tenant, Bytes bytes)
      : ledger_(&ledger), life_(std::move(life)), tenant_(std::move(tenant)), bytes_(bytes) {}
  QuotaClaim(QuotaClaim&& other) noexcept { *this = std::move(other); }
  QuotaClaim& operator=(QuotaClaim&& other) noexcept {
    if (this == &other) return *this;
    give_back();
    ledger_ = std::exchange(other.ledger_, nullptr);
    life_ = std::move(other.life_);
    tenant_ = std::move(other.tenant_);
    bytes_ = std::exchange(other.bytes_, Bytes(0));
    return *this;
  }
  ~QuotaClaim() { give_back(); }
  Bytes bytes() const { return bytes_; }

 private:
  void give_back() {
    if (ledger_ != nullptr && bytes_ > Bytes(0) && !life_.ended()) ledger_->unclaim(tenant_, bytes_);
  }

  ObjectLedger* ledger_ = nullptr;
  Lifetime::Watch life_;  // of the ledger
  std::string tenant_;
  Bytes bytes_{0};
};

class ObjectContents {
 public:
  using Id = ObjectLedger::Id;  // of bytes that are being written
  using Writer = ObjectLedger::Writer;
  using Done = std::function<void(Status)>;
  using Opened = std::function<void(Result<UniqueFd>)>;

  ObjectContents(boost::asio::io_context& io, ObjectFiles files, ObjectLedger::Limits limits)
      : io_(io), files_(std::move(files)), ledger_(limits), worker_(1) {}
  ~ObjectContents();  // the job that runs is finished, those that wait are not begun

  // ---- new bytes: ask, reserve or write, then keep or cancel
  // Memory for new bytes; `done` when there is room, or why there will be none: the id is then forgotten.
  Id ask(const std::string& tenant, Bytes bytes, Writer writer, Done done);
  void reserve(Id id, Bytes bytes, Opened done);  // a pending file to write
  void written_by_client(Id id) { ledger_.written_by_client(id); }
  // Makes the pending file final: its digest. With `bytes` it is written first.
  using Finished = std::function<void(Result<std::string>)>;
  void finish(Id id, Bytes size, Finished done);
  void write(Id id, std::string bytes, Finished done);
  // One more reference to these bytes; the pending file becomes them, or goes where they are there already. On failure
  // as cancel().
  Status keep(Id id, const ContentId& content, Bytes bytes);
  void cancel(Id id);  // at any time after ask()

  // Errors as ask()'s, which asks for the same bytes once the claim is given back.
  Result<QuotaClaim> claim(const std::string& tenant, Bytes bytes) {
    if (bytes == Bytes(0)) return QuotaClaim();
    if (Status claimed = ledger_.claim(tenant, bytes); !claimed) return fail(claimed.error());
    return QuotaClaim(ledger_, life_.watch(), tenant, bytes);
  }

  // ---- kept bytes
  // Read back first where they are on disk; where there is no room for that, they are read there.
  void open(const ContentId& content, Opened done);
  void release(const ContentId& content);  // one reference less; the last one removes them
  bool in_memory(const ContentId& content) const { return !contents_.at(content).on_disk; }

  // At start: true when the bytes are there, then with one reference. Else `damage` says what is wrong.
  Status adopt(const ContentId& content, Bytes bytes);
  void remove_unknown() const;

  const ObjectFiles& files() const { return files_; }
  const ObjectLedger& ledger() const { return ledger_; }
  std::uint64_t spills() const { return spills_; }
  std::uint64_t reads_back() const { return reads_back_; }
  Id new_id() { return ++last_id_; }

 private:
  struct Content {
    Id id = 0;  // in the ledger
    Bytes bytes{0};
    std::size_t references = 0;
    bool on_disk = false;
    bool moving = false;  // to disk or back: stays until it has arrived, also without references
    std::vector<Opened> readers;
  };

  // Runs `job` on the worker thread, then `then(result)` here.
  template <typename Job, typename Then>
  void work(Job job, Then then) {
    auto guard = boost::asio::make_work_guard(io_);
    Lifetime::Watch life = life_.watch();
    boost::asio::post(worker_, [this, guard, life, job = std::move(job), then = std::move(then)]() mutable {
      boost::asio::post(io_, [life, result = job(), then = std::move(then)]() mutable {
        if (!life.ended()) then(std::move(result));
      });
    });
  }
  void remove_later(std::string path);

  void answer(Id id, Status status);
  void carry_out(ObjectLedger::Actions actions);
  void spill(Id id);
  void on_spilled(const ContentId& content, const Status& status);
  void fetch_back(const ContentId& content);
  void on_back(const ContentId& content, const Status& status);
  void read_in_place(const ContentId& content);
  void answer_readers(const ContentId& content, const Status& status);
  void finish_move(const ContentId& content);
  void destroy(const ContentId& content);

  boost::asio::io_context& io_;
  const ObjectFiles files_;
  ObjectLedger ledger_;
  Id last_id_ = 0;
  std::map<Id, Done> asked_;
  std::map<ContentId, Content> contents_;
  std::map<Id, ContentId> content_by_id_;
  std::uint64_t spills_ = 0, reads_back_ = 0;
  Lifetime life_;
  boost::asio::thread_pool worker_;  // last: its jobs use files_
};

}  // namespace fairlead::store
