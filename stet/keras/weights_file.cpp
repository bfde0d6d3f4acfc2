#include "stet/keras/weights_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/optimizer_variables.h"
#include "stet/keras/state_tree.h"
#include "stet/ops/ops.h"
#include "stet/runtime/log.h"

namespace stet::keras {
namespace {

std::string type_text(const WeightsToLoad::Stored& stored) {
  return text(stored.dtype ? text(*stored.dtype) : stored.type, files::sizes_text(stored.sizes));
}
std::string type_text(const Weight& weight) { return text(weight.variable.dtype(), weight.variable.shape()); }

/// Values of the one type become the other's.
bool converts(DType from, DType to) {
  if (from == to) return true;
  return is_floating(from) == is_floating(to) && to != DType::bool_;
}

bool is_kernel(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return name == "kernel" || name.ends_with("_kernel");
}

/// The order of a kernel's axes here, in those of PyTorch's.
std::vector<std::int64_t> turned(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> out(sizes.begin() + 2, sizes.end());
  out.push_back(sizes[1]);
  out.push_back(sizes[0]);
  return out;
}
std::vector<int> turning(std::size_t rank) {
  std::vector<int> out;
  for (std::size_t axis = 2; axis < rank; ++axis) out.push_back(static_cast<int>(axis));
  out.push_back(1);
  out.push_back(0);
  return out;
}
bool turns(const WeightsToLoad::Stored& stored, const Weight& weight, NameMap::Layout layout) {
  return layout == NameMap::pytorch && stored.sizes.size() >= 2 && is_kernel(weight.path);
}
std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t out = 1;
  for (std::int64_t size : sizes) out *= size;  // of what is in a file, whose reader has checked it
  return out;
}
/// Splits sizes of the other into factors: [4, 6] into [4, 2, 3].
bool refines(const std::vector<std::int64_t>& fine, const std::vector<std::int64_t>& coarse) {
  std::size_t at = 0;
  for (std::int64_t size : coarse) {
    std::int64_t covered = 1;
    if (at == fine.size()) return false;
    do covered *= fine[at++];
    while (covered < size && covered > 0 && at < fine.size());
    if (covered != size) return false;
  }
  return at == fine.size();
}
bool fits(const WeightsToLoad::Stored& stored, const Weight& weight, NameMap::Layout layout) {
  if (!stored.dtype || !converts(*stored.dtype, weight.variable.dtype())) return false;
  const std::vector<std::int64_t> own = weight.variable.shape().sizes();
  if (!turns(stored, weight, layout)) return stored.sizes == own;
  const std::vector<std::int64_t> given = turned(stored.sizes);
  // Heads split the inputs or outputs of linear kernels; the channels of a depthwise kernel are its outputs.
  if (given == own || refines(own, given)) return true;
  const std::size_t rank = given.size();
  return rank >= 3 && own.size() == rank && given[rank - 2] == 1 && product(own) == product(given) &&
         std::equal(given.begin(), given.end() - 2, own.begin());
}

constexpr std::size_t most_named = 10;
void add_lines(std::string& out, const char* what, const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < lines.size() && i < most_named; ++i) out += text("\n  ", what, "  ", lines[i]);
  if (lines.size() > most_named) out += text("\n  ", what, "  and ", lines.size() - most_named, " more");
}

}  // namespace

void WeightsToLoad::add(const Weight& weight, Stored from, NameMap::Layout layout) {
  if (fits(from, weight, layout))
    fitting_.push_back({weight, std::move(from), layout});
  else
    unfit_.push_back(
        text(weight.path, " is ", type_text(weight), ", and ", type_text(from), " in the file: ", from.name));
}
void WeightsToLoad::add_missing(const Weight& weight, const std::string& name) {
  missing_.push_back(text(weight.path, " ", type_text(weight), ": ", name));
}
void WeightsToLoad::add_unexpected(const Stored& stored) {
  unexpected_.push_back(text(stored.name, " ", type_text(stored)));
}

void WeightsToLoad::check(bool skip) const {
  if (missing_.empty() && unfit_.empty() && unexpected_.empty()) return;
  std::string lines;
  add_lines(lines, "missing   ", missing_);
  add_lines(lines, "other type", unfit_);
  add_lines(lines, "unexpected", unexpected_);
  const std::string what = text("its weights are not those of ", whose_, lines);
  if (!skip)
    reading_.fail(what,
                  "load it into the model that it was saved from, or one made alike; .skip_mismatch = true loads what "
                  "fits");
  warn("keras", text("stet: ", reading_.call, ": '", reading_.path, "': what does not fit is skipped: ", what,
                     at_line(reading_.where, "\n  at "), "\n"));
}

Tensor WeightsToLoad::value(const One& one) const {
  const DType dtype = *one.from.dtype;
  const auto count = static_cast<std::size_t>(product(one.from.sizes));
  std::vector<std::byte> bytes(count * static_cast<std::size_t>(size_of(dtype)));
  one.from.read(bytes);
  Tensor out = creation::copied(dtype, bytes.data(), count, Shape(one.from.sizes), reading_.where);
  if (turns(one.from, one.weight, one.layout))
    out = reshape(transpose(out, turning(one.from.sizes.size())), one.weight.variable.shape()).contiguous();
  return dtype == one.weight.variable.dtype() ? out : cast(out, one.weight.variable.dtype());
}

void WeightsToLoad::commit() const {
  std::vector<Tensor> values;
  for (const One& one : fitting_) values.push_back(value(one));
  for (std::size_t i = 0; i < fitting_.size(); ++i) fitting_[i].weight.variable.assign(values[i], reading_.where);
}

// --- Keras's layout

namespace {

std::string below(const std::string& path, const std::string& name) { return path.empty() ? name : path + "/" + name; }

void write_group(files::Hdf5Writer& to, const std::string& path, const std::string& name,
                 const std::vector<Variable>& variables, Where where) {
  const std::string group = below(path, "vars");
  to.group(group);
  to.attribute(group, "name", name);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    // What it holds now: the file is one moment, though training goes on while it is written.
    const Tensor value = variables[i].read(where).contiguous(where);
    to.dataset(text(group, "/", i), value.dtype(), value.shape().sizes(),
               [value, where](const files::Sink& sink) { sink(bytes_of(value, where)); });
  }
}

WeightsToLoad::Stored stored(const files::Hdf5Reader& from, const files::Hdf5Node& node) {
  return {node.path(), node.dtype(), node.type().str(), node.sizes(),
          [&from, &node](std::span<std::byte> to) { from.read(node, to); }};
}

/// The numbered datasets of a group, in order.
std::vector<const files::Hdf5Node*> numbered(const files::Hdf5Reader& from, const std::string& group) {
  std::vector<const files::Hdf5Node*> out;
  const files::Hdf5Node* vars = from.find(group);
  if (!vars || vars->is_dataset()) return out;
  for (;;) {
    const files::Hdf5Node* one = vars->find(text(out.size()));
    if (!one || !one->is_dataset()) return out;
    out.push_back(one);
  }
}

/// Datasets that are no weights of layers: an optimizer's, and states of generators that older versions wrote.
bool is_beside(const std::string& path) {
  return path.starts_with("optimizer/") || path.find("seed_generator/") != std::string::npos;
}
void add_unexpected(const files::Hdf5Reader& from, const files::Hdf5Node& node, const std::set<std::string>& known,
                    WeightsToLoad& to) {
  if (node.is_dataset()) {
    if (!known.contains(node.path()) && !is_beside(node.path())) to.add_unexpected(stored(from, node));
    return;
  }
  for (const files::Hdf5Node& child : node.children()) add_unexpected(from, child, known, to);
}

void read_optimizer(const files::Hdf5Reader& from, CustomLayer& model, const Optimizer& optimizer, Where where) {
  const std::vector<const files::Hdf5Node*> found = numbered(from, "optimizer/vars");
  if (found.empty()) return;
  std::vector<Variable> own = variables_in_keras_order(optimizer, trainable_in_keras_order(model), where);
  // Keras writes the count and the rate alone of one that has not made a step.
  if (found.size() < own.size() && found.size() <= 2) own.resize(found.size());
  bool fitting = found.size() == own.size();
  WeightsToLoad all(from.reading(), text("the optimizer '", optimizer.name(where), "'"));
  for (std::size_t i = 0; fitting && i < own.size(); ++i) {
    const Weight one{.path = own[i].name(), .variable = own[i]};
    fitting = fits(stored(from, *found[i]), one, NameMap::as_here);
    if (fitting) all.add(one, stored(from, *found[i]));
  }
  if (fitting) return all.commit();
  warn("keras",
       text("stet: ", from.reading().call, ": '", from.reading().path, "': the optimizer '", optimizer.name(where),
            "' starts anew: the file has ", found.size(), " variables of one, and it has ", own.size(),
            " of other shapes or another order", at_line(where, "\n  at "), "\n"));
}

}  // namespace

void write_weights(files::Hdf5Writer& to, CustomLayer& model, const Optimizer& optimizer, Where where) {
  for (const StateGroup& group : state_groups(model)) {
    std::vector<Variable> variables;
    for (const Weight& weight : group.variables) variables.push_back(weight.variable);
    write_group(to, group.path, group.name, variables, where);
  }
  if (!optimizer.defined()) return;
  const std::vector<Variable> trainable = trainable_in_keras_order(model);
  write_group(to, "optimizer", optimizer.name(where), variables_in_keras_order(optimizer, trainable, where), where);
  // Keras lists the variables of the optimizer inside once more.
  if (const Optimizer* inner = optimizer.optimizer_body("save", where).wrapped())
    write_group(to, "optimizer/inner_optimizer", inner->name(where), variables_in_keras_order(*inner, trainable, where),
                where);
}

void read_weights(const files::Hdf5Reader& from, CustomLayer& model, const Optimizer& optimizer, bool skip_mismatch,
                  Where where) {
  WeightsToLoad all(from.reading(), model.description());
  std::set<std::string> known;
  for (const StateGroup& group : state_groups(model)) {
    const std::string path = below(group.path, "vars");
    for (std::size_t i = 0; i < group.variables.size(); ++i) {
      const std::string name = text(path, "/", i);
      const files::Hdf5Node* node = from.find(name);
      if (!node || !node->is_dataset()) {
        all.add_missing(group.variables[i], name);
        continue;
      }
      known.insert(name);
      all.add(group.variables[i], stored(from, *node));
    }
  }
  add_unexpected(from, from.root(), known, all);
  all.check(skip_mismatch);
  all.commit();
  if (optimizer.defined()) read_optimizer(from, model, optimizer, where);
}

std::uint64_t elements_in(const files::Hdf5Node& node) {
  if (node.is_dataset()) return node.elements();
  std::uint64_t out = 0;
  for (const files::Hdf5Node& child : node.children()) out += elements_in(child);
  return out;
}

std::uint64_t weights_in(const files::Hdf5Node& node) {
  if (node.is_dataset()) return is_beside(node.path()) ? 0 : node.elements();
  std::uint64_t out = 0;
  for (const files::Hdf5Node& child : node.children()) out += weights_in(child);
  return out;
}

}  // namespace stet::keras
