// Must not compile: a pass that compares sizes by accident would record a fact, or miss one. Below core/ there is no
// ==.
#include "stet/base/dim_inside.h"
#include "stet/base/shape.h"
#include "stet/ir/graph.h"

#ifdef COMPARE
bool compared(const stet::Dim& a, const stet::Dim& b) { return a == b; }
#endif
bool asked(const stet::Dim& a, const stet::Dim& b) { return identical(a, b); }
