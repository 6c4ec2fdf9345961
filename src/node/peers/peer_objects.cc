#include "node/peers/peer_objects.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "node/peers/fields.h"
#include "node/peers/peer_messages.h"
#include "store/object_part.h"

namespace fairlead {
namespace {

constexpr std::int64_t kMostLeftMs = std::int64_t{1} << 50;  // of a lifetime
constexpr const char* kTarget = "/fairlead/v1/peers/object";

// What is asked: about an object, as it is or once it can be read; for a part of it; to delete it.
enum class Wish : char { kInfo = 'i', kOpen = 'o', kRead = 'r', kRemove = 'd' };

FieldWriter question(Wish wish, const ObjectName& name) {
  FieldWriter out;
  out.text('w', std::string(1, static_cast<char>(wish))).text('t', name.tenant).text('k', name.key);
  return out;
}

std::string write_info(const ObjectInfo& info, std::int64_t now_ms) {
  FieldWriter out;
  out.number('b', info.bytes.count()).number('s', static_cast<int>(info.state)).text('c', info.content);
  out.number('m', info.created_ms).number('u', info.last_used_ms);
  if (info.expires_ms) out.number('l', *info.expires_ms - now_ms);  // what is left: nodes' clocks may differ
  return out.take();
}

Result<ObjectInfo> read_info(const ObjectName& name, std::string_view text, std::string node) {
  const auto fields = Fields::parse(text);
  if (!fields) return fail(fields.error());
  const auto bytes = fields->number<std::int64_t>('b', -1), made = fields->number<std::int64_t>('m', 0),
             used = fields->number<std::int64_t>('u', 0), left = fields->number<std::int64_t>('l', 0);
  const auto state = fields->number<int>('s', -1);
  for (const auto* number : {&bytes, &made, &used, &left}) {
    if (!*number) return fail(number->error());
  }
  if (!state) return fail(state.error());
  if (*bytes < 0 || *state < 0 || *state > static_cast<int>(ObjectState::kFailed)) {
    return fail(Errc::kCorrupt, "node '{}' says nothing of use about object '{}'", node, name.key);
  }
  ObjectInfo info{.name = name,
                  .bytes = Bytes(*bytes),
                  .state = static_cast<ObjectState>(*state),
                  .content = std::string(fields->text('c')),
                  .created_ms = *made,
                  .last_used_ms = *used};
  if (fields->has('l')) info.expires_ms = wall_clock_ms() + std::clamp(*left, -kMostLeftMs, kMostLeftMs);
  info.node = std::move(node);
  return info;
}

// How long a copy stays that is made now. Not above 0: the object is over.
Duration lifetime_of(const ObjectInfo& info, std::int64_t now_ms) {
  if (!info.expires_ms) return kCopyLifetime;
  return std::min<Duration>(kCopyLifetime, std::chrono::milliseconds(*info.expires_ms - now_ms));
}

Error nobody_has(const ObjectName& name, std::size_t answered, const std::vector<std::string>& silent) {
  std::string text =
      fmt::format("there is no object '{}' of tenant '{}' on this node nor on the {} others that answered", name.key,
                  name.tenant, answered);
  if (!silent.empty()) text += fmt::format("; {} did not answer", fmt::join(silent, ", "));
  return {silent.empty() ? Errc::kNotFound : Errc::kUnavailable, std::move(text)};
}

Status write_all(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail(errno_error(errno, "a copy of an object cannot be written"));
    bytes.remove_prefix(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

void refuse(net::HttpExchange exchange, const Error& error) {
  exchange.respond({.status = error.code == Errc::kNotFound ? 404U : 503U, .body = write_error(error)});
}

}  // namespace

// One question to all. The first that has the object whole is believed; one that has it half written, where nobody has it whole.
struct PeerObjects::Search {
  ObjectName name;
  ObjectStore::Callback<ObjectInfo> done;  // empty: it is answered
  bool takes_all = false;                  // the answer is for when all have answered
  std::size_t left = 0, answered = 0;
  std::optional<ObjectInfo> found;
  std::vector<std::string> silent;
};

struct PeerObjects::Copy {
  ObjectName name;
  Duration patience;
  std::function<void(Status)> done;
  NodeId from{};
  ObjectInfo info;
  UniqueFd memory;
  std::uint64_t serial = 0;  // of what is written here
  std::uint64_t offset = 0;
  bool is_second = false;  // another node is asked, as one has ended
};

PeerObjects::PeerObjects(boost::asio::io_context& io, Peers& peers, ClusterObjectStore& store)
    : io_(io), peers_(peers), store_(store) {
  store_.set_elsewhere(this);
}

PeerObjects::~PeerObjects() {
  store_.set_elsewhere(nullptr);
}

void PeerObjects::ask(NodeId node, std::string head, Duration patience, std::function<void(Result<std::string>)> done) {
  PeerLink* const link = peers_.link(node, PeerUse::kObjects);
  if (link == nullptr) return done(fail(Errc::kUnavailable, "node '{}' has no address here", peers_.view().name(node)));
  link->send({.target = kTarget, .head = std::move(head), .body = {}, .patience = patience},
             [done = std::move(done)](Result<net::ClientResponse> answer) {
               if (!answer) return done(fail(Errc::kUnavailable, "{}", answer.error().message));
               if (answer->status != 200) return done(fail(read_error(answer->body)));
               done(std::move(answer->body));
             });
}

// ---- who has it

void PeerObjects::ask_all(const SearchPtr& search, std::string head) {
  const std::vector<NodeId> others = peers_.others(PeerLife::kAlive);
  search->left = others.size() + 1;  // and this loop
  for (const NodeId node : peers_.others(PeerLife::kSuspect)) search->silent.emplace_back(peers_.view().name(node));
  const auto one_less = [search] {
    if (--search->left > 0 || !search->done) return;
    const auto done = std::exchange(search->done, nullptr);
    search->found ? done(*std::move(search->found))
                  : done(fail(nobody_has(search->name, search->answered, search->silent)));
  };
  for (const NodeId node : others) {
    std::string name(peers_.view().name(node));
    ask(node, head, kFindPatience, [search, one_less, name = std::move(name)](Result<std::string> text) {
      auto info = text ? read_info(search->name, *text, name) : Result<ObjectInfo>(fail(std::move(text.error())));
      if (info || info.error().code == Errc::kNotFound) {
        ++search->answered;
      } else {
        search->silent.push_back(name);
      }
      // One that is being written counts where nobody has it whole.
      const bool is_better = info && (!search->found || search->found->state == ObjectState::kPending);
      if (is_better) search->found = *std::move(info);
      if (search->found && search->found->state != ObjectState::kPending && search->done && !search->takes_all) {
        std::exchange(search->done, nullptr)(*search->found);
      }
      one_less();
    });
  }
  one_less();
}

void PeerObjects::in_turn(Turns& turns, const std::string& tenant, std::function<void()> work,
                          const std::function<void(Error)>& refused) {
  if (turns.begin(tenant, [this, work = std::move(work)] { boost::asio::post(io_, life_.guarded(work)); })) return;
  boost::asio::post(io_, life_.guarded([refused, tenant] {
    refused({Errc::kResourceExhausted,
             fmt::format("{} objects of tenant '{}' are being looked for at other nodes; no more are: try again later",
                         kMostWaiting, tenant)});
  }));
}

void PeerObjects::find(const ObjectName& name, ObjectStore::Callback<ObjectInfo> done) {
  const auto search = std::make_shared<Search>();
  search->name = name;
  search->done = [this, tenant = name.tenant, done](Result<ObjectInfo> found) {
    questions_.end(tenant);
    done(std::move(found));
  };
  in_turn(
      questions_, name.tenant, [this, search] { ask_all(search, question(Wish::kInfo, search->name).take()); },
      [done](Error error) { done(fail(std::move(error))); });
}

void PeerObjects::remove(const ObjectName& name, std::function<void(Status)> done) {
  const auto search = std::make_shared<Search>();
  search->name = name;
  search->takes_all = true;
  search->done = [this, asked = std::weak_ptr(search), name, done](const Result<ObjectInfo>& found) {
    questions_.end(name.tenant);
    if (const auto all = asked.lock(); all && !all->silent.empty()) {
      return done(fail(Errc::kUnavailable,
                       "object '{}' is not deleted at {}, which did not answer, but at all others: delete it again",
                       name.key, fmt::join(all->silent, ", ")));
    }
    done(found ? Status() : Status(fail(found.error())));
  };
  in_turn(
      questions_, name.tenant, [this, search] { ask_all(search, question(Wish::kRemove, search->name).take()); },
      [done](Error error) { done(fail(std::move(error))); });
}

// ---- a copy

void PeerObjects::fetch(const ObjectName& name, Duration patience, std::function<void(Status)> done) {
  const auto copy = std::make_shared<Copy>();
  copy->name = name;
  copy->patience = patience;
  copy->done = std::move(done);
  in_turn(
      copies_, name.tenant, [this, copy] { begin(copy); }, [copy](Error error) { copy->done(fail(std::move(error))); });
}

void PeerObjects::begin(const CopyPtr& copy) {
  const auto search = std::make_shared<Search>();
  search->name = copy->name;
  search->done = [this, copy](const Result<ObjectInfo>& found) {
    if (!found && copy->is_second) {  // it was there a moment ago
      return end(copy, fail(Errc::kUnavailable, "the copy of object '{}' has ended in the middle, and: {}",
                            copy->name.key, found.error().message));
    }
    if (!found) return end(copy, fail(found.error()));
    const auto node = peers_.view().find(found->node);
    if (!node) return end(copy, fail(Errc::kUnavailable, "node '{}' is gone", found->node));
    copy->from = *node;
    open_there(copy);
  };
  ask_all(search, question(Wish::kInfo, copy->name).take());
}

// It may be pending there, on a device, or on a disk.
void PeerObjects::open_there(const CopyPtr& copy) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(copy->patience).count();
  ask(copy->from, question(Wish::kOpen, copy->name).number('p', ms).take(), copy->patience + kReadPatience,
      [this, copy](Result<std::string> text) {
        if (!text) return lost(copy, text.error());
        const auto info = read_info(copy->name, *text, std::string(peers_.view().name(copy->from)));
        if (!info) return lost(copy, info.error());
        write_here(copy, *info);
      });
}

// Whether what this copy writes is still what has its name here: it may have been deleted, and another one be written, since.
bool PeerObjects::is_still_here(const Copy& copy) const {
  const auto info = store_.here().info(copy.name);
  return info && info->serial == copy.serial;
}

void PeerObjects::write_here(const CopyPtr& copy, const ObjectInfo& info) {
  if (copy->memory.get() >= 0) {  // by a node that has ended: another one goes on with it
    if (info.content != copy->info.content || info.bytes != copy->info.bytes) {
      return end(copy, fail(Errc::kUnavailable, "object '{}' is another one on node '{}'", copy->name.key, info.node));
    }
    return next_part(copy);
  }
  const Duration lifetime = lifetime_of(info, wall_clock_ms());
  if (lifetime <= Duration(0)) return end(copy, fail(Errc::kNotFound, "object '{}' is over", copy->name.key));
  copy->info = info;
  store_.here().create(copy->name, info.bytes, lifetime, life_.guarded([this, copy](Result<UniqueFd> memory) {
    if (!memory) {
      // Somebody writes one of this name here, meanwhile.
      const bool is_here = memory.error().code == Errc::kAlreadyExists;
      return end(copy, is_here ? Status() : Status(fail(memory.error())));
    }
    copy->memory = *std::move(memory);
    if (const auto here = store_.here().info(copy->name)) copy->serial = here->serial;
    next_part(copy);
  }));
}

void PeerObjects::next_part(const CopyPtr& copy) {
  const auto whole = static_cast<std::uint64_t>(copy->info.bytes.count());
  if (copy->offset == whole) return seal(copy);
  const std::uint64_t bytes = std::min<std::uint64_t>(kPartBytes, whole - copy->offset);
  ask(copy->from, question(Wish::kRead, copy->name).number('o', copy->offset).number('n', bytes).take(), kReadPatience,
      [this, copy, bytes](Result<std::string> part) {
        if (part && part->size() != bytes) {
          part = fail(Errc::kCorrupt, "{} bytes came of the {} that were asked for", part->size(), bytes);
        }
        take_part(copy, std::move(part));
      });
}

void PeerObjects::take_part(const CopyPtr& copy, Result<std::string> part) {
  if (!part) return lost(copy, part.error());
  if (Status written = write_all(copy->memory.get(), *part, copy->offset); !written) return end(copy, written);
  copy->offset += part->size();
  counters_.bytes += part->size();
  next_part(copy);
}

void PeerObjects::seal(const CopyPtr& copy) {
  if (!is_still_here(*copy)) return end(copy, fail(Errc::kNotFound, "object '{}' was deleted", copy->name.key));
  copy->memory = UniqueFd();
  store_.here().seal(copy->name, life_.guarded([this, copy](const Result<ObjectInfo>& sealed) {
    if (!sealed) return end(copy, fail(sealed.error()));
    if (sealed->content != copy->info.content) {
      if (is_still_here(*copy)) (void)store_.here().remove(copy->name).has_value();
      return end(copy, fail(Errc::kCorrupt, "object '{}' came from node '{}' as another one", copy->name.key,
                            peers_.view().name(copy->from)));
    }
    ++counters_.copies;
    end(copy, {});
  }));
}

// Where another node has it too, that one goes on where the first one has ended.
void PeerObjects::lost(const CopyPtr& copy, const Error& error) {
  const std::string from(peers_.view().name(copy->from));
  if (error.code == Errc::kDeadlineExceeded) return end(copy, fail(error));  // it is being written there
  spdlog::warn("peers: object '{}' of tenant '{}' does not come from '{}': {}", copy->name.key, copy->name.tenant, from,
               error.message);
  if (std::exchange(copy->is_second, true)) {
    return end(copy,
               fail(error.code, "object '{}' does not come from node '{}': {}", copy->name.key, from, error.message));
  }
  begin(copy);
}

void PeerObjects::end(const CopyPtr& copy, const Status& status) {
  if (!status) ++counters_.failed;
  if (!status && copy->memory.get() >= 0 && is_still_here(*copy)) {
    store_.here().abandon(copy->name, status.error());
  }
  copies_.end(copy->name.tenant);
  copy->done(status);
}

// ---- what others ask for

void PeerObjects::serve(net::HttpExchange exchange, std::string_view head) {
  const auto fields = Fields::parse(head);
  if (!fields) return refuse(std::move(exchange), fields.error());
  const ObjectName name{std::string(fields->text('t')), std::string(fields->text('k'))};
  const std::string_view letter = fields->text('w');
  const auto wish = letter.size() == 1 ? static_cast<Wish>(letter[0]) : Wish{};
  ObjectStore& here = store_.here();
  const auto info = here.info(name);
  if (!info || info->state == ObjectState::kFailed) {
    return refuse(std::move(exchange), {Errc::kNotFound, fmt::format("there is no object '{}' here", name.key)});
  }
  if (wish == Wish::kInfo) return exchange.respond({.status = 200, .body = write_info(*info, wall_clock_ms())});
  if (wish == Wish::kRemove) {
    if (Status removed = here.remove(name); !removed) return refuse(std::move(exchange), removed.error());
    return exchange.respond({.status = 200, .body = write_info(*info, wall_clock_ms())});
  }
  const auto offset = fields->number<std::uint64_t>('o', 0), bytes = fields->number<std::uint64_t>('n', 0);
  const auto patience = fields->number<std::int64_t>('p', 0);
  if (!offset || !bytes || !patience || *bytes > kPartBytes || (wish != Wish::kOpen && wish != Wish::kRead)) {
    return refuse(std::move(exchange), {Errc::kInvalidArgument, "this is no question about an object"});
  }
  const auto held = std::make_shared<net::HttpExchange>(std::move(exchange));  // callbacks are copied
  here.open_object(
      name, std::chrono::milliseconds(std::clamp<std::int64_t>(*patience, 0, 900'000)),
      [held, reads = wish == Wish::kRead, offset = *offset, bytes = *bytes](const Result<OpenObject>& object) {
        if (!object) return refuse(std::move(*held), object.error());
        if (!reads) return held->respond({.status = 200, .body = write_info(object->info, wall_clock_ms())});
        auto part = read_part(*object, offset, bytes);
        if (!part) return refuse(std::move(*held), part.error());
        held->respond({.status = 200, .body = *std::move(part)});
      });
}

}  // namespace fairlead
