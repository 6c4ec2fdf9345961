#include "base/byte_budget.h"

#include "base/check.h"

namespace fairlead {

std::size_t ByteBudget::held_by(const std::string& holder) const {
  const auto found = holders_.find(holder);
  return found == holders_.end() ? 0 : found->second;
}

bool ByteBudget::try_add(const std::string& holder, std::size_t bytes) {
  const std::size_t used_then = used_ + bytes;
  const std::size_t held_then = held_by(holder) + bytes;
  if (used_then > total_ || held_then > total_ - used_then) return false;
  add(holder, bytes);
  return true;
}

void ByteBudget::add(const std::string& holder, std::size_t bytes) {
  if (bytes == 0) return;
  holders_[holder] += bytes;
  used_ += bytes;
}

void ByteBudget::subtract(const std::string& holder, std::size_t bytes) {
  if (bytes == 0) return;
  const auto place = holders_.find(holder);
  FL_CHECK(place != holders_.end() && place->second >= bytes, "'{}' gives back {} bytes that it does not hold", holder,
           bytes);
  place->second -= bytes;
  used_ -= bytes;
  if (place->second == 0) holders_.erase(place);
}

ByteBudget::Lease& ByteBudget::Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  release();
  budget_ = std::exchange(other.budget_, nullptr);
  holder_ = std::move(other.holder_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void ByteBudget::Lease::open(ByteBudget& budget, std::string holder) {
  FL_CHECK(budget_ == nullptr, "a lease of {} bytes is opened again", bytes_);
  budget_ = &budget;
  holder_ = std::move(holder);
}

bool ByteBudget::Lease::try_hold(std::size_t bytes) {
  if (bytes <= bytes_) {
    hold(bytes);
    return true;
  }
  if (!budget_->try_add(holder_, bytes - bytes_)) return false;
  bytes_ = bytes;
  return true;
}

void ByteBudget::Lease::hold(std::size_t bytes) {
  if (bytes > bytes_) budget_->add(holder_, bytes - bytes_);
  if (bytes < bytes_) budget_->subtract(holder_, bytes_ - bytes);
  bytes_ = bytes;
}

void ByteBudget::Lease::release() {
  if (budget_ == nullptr) return;
  if (bytes_ > 0) hold(0);
  budget_ = nullptr;
}

}  // namespace fairlead
