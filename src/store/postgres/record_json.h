// A function, or a published version of one, as JSON text for the store.
#pragma once

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

}  // namespace fairlead::postgres
