#include <algorithm>
#include <span>
#include <string_view>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/data/npy.h"
#include "stet/data/npy_format.h"
#include "stet/files/utf8.h"
#include "stet/files/zip.h"

namespace stet::data {

std::map<std::string, Tensor> read_npz(const std::string& path, Where where) {
  files::Input input(path, "read_npz", where);
  files::ZipReader zip{files::Source(input)};
  std::map<std::string, Tensor> out;
  for (const files::ZipEntry& entry : zip.entries()) {
    if (entry.folder) continue;
    std::string_view name = entry.name;
    const files::Reading reading = input.reading().inside(name);
    if (!name.ends_with(".npy")) reading.fail("is not an array", "a .npz file holds .npy files only");
    name.remove_suffix(4);
    const files::Source bytes = zip.open(entry);
    Tensor array = decode_npy({bytes.size(), [&](std::uint64_t offset, void* to,
                                                 std::size_t count) { bytes.read(offset, to, count, "data"); }},
                              reading);
    out.emplace(name, std::move(array));
  }
  return out;
}

void write_npz(const std::string& path, const std::map<std::string, Tensor>& tensors, Where where) {
  for (const auto& [name, tensor] : tensors) {
    // What readers of archives refuse: names that lead elsewhere, or cannot be shown.
    bool fine = !name.empty() && name.front() != '/' && name.size() < 60'000 && files::is_utf8(name) &&
                !(name.size() > 2 && name[1] == ':' && name[2] == '/');
    for (char c : name) fine = fine && static_cast<unsigned char>(c) >= 32 && c != 127 && c != '\\';
    for (std::size_t begin = 0; fine && begin <= name.size();) {
      const std::size_t end = std::min(name.find('/', begin), name.size());
      const std::string_view part = std::string_view(name).substr(begin, end - begin);
      fine = !part.empty() && part != "." && part != "..";
      begin = end + 1;
    }
    if (!fine)
      throw UserError(error_text(text("write_npz: '", files::shown_name(path), "': ", files::quoted_name(name),
                                      " is no name of an array in a file"),
                                 where, "names are as of files: \"weights\", \"layer/kernel\""));
    npy_tensor(tensor, "write_npz", text(path, "/", name), where);
  }
  files::Output out(path, "write_npz", where);
  files::ZipWriter zip(out);
  for (const auto& [name, tensor] : tensors) {
    Tensor dense = npy_tensor(tensor, "write_npz", text(path, "/", name), where);
    const TensorNode& node = *dense.node();
    const std::string head = npy_header(dense);
    const auto bytes = static_cast<std::size_t>(node.element_count() * size_of(node.dtype));
    zip.begin(name + ".npy", head.size() + bytes);
    zip.write(std::as_bytes(std::span(head)));
    zip.write({node.data, bytes});
    zip.end();
  }
  zip.finish();
  out.commit();
}

}  // namespace stet::data
