// A function, or a published version of one, as JSON text for the store.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "model/function.h"

namespace fairlead::postgres {

// Code paths below `state_dir` are written relative to it: each node has its own. kInvalidArgument: a text is not UTF-8.
Result<std::string> encode_record(const FunctionRecord& record, const std::string& state_dir);
// kCorrupt names the function and the field.
Result<FunctionRecord> decode_record(const std::string& name, const std::string& text, const std::string& state_dir);

// What its code is stored by: the last name of its folder. Of an image there is none, its registry has it.
std::string code_digest(const FunctionRecord& record);

// {"4": 0.1}. What cannot be read has no weight.
std::string encode_weights(const std::map<std::uint64_t, double>& weights);
std::map<std::uint64_t, double> decode_weights(const std::string& text);

}  // namespace fairlead::postgres
