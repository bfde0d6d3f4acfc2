// What the generator knows while it writes a program.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "program.h"

namespace stet::random_programs {

/// What code at one place can see.
struct Sight {
  std::vector<int> values;
  struct Tape {
    bool persistent = false;
    int spent_at_depth = 0;  // the block depth at which gradient() may be asked
    bool spent = false;
    std::vector<int> sources;  // watched values
    int first_value = 0;       // of those made while it records
  };
  std::vector<Tape> tapes;
  int depth = 0;            // of blocks
  int routine_limit = 100;  // layers and functions with a smaller number may be called: no recursion
  bool in_layer = false;
  std::shared_ptr<int> decisions = std::make_shared<int>(0);  // in this fork scope: paths double with each
};

class Builder {
 public:
  Builder(std::uint64_t seed, const Features& f) : features(f), random_(seed) {}

  Program program;
  Features features;
  Sight* sight = nullptr;
  /// Values that came out of a scope, a cond, a layer or a function: eagerly such a value may be the very tensor that
  /// went in, traced it is one of its own. And two readings of a Variable are one tensor if no tape records. So nobody
  /// watches them, or asks for gradients by them, or of those that are from before the tape; nor of what went in.
  std::set<int> given, went_in;
  std::map<int, std::set<int>> could_be;  // by value: those that it may be the same tensor as
  /// Values with a gradient in them. A tape does not follow its own gradients; where they are inside of a branch, it
  /// follows the branch.
  std::set<int> derived;

  std::int64_t below(std::int64_t n) {
    return n <= 0 ? 0 : static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  bool chance(double p) { return static_cast<double>(random_() % 10000) < p * 10000; }
  std::uint64_t number() { return random_(); }

  int role(Role wanted) {
    for (std::size_t i = 0; i < program.roles.size() && wanted.kind != Role::late; ++i) {
      const Role& r = program.roles[i];
      if (r.kind == wanted.kind && r.a == wanted.a && r.b == wanted.b) return static_cast<int>(i);
    }
    program.roles.push_back(wanted);
    return static_cast<int>(program.roles.size()) - 1;
  }
  int constant(std::int64_t size) { return role({Role::constant, size, 0}); }
  bool is_constant(int r) const { return program.roles[static_cast<std::size_t>(r)].kind == Role::constant; }
  std::int64_t constant_of(int r) const { return program.roles[static_cast<std::size_t>(r)].a; }
  int product(int a, int b) {
    if (is_constant(a) && is_constant(b)) return constant(constant_of(a) * constant_of(b));
    if (is_constant(a) && constant_of(a) == 1) return b;
    if (is_constant(b) && constant_of(b) == 1) return a;
    return role({Role::product, std::min(a, b), std::max(a, b)});
  }
  int sum(int a, int b) {
    if (is_constant(a) && is_constant(b)) return constant(constant_of(a) + constant_of(b));
    return role({Role::sum, std::min(a, b), std::max(a, b)});
  }
  bool has_late(const ValueType& type) const {
    return std::any_of(type.shape.begin(), type.shape.end(), [&](int r) { return program.is_late(r); });
  }

  /// A new value, with a guess of where its elements lie.
  int value(ValueType type, double low = -4, double high = 4) {
    program.values.push_back(std::move(type));
    low_.push_back(low);
    high_.push_back(high);
    return static_cast<int>(program.values.size()) - 1;
  }
  const ValueType& type(int id) const { return program.values[static_cast<std::size_t>(id)]; }
  double low(int id) const { return low_[static_cast<std::size_t>(id)]; }
  double high(int id) const { return high_[static_cast<std::size_t>(id)]; }
  /// A value that may be the other one.
  void widen(int id, int other) {
    low_[static_cast<std::size_t>(id)] = std::min(low(id), low(other));
    high_[static_cast<std::size_t>(id)] = std::max(high(id), high(other));
  }
  double bound(int id) const { return std::max(std::abs(low(id)), std::abs(high(id))); }
  bool real(int id) const { return is_floating(type(id).dtype); }
  int rank(int id) const { return static_cast<int>(type(id).shape.size()); }

  /// A value in sight that fits; later ones are likelier. -1: none.
  template <class Fits>
  int pick(Fits fits) {
    std::vector<int> fitting;
    for (int id : sight->values)
      if (fits(id)) fitting.push_back(id);
    if (fitting.empty()) return -1;
    auto n = static_cast<std::int64_t>(fitting.size());
    return fitting[static_cast<std::size_t>(std::max(below(n), below(n)))];
  }
  int pick_real() {
    return pick([&](int id) { return real(id); });
  }
  /// Where code can take a size from.
  std::optional<SizeSource> size(int r) const {
    if (is_constant(r)) return SizeSource{.constant = constant_of(r)};
    for (int id : sight->values)
      for (std::size_t axis = 0; axis < type(id).shape.size(); ++axis)
        if (type(id).shape[axis] == r) return SizeSource{id, static_cast<int>(axis), 0};
    return std::nullopt;
  }
  std::optional<std::vector<SizeSource>> sizes(const std::vector<int>& shape) const {
    std::vector<SizeSource> out;
    for (int r : shape) {
      auto one = size(r);
      if (!one) return std::nullopt;
      out.push_back(*one);
    }
    return out;
  }
  /// The shape of two that broadcast by literal ones; nothing if they do not.
  std::optional<std::vector<int>> broadcast(std::vector<int> a, std::vector<int> b) {
    if (a.size() < b.size()) std::swap(a, b);
    int one = constant(1);
    for (std::size_t i = 0; i < b.size(); ++i) {
      int& x = a[a.size() - b.size() + i];
      int y = b[i];
      if (x == y || y == one) continue;
      if (x != one) return std::nullopt;
      x = y;
    }
    return a;
  }

 private:
  std::mt19937_64 random_;
  std::vector<double> low_, high_;
};

}  // namespace stet::random_programs
