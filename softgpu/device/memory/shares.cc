#include "softgpu/device/memory/shares.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "softgpu/device/files.h"
#include "softgpu/device/private_descriptors.h"

namespace softgpu {
namespace {

constexpr std::uint64_t kMagic = 0x3165726168736773;  // "sgshare1"

struct flock byte_lock(std::uint32_t slot) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = slot;
  lock.l_len = 1;
  return lock;
}

// Whether a description other than that of `descriptor` locks the byte.
bool locked_by_another(int descriptor, std::uint32_t slot) {
  struct flock lock = byte_lock(slot);
  return ::fcntl(descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool same_file(int one, int other) {
  struct stat a = {};
  struct stat b = {};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

struct Shares::Table {
  struct Row {
    std::atomic<std::uint32_t> generation;
    std::atomic<std::uint32_t> kind;
    std::atomic<std::uint32_t> memory;
    std::atomic<std::uint32_t> creator;
    std::atomic<std::uint64_t> page_count;
  };
  std::uint64_t magic;
  std::atomic<std::uint32_t> next;  // where to look for a free number: a hint
  Row rows[kMaxShares];
};

Share::Share(ShareName name, ShareContent content, int descriptor)
    : name_(name), content_(content), descriptor_(descriptor) {}

Share::Share(Share&& other) noexcept
    : name_(other.name_), content_(other.content_), descriptor_(std::exchange(other.descriptor_, -1)) {}

Share& Share::operator=(Share&& other) noexcept {
  if (this == &other) return *this;
  close();
  name_ = other.name_;
  content_ = other.content_;
  descriptor_ = std::exchange(other.descriptor_, -1);
  return *this;
}

int Share::duplicate() const {
  return ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
}

void Share::close() {
  if (descriptor_ < 0) return;
  PrivateDescriptors::close(descriptor_);
  descriptor_ = -1;
}

Result<Shares> Shares::open(const Machine& machine) {
  const auto mapping = map_table(machine.path("shares"), kMagic, sizeof(Table));
  if (!mapping) return failure(mapping.error());
  auto* table = static_cast<Table*>(*mapping);
  const std::string locks = machine.path("share_locks");
  const auto query = open_file(locks);
  if (!query) return failure(query.error());
  return Shares(table, *query, locks);
}

std::string Shares::damage() const {
  bool possible = table_->magic == kMagic && table_->next.load() < kMaxShares;
  for (const Table::Row& row : table_->rows) {
    possible &= row.generation.load(std::memory_order_relaxed) <= ShareName::kGenerationMask &&
                row.kind.load(std::memory_order_relaxed) <= static_cast<std::uint32_t>(ShareContent::Kind::kPool);
  }
  return possible ? "" : path_ + ": the table of shared allocations is damaged";
}

Result<Share> Shares::create(const ShareContent& content) const {
  const PrivateDescriptors::NoFork no_fork;
  const auto descriptor = open_file(path_);
  if (!descriptor) return failure(descriptor.error());
  const std::uint32_t first = table_->next.load(std::memory_order_relaxed);
  for (std::uint32_t tried = 0; tried < kMaxShares; ++tried) {
    const std::uint32_t slot = (first + tried) % kMaxShares;
    struct flock lock = byte_lock(slot);
    if (::fcntl(*descriptor, F_OFD_SETLK, &lock) != 0) continue;
    Table::Row& row = table_->rows[slot];
    std::uint32_t generation = (row.generation.load() + 1) & ShareName::kGenerationMask;
    if (generation == 0) generation = 1;
    row.kind.store(static_cast<std::uint32_t>(content.kind));
    row.memory.store(content.memory);
    row.creator.store(content.creator.pack());
    row.page_count.store(content.page_count);
    row.generation.store(generation);
    table_->next.store((slot + 1) % kMaxShares, std::memory_order_relaxed);
    ::lseek(*descriptor, slot, SEEK_SET);
    PrivateDescriptors::add(no_fork, *descriptor);
    return Share({slot, generation}, content, *descriptor);
  }
  ::close(*descriptor);
  return failure("the machine has " + std::to_string(kMaxShares) + " shared allocations, the most it can have");
}

std::optional<Share> Shares::import(int descriptor) const {
  if (!same_file(descriptor, query_)) return std::nullopt;
  const off_t offset = ::lseek(descriptor, 0, SEEK_CUR);
  if (offset < 0 || offset >= static_cast<off_t>(kMaxShares)) return std::nullopt;
  const auto slot = static_cast<std::uint32_t>(offset);
  if (locked_by_another(descriptor, slot) || !locked_by_another(query_, slot)) return std::nullopt;
  const PrivateDescriptors::NoFork no_fork;
  const int own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return std::nullopt;
  PrivateDescriptors::add(no_fork, own);
  return Share({slot, table_->rows[slot].generation.load()}, content_of(slot), own);
}

bool Shares::alive(ShareName name) const {
  return name.slot < kMaxShares && locked_by_another(query_, name.slot) &&
         table_->rows[name.slot].generation.load() == name.generation;
}

Owner Shares::creator(ShareName name) const {
  return name.slot < kMaxShares ? Owner::unpack(table_->rows[name.slot].creator.load()) : Owner{};
}

ShareContent Shares::content_of(std::uint32_t slot) const {
  const Table::Row& row = table_->rows[slot];
  return {static_cast<ShareContent::Kind>(row.kind.load()), row.memory.load(), row.page_count.load(),
          Owner::unpack(row.creator.load())};
}

}  // namespace softgpu
