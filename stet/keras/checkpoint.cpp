#include "stet/keras/checkpoint.h"

#include <sys/stat.h>

#include <limits>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/keras/checkpoint_variables.h"
#include "stet/keras/layer_state.h"
#include "stet/ops/ops.h"

namespace stet::keras {

struct Checkpoint::State {
  CheckpointOptions options;

  CheckpointVariables variables(Where where) const {
    CheckpointVariables out;
    auto add_model = [&](const std::string& group, const Layer& model) {
      if (!model.built())
        throw UserError(error_text(text("Checkpoint: '", model.name(where), "' is not built: it has no weights yet"),
                                   where, "give it a keras::Input, or call it once, before"));
      out.add_group(group);
      const Inventory all = inventory(static_cast<CustomLayer&>(*model.body()));
      for (const Weight& weight : all.weights) out.add(group, weight.path, weight.variable);
      for (const Weight& weight : all.generators) out.add(text(group, "/generators"), weight.path, weight.variable);
    };
    if (options.model.defined()) add_model("model", options.model);
    for (const auto& [name, model] : options.models) add_model(text("models/", name), model);
    for (const auto& [name, metric] : options.metrics) {
      out.add_group(text("metrics/", name));
      for (const Variable& variable : metric.variables()) out.add(text("metrics/", name), variable.name(), variable);
    }
    for (const auto& [name, variable] : options.variables) out.add(text("variables/", name), name, variable);
    if (options.random) out.add("random", "state", random::default_generator().variable());
    if (options.optimizer.defined()) out.add("optimizer", options.optimizer, where);
    for (const auto& [name, optimizer] : options.optimizers) out.add(text("optimizers/", name), optimizer, where);
    return out;
  }
  CheckpointContents contents(const SavedState& notes, Where where) const {
    CheckpointContents out;
    variables(where).write(out, true, "Checkpoint", where);
    out.state["notes"] = json_of(notes, "notes", out);
    return out;
  }
  SavedState restored(const CheckpointContents& contents, const std::string& path, Where where) const {
    const files::Reading reading{"Checkpoint", path, where};
    const HeadReader head(reading);
    SavedState notes = saved_state_of(head.member(contents.state, "notes"), contents, head);
    variables(where).restore(contents, reading);
    return notes;
  }
};

namespace {

constexpr std::size_t all_of_them = std::numeric_limits<std::size_t>::max();

void check_folder(const std::string& folder, Where where) {
  if (folder.empty()) throw UserError(error_text("Checkpoint: the path is empty", where, "name a folder"));
}

template <class Things>
void check_defined(const Things& things, const char* what, Where where) {
  for (const auto& [name, thing] : things) {
    if (!thing.defined())
      throw UserError(
          error_text(text("Checkpoint: ", what, " '", as_utf8(name), "' is undefined"), where, "make it before"));
    if (as_utf8(name) != name)
      throw UserError(
          error_text(text("Checkpoint: the name '", as_utf8(name), "' is not UTF-8"), where, "use letters"));
  }
}

}  // namespace

Checkpoint::Checkpoint(CheckpointOptions options, Where where) {
  check_defined(options.models, "model", where);
  check_defined(options.optimizers, "optimizer", where);
  check_defined(options.metrics, "metric", where);
  check_defined(options.variables, "Variable", where);
  state_ = std::make_shared<const State>(State{std::move(options)});
}

std::string Checkpoint::save(const std::string& folder, const SavedState& notes, Where where) const {
  check_folder(folder, where);
  return CheckpointFolder(folder, "Checkpoint").write(state_->contents(notes, where), all_of_them, where);
}

std::optional<SavedState> Checkpoint::restore(const std::string& folder_or_file, Where where) const {
  check_folder(folder_or_file, where);
  struct stat status;
  if (::stat(folder_or_file.c_str(), &status) == 0 && S_ISREG(status.st_mode))
    return state_->restored(read_checkpoint(folder_or_file, "Checkpoint", where), folder_or_file, where);
  std::optional<CheckpointFolder::Found> found = CheckpointFolder(folder_or_file, "Checkpoint").newest(where);
  if (!found) return std::nullopt;
  return state_->restored(found->contents, found->path, where);
}

// --- the manager

struct CheckpointManager::State {
  State(Checkpoint checkpoint, std::size_t keep, std::string folder)
      : checkpoint(std::move(checkpoint)), keep(keep), folder(std::move(folder), "Checkpoint") {}
  const Checkpoint checkpoint;
  const std::size_t keep;
  Lock guard;  // of what follows
  CheckpointFolder folder;
};

CheckpointManager::CheckpointManager(Checkpoint checkpoint, std::string folder, CheckpointManagerOptions options,
                                     Where where) {
  check_folder(folder, where);
  state_ = std::make_shared<State>(std::move(checkpoint), options.max_to_keep == 0 ? all_of_them : options.max_to_keep,
                                   std::move(folder));
}

std::string CheckpointManager::save(const SavedState& notes, Where where) const {
  const CheckpointContents contents = state_->checkpoint.state_->contents(notes, where);
  std::lock_guard lock(state_->guard);
  return state_->folder.write(contents, state_->keep, where);
}

std::optional<SavedState> CheckpointManager::restore(Where where) const {
  std::optional<CheckpointFolder::Found> found;
  {
    std::lock_guard lock(state_->guard);
    found = state_->folder.newest(where);
  }
  if (!found) return std::nullopt;
  return state_->checkpoint.state_->restored(found->contents, found->path, where);
}

std::vector<std::string> CheckpointManager::checkpoints(Where where) const {
  std::vector<std::string> out;
  for (const std::uint64_t number : state_->folder.numbers(where)) out.push_back(state_->folder.file(number));
  return out;
}

std::optional<std::string> CheckpointManager::latest_checkpoint(Where where) const {
  std::vector<std::string> all = checkpoints(where);
  return all.empty() ? std::nullopt : std::optional(all.back());
}

}  // namespace stet::keras
