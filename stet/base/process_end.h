// The end of the process, as a library sees it that is used until then.
//
// Our own statics never end (process_end.cpp), but those of other shared libraries do, and what a user's static object
// does in its destructor may come after that.
#pragma once

namespace stet {

/// Has `noticed` called when the process ends: before the statics that anybody has made until now are destroyed. Those
/// made later are destroyed earlier.
void at_process_end(void (*noticed)());

}  // namespace stet
