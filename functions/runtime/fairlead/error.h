// The one exception type of function programs.
//
// The platform's own code returns results instead of throwing. A function is a program of its own, and its handler reads
// best as straight-line code, so the libraries in this folder throw, and run() turns what a handler throws into a
// function error of the Runtime API.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace fairlead {

class Error : public std::runtime_error {
 public:
  // kTerminal: the process cannot serve another request (a GPU context is lost); run() reports the error and returns.
  enum class Scope { kRequest, kTerminal };

  // `type` is what a client sees as errorType, in the form "Runtime.SomethingWrong".
  Error(std::string type, const std::string& message, Scope scope = Scope::kRequest)
      : std::runtime_error(message), type_(std::move(type)), scope_(scope) {}

  const std::string& type() const { return type_; }
  bool terminal() const { return scope_ == Scope::kTerminal; }

 private:
  std::string type_;
  Scope scope_;
};

}  // namespace fairlead
