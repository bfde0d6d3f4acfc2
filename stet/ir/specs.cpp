#include "stet/ir/specs.h"

namespace stet {

const char* name(ConvolutionResult result) {
  switch (result) {
    case ConvolutionResult::output:
      return "output";
    case ConvolutionResult::input:
      return "input";
    case ConvolutionResult::filter:
      return "filter";
  }
  return "?";
}

const char* name(PoolResult result) {
  switch (result) {
    case PoolResult::largest:
      return "largest";
    case PoolResult::picked:
      return "picked";
    case PoolResult::placed:
      return "placed";
    case PoolResult::mean:
      return "mean";
    case PoolResult::spread:
      return "spread";
  }
  return "?";
}

}  // namespace stet
