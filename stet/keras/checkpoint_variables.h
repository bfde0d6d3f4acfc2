// What of a training goes into checkpoints: Variables in groups, optimizers with their slots, saved values. Not a
// public header.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "stet/core/variable.h"
#include "stet/keras/checkpoint_file.h"
#include "stet/keras/optimizer.h"
#include "stet/keras/saved_state.h"

namespace stet::keras {

/// Variables as another process finds them again: by group, and by their order there.
class CheckpointVariables {
 public:
  void add(const std::string& group, std::string name, const Variable& variable);
  /// With those inside of it.
  void add(const std::string& name, const Optimizer& optimizer, Where where);
  /// Has it been added?
  bool holds(const Variable& variable) const { return place_of_.contains(variable.id()); }
  /// A group without any so far. `may_be_empty`: a checkpoint that holds none of it leaves it as it is.
  void add_group(const std::string& group, bool may_be_empty = false) {
    groups_[group];
    if (may_be_empty) may_be_empty_.insert(group);
  }

  /// Their values now. `all_slots`: what an optimizer keeps of a Variable that was not added is a UserError; otherwise
  /// it is left out.
  void write(CheckpointContents& contents, bool all_slots, const std::string& call, Where where) const;
  /// Gives them the values that the checkpoint has; slots that are not there yet are made. UserError, and nothing is
  /// changed, if it holds other groups, or a group others in number, types, shapes or last names: paths begin with
  /// names that count objects of the process, and may differ. What an optimizer keeps and the checkpoint does not have
  /// is such a difference, too; unless somebody asks for it: then the optimizer forgets it, and it is given there.
  /// Traces that use it do not serve any more.
  void restore(const CheckpointContents& contents, const files::Reading& reading,
               std::vector<Variable>* forgotten = nullptr) const;

 private:
  struct One {
    std::string name;
    Variable variable;
  };
  struct Place {
    std::string group;
    std::size_t number = 0;
  };
  struct Named {
    std::string name;
    Optimizer optimizer;
  };
  std::map<std::string, std::vector<One>> groups_;
  std::set<std::string> may_be_empty_;
  std::map<std::uint64_t, Place> place_of_;  // by id; of one that was added twice, the first
  std::vector<Named> optimizers_;
};

/// Values as JSON; tensors become parts, called `name`/….
files::Json json_of(const SavedState& state, const std::string& name, CheckpointContents& contents);
SavedState saved_state_of(const files::Json& json, const CheckpointContents& contents, const HeadReader& head);

/// As JSON can hold it: bytes that are not UTF-8 as \xNN.
std::string as_utf8(std::string_view name);

}  // namespace stet::keras
