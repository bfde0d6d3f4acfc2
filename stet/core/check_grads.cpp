// Derivatives against central differences.
#include <algorithm>
#include <cmath>

#include "stet/base/inside.h"
#include "stet/base/text.h"
#include "stet/core/differentiate.h"
#include "stet/core/gradient.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"

namespace stet::inside {
namespace {

bool is_floating_tensor(const Leaf& leaf) {
  return leaf.kind == Leaf::tensor && leaf.value.defined() && is_floating(leaf.value.dtype());
}

std::vector<double> elements_of(const Tensor& tensor) {
  return core_ops.cast(In(tensor), DType::f64).contiguous().to_vector<double>();
}

/// Numbers between -1 and 1 that have nothing to do with each other, the same in every run.
Tensor direction_like(const Tensor& tensor, std::uint64_t stream) {
  std::vector<double> values(static_cast<std::size_t>(tensor.node()->element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t x = (i + 1) * 0x9E3779B97F4A7C15u + stream * 0xD1342543DE82EF95u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    values[i] = static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1;
  }
  return core_ops.cast(In(tensor.rank() == 0 ? stet::tensor(values[0]) : stet::tensor(values, tensor.shape())),
                       tensor.dtype());
}

double inner_product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// How accurate differences are in a type, and with which step.
struct Accuracy {
  double step, tolerance;
};
Accuracy accuracy_of(DType dtype, const CheckGradsOptions& options, int order) {
  Accuracy out = dtype == DType::f64   ? Accuracy{1e-5, 1e-6}
                 : dtype == DType::f32 ? Accuracy{1e-2, 2e-2}
                                       : Accuracy{0.1, 0.2};
  for (int k = 1; k < order; ++k) out.tolerance *= 10;
  if (options.step > 0) out.step = options.step;
  if (options.tolerance > 0) out.tolerance = options.tolerance;
  return out;
}

/// "[1,2]" of an element of a shape; "" of a tensor without axes.
std::string index_text(const Tensor& tensor, std::size_t number) {
  std::vector<std::int64_t> sizes = tensor.shape().sizes();
  std::string out;
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    auto size = static_cast<std::size_t>(sizes[axis]);
    out = text(number % size, out.empty() ? "" : ",", out);
    number /= size;
  }
  return out.empty() ? out : text("[", out, "]");
}

class Check {
 public:
  Check(const ArgumentLeaves& arguments, HostBody f, const CheckGradsOptions& options, int order, Where where)
      : arguments_(arguments), f_(std::move(f)), options_(options), order_(order), where_(where) {
    for (int owner : arguments_.owners)
      if (chosen_.empty() || chosen_.back() != owner) chosen_.push_back(owner);
    std::erase_if(chosen_, [&](int number) {
      for (std::size_t i = 0; i < arguments_.leaves.size(); ++i)
        if (arguments_.owners[i] == number && is_floating_tensor(arguments_.leaves[i])) return false;
      return true;
    });
  }

  void run() {
    if (chosen_.empty())
      throw UserError(error_text("check_grads: there is no floating tensor among the inputs", where_,
                                 "only floating tensors have gradients"));
    Linearized function("check_grads", arguments_, chosen_, f_, false, where_);
    values_ = function.tensors();
    std::vector<Tensor> weights;
    bool any = false;
    for (std::size_t v = 0; v < values_.size(); ++v) {
      bool floating = values_[v].defined() && is_floating(values_[v].dtype());
      weights.push_back(floating ? direction_like(values_[v], 100 + v) : Tensor());
      any = any || floating;
    }
    if (!any)
      throw UserError(error_text("check_grads: the function gives no floating tensor", where_,
                                 "only floating tensors have derivatives"));
    for (const Tensor& weight : weights)
      weights_.push_back(weight.defined() ? elements_of(weight) : std::vector<double>());
    for (const std::string& mode : options_.modes)
      is_forward(mode, "check_grads", where_) ? forward(function) : reverse(function.pulled(weights, where_));
  }

  /// The gradient of the weighted values, as a function of the inputs: what the next order is checked of.
  HostBody gradient() const {
    return [f = f_, owners = arguments_.owners, chosen = chosen_, where = where_](const Leaves& leaves) {
      Linearized inner("check_grads", {leaves, owners}, chosen, f, false, where);
      std::vector<Tensor> weights;
      std::size_t v = 0;
      for (const Tensor& value : inner.tensors()) {
        bool floating = value.defined() && is_floating(value.dtype());
        weights.push_back(floating ? direction_like(value, 100 + v) : Tensor());
        ++v;
      }
      Leaves out;
      for (const Tensor& gradient : inner.pulled(weights, where))
        if (gradient.defined()) structure::Of<Tensor>::write(gradient, out);
      return out;
    };
  }

 private:
  double weighted(const Leaves& leaves) const {
    double sum = 0;
    std::size_t v = 0;
    for (const Source& source : sources_of(f_(leaves))) {
      if (v < weights_.size() && !weights_[v].empty()) sum += inner_product(elements_of(source.tensor), weights_[v]);
      ++v;
    }
    return sum;
  }

  /// Sum of the weighted values, differentiated along a change of one leaf.
  double difference(std::size_t leaf, const std::vector<double>& change, double step) const {
    const Tensor& x = arguments_.leaves[leaf].value;
    const std::vector<double> at = elements_of(x);
    auto moved = [&](double by) {
      std::vector<double> there = at;
      for (std::size_t i = 0; i < there.size(); ++i) there[i] += by * change[i];
      Leaves leaves = arguments_.leaves;
      leaves[leaf].value =
          core_ops.cast(In(x.rank() == 0 ? stet::tensor(there[0]) : stet::tensor(there, x.shape())), x.dtype());
      return weighted(leaves);
    };
    return (moved(step) - moved(-step)) / (2 * step);
  }

  void compare(double derivative, double difference, double tolerance, const char* mode, std::size_t leaf,
               const std::string& element) const {
    if (std::abs(derivative - difference) <= tolerance * std::max({1.0, std::abs(derivative), std::abs(difference)}))
      return;
    throw UserError(error_text(
        text("check_grads: the derivative of order ", order_, " (", mode, ") by argument ", arguments_.owners[leaf],
             arguments_.leaves[leaf].path, element.empty() ? "" : text(" at ", element), " is ", derivative,
             ", but differences give ", difference),
        where_,
        "the function has a kink or a pole there, is not the same when it is called again, or a gradient is wrong; a "
        "larger .tolerance accepts it"));
  }

  std::vector<std::size_t> tried(std::size_t count) const {
    auto most = static_cast<std::size_t>(std::max(options_.elements, 1));
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < std::min(count, most); ++i) out.push_back(count <= most ? i : i * count / most);
    return out;
  }

  template <class F>
  void for_each_input(F each) const {
    std::size_t source = 0;
    for (int number : chosen_)
      for (std::size_t i = 0; i < arguments_.leaves.size(); ++i) {
        const Leaf& leaf = arguments_.leaves[i];
        if (arguments_.owners[i] != number || (leaf.kind != Leaf::tensor && leaf.kind != Leaf::variable)) continue;
        if (is_floating_tensor(leaf)) each(i, source);
        ++source;
      }
  }

  void reverse(const std::vector<Tensor>& gradients) const {
    for_each_input([&](std::size_t leaf, std::size_t source) {
      const Tensor& x = arguments_.leaves[leaf].value;
      const Accuracy accuracy = accuracy_of(x.dtype(), options_, order_);
      const std::vector<double> d = elements_of(gradients[source]), at = elements_of(x);
      for (std::size_t i : tried(at.size())) {
        std::vector<double> change(at.size(), 0);
        change[i] = 1;
        compare(d[i], difference(leaf, change, accuracy.step * std::max(1.0, std::abs(at[i]))), accuracy.tolerance,
                "reverse", leaf, index_text(x, i));
      }
    });
  }

  /// Along a direction for each input, and along its single elements: their number is the number of runs.
  void forward(const Linearized& function) const {
    for_each_input([&](std::size_t leaf, std::size_t source) {
      const Tensor& x = arguments_.leaves[leaf].value;
      const Accuracy accuracy = accuracy_of(x.dtype(), options_, order_);
      auto pushed = [&](const Tensor& tangent) {
        std::vector<Tensor> tangents(source_count());
        tangents[source] = tangent;
        std::vector<Tensor> moved = function.pushed(tangents, where_);
        double sum = 0;
        for (std::size_t v = 0; v < moved.size(); ++v)
          if (!weights_[v].empty()) sum += inner_product(elements_of(moved[v]), weights_[v]);
        return sum;
      };
      const std::size_t count = elements_of(x).size();
      if (count == 0) return;
      Tensor along = direction_like(x, source);
      compare(pushed(along), difference(leaf, elements_of(along), accuracy.step), accuracy.tolerance, "forward", leaf,
              count == 1 ? "" : "a random direction");
      for (std::size_t i : tried(count)) {
        std::vector<double> change(count, 0);
        change[i] = 1;
        Tensor one = core_ops.cast(In(x.rank() == 0 ? stet::tensor(1.0) : stet::tensor(change, x.shape())), x.dtype());
        double scale = std::max(1.0, std::abs(elements_of(x)[i]));
        compare(pushed(one), difference(leaf, change, accuracy.step * scale), accuracy.tolerance, "forward", leaf,
                index_text(x, i));
      }
    });
  }

  std::size_t source_count() const {
    std::size_t out = 0;
    for (int number : chosen_)
      for (std::size_t i = 0; i < arguments_.leaves.size(); ++i)
        if (arguments_.owners[i] == number &&
            (arguments_.leaves[i].kind == Leaf::tensor || arguments_.leaves[i].kind == Leaf::variable))
          ++out;
    return out;
  }

  const ArgumentLeaves arguments_;
  const HostBody f_;
  const CheckGradsOptions& options_;
  const int order_;
  const Where where_;
  std::vector<int> chosen_;
  std::vector<Tensor> values_;
  std::vector<std::vector<double>> weights_;
};

}  // namespace

void check_gradients_of(const ArgumentLeaves& given, const HostBody& f, const CheckGradsOptions& options, Where where) {
  if (const Trace* trace = current_trace())
    throw TraceError(error_text(text("check_grads: '", trace->function(), "' is being traced, and has no values yet"),
                                where, "check the function where it is called, not inside of one that is traced"));
  if (options.order < 1)
    throw UserError(error_text(text("check_grads: the order is ", options.order), where, "it is 1 or more"));
  ArgumentLeaves arguments = given;
  for (Leaf& leaf : arguments.leaves)
    if (is_floating_tensor(leaf) && options.cast && leaf.value.dtype() != DType::f64)
      leaf.value = core_ops.cast(In(leaf.value), DType::f64);
  HostBody body = f;
  for (int order = 1; order <= options.order; ++order) {
    Check check(arguments, body, options, order, where);
    check.run();
    body = check.gradient();
  }
}

}  // namespace stet::inside
