// Puts maps and reductions over the rows of one space together: softmax, normalisations, losses and their gradients go
// through memory once, a row at a time, instead of once for every map and every reduction.
#include <algorithm>
#include <unordered_map>

#include "stet/base/dim_inside.h"
#include "stet/compiler/grouping.h"
#include "stet/compiler/pipeline.h"
#include "stet/compiler/rebuild.h"
#include "stet/compiler/rows.h"

namespace stet {
namespace {

constexpr std::size_t most_buffers = 20;  // of inputs and results
constexpr int most_nodes = 600;           // of all bodies
constexpr std::size_t most_readers = 4;   // of one value that are tried

class RowFusion {
 public:
  explicit RowFusion(const Graph& graph) : graph_(graph), groups_(graph), spaces_(graph.nodes.size()) {}

  void run() {
    std::unordered_map<ValueId, std::vector<ValueId>> readers;  // of each value: reductions of it
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.nodes.size()); ++id) {
      const Node& node = graph_.node(id);
      if (std::optional<RowSpace> space = row_space(graph_, id)) {
        spaces_[groups_.group(id)] = space;
        if (!fits_alone(id, *space)) spaces_[groups_.group(id)].reset();
      }
      bool candidate = node.op == &map_row || node.op->kind == Kind::reduce || node.op->kind == Kind::layout;
      if (!candidate) continue;
      join_producers(id);
      if (!spaces_[groups_.group(id)] || node.op->kind != Kind::reduce) continue;
      for (ValueId input : node.inputs) {
        std::vector<ValueId>& others = readers[input];
        for (std::size_t i = others.size(); i-- > 0;) join(id, others[i]);
        others.push_back(id);
        if (others.size() > most_readers) others.erase(others.begin());
      }
    }
  }

  Graph rebuilt() const {
    Rebuild to(graph_);
    for (std::size_t group : groups_.sorted())
      if (is_worth_it(group))
        put_rows(to, group);
      else
        for (ValueId id : groups_.members(group)) to.copy(id);
    return to.finish();
  }

 private:
  const std::optional<RowSpace>& space_of(ValueId id) const { return spaces_[groups_.group(id)]; }

  void join_producers(ValueId id) {
    for (ValueId input : graph_.node(id).inputs) {
      bool was_alone = !space_of(input);
      // A map that goes in takes those with it that it is made of.
      if (join(id, input) && was_alone) join_producers(input);
    }
  }

  /// Makes one group of theirs, if that may be.
  bool join(ValueId one, ValueId other) {
    std::size_t a = groups_.group(one), b = groups_.group(other);
    if (a == b || (!spaces_[a] && !spaces_[b])) return false;
    const RowSpace space = spaces_[a] ? *spaces_[a] : *spaces_[b];
    if (spaces_[a] && spaces_[b] && !identical(*spaces_[a], *spaces_[b])) return false;
    for (std::size_t group : {a, b})
      for (ValueId id : groups_.members(group))
        if (!fits(id, space, a, b)) return false;
    if (!within_limits(a, b) || groups_.would_circle(a, b)) return false;
    groups_.unite(a, b);
    spaces_[b] = space;
    spaces_[a].reset();
    return true;
  }

  bool fits_alone(ValueId id, const RowSpace& space) const {
    return fits(id, space, groups_.group(id), groups_.group(id));
  }

  /// It works on rows of the space, takes from members of both groups what is theirs at the same place, and walks
  /// everybody else's memory forwards.
  bool fits(ValueId id, const RowSpace& space, std::size_t a, std::size_t b) const {
    const Node& node = graph_.node(id);
    RowRole role = row_role(graph_, id, space);
    if (role == RowRole::none) return false;
    if (node.op->kind == Kind::layout) return groups_.group(node.inputs[0]) == a || groups_.group(node.inputs[0]) == b;
    bool along = node.op->kind == Kind::reduce || role == RowRole::full;
    int rank = space.shape.rank(), length = rank - space.outer;
    if (along && length > 1 && uses_index(node)) return false;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      ValueId input = node.inputs[k];
      AxisMap axes = input_axes(graph_, node, k);
      std::size_t maker = groups_.group(input);
      if (maker == a || maker == b) {
        RowRole made = row_role(graph_, input, space);
        for (int loop = 0; loop < axes.rank; ++loop) {
          int axis = axes.axes[static_cast<std::size_t>(loop)];
          if (loop < space.outer || made == RowRole::full ? axis != loop : false) return false;
        }
      } else if (along && !walks_forward(input, axes, space)) {
        return false;
      }
    }
    return true;
  }

  bool walks_forward(ValueId input, const AxisMap& axes, const RowSpace& space) const {
    int length = space.shape.rank() - space.outer, rank = graph_.type(input).shape.rank();
    bool still = true, forward = rank >= length;
    for (int i = 0; i < length; ++i) {
      int axis = axes.axes[static_cast<std::size_t>(space.outer + i)];
      still &= axis < 0;
      forward &= axis == rank - length + i;
    }
    return still || (forward && (lies_dense(graph_, input) || is_repeated(input, length)));
  }

  /// A view that shows the same along its last `length` axes.
  bool is_repeated(ValueId id, int length) const {
    const Node& node = graph_.node(id);
    if (node.op->kind != Kind::layout || !node.op->view || !lies_dense(graph_, node.inputs[0])) return false;
    const Shape &from = graph_.type(node.inputs[0]).shape, &to = node.type().shape;
    std::optional<Layout> view = node.op->view({from, dense_layout(from), to, node.attributes.view()});
    if (!view) return false;
    return std::all_of(view->strides.end() - length, view->strides.end(),
                       [](const Dim& stride) { return stride.is_constant(0); });
  }

  bool uses_index(const Node& node) const {
    Expr body = body_of(node);
    bool position =
        node.op->kind == Kind::reduce && (node.op->combine == Combine::argmax || node.op->combine == Combine::argmin);
    if (!body.defined()) return position;
    std::vector<Expr> parts = topological(body);
    return position || std::any_of(parts.begin(), parts.end(), [](Expr part) { return part.is(Primitive::index); });
  }

  static Expr body_of(const Node& node) {
    if (node.op == &map_row) return node.attributes.as<MapAttributes>().body;
    return node.op->kind == Kind::reduce ? node.attributes.as<ReduceAttributes>().body : Expr();
  }

  bool within_limits(std::size_t a, std::size_t b) const {
    std::vector<ValueId> inputs;
    std::size_t results = 0;
    int nodes = 0;
    auto inside = [&](ValueId id) { return groups_.group(id) == a || groups_.group(id) == b; };
    for (std::size_t from : {a, b})
      for (ValueId id : groups_.members(from)) {
        if (Expr body = body_of(graph_.node(id)); body.defined()) nodes += body.size();
        for (ValueId input : graph_.node(id).inputs)
          if (!inside(input) && std::find(inputs.begin(), inputs.end(), input) == inputs.end()) inputs.push_back(input);
        const std::vector<int>& users = groups_.users(id);
        results += std::any_of(users.begin(), users.end(), [&](int user) { return user < 0 || !inside(user); });
      }
    return inputs.size() + results <= most_buffers && nodes <= most_nodes;
  }

  /// Something is read or written less than before.
  bool is_worth_it(std::size_t group) const {
    if (!spaces_[group]) return false;
    int reductions = 0, maps = 0;
    for (ValueId id : groups_.members(group)) {
      reductions += graph_.node(id).op->kind == Kind::reduce;
      maps += row_role(graph_, id, *spaces_[group]) == RowRole::full;
    }
    return reductions > 0 && reductions + maps > 1;
  }

  bool is_view(ValueId id) const { return graph_.node(id).op->kind == Kind::layout; }

  void put_rows(Rebuild& to, std::size_t group) const {
    const std::vector<ValueId>& members = groups_.members(group);
    // Views of results stay outside too, where others want them.
    std::vector<bool> wanted(members.size(), false);
    auto place = [&](ValueId id) {
      return static_cast<std::size_t>(std::lower_bound(members.begin(), members.end(), id) - members.begin());
    };
    for (std::size_t i = members.size(); i-- > 0;) {
      wanted[i] = wanted[i] || groups_.is_result(members[i]);
      if (wanted[i] && is_view(members[i])) wanted[place(graph_.node(members[i]).inputs[0])] = true;
    }
    Graph child;
    child.scope = graph_.scope;
    std::unordered_map<ValueId, ValueId> inside;
    Node rows;
    rows.op = &rows_row;
    for (ValueId id : members)
      for (ValueId input : graph_.node(id).inputs)
        if (groups_.group(input) != group && !inside.contains(input)) {
          inside[input] = child.add_input(graph_.type(input));
          rows.inputs.push_back(to.at(input));
        }
    std::vector<ValueId> results;
    for (std::size_t i = 0; i < members.size(); ++i) {
      Node node = graph_.node(members[i]);
      for (ValueId& input : node.inputs) input = inside.at(input);
      inside[members[i]] = child.add(std::move(node));
      if (!wanted[i] || is_view(members[i])) continue;
      child.results.push_back(inside[members[i]]);
      rows.results.push_back(graph_.type(members[i]));
      results.push_back(members[i]);
    }
    const Node& last = graph_.node(results.back());
    rows.label = last.label;
    rows.where = last.where;
    rows.caller = last.caller;
    rows.name_scope = last.name_scope;
    note_made_of(rows, groups_.ops(group));
    RowsAttributes attributes{std::make_shared<const Graph>(drop_dead(child)), spaces_[group]->shape,
                              spaces_[group]->outer};
    rows.attributes = Attributes(view_of(attributes));
    bool single = results.size() == 1;
    if (single) {
      to.put(results[0], std::move(rows));
    } else {
      ValueId tuple = to.graph.add(std::move(rows));
      for (std::size_t i = 0; i < results.size(); ++i) {
        PartAttributes part{static_cast<int>(i)};
        Node node = graph_.node(results[i]);
        node.op = &part_row;
        node.inputs = {tuple};
        node.attributes = Attributes(view_of(part));
        to.put(results[i], std::move(node));
      }
    }
    for (std::size_t i = 0; i < members.size(); ++i)
      if (wanted[i] && is_view(members[i])) to.copy(members[i]);
  }

  const Graph& graph_;
  Grouping groups_;
  std::vector<std::optional<RowSpace>> spaces_;  // by group: whose rows it works on
};

}  // namespace

Graph fuse_rows(const Graph& graph) {
  // The size of a late value is known when its node has run, and whoever uses the size stands after it without reading
  // it: such graphs keep their order.
  for (const Node& node : graph.nodes)
    if (node.op->kind == Kind::late) return graph;
  RowFusion fusion(graph);
  fusion.run();
  return fusion.rebuilt();
}

}  // namespace stet
