#include "base/byte_budget.h"

#include "base/check.h"

namespace fairlead {

std::size_t ByteBudget::held_by(const std::string& holder) const {
  const auto found = holders_.find(holder);
  return found == holders_.end() ? 0 : found->second;
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
  if (bytes > bytes_) {
    const std::size_t used_then = budget_->used_ + (bytes - bytes_);
    const std::size_t held_then = budget_->held_by(holder_) + (bytes - bytes_);
    if (used_then > budget_->total_ || held_then > budget_->total_ - used_then) return false;
  }
  hold(bytes);
  return true;
}

void ByteBudget::Lease::hold(std::size_t bytes) {
  const auto place = budget_->holders_.try_emplace(holder_, 0).first;
  place->second += bytes - bytes_;  // modulo: less is a subtraction
  budget_->used_ += bytes - bytes_;
  bytes_ = bytes;
  if (place->second == 0) budget_->holders_.erase(place);
}

void ByteBudget::Lease::release() {
  if (budget_ == nullptr) return;
  if (bytes_ > 0) hold(0);
  budget_ = nullptr;
}

}  // namespace fairlead
