// A convolution as a step: by oneDNN where it has fast code for the sizes, otherwise by patches and matrix products.
#pragma once
#include <memory>
#include <string>

#include "stet/cpu/convolution_patches.h"
#include "stet/ir/flops.h"
#include "stet/ir/specs.h"
#include "stet/runtime/program.h"

namespace stet::cpu {

class ConvolutionStep : public Step {
 public:
  explicit ConvolutionStep(ConvolutionSpec spec);
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;
  Dim flops() const override { return stet::flops(spec_); }

 private:
  ConvolutionSpec spec_;
  std::shared_ptr<const PatchConvolution> patches_;
};

/// Whether oneDNN may be used; true unless a test says otherwise.
bool library_convolutions();
void set_library_convolutions(bool used);

}  // namespace stet::cpu
