// Elements through a function, one by one on the thread that asks: map, filter, take_while, scan.
#include <algorithm>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/data/stage.h"

namespace stet::data {
namespace {

class MapCursor : public Elements {
 public:
  /// `checked` is the name of the stage if what the function gives must be looked at; otherwise null.
  MapCursor(std::unique_ptr<Elements> upstream, const ElementFunction& function, const Pass& pass, const char* checked,
            Where where)
      : upstream_(std::move(upstream)), function_(function), draws_(pass), checked_(checked), where_(where) {}
  bool next(Tensors& out) override {
    if (!upstream_->next(element_)) return false;
    RandomStream::Use draws = draws_.next();
    function_(element_, out);
    if (checked_) require_values(out, number_, checked_, where_);
    ++number_;
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = upstream_->skip(count);
    draws_.skip(skipped);
    number_ += skipped;
    return skipped;
  }

 private:
  std::unique_ptr<Elements> upstream_;
  const ElementFunction& function_;
  ElementDraws draws_;
  Tensors element_;
  std::int64_t number_ = 0;
  const char* checked_;
  Where where_;
};

class MapStage : public LaterStage {
 public:
  MapStage(StagePointer before, ElementFunction function, const MapOptions& options, bool host, Where where)
      : LaterStage(before, {.name = host ? "map_host" : "map",
                            .where = where,
                            .count = before->count(),
                            .draws = true,
                            .label = options.name}),
        function_(std::move(function)),
        host_(host) {}

 private:
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    return std::make_unique<MapCursor>(upstream.elements(pass.before_map()), function_, pass,
                                       host_ ? "map_host" : nullptr, facts().where);
  }
  ElementFunction function_;
  bool host_;
};

// --- filter and take_while

class FilterCursor : public Elements {
 public:
  FilterCursor(std::unique_ptr<Elements> upstream, const Predicate& predicate, const Pass& pass, bool ends)
      : upstream_(std::move(upstream)), predicate_(predicate), draws_(pass), ends_(ends) {}
  bool next(Tensors& out) override {
    while (upstream_->next(out)) {
      RandomStream::Use draws = draws_.next();
      if (predicate_(out)) return true;
      if (ends_) return false;
    }
    return false;
  }

 private:
  std::unique_ptr<Elements> upstream_;
  const Predicate& predicate_;
  ElementDraws draws_;
  bool ends_;  // with the first that is not wanted
};

class FilterStage : public LaterStage {
 public:
  FilterStage(StagePointer before, Predicate predicate, const char* name, const FilterOptions& options, Where where)
      : LaterStage(before, {.name = name,
                            .where = where,
                            .count = before->count() == 0 ? 0 : unknown_count,
                            .draws = true,
                            .label = options.name}),
        predicate_(std::move(predicate)) {}
  std::optional<std::vector<TensorSpec>> spec() const override { return upstream.spec(); }

 private:
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    return std::make_unique<FilterCursor>(upstream.elements(pass.before_map()), predicate_, pass,
                                          facts().name == "take_while");
  }
  Predicate predicate_;
};

// --- scan

class ScanCursor : public Elements {
 public:
  ScanCursor(std::unique_ptr<Elements> upstream, Tensors initial, const ElementFunction& function, const Pass& pass)
      : upstream_(std::move(upstream)), state_(std::move(initial)), function_(function), draws_(pass) {}
  bool next(Tensors& out) override {
    if (!upstream_->next(element_)) return false;
    const auto states = static_cast<std::ptrdiff_t>(state_.size());
    Tensors given = std::move(state_);
    given.insert(given.end(), element_.begin(), element_.end());
    RandomStream::Use draws = draws_.next();
    function_(given, out);
    state_.assign(out.begin(), out.begin() + states);
    out.erase(out.begin(), out.begin() + states);
    return true;
  }

 private:
  std::unique_ptr<Elements> upstream_;
  Tensors state_;
  const ElementFunction& function_;
  ElementDraws draws_;
  Tensors element_;
};

class ScanStage : public LaterStage {
 public:
  ScanStage(StagePointer before, Tensors initial, ElementFunction function, const FilterOptions& options, Where where)
      : LaterStage(before,
                   {.name = "scan", .where = where, .count = before->count(), .draws = true, .label = options.name}),
        initial_(std::move(initial)),
        function_(std::move(function)) {}

 private:
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    return std::make_unique<ScanCursor>(upstream.elements(pass.before_map()), initial_, function_, pass);
  }
  Tensors initial_;
  ElementFunction function_;
};

// --- rejection_resample

/// The share of each class's elements that stays, so that they come as `target` says when they are given as `initial`.
std::vector<double> shares(const std::vector<double>& target, const std::vector<double>& initial) {
  std::vector<double> out(target.size(), 0);
  double most = 0;
  for (std::size_t c = 0; c < target.size(); ++c) {
    if (initial[c] > 0) out[c] = target[c] / initial[c];
    most = std::max(most, out[c]);
  }
  for (double& share : out) share = most > 0 ? share / most : 0;
  return out;
}

class ResampleCursor : public Elements {
 public:
  ResampleCursor(std::unique_ptr<Elements> upstream, const NumberFunction& class_of, const std::vector<double>& target,
                 const std::vector<double>& initial, const Pass& pass, Where where)
      : upstream_(std::move(upstream)),
        class_of_(class_of),
        target_(target),
        draws_(pass),
        seeds_(pass),
        where_(where) {
    if (initial.empty())
      counts_.assign(target.size(), 1);  // as if each had come once: none is unheard of
    else
      shares_ = shares(target, initial);
  }
  bool next(Tensors& out) override {
    while (upstream_->next(out)) {
      std::int64_t number;
      {
        RandomStream::Use draws = draws_.next();
        number = class_of_(out);
      }
      if (number < 0 || number >= static_cast<std::int64_t>(target_.size()))
        throw UserError(error_text(text("rejection_resample: element ", element_, " is of class ", number,
                                        ", target_dist has ", target_.size(), " classes"),
                                   where_, "classes are numbered from 0"));
      const auto which = static_cast<std::size_t>(number);
      if (!counts_.empty()) {
        ++counts_[which];
        shares_ = shares(target_, counts_);
      }
      // 53 bits of the element's own.
      const double drawn = static_cast<double>(spread(seeds_.of(element_++)) >> 11) * 0x1p-53;
      if (drawn < shares_[which]) return true;
    }
    return false;
  }

 private:
  std::unique_ptr<Elements> upstream_;
  const NumberFunction& class_of_;
  const std::vector<double>& target_;
  ElementDraws draws_;
  ElementSeeds seeds_;
  std::vector<double> counts_, shares_;
  std::uint64_t element_ = 0;
  Where where_;
};

class ResampleStage : public LaterStage {
 public:
  ResampleStage(StagePointer before, NumberFunction class_of, std::vector<double> target, ResampleOptions options,
                Where where)
      : LaterStage(before,
                   {.name = "rejection_resample",
                    .arguments = text("{", joined(target, ", "), "}",
                                      options.initial_dist.empty()
                                          ? ""
                                          : text(", {.initial_dist = {", joined(options.initial_dist, ", "), "}}")),
                    .where = where,
                    .count = before->count() == 0 ? 0 : unknown_count,
                    .draws = true}),
        class_of_(std::move(class_of)),
        target_(std::move(target)),
        options_(std::move(options)) {}
  std::optional<std::vector<TensorSpec>> spec() const override { return upstream.spec(); }

 private:
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    return std::make_unique<ResampleCursor>(upstream.elements(pass.before_map()), class_of_, target_,
                                            options_.initial_dist, pass, facts().where);
  }
  NumberFunction class_of_;
  std::vector<double> target_;
  ResampleOptions options_;
};

}  // namespace

StagePointer map_stage(StagePointer upstream, ElementFunction function, const MapOptions& options, bool host,
                       Where where) {
  return std::make_shared<MapStage>(std::move(upstream), std::move(function), options, host, where);
}
StagePointer filter_stage(StagePointer upstream, Predicate predicate, const FilterOptions& options, bool host,
                          Where where) {
  return std::make_shared<FilterStage>(std::move(upstream), std::move(predicate), host ? "filter_host" : "filter",
                                       options, where);
}
StagePointer take_while_stage(StagePointer upstream, Predicate predicate, const FilterOptions& options, Where where) {
  return std::make_shared<FilterStage>(std::move(upstream), std::move(predicate), "take_while", options, where);
}
StagePointer scan_stage(StagePointer upstream, Tensors initial, ElementFunction function, const FilterOptions& options,
                        Where where) {
  return std::make_shared<ScanStage>(std::move(upstream), std::move(initial), std::move(function), options, where);
}
StagePointer resample_stage(StagePointer upstream, NumberFunction class_of, std::vector<double> target,
                            ResampleOptions options, Where where) {
  return std::make_shared<ResampleStage>(std::move(upstream), std::move(class_of), std::move(target),
                                         std::move(options), where);
}

}  // namespace stet::data
