// Which results may be written over the state that they replace.
//
// A training step reads a weight and yields its next value. Written to fresh memory, every step of training would
// allocate and touch all state twice. Written over the old value, it must not be seen too early: a step that fails
// later has to leave all state as it was, and whoever reads the old value has to have read it. So an update goes in
// place only if the step that makes it can be moved behind all of these.
//
// After lowering, because steps (not nodes) throw, share buffers and read memory; before code is made and sizes are
// known, because neither matters to it.
#pragma once
#include <span>

#include "stet/ir/graph.h"
#include "stet/runtime/program.h"

namespace stet {

/// Fills in Program::in_place and moves steps as that needs; steps keep their order otherwise. An update is in place if
/// the one step K that makes its result cannot throw, reads the old value only at the element that it writes, and
/// putting every other reader of the old value and every step that may throw before K makes no cycle. The largest
/// updates are placed first. A program with late sizes, whose steps are bound while it runs, updates nothing in place.
/// `visits`: counts the steps looked at, the work that grows.
void plan_updates(Program& program, std::span<const Update> updates, std::size_t* visits = nullptr);

/// Walks the steps in their order and throws InternalError unless Program::in_place holds: nobody reads an old value
/// after it was overwritten, and nothing throws from the first overwriting step on.
void verify_updates(const Program& program);

}  // namespace stet
