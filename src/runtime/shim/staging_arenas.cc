#include "runtime/shim/staging_arenas.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "runtime/shim/shared_page.h"

namespace fairlead {
namespace {

off_t offset_of(std::uint64_t bytes) {
  return static_cast<off_t>(bytes);
}

bool drop_pages(int memory, std::uint64_t offset, std::uint64_t bytes) {
  return ::fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_of(offset), offset_of(bytes)) == 0;
}

}  // namespace

Result<int> StagingArenas::open(Process process) {
  FL_CHECK(!memory_.contains(process), "process {} has an arena", process);
  Result<UniqueFd> memory = make_sealed_memory("fairlead-staging", arena_bytes());
  if (!memory) return fail(memory.error());
  return memory_.emplace(process, std::make_shared<UniqueFd>(std::move(*memory))).first->second->get();
}

void StagingArenas::request(Process process, std::uint64_t bytes,
                            std::function<void(std::optional<std::uint64_t>)> done) {
  const auto own = memory_.find(process);
  if (own == memory_.end() || bytes > arena_bytes()) return done(std::nullopt);
  const std::optional<StagingBudget::Grant> grant = budget_.allocate(process, bytes);
  if (!grant) return done(std::nullopt);
  if (!grant->fresh) return done(grant->range.offset);

  std::vector<std::pair<std::shared_ptr<UniqueFd>, StagingBudget::Range>> dropped;
  for (const StagingBudget::Range& range : grant->dropped) dropped.emplace_back(memory_.at(range.process), range);
  auto job = [memory = own->second, range = grant->range, dropped = std::move(dropped)] {
    for (const auto& [from, lost] : dropped) drop_pages(from->get(), lost.offset, lost.bytes);
    return ::fallocate(memory->get(), FALLOC_FL_KEEP_SIZE, offset_of(range.offset), offset_of(range.bytes)) == 0;
  };
  background_(std::move(job), [this, life = life_.watch(), range = grant->range, done = std::move(done)](bool made) {
    if (life.ended() || !memory_.contains(range.process)) return;
    if (made) return done(range.offset);
    budget_.give_back(range.process, range.offset, range.bytes);
    if (!std::exchange(complained_, true)) {
      spdlog::warn("the machine has no {:.0f} MiB for swapped device memory: lower --host-memory, now {:.0f} MiB",
                   Bytes(offset_of(range.bytes)).mib(), budget_.budget().mib());
    }
    done(std::nullopt);
  });
}

bool StagingArenas::give_back(Process process, std::uint64_t offset, std::uint64_t bytes) {
  return budget_.give_back(process, offset, bytes);
}

void StagingArenas::remove(Process process) {
  const auto node = memory_.extract(process);
  if (node.empty()) return;
  budget_.remove(process);
  background_(
      [memory = std::move(node.mapped()), bytes = arena_bytes()] { return drop_pages(memory->get(), 0, bytes); },
      [](bool) {});
}

}  // namespace fairlead
