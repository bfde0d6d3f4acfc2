#include "stet/compiler/grouping.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "stet/base/dim_inside.h"

namespace stet {
namespace {

constexpr std::size_t longest_search = 1000;  // groups visited to prove that a merge makes no cycle

}  // namespace

Grouping::Grouping(const Graph& graph) : graph_(graph), users_(stet::users(graph)), seen_(graph.nodes.size(), 0) {
  // What has an effect comes after what had one before, as if it used it.
  ValueId effect = -1;
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    if (!has_effect(graph.nodes[id])) continue;
    if (effect >= 0) users_[static_cast<std::size_t>(effect)].push_back(static_cast<int>(id));
    effect = static_cast<ValueId>(id);
  }
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    group_.push_back(id);
    members_.push_back({static_cast<ValueId>(id)});
  }
}

bool Grouping::is_result(ValueId id) const {
  const std::vector<int>& readers = users(id);
  return std::any_of(readers.begin(), readers.end(), [&](int u) { return u < 0 || group(u) != group(id); });
}

std::vector<const char*> Grouping::ops(std::size_t group) const {
  std::vector<const char*> out;
  for (ValueId id : members_[group])
    for (const char* op : ops_of(graph_.node(id))) out.push_back(op);
  return out;
}

void Grouping::unite(std::size_t a, std::size_t b) {
  for (ValueId id : members_[a]) group_[static_cast<std::size_t>(id)] = b;
  members_[b].insert(members_[b].end(), members_[a].begin(), members_[a].end());
  std::sort(members_[b].begin(), members_[b].end());
  members_[a].clear();
}

bool Grouping::path_through_others(std::size_t from, std::size_t to) {
  ++search_;
  std::vector<std::size_t> open;
  std::size_t visited = 0;
  auto follow = [&](std::size_t at) {
    for (ValueId id : members_[at])
      for (int user : users(id)) {
        if (user < 0) continue;
        std::size_t next = group(user);
        if (next == from || (at == from && next == to) || seen_[next] == search_) continue;
        if (next == to) return true;
        seen_[next] = search_;
        open.push_back(next);
      }
    return false;
  };
  if (follow(from)) return true;
  while (!open.empty()) {
    std::size_t at = open.back();
    open.pop_back();
    if (++visited > longest_search || follow(at)) return true;
  }
  return false;
}

std::vector<std::size_t> Grouping::sorted() const {
  std::vector<int> waiting(members_.size(), 0);
  for (std::size_t id = 0; id < users_.size(); ++id)
    for (int user : users_[id])
      if (user >= 0 && group(user) != group_[id]) ++waiting[group(user)];
  using Item = std::pair<ValueId, std::size_t>;  // last member, group
  std::priority_queue<Item, std::vector<Item>, std::greater<>> ready;
  for (std::size_t g = 0; g < members_.size(); ++g)
    if (!members_[g].empty() && waiting[g] == 0) ready.emplace(members_[g].back(), g);
  std::vector<std::size_t> out;
  while (!ready.empty()) {
    std::size_t at = ready.top().second;
    ready.pop();
    out.push_back(at);
    for (ValueId id : members_[at])
      for (int user : users(id))
        if (user >= 0 && group(user) != at && --waiting[group(user)] == 0)
          ready.emplace(members_[group(user)].back(), group(user));
  }
  return out;
}

Lie lie_of(const Graph& graph, ValueId id) {
  for (Lie lie = Lie::dense;;) {
    const Node& node = graph.node(id);
    if (node.op == &input_row) return node.attributes.as<InputAttributes>().strides.empty() ? lie : Lie::apart;
    if (node.op->kind != Kind::layout || !node.op->view) return lie;
    const Shape& shape = graph.type(node.inputs[0]).shape;
    std::optional<Layout> view = node.op->view({shape, dense_layout(shape), node.type().shape, node.attributes.view()});
    if (!view) return lie;
    std::vector<Dim> dense = dense_strides(node.type().shape);
    for (std::size_t axis = 0; axis < dense.size(); ++axis) {
      if (identical(dense[axis], view->strides[axis]) || node.type().shape[static_cast<int>(axis)].is_constant(1))
        continue;
      if (axis + 1 == dense.size()) return Lie::apart;
      lie = Lie::rows;
    }
    id = node.inputs[0];
  }
}

}  // namespace stet
