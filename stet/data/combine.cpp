// Several datasets as one: zip, concatenate, sample_from_datasets, choose_from_datasets.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/data/stage.h"

namespace stet::data {
namespace {

[[noreturn]] void refuse(const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(what, where, advice));
}

// --- zip

std::int64_t shortest(std::span<const StagePointer> upstreams) {
  std::int64_t count = infinite;
  bool known = true;
  for (const StagePointer& one : upstreams) {
    if (one->count() == 0) return 0;
    if (one->count() == unknown_count)
      known = false;
    else
      count = std::min(count, one->count());
  }
  return known ? count : unknown_count;
}

std::optional<std::vector<TensorSpec>> specs_together(std::span<const StagePointer> upstreams) {
  std::vector<TensorSpec> out;
  for (const StagePointer& one : upstreams) {
    const std::optional<std::vector<TensorSpec>> specs = one->spec();
    if (!specs) return std::nullopt;
    out.insert(out.end(), specs->begin(), specs->end());
  }
  return out;
}

class ZipCursor : public Elements {
 public:
  explicit ZipCursor(std::vector<std::unique_ptr<Elements>> upstreams) : upstreams_(std::move(upstreams)) {}
  bool next(Tensors& out) override {
    out.clear();
    for (const std::unique_ptr<Elements>& one : upstreams_) {
      if (!one->next(element_)) return false;
      out.insert(out.end(), std::make_move_iterator(element_.begin()), std::make_move_iterator(element_.end()));
    }
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    for (const std::unique_ptr<Elements>& one : upstreams_) count = std::min(count, one->skip(count));
    return count;
  }

 private:
  std::vector<std::unique_ptr<Elements>> upstreams_;
  Tensors element_;
};

class ZipStage : public Stage {
 public:
  ZipStage(std::vector<StagePointer> datasets, const char* name, std::string arguments, Where where)
      : Stage({.name = name, .arguments = std::move(arguments), .where = where, .count = shortest(datasets)},
              datasets) {}
  std::optional<std::vector<TensorSpec>> spec() const override { return specs_together(upstreams()); }

 private:
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    std::vector<std::unique_ptr<Elements>> opened;
    for (std::size_t i = 0; i < upstreams().size(); ++i) opened.push_back(upstreams()[i]->elements(pass.of_branch(i)));
    return std::make_unique<ZipCursor>(std::move(opened));
  }
};

/// Slices and ranges side by side are one source again: what follows works on positions.
class ZippedSource : public Stage, public Source {
 public:
  ZippedSource(std::vector<StagePointer> datasets, const char* name, std::string arguments, Where where)
      : Stage({.name = name, .arguments = std::move(arguments), .where = where, .count = shortest(datasets)},
              datasets) {
    source_ = this;
  }
  /// Whether these can be put together so: all are sources in the order of their positions, and run no host code.
  static bool possible(std::span<const StagePointer> datasets) {
    return std::all_of(datasets.begin(), datasets.end(), [](const StagePointer& one) {
      return one->source() && &one->source()->stage() == one.get() && !one->source()->calls_host_code();
    });
  }

  const Stage& stage() const override { return *this; }
  std::optional<std::vector<TensorSpec>> spec() const override { return specs_together(upstreams()); }
  std::unique_ptr<Positions> positions(const Pass& pass) const override {
    // Of the shortest: the first that is as long as all together.
    for (const StagePointer& one : upstreams())
      if (one->count() == count()) return one->positions(pass);
    return nullptr;
  }
  void element(std::int64_t position, SourceDraws& draws, Tensors& out) const override {
    for (const StagePointer& one : upstreams()) one->source()->element(position, draws, out);
  }
  void batch(std::span<const std::int64_t> positions, std::int64_t before, SourceDraws& draws, Where where,
             Tensors& out) const override {
    Tensors all, part;
    for (const StagePointer& one : upstreams()) {
      one->source()->batch(positions, before, draws, where, part);
      all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
      part.clear();
    }
    out = std::move(all);
  }

 private:
  std::unique_ptr<Elements> open(const Pass& pass) const override { return elements_at(*this, positions(pass), pass); }
};

// --- concatenate

template <class Item>
class ConcatenateCursor : public Cursor<Item> {
 public:
  ConcatenateCursor(std::span<const StagePointer> parts, const Pass& pass) : parts_(parts), pass_(pass) { go_to(0); }
  bool next(Item& out) override {
    while (current_) {
      begun_ = true;
      if (current_->next(out)) return true;
      go_to(at_ + 1);
    }
    return false;
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t skipped = 0;
    while (current_ && skipped < count) {
      const std::int64_t all = parts_[at_]->count();
      // A part that is left out whole need not be walked.
      const bool whole = !begun_ && all != unknown_count && all < count - skipped;
      begun_ = true;
      skipped += whole ? all : current_->skip(count - skipped);
      if (skipped < count) go_to(at_ + 1);
    }
    return skipped;
  }

 private:
  void go_to(std::size_t part) {
    current_.reset();
    at_ = part;
    begun_ = false;
    if (at_ < parts_.size()) current_ = open_pass<Item>(*parts_[at_], pass_.of_branch(at_));
  }
  std::span<const StagePointer> parts_;
  Pass pass_;
  std::size_t at_ = 0;
  bool begun_ = false;
  std::unique_ptr<Cursor<Item>> current_;
};

class ConcatenateStage : public Stage {
 public:
  ConcatenateStage(StagePointer first, StagePointer second, Where where)
      : Stage({.name = "concatenate", .where = where, .count = sum(first->count(), second->count())}, {first, second}) {
    // Parts of one dataset stay positions of it.
    if (first->source() == second->source()) source_ = first->source();
    spec_ = common(first->spec(), second->spec());
  }
  std::unique_ptr<Positions> positions(const Pass& pass) const override {
    return std::make_unique<ConcatenateCursor<std::int64_t>>(upstreams(), pass);
  }
  std::optional<std::vector<TensorSpec>> spec() const override { return spec_; }

 private:
  static std::optional<std::vector<TensorSpec>> common(std::optional<std::vector<TensorSpec>> first,
                                                       std::optional<std::vector<TensorSpec>> second) {
    if (!first || !second || first->size() != second->size()) return std::nullopt;
    for (std::size_t i = 0; i < first->size(); ++i) {
      TensorSpec &a = (*first)[i], &b = (*second)[i];
      if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank()) return std::nullopt;
      for (std::size_t axis = 0; axis < a.shape.dims.size(); ++axis)
        if (a.shape.dims[axis].size != b.shape.dims[axis].size) a.shape.dims[axis] = dyn;
    }
    return first;
  }
  static std::int64_t sum(std::int64_t a, std::int64_t b) {
    if (a == infinite || b == infinite) return infinite;
    if (a == unknown_count || b == unknown_count) return unknown_count;
    std::int64_t total;
    return __builtin_add_overflow(a, b, &total) ? infinite : total;
  }
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    if (source()) return elements_at(*source(), positions(pass), pass);
    return std::make_unique<ConcatenateCursor<Tensors>>(upstreams(), pass);
  }
  /// Asked once: of a dataset that is concatenated with itself again and again, to ask both sides each time would never
  /// end.
  std::optional<std::vector<TensorSpec>> spec_;
};

// --- sample_from_datasets, choose_from_datasets

/// Gives numbers of datasets; -1: no more.
class Choices {
 public:
  virtual ~Choices() = default;
  virtual std::int64_t next() = 0;
  /// This one has ended and is not to be chosen again; false: there is nothing left to choose.
  virtual bool leave_out(std::int64_t number) = 0;
};

class DrawnChoices : public Choices {
 public:
  DrawnChoices(std::vector<double> weights, std::uint64_t seed) : weights_(std::move(weights)), random_(seed) {}
  std::int64_t next() override {
    const double total = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    double at = static_cast<double>(random_.below(std::uint64_t{1} << 53)) * 0x1p-53 * total;
    std::int64_t last = -1;  // with a weight: rounding may carry beyond all
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] <= 0) continue;
      last = static_cast<std::int64_t>(i);
      if (at < weights_[i]) break;
      at -= weights_[i];
    }
    return last;
  }
  bool leave_out(std::int64_t number) override {
    weights_[static_cast<std::size_t>(number)] = 0;
    return std::any_of(weights_.begin(), weights_.end(), [](double w) { return w > 0; });
  }

 private:
  std::vector<double> weights_;
  RandomOrder random_;
};

class GivenChoices : public Choices {
 public:
  GivenChoices(std::unique_ptr<Elements> choice, std::size_t count, Where where)
      : choice_(std::move(choice)), left_(count), out_(count, false), where_(where) {}
  std::int64_t next() override {
    Tensors element;
    if (!choice_->next(element)) return -1;
    const TensorNode& node = concrete_node(element[0], "choose_from_datasets", where_);
    if (!is_integer(node.dtype) || node.element_count() != 1)
      refuse(text("choose_from_datasets: choice ", number_, " is ", node.dtype, node.shape()), where_,
             "a choice is one integer, the number of a dataset");
    const auto chosen = element[0].item<std::int64_t>();
    if (chosen < 0 || chosen >= static_cast<std::int64_t>(out_.size()))
      refuse(text("choose_from_datasets: choice ", number_, " is ", chosen, ", there are ", out_.size(), " datasets"),
             where_, "datasets are numbered from 0");
    ++number_;
    return chosen;
  }
  bool leave_out(std::int64_t number) override {
    if (!out_[static_cast<std::size_t>(number)]) --left_;
    out_[static_cast<std::size_t>(number)] = true;
    return left_ > 0;
  }

 private:
  std::unique_ptr<Elements> choice_;
  std::size_t left_;
  std::vector<bool> out_;
  std::int64_t number_ = 0;
  Where where_;
};

class ChoosingCursor : public Elements {
 public:
  ChoosingCursor(std::vector<std::unique_ptr<Elements>> datasets, std::unique_ptr<Choices> choices, bool stops)
      : datasets_(std::move(datasets)), choices_(std::move(choices)), stops_(stops) {}
  bool next(Tensors& out) override {
    for (;;) {
      const std::int64_t number = choices_->next();
      if (number < 0) return false;
      std::unique_ptr<Elements>& chosen = datasets_[static_cast<std::size_t>(number)];
      if (chosen && chosen->next(out)) return true;
      chosen.reset();
      if (stops_ || !choices_->leave_out(number)) return false;
    }
  }

 private:
  std::vector<std::unique_ptr<Elements>> datasets_;  // null: it has ended
  std::unique_ptr<Choices> choices_;
  const bool stops_;
};

class SampleStage : public Stage {
 public:
  SampleStage(std::vector<StagePointer> datasets, SampleOptions options, Where where)
      : Stage({.name = "sample_from_datasets",
               .arguments = described_options(options),
               .where = where,
               .count = count_of(datasets, options),
               .draws = !options.seed},
              datasets),
        options_(std::move(options)) {
    if (options_.weights.empty()) options_.weights.assign(upstreams().size(), 1.0);
    if (!options_.reshuffle_each_iteration && !options_.seed) first_.emplace();
  }
  const FirstPass* first_pass() const override { return first_ ? &*first_ : nullptr; }

 private:
  static std::string described_options(const SampleOptions& options) {
    return text("{.weights = {", joined(options.weights, ", "), "}",
                options.seed ? text(", .seed = ", *options.seed) : "",
                options.reshuffle_each_iteration ? "" : ", .reshuffle_each_iteration = false",
                options.stop_on_empty_dataset ? ", .stop_on_empty_dataset = true" : "", "}");
  }
  /// All elements of all that can be drawn, if none ends the others.
  static std::int64_t count_of(std::span<const StagePointer> datasets, const SampleOptions& options) {
    std::int64_t total = 0;
    bool known = true, endless = true;
    for (std::size_t i = 0; i < datasets.size(); ++i) {
      if (!options.weights.empty() && options.weights[i] <= 0) continue;
      const std::int64_t one = datasets[i]->count();
      endless &= one == infinite;
      if (one == infinite && !options.stop_on_empty_dataset) return infinite;
      if (one == unknown_count || __builtin_add_overflow(total, one, &total)) known = false;
    }
    if (endless) return infinite;
    return known && !options.stop_on_empty_dataset ? total : unknown_count;
  }
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    std::vector<std::unique_ptr<Elements>> opened;
    for (std::size_t i = 0; i < upstreams().size(); ++i) {
      Pass before = pass.of_branch(i);
      ++before.shuffles;
      opened.push_back(upstreams()[i]->elements(before));
    }
    return std::make_unique<ChoosingCursor>(std::move(opened),
                                            std::make_unique<DrawnChoices>(options_.weights, seed_for(pass)),
                                            options_.stop_on_empty_dataset);
  }
  std::uint64_t seed_for(const Pass& pass) const {
    std::uint64_t seed = options_.seed ? spread(*options_.seed)
                         : first_      ? combined(first_->get().drawn, 0x6f6e6365)
                                       : combined(pass.drawn, pass.shuffles);
    if (options_.reshuffle_each_iteration)
      seed = combined(combined(seed, options_.seed ? pass.iteration : 0), pass.repetition);
    return combined(seed, 0x73616d70);
  }
  SampleOptions options_;
  std::optional<FirstPass> first_;
};

class ChooseStage : public Stage {
 public:
  /// The last of the upstreams are the choices.
  ChooseStage(std::vector<StagePointer> datasets, ChooseOptions options, Where where)
      : Stage({.name = "choose_from_datasets",
               .arguments = options.stop_on_empty_dataset ? "" : "{.stop_on_empty_dataset = false}",
               .where = where,
               .count = count_of(datasets)},
              datasets),
        options_(options) {}

 private:
  static std::int64_t count_of(std::span<const StagePointer> upstreams) {
    if (upstreams.back()->count() == 0) return 0;
    const bool endless = std::all_of(upstreams.begin(), upstreams.end() - 1,
                                     [](const StagePointer& one) { return one->count() == infinite; });
    return endless ? upstreams.back()->count() : unknown_count;
  }
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    std::vector<std::unique_ptr<Elements>> opened;
    for (std::size_t i = 0; i < upstreams().size(); ++i) opened.push_back(upstreams()[i]->elements(pass.of_branch(i)));
    std::unique_ptr<Elements> choice = std::move(opened.back());
    opened.pop_back();
    const std::size_t count = opened.size();
    return std::make_unique<ChoosingCursor>(std::move(opened),
                                            std::make_unique<GivenChoices>(std::move(choice), count, facts().where),
                                            options_.stop_on_empty_dataset);
  }
  ChooseOptions options_;
};

void require_room(std::span<const StagePointer> datasets, const char* what, Where where) {
  for (const StagePointer& one : datasets) require_depth(*one, what, where);
}

}  // namespace

StagePointer zip_stage(std::vector<StagePointer> upstreams, const char* name, std::string arguments, Where where) {
  if (ZippedSource::possible(upstreams))
    return std::make_shared<ZippedSource>(std::move(upstreams), name, std::move(arguments), where);
  return std::make_shared<ZipStage>(std::move(upstreams), name, std::move(arguments), where);
}
StagePointer concatenate_stage(StagePointer first, StagePointer second, Where where) {
  return std::make_shared<ConcatenateStage>(std::move(first), std::move(second), where);
}

namespace source {

StagePointer zipped(std::vector<StagePointer> datasets, Where where) {
  require_room(datasets, "zip", where);
  std::string arguments = text(datasets.size(), " datasets");
  return zip_stage(std::move(datasets), "zip", std::move(arguments), where);
}

StagePointer sampled(std::vector<StagePointer> datasets, SampleOptions options, Where where) {
  constexpr const char* call = "sample_from_datasets";
  require_room(datasets, call, where);
  if (datasets.empty()) refuse(text(call, ": there are no datasets"), where, "give at least one");
  if (!options.weights.empty() && options.weights.size() != datasets.size())
    refuse(text(call, ": ", options.weights.size(), " weights for ", datasets.size(), " datasets"), where,
           "give one for each, or none");
  double total = 0;
  for (double weight : options.weights) {
    if (!(weight >= 0) || weight > 1e300)
      refuse(text(call, ": a weight is ", weight), where, "weights are numbers from 0");
    total += weight;
  }
  if (!options.weights.empty() && !(total > 0 && total < 1e308))
    refuse(text(call, ": the sum of the weights is ", total), where, "give at least one a weight above 0");
  return std::make_shared<SampleStage>(std::move(datasets), std::move(options), where);
}

StagePointer chosen(std::vector<StagePointer> datasets, StagePointer choice, ChooseOptions options, Where where) {
  constexpr const char* call = "choose_from_datasets";
  if (datasets.empty()) refuse(text(call, ": there are no datasets"), where, "give at least one");
  datasets.push_back(std::move(choice));
  require_room(datasets, call, where);
  return std::make_shared<ChooseStage>(std::move(datasets), options, where);
}

}  // namespace source
}  // namespace stet::data
