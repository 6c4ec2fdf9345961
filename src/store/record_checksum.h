// A checksum of each accepted event and dead letter, kept with it: a bit that flips on disk is found when the record is read.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string_view>

#include "store/store.h"

namespace fairlead::store {

std::int64_t checksum_of(const QueuedEvent& event);  // all that is stored
std::int64_t checksum_of(const DeadLetter& letter);
std::int64_t checksum_of(std::string_view bytes);

}  // namespace fairlead::store
