// Memory that several processes hold: a share is alive while anyone holds a descriptor of it.
//
// A share is a byte of the file `share_locks`, locked through an open file description of its own. The kernel counts the
// descriptors of that description, in whatever process they are (dup, fork, in flight over a socket), and drops the lock
// with the last one, however their processes die. So the lock is the reference count: nothing has to be decremented, and
// there is no instant at which a kill -9 leaks memory or takes it from someone who still holds it.
//
// Example: A creates share (5, generation 9), claims pages in its name and sends the descriptor to B; A is killed; B's
// descriptor still locks byte 5, so the pages stay. B closes it; the byte is free, and the pages belong to nobody.
//
// The descriptor's file offset is the share's number, so a descriptor alone says what it names. It is checked, not
// trusted: the byte must be locked, and by this very description.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "softgpu/device/machine.h"
#include "softgpu/device/owner.h"
#include "softgpu/device/result.h"

namespace softgpu {

inline constexpr unsigned kMaxShares = 4096;

// A share's number and the generation of that number.
struct ShareName {
  static constexpr unsigned kSlotBits = 16;
  static constexpr unsigned kBits = 40;
  static constexpr std::uint32_t kGenerationMask = (1U << 24) - 1;

  std::uint32_t slot = 0;
  std::uint32_t generation = 0;  // 1 to kGenerationMask

  std::uint64_t pack() const { return std::uint64_t{generation} << kSlotBits | slot; }
  static ShareName unpack(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word & ((1U << kSlotBits) - 1)),
            static_cast<std::uint32_t>(word >> kSlotBits & kGenerationMask)};
  }
  bool operator==(const ShareName&) const = default;
};

// What a share is, fixed when it is made.
struct ShareContent {
  enum class Kind : std::uint32_t { kAllocation = 1, kPool = 2 };
  Kind kind = Kind::kAllocation;
  std::uint32_t memory = 0;      // Device::memory_id
  std::uint64_t page_count = 0;  // of an allocation
  Owner creator;
};

// One process's hold on a share: a descriptor, closed with the object (and in a child of fork: PrivateDescriptors).
class Share {
 public:
  Share() = default;
  // Takes a private descriptor over.
  Share(ShareName name, ShareContent content, int descriptor);
  Share(Share&& other) noexcept;
  Share& operator=(Share&& other) noexcept;
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  ~Share() { close(); }

  bool valid() const { return descriptor_ >= 0; }
  ShareName name() const { return name_; }
  const ShareContent& content() const { return content_; }
  // A descriptor for the program, which owns it and may pass it on; -1 when the process has too many.
  int duplicate() const;
  void close();

 private:
  ShareName name_;
  ShareContent content_;
  int descriptor_ = -1;
};

class Shares {
 public:
  // Opens the share table of `machine`, creating it when absent.
  static Result<Shares> open(const Machine& machine);

  // Why the table cannot be right, empty when it can. Rows that are possible and wrong are not seen.
  std::string damage() const;

  // A new share, held. Error: the machine has kMaxShares, or the process too many descriptors. Thread-safe.
  Result<Share> create(const ShareContent& content) const;
  // Another hold on the share that a descriptor names; nothing when it names none. Thread-safe.
  std::optional<Share> import(int descriptor) const;

  // Whether anyone holds the share. Thread-safe; one system call.
  bool alive(ShareName name) const;
  // The process that made the share.
  Owner creator(ShareName name) const;

 private:
  struct Table;
  Shares(Table* table, int query, std::string path) : table_(table), query_(query), path_(std::move(path)) {}
  ShareContent content_of(std::uint32_t slot) const;

  Table* table_;
  int query_;  // holds no lock; never closed
  std::string path_;
};

}  // namespace softgpu
