// Members: how a body lists its layers, variables and metrics, which gives them their paths.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "stet/core/structure.h"

// STET_MEMBERS(a, b, blocks) in a custom layer, model or metric lists its members: layers, Variables, metrics and
// vectors of them. Their names are the paths of weights: "block/a/kernel", "block/blocks/0/kernel".
#define STET_MEMBERS(...) \
  void visit_members(::stet::keras::MemberVisitor& visitor) override { STET_FOR_EACH(STET_VISIT_FIELD, __VA_ARGS__) }

namespace stet::keras {

class Layer;
class Metric;

/// Goes over the members that a body lists.
class MemberVisitor {
 public:
  virtual ~MemberVisitor() = default;

  void operator()(const std::string& name, const Layer& layer) { visit(name, layer); }
  void operator()(const std::string& name, const Variable& variable) { visit(name, variable); }
  void operator()(const std::string& name, const Metric& metric) { visit(name, metric); }
  template <class T>
  void operator()(const std::string& name, const std::vector<T>& members) {
    for (std::size_t i = 0; i < members.size(); ++i) (*this)(name + "/" + std::to_string(i), members[i]);
  }

 private:
  virtual void visit(const std::string& path, const Layer& layer) = 0;
  virtual void visit(const std::string& path, const Variable& variable) = 0;
  virtual void visit(const std::string& path, const Metric& metric) = 0;
};

}  // namespace stet::keras
