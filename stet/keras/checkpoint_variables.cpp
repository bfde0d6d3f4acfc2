#include "stet/keras/checkpoint_variables.h"

#include <set>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/differentiate.h"
#include "stet/keras/optimizer_state.h"
#include "stet/keras/utf8.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

using files::Json;

/// "kernel" of "sequential/dense_1/kernel".
std::string_view last_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string type_of(const Tensor& tensor) { return text(tensor.dtype(), tensor.shape()); }
std::string type_of(const Variable& variable) { return text(variable.dtype(), variable.shape()); }

constexpr const char* other_training =
    "it is of another model or training: restore it with the program that wrote it, or use another folder";

/// An optimizer and its own Variables.
std::vector<std::pair<std::string, Variable>> own_variables(const CustomOptimizer::State& state) {
  std::vector<std::pair<std::string, Variable>> out{{"iterations", state.iterations}};
  if (!state.schedule) out.emplace_back("learning_rate", state.learning_rate);
  return out;
}

/// A slot: of which Variable (0: of the optimizer itself), by which name.
struct Slot {
  std::uint64_t owner = 0;
  std::string name;
  Variable variable;
};
/// In the order in which they were made.
std::vector<Slot> slots_of(CustomOptimizer::State& state) {
  std::lock_guard lock(state.guard);
  std::map<std::uint64_t, std::pair<std::uint64_t, std::string>> keys;
  for (const auto& [key, variable] : state.slot_of) keys[variable.id()] = key;
  std::vector<Slot> out;
  for (const Variable& slot : state.slots) {
    const auto& [owner, name] = keys[slot.id()];
    out.push_back({owner, name, slot});
  }
  return out;
}

/// What restore() does when all is known to fit.
struct Assignments {
  struct NewSlot {
    CustomOptimizer::State* state;
    std::uint64_t owner;
    std::string name, shown;
    Tensor value;
  };
  struct OldSlot {
    CustomOptimizer::State* state;
    Slot slot;
  };
  std::vector<std::pair<Variable, Tensor>> values;
  std::vector<NewSlot> slots;
  std::vector<OldSlot> forgotten;
  /// The slots that the checkpoint has, in the order in which they were made.
  std::map<CustomOptimizer::State*, std::vector<std::pair<std::uint64_t, std::string>>> order;

  void add(const Variable& variable, const CheckpointContents::Part& part, const std::string& of,
           const HeadReader& head) {
    if (type_of(variable) != type_of(part.value))
      head.reading().fail(text(of, " is ", type_of(part.value), " in it, and ", type_of(variable), " here"),
                          other_training);
    values.emplace_back(variable, part.value);
  }
  void apply() {
    for (const auto& [variable, value] : values) variable.assign(value);
    for (const NewSlot& slot : slots) {
      Variable made(slot.value, {.trainable = false, .name = slot.shown});
      std::lock_guard lock(slot.state->guard);
      if (slot.state->slot_of.try_emplace({slot.owner, slot.name}, made).second) slot.state->slots.push_back(made);
    }
    for (const auto& [state, slot] : forgotten) {
      std::lock_guard lock(state->guard);
      state->slot_of.erase({slot.owner, slot.name});
      std::erase_if(state->slots, [&](const Variable& one) { return one.id() == slot.variable.id(); });
      state->built.erase(slot.owner);
    }
    for (const auto& [state, keys] : order) {
      std::lock_guard lock(state->guard);
      std::vector<Variable> ordered;
      std::set<std::uint64_t> known;
      for (const auto& key : keys) {
        const Variable& slot = state->slot_of.at(key);
        if (known.insert(slot.id()).second) ordered.push_back(slot);
      }
      for (const Variable& slot : state->slots)
        if (!known.contains(slot.id())) ordered.push_back(slot);
      state->slots = std::move(ordered);
    }
  }
};

}  // namespace

std::string as_utf8(std::string_view name) {
  if (!first_invalid_byte(name)) return std::string(name);
  std::string out;
  for (const char c : name) {
    constexpr char digits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 128)
      out += c;
    else
      out += text("\\x", digits[byte >> 4], digits[byte & 15]);
  }
  return out;
}

void CheckpointVariables::add(const std::string& group, std::string name, const Variable& variable) {
  std::vector<One>& all = groups_[group];
  place_of_.try_emplace(variable.id(), Place{group, all.size()});
  all.push_back({as_utf8(name), variable});
}

void CheckpointVariables::add(const std::string& name, const Optimizer& optimizer, Where where) {
  optimizers_.push_back({name, optimizer});
  CustomOptimizer& body = optimizer.optimizer_body("checkpoint", where);
  for (const auto& [own, variable] : own_variables(body.state())) place_of_.try_emplace(variable.id());
  for (const Slot& slot : slots_of(body.state())) place_of_.try_emplace(slot.variable.id());
  if (const Optimizer* inner = body.wrapped()) add(text(name, "/inner"), *inner, where);
}

void CheckpointVariables::write(CheckpointContents& contents, bool all_slots, const std::string& call,
                                Where where) const {
  auto read = [&](const Variable& variable) { return stop_gradient(variable.read(where)); };
  Json& groups = contents.state["variables"] = Json::Object();
  for (const auto& [group, all] : groups_) {
    Json list = Json::List();
    for (const One& one : all) {
      Json json;
      json["name"] = one.name;
      json["part"] = contents.add(text(group, "/", list.if_list()->size(), "/", one.name), read(one.variable));
      list.push_back(std::move(json));
    }
    groups[group] = std::move(list);
  }
  Json& optimizers = contents.state["optimizers"] = Json::Object();
  for (const Named& named : optimizers_) {
    CustomOptimizer::State& state = named.optimizer.optimizer_body("checkpoint", where).state();
    Json own = Json::Object(), slots = Json::List();
    for (const auto& [name, variable] : own_variables(state))
      own[name] = contents.add(text(named.name, "/", name), read(variable));
    for (const Slot& slot : slots_of(state)) {
      auto place = place_of_.find(slot.owner);
      if (slot.owner != 0 && (place == place_of_.end() || place->second.group.empty())) {
        if (!all_slots) continue;
        throw UserError(error_text(text(call, ": optimizer '", state.name, "' keeps '", as_utf8(slot.variable.name()),
                                        "' of a Variable that is not in the checkpoint"),
                                   where, "give the checkpoint the model, or the Variable, that it trains"));
      }
      Json json;
      json["of"] = nullptr;
      if (slot.owner != 0)
        json["of"] = Json::List{Json(place->second.group), Json(static_cast<std::int64_t>(place->second.number))};
      json["name"] = as_utf8(slot.name);
      json["part"] = contents.add(text(named.name, "/slots/", slots.if_list()->size(), "/", as_utf8(slot.name)),
                                  read(slot.variable));
      slots.push_back(std::move(json));
    }
    Json json;
    json["own"] = std::move(own);
    json["slots"] = std::move(slots);
    optimizers[named.name] = std::move(json);
  }
}

void CheckpointVariables::restore(const CheckpointContents& contents, const files::Reading& reading,
                                  std::vector<Variable>* forgotten) const {
  const HeadReader head(reading);
  Assignments assignments;
  auto same_names = [&](const Json& json, const auto& ours, const char* what) {
    std::set<std::string> theirs;
    for (const auto& [name, value] : head.object(json)) theirs.insert(name);
    if (theirs == ours) return;
    auto shown = [](const std::set<std::string>& names) {
      return names.empty() ? std::string("none") : text("'", joined(names, "', '"), "'");
    };
    reading.fail(text("it holds ", what, " of ", shown(theirs), ", and here there are ", shown(ours)), other_training);
  };
  const Json& groups = head.member(contents.state, "variables");
  std::set<std::string> names;
  for (const auto& [group, all] : groups_) names.insert(group);
  same_names(groups, names, "Variables");
  for (const auto& [group, all] : groups_) {
    const Json::List& list = head.list(head.member(groups, group));
    if (list.empty() && may_be_empty_.contains(group)) continue;
    // What differs first says more than how many there are.
    for (std::size_t i = 0; i < std::min(list.size(), all.size()); ++i) {
      const std::string& name = head.string(head.member(list[i], "name"));
      const CheckpointContents::Part& part = head.part(head.member(list[i], "part"), contents);
      if (last_name(name) != last_name(all[i].name) || type_of(part.value) != type_of(all[i].variable))
        reading.fail(text("Variable ", i, " of '", group, "' is '", name, "' ", type_of(part.value), " in it, and '",
                          all[i].name, "' ", type_of(all[i].variable), " here"),
                     other_training);
      assignments.add(all[i].variable, part, text("'", name, "'"), head);
    }
    if (list.size() != all.size())
      reading.fail(text("it has ", list.size(), " Variables of '", group, "', and here there are ", all.size()),
                   other_training);
  }
  const Json& optimizers = head.member(contents.state, "optimizers");
  names.clear();
  for (const Named& named : optimizers_) names.insert(named.name);
  same_names(optimizers, names, "optimizers");
  for (const Named& named : optimizers_) {
    CustomOptimizer::State& state = named.optimizer.optimizer_body("checkpoint", reading.where).state();
    const Json& json = head.member(optimizers, named.name);
    const Json& own = head.member(json, "own");
    for (const auto& [name, variable] : own_variables(state)) {
      const Json* saved = own.find(name);
      if (!saved)
        reading.fail(text("'", named.name, "' has no ", name, " in it: its rate was a schedule"), other_training);
      assignments.add(variable, head.part(*saved, contents), text("'", name, "' of '", named.name, "'"), head);
    }
    if (state.schedule && own.find("learning_rate"))
      reading.fail(text("'", named.name, "' has a learning rate in it, and a schedule here"), other_training);
    std::map<std::pair<std::uint64_t, std::string>, Slot> present;
    for (const Slot& slot : slots_of(state)) present[{slot.owner, as_utf8(slot.name)}] = slot;
    for (const Json& saved : head.list(head.member(json, "slots"))) {
      const std::string& name = head.string(head.member(saved, "name"));
      const CheckpointContents::Part& part = head.part(head.member(saved, "part"), contents);
      std::uint64_t owner = 0;
      std::string shown = text(state.name, "/", name);
      if (const Json& of = head.member(saved, "of"); !of.is_null()) {
        const Json::List& place = head.list(of);
        auto group = place.size() == 2 ? groups_.find(head.string(place[0])) : groups_.end();
        if (group == groups_.end() || head.count(place[1]) >= group->second.size())
          head.fail(text("slot '", name, "' is of a Variable that it does not have"));
        const One& one = group->second[static_cast<std::size_t>(head.count(place[1]))];
        owner = one.variable.id();
        shown = text(state.name, "/", one.variable.name(), "/", name);
      }
      if (auto found = present.find({owner, name}); found != present.end()) {
        assignments.add(found->second.variable, part, text("slot '", shown, "'"), head);
        assignments.order[&state].emplace_back(owner, found->second.name);
        present.erase(found);
      } else {
        assignments.slots.push_back({&state, owner, name, shown, part.value});
        assignments.order[&state].emplace_back(owner, name);
      }
    }
    for (const auto& [key, slot] : present) {
      if (key.first != 0 && (!place_of_.contains(key.first) || place_of_.at(key.first).group.empty())) continue;
      if (!forgotten)
        reading.fail(text("optimizer '", state.name, "' has '", slot.variable.name(), "', which it does not hold"),
                     "it was written before the optimizer's first step: restore it before that, too");
      assignments.forgotten.push_back({&state, slot});
      forgotten->push_back(slot.variable);
    }
  }
  assignments.apply();
}

// --- saved values

Json json_of(const SavedState& state, const std::string& name, CheckpointContents& contents) {
  Json out = Json::Object();
  for (const auto& [key, value] : state.values()) {
    const std::string part = text(name, "/", key);
    Json& json = out[key];
    if (const auto* boolean = std::get_if<bool>(&value))
      json = *boolean;
    else if (const auto* integer = std::get_if<std::int64_t>(&value))
      json = *integer;
    else if (const auto* real = std::get_if<double>(&value))
      json = *real;
    else if (const auto* string = std::get_if<std::string>(&value))
      json = *string;
    else if (const auto* tensor = std::get_if<Tensor>(&value))
      json["part"] = contents.add(part, *tensor);
    else {
      Json& parts = json["parts"] = Json::List();
      for (const Tensor& one : std::get<std::vector<Tensor>>(value))
        parts.push_back(contents.add(text(part, "/", parts.if_list()->size()), one));
    }
  }
  return out;
}

SavedState saved_state_of(const Json& json, const CheckpointContents& contents, const HeadReader& head) {
  SavedState out;
  for (const auto& [name, value] : head.object(json)) {
    if (const bool* boolean = value.if_bool())
      out.set(name, *boolean);
    else if (const std::int64_t* integer = value.if_integer())
      out.set(name, *integer);
    else if (const double* real = value.if_real())
      out.set(name, *real);
    else if (const std::string* string = value.if_string())
      out.set(name, *string);
    else if (const Json* part = value.find("part"))
      out.set(name, head.part(*part, contents).value);
    else {
      std::vector<Tensor> tensors;
      for (const Json& part : head.list(head.member(value, "parts")))
        tensors.push_back(head.part(part, contents).value);
      out.set(name, tensors);
    }
  }
  return out;
}

}  // namespace stet::keras
