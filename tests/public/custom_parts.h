// A layer and a metric as users write them.
#pragma once
#include "stet/stet.h"

namespace stet {

struct Scale : keras::CustomLayer {
  Variable gamma;
  float start;
  explicit Scale(float s) : start(s) {}
  void build(const Shape& in) override { gamma = add_weight("gamma", {in[-1]}, {.initializer = "ones"}); }
  Tensor call(const Tensor& x, const keras::Context& c) override { return c.training ? x * gamma : x * start; }
};

struct F1 : keras::CustomMetric {
  F1() : CustomMetric("f1") {}
  Variable tp = add_weight("tp"), fp = add_weight("fp"), fn = add_weight("fn");
  void update_state(const Tensor& y, const Tensor& p, const Tensor&) override {
    Tensor hit = p > 0.5f;
    tp.assign_add(sum(cast(hit & (y == 1), f32)));
    fp.assign_add(sum(cast(hit & (y == 0), f32)));
    fn.assign_add(sum(cast(~hit & (y == 1), f32)));
  }
  Tensor result() override { return 2 * tp / (2 * tp + fp + fn); }
};

}  // namespace stet
