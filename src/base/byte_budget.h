// A number of bytes that many hold parts of, such as the requests that a node has in memory. Nobody may hold more than is left
// free, so that whoever comes later finds room too, and the sum stays below the total.
//
// Example, of 1,000 bytes: a flooder alone may hold 500. Somebody else may then hold 250 beside, a third 125. With k who take all
// that they may, the next one gets 1,000 / 2^(k+1) at once, and 1,000 / (k+2) in the end, since what the first ones give back they
// get again only up to what is free (dynamic thresholds, as switches share their buffers; Choudhury and Hahne, 1998, alpha = 1).
//
// Not thread-safe. Leases must not outlive their budget.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace fairlead {

class ByteBudget {
 public:
  class Lease;

  explicit ByteBudget(std::size_t total) : total_(total) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  std::size_t total() const { return total_; }
  std::size_t used() const { return used_; }
  bool is_full() const { return used_ >= total_; }
  std::size_t held_by(const std::string& holder) const;
  std::size_t holders() const { return holders_.size(); }  // who hold something

  // False: nobody may hold so much more now; nothing has changed.
  bool try_add(const std::string& holder, std::size_t bytes);
  void add(const std::string& holder, std::size_t bytes);       // for what is there already: may go beyond the total
  void subtract(const std::string& holder, std::size_t bytes);  // REQUIRES: it holds them

 private:
  using Holders = std::map<std::string, std::size_t>;  // bytes; nodes do not move

  const std::size_t total_;
  std::size_t used_ = 0;
  Holders holders_;
};

// Bytes that somebody holds, until it is gone. Empty at first: then it costs nothing.
class ByteBudget::Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)),
        holder_(std::move(other.holder_)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { release(); }

  explicit operator bool() const { return budget_ != nullptr; }
  std::size_t bytes() const { return bytes_; }
  std::size_t held() const { return budget_ == nullptr ? 0 : budget_->held_by(holder_); }  // by its holder, in all

  // Names budget and holder. REQUIRES: it is empty.
  void open(ByteBudget& budget, std::string holder);
  // False: nobody may hold so much now; nothing has changed. REQUIRES: open(). Less than before is always possible.
  bool try_hold(std::size_t bytes);
  // For what is there already, such as an answer. May go beyond the total. REQUIRES: open().
  void hold(std::size_t bytes);
  void release();

 private:
  ByteBudget* budget_ = nullptr;
  std::string holder_;
  std::size_t bytes_ = 0;
};

}  // namespace fairlead
