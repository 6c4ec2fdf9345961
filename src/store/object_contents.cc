#include "store/object_contents.h"

#include <fcntl.h>

#include "base/check.h"
#include "base/log.h"

namespace fairlead::store {

ObjectContents::~ObjectContents() {
  life_.end();
  worker_.stop();
  worker_.join();
}

ObjectContents::Id ObjectContents::ask(const std::string& tenant, Bytes bytes, Writer writer, Done done) {
  const Id id = new_id();
  asked_[id] = std::move(done);
  ObjectLedger::Actions actions;
  if (Status asked = ledger_.request(id, tenant, bytes, writer, actions); !asked) answer(id, std::move(asked));
  carry_out(std::move(actions));
  return id;
}

void ObjectContents::reserve(Id id, Bytes bytes, Opened done) {
  work([this, id, bytes] { return files_.reserve(id, bytes); }, std::move(done));
}

void ObjectContents::finish(Id id, Bytes size, Finished done) {
  work([this, id, size] { return files_.finish(id, size); }, std::move(done));
}

void ObjectContents::write(Id id, std::string bytes, Finished done) {
  const auto job = [this, id, bytes = std::move(bytes)]() -> Result<std::string> {
    const Bytes size(static_cast<std::int64_t>(bytes.size()));
    {
      Result<UniqueFd> fd = files_.reserve(id, size);
      if (!fd) return fail(fd.error());
      if (Status written = files_.write(id, *fd, bytes); !written) return fail(written.error());
    }
    return files_.finish(id, size);
  };
  work(job, std::move(done));
}

Status ObjectContents::keep(Id id, const ContentId& content, Bytes bytes) {
  if (const auto known = contents_.find(content); known != contents_.end()) {
    ++known->second.references;
    cancel(id);
    return {};
  }
  if (Status published = files_.publish(id, content); !published) {
    cancel(id);
    return published;
  }
  contents_[content] = {.id = id, .bytes = bytes, .references = 1};
  content_by_id_[id] = content;
  ObjectLedger::Actions actions;
  ledger_.settle(id, actions);
  carry_out(std::move(actions));
  return {};
}

void ObjectContents::cancel(Id id) {
  if (!ledger_.knows(id)) return;  // refused; its answer is on the way
  if (asked_.contains(id)) answer(id, fail(Errc::kNotFound, "was deleted meanwhile"));
  remove_later(files_.put_aside(files_.pending_path(id), id));
  ObjectLedger::Actions actions;
  ledger_.drop(id, actions);
  carry_out(std::move(actions));
}

void ObjectContents::open(const ContentId& content, Opened done) {
  Content& found = contents_.at(content);
  ledger_.touch(found.id);
  if (!found.on_disk) return done(files_.open_content(content));
  found.readers.push_back(std::move(done));
  if (!found.moving) fetch_back(content);
}

void ObjectContents::release(const ContentId& content) {
  Content& found = contents_.at(content);
  if (--found.references == 0 && !found.moving) destroy(content);
}

Status ObjectContents::adopt(const ContentId& content, Bytes bytes) {
  if (const auto known = contents_.find(content); known != contents_.end()) {
    ++known->second.references;
    return {};
  }
  auto in_memory = ObjectFiles::size_of(files_.content_path(content));
  if (in_memory && files_.is_of_another_boot()) {
    if (Status whole = files_.check_content(content, bytes); !whole) {
      spdlog::error("{}; the machine started anew, and what was not on disk is lost", whole.error().message);
      in_memory.reset();
    }
  }
  const auto on_disk = ObjectFiles::size_of(files_.spilled_path(content));
  if (in_memory != bytes && on_disk != bytes) {
    const auto found = [](std::optional<Bytes> size) {
      return size ? fmt::format("has {} bytes", size->count()) : std::string("is missing");
    };
    return fail(Errc::kCorrupt, "{} bytes were sealed; {} {}, {} {}", bytes.count(), files_.content_path(content),
                found(in_memory), files_.spilled_path(content), found(on_disk));
  }
  const Id id = new_id();
  const bool is_on_disk = in_memory != bytes;
  contents_[content] = {.id = id, .bytes = bytes, .references = 1, .on_disk = is_on_disk};
  content_by_id_[id] = content;
  ObjectLedger::Actions actions;
  const auto place = is_on_disk ? ObjectLedger::Place::kDisk : ObjectLedger::Place::kMemory;
  ledger_.adopt(id, content.tenant, bytes, place, actions);
  carry_out(std::move(actions));
  return {};
}

void ObjectContents::remove_unknown() const {
  std::set<std::string> used;
  for (const auto& [id, content] : contents_) {
    used.insert(content.on_disk ? files_.spilled_path(id) : files_.content_path(id));
    if (content.moving) used.insert({files_.spilled_path(id), files_.spilled_path(id) + ".partial"});
  }
  files_.remove_all_but(used);
  files_.note_boot();
}

void ObjectContents::remove_later(std::string path) {
  work(
      [this, path = std::move(path)] {
        files_.remove_file(path);
        return 0;
      },
      [](int) {});
}

void ObjectContents::answer(Id id, Status status) {
  const auto it = asked_.find(id);
  FL_CHECK(it != asked_.end(), "nobody asked for {}", id);
  boost::asio::post(io_, life_.guarded([done = std::move(it->second), status] { done(status); }));
  asked_.erase(it);
}

void ObjectContents::carry_out(ObjectLedger::Actions actions) {
  for (ObjectLedger::Action& action : actions) {
    if (auto* grant = std::get_if<ObjectLedger::Grant>(&action)) answer(grant->id, {});
    if (auto* refuse = std::get_if<ObjectLedger::Refuse>(&action)) answer(refuse->id, fail(std::move(refuse->why)));
    if (auto* victim = std::get_if<ObjectLedger::Spill>(&action)) spill(victim->id);
  }
}

void ObjectContents::spill(Id id) {
  const ContentId& content = content_by_id_.at(id);
  contents_.at(content).moving = true;
  work([this, content] { return files_.spill(content); },
       [this, content](const Status& status) { on_spilled(content, status); });
}

void ObjectContents::on_spilled(const ContentId& content, const Status& status) {
  Content& found = contents_.at(content);
  ObjectLedger::Actions actions;
  if (status) {
    found.on_disk = true;
    ++spills_;
    remove_later(files_.put_aside(files_.content_path(content), found.id));
    ledger_.spilled(found.id, actions);
  } else {
    ledger_.spill_failed(found.id, status.error(), actions);
  }
  finish_move(content);
  carry_out(std::move(actions));
}

void ObjectContents::fetch_back(const ContentId& content) {
  Content& found = contents_.at(content);
  const Id id = found.id;
  found.moving = true;
  asked_[id] = [this, content, id](const Status& granted) {
    if (!granted) return read_in_place(content);
    work([this, content, id, bytes = contents_.at(content).bytes] { return files_.read_back(id, content, bytes); },
         [this, content, id](Status status) {
           if (status) status = files_.publish(id, content);
           if (!status) remove_later(files_.pending_path(id));
           ObjectLedger::Actions actions;
           status ? ledger_.settle(id, actions) : ledger_.back_failed(id, actions);
           on_back(content, status);
           carry_out(std::move(actions));
         });
  };
  ObjectLedger::Actions actions;
  ledger_.request_back(id, actions);
  carry_out(std::move(actions));
}

// Memory and disk are full, so that nothing can change places: the bytes are read where they are.
void ObjectContents::read_in_place(const ContentId& content) {
  work([this, content, bytes = contents_.at(content).bytes] { return files_.check_spilled(content, bytes); },
       [this, content](const Status& status) {
         answer_readers(content, status);
         finish_move(content);
       });
}

void ObjectContents::answer_readers(const ContentId& content, const Status& status) {
  Content& found = contents_.at(content);
  for (const Opened& reader : std::exchange(found.readers, {})) {
    if (status)
      reader(found.on_disk ? files_.open_spilled(content) : files_.open_content(content));
    else
      reader(fail(status.error()));
  }
}

void ObjectContents::on_back(const ContentId& content, const Status& status) {
  Content& found = contents_.at(content);
  if (status) {
    found.on_disk = false;
    ++reads_back_;
    remove_later(files_.spilled_path(content));
  }
  answer_readers(content, status);
  finish_move(content);
}

void ObjectContents::finish_move(const ContentId& content) {
  Content& found = contents_.at(content);
  found.moving = false;
  if (found.references == 0) destroy(content);
}

void ObjectContents::destroy(const ContentId& content) {
  const Content& found = contents_.at(content);
  const Id id = found.id;
  remove_later(found.on_disk ? files_.spilled_path(content) : files_.put_aside(files_.content_path(content), id));
  content_by_id_.erase(id);
  contents_.erase(content);
  ObjectLedger::Actions actions;
  ledger_.drop(id, actions);
  carry_out(std::move(actions));
}

}  // namespace fairlead::store
