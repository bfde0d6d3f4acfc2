#include "stet/cpu/library_versions.h"

#include <dnnl.h>
#include <llvm-c/Core.h>

#include "stet/base/text.h"

extern "C" char* openblas_get_config();

namespace stet::cpu {

std::vector<std::pair<std::string, std::string>> library_versions() {
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  const dnnl_version_t* onednn = dnnl_version();
  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH … Zen SINGLE_THREADED"
  std::string blas = openblas_get_config(), name = "OpenBLAS ";
  if (blas.starts_with(name)) blas.erase(0, name.size());
  return {{"LLVM", text(major, ".", minor, ".", patch)},
          {"oneDNN", text(onednn->major, ".", onednn->minor, ".", onednn->patch)},
          {"OpenBLAS", blas.substr(0, blas.find(' '))}};
}

}  // namespace stet::cpu
