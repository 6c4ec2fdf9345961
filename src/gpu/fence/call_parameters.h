// Parameters of calls, which are variables in .param of the caller's body: of which of them a call may hand over, or a load
// read, bytes that nothing was stored to. As with registers, those are what was left there (definitions.h). A structure's
// padding is such a case in what compilers write.
//
// PTX wants st.param, call and ld.param behind each other, without a label between, so one look at the lines in their order
// is enough; what does not keep to that cannot be judged. Linear in the function's length. Pure. Threads: none of its own.
#pragma once

#include <vector>

#include "gpu/fence/ptx.h"

namespace fairlead::fence {

struct CallParameters {
  std::vector<bool> needs_zeros;       // by Function::variables: to be stored where the variable is declared
  const Item* behind_label = nullptr;  // what cannot be judged: a use of one that was declared before a label
};

CallParameters parameters_read_before_written(const Function& function);

}  // namespace fairlead::fence
