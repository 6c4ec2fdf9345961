// How a failed invocation is told to those who read of it later: in the words of an edge, which the node does not know.
#pragma once

#include <functional>
#include <string>

#include "model/invocation.h"

namespace fairlead {

struct FailureWords {
  std::function<std::string(Outcome)> document;     // kept with dead letters
  std::function<std::string(const Outcome&)> text;  // for people: why a step of a graph failed. May be empty
};

}  // namespace fairlead
