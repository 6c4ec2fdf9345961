#include "shim/memory/ledger.h"

namespace fairlead::shim::memory {
namespace {

constexpr std::size_t kFirstCapacity = 256;

}  // namespace

// The finaliser of splitmix64: pointers differ in their middle bits, shards and places need the others.
std::uint64_t Ledger::hash(std::uint64_t key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
  key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
  return key ^ (key >> 31);
}

Ledger::Shard& Ledger::shard_of(std::uint64_t key) {
  return shards_[hash(key) >> (64 - kShardBits)];
}

// Where the key is, or the free place where it belongs. REQUIRES: the shard has a free place.
std::size_t Ledger::place_of(const Shard& shard, std::uint64_t key) {
  const std::size_t mask = shard.capacity - 1;
  std::size_t place = hash(key) & mask;
  while (shard.places[place].key != 0 && shard.places[place].key != key) place = (place + 1) & mask;
  return place;
}

bool Ledger::grow(Shard& shard) {
  Shard larger;
  const Guard unshared(larger.mutex);  // nobody else knows it
  larger.capacity = shard.capacity == 0 ? kFirstCapacity : 2 * shard.capacity;
  larger.places = static_cast<Entry*>(map_pages(larger.capacity * sizeof(Entry)));
  if (larger.places == nullptr) return false;
  for (std::size_t i = 0; i < shard.capacity; ++i) {
    if (shard.places[i].key != 0) larger.places[place_of(larger, shard.places[i].key)] = shard.places[i];
  }
  if (shard.places != nullptr) ::munmap(shard.places, shard.capacity * sizeof(Entry));
  shard.places = larger.places;
  shard.capacity = larger.capacity;
  return true;
}

void Ledger::erase(Shard& shard, std::size_t place) {
  const std::size_t mask = shard.capacity - 1;
  std::size_t hole = place;
  for (std::size_t next = (hole + 1) & mask; shard.places[next].key != 0; next = (next + 1) & mask) {
    const std::size_t home = hash(shard.places[next].key) & mask;
    // It may move back to the hole unless its home lies behind the hole.
    if (((next - home) & mask) < ((next - hole) & mask)) continue;
    shard.places[hole] = shard.places[next];
    hole = next;
  }
  shard.places[hole] = Entry();
  --shard.count;
}

bool Ledger::insert(const Entry& entry, Entry* replaced) {
  *replaced = Entry();
  if (entry.key == 0) return false;
  Shard& shard = shard_of(entry.key);
  const Guard guard(shard.mutex);
  if (4 * (shard.count + 1) > 3 * shard.capacity && !grow(shard) && shard.count + 1 >= shard.capacity) return false;
  Entry& place = shard.places[place_of(shard, entry.key)];
  if (place.key == 0) ++shard.count;
  *replaced = place;
  place = entry;
  return true;
}

bool Ledger::find(std::uint64_t key, Entry* entry) {
  Shard& shard = shard_of(key);
  const Guard guard(shard.mutex);
  if (key == 0 || shard.count == 0) return false;
  *entry = shard.places[place_of(shard, key)];
  return entry->key != 0;
}

std::size_t Ledger::remove_all(CUcontext context) {
  std::size_t bytes = 0;
  for (Shard& shard : shards_) {
    const Guard guard(shard.mutex);
    for (std::size_t place = 0; place < shard.capacity;) {
      const Entry& entry = shard.places[place];
      if (entry.key == 0 || entry.context != context) {
        ++place;
        continue;
      }
      bytes += entry.bytes;
      erase(shard, place);  // and another entry may be there now
    }
  }
  return bytes;
}

bool Ledger::remove(std::uint64_t key, Kind kind, Entry* entry) {
  Shard& shard = shard_of(key);
  const Guard guard(shard.mutex);
  if (key == 0 || shard.count == 0) return false;
  const std::size_t place = place_of(shard, key);
  if (shard.places[place].key == 0 || shard.places[place].kind != kind) return false;
  *entry = shard.places[place];
  erase(shard, place);
  return true;
}

}  // namespace fairlead::shim::memory
