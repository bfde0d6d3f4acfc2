#include "stet/cpu/object_loader.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "stet/base/text.h"

namespace stet::cpu {
namespace {

/// Functions that the code generator may call by itself (copies of aggregates, floating remainder). A fixed list: code
/// must not depend on what happens to be loaded in the process.
void* library_function(const std::string& name) {
  if (name == "memcpy") return reinterpret_cast<void*>(&std::memcpy);
  if (name == "memset") return reinterpret_cast<void*>(&std::memset);
  if (name == "memmove") return reinterpret_cast<void*>(&std::memmove);
  if (name == "fmod") return reinterpret_cast<void*>(static_cast<double (*)(double, double)>(&std::fmod));
  if (name == "fmodf") return reinterpret_cast<void*>(static_cast<float (*)(float, float)>(&std::fmod));
  return nullptr;
}

class Mapping {
 public:
  explicit Mapping(std::size_t bytes)
      : bytes_(bytes), data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) throw UnusableObject("no memory for code");
  }
  ~Mapping() {
    if (data_ != MAP_FAILED) ::munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  char* data() const { return static_cast<char*>(data_); }
  void make_executable() {
    if (::mprotect(data_, bytes_, PROT_READ | PROT_EXEC) != 0) throw UnusableObject("memory cannot be made executable");
  }

 private:
  std::size_t bytes_;
  void* data_;
};

/// A jump to anywhere, since a library may lie further off than a relative call reaches; the address in it serves as a
/// global offset table's entry too.
struct Stub {
  unsigned char jump[8] = {0xff, 0x25, 0x02, 0x00, 0x00, 0x00, 0x0f, 0x0b};  // jmp *2(%rip); ud2
  void* address = nullptr;
};

class Loader {
 public:
  Loader(std::span<const char> object, const std::string& symbol) : object_(object), wanted_(symbol) {}

  Code load() {
    read_headers();
    auto mapping = std::make_shared<Mapping>(lay_out());
    base_ = mapping->data();
    for (std::size_t s = 0; s < sections_.size(); ++s)
      if (placed_[s] != unplaced && sections_[s].sh_type != SHT_NOBITS)
        std::memcpy(base_ + placed_[s], slice(sections_[s].sh_offset, sections_[s].sh_size), sections_[s].sh_size);
    resolve_symbols();
    for (const Elf64_Shdr& section : sections_)
      if (section.sh_type == SHT_RELA && section.sh_info < placed_.size() && placed_[section.sh_info] != unplaced)
        relocate(section);
    if (!entry_) throw UnusableObject(text("the object does not define ", wanted_));
    mapping->make_executable();
    return Code(std::move(mapping), entry_);
  }

 private:
  static constexpr std::size_t unplaced = SIZE_MAX;

  const char* slice(std::uint64_t offset, std::uint64_t bytes) const {
    if (offset > object_.size() || bytes > object_.size() - offset) throw UnusableObject("the object is cut off");
    return object_.data() + offset;
  }

  template <class Record>
  std::vector<Record> table(std::uint64_t offset, std::uint64_t count) const {
    if (count > object_.size() / sizeof(Record)) throw UnusableObject("the object is cut off");
    const char* from = slice(offset, count * sizeof(Record));
    std::vector<Record> records(count);
    if (count > 0) std::memcpy(records.data(), from, count * sizeof(Record));
    return records;
  }

  void read_headers() {
    Elf64_Ehdr header;
    std::memcpy(&header, slice(0, sizeof header), sizeof header);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_REL || header.e_machine != EM_X86_64 ||
        header.e_shentsize != sizeof(Elf64_Shdr))
      throw UnusableObject("not a relocatable x86-64 object");
    sections_ = table<Elf64_Shdr>(header.e_shoff, header.e_shnum);
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB) continue;
      symbols_ = table<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym));
      if (section.sh_link >= sections_.size()) throw UnusableObject("the symbol table has no names");
      const Elf64_Shdr& strings = sections_[section.sh_link];
      names_ = {slice(strings.sh_offset, strings.sh_size), strings.sh_size};
    }
  }

  std::string name_of(const Elf64_Sym& symbol) const {
    if (symbol.st_name >= names_.size()) return {};
    const char* begin = names_.data() + symbol.st_name;
    return {begin, ::strnlen(begin, names_.size() - symbol.st_name)};
  }

  /// Gives every section that is needed at run time its place; stubs follow. The bytes of all, at least 1.
  std::size_t lay_out() {
    placed_.assign(sections_.size(), unplaced);
    std::size_t end = 0;
    for (std::size_t s = 0; s < sections_.size(); ++s) {
      const Elf64_Shdr& section = sections_[s];
      if (!(section.sh_flags & SHF_ALLOC) || section.sh_size == 0 || section.sh_type == SHT_X86_64_UNWIND) continue;
      if (section.sh_flags & (SHF_TLS | SHF_WRITE)) throw UnusableObject("generated code has mutable data");
      std::uint64_t align = section.sh_addralign > 0 ? section.sh_addralign : 1;
      if (align > 4096 || (align & (align - 1)) != 0 || section.sh_size > object_.size() + (1 << 20))
        throw UnusableObject("a section is malformed");
      end = (end + align - 1) / align * align;
      placed_[s] = end;
      end += section.sh_size;
    }
    end = (end + alignof(Stub) - 1) / alignof(Stub) * alignof(Stub);
    stubs_ = end;
    for (const Elf64_Sym& symbol : symbols_)
      if (symbol.st_shndx == SHN_UNDEF) end += sizeof(Stub);
    return end + 1;
  }

  void resolve_symbols() {
    addresses_.assign(symbols_.size(), nullptr);
    stub_of_.assign(symbols_.size(), nullptr);
    std::size_t next_stub = stubs_;
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      const Elf64_Sym& symbol = symbols_[i];
      if (symbol.st_shndx == SHN_UNDEF) {
        std::string name = name_of(symbol);
        if (i == 0 || name.empty()) continue;
        Stub stub;
        stub.address = library_function(name);
        if (!stub.address) throw UnusableObject(text("generated code calls ", name, ", which stet does not provide"));
        std::memcpy(base_ + next_stub, &stub, sizeof stub);
        addresses_[i] = stub_of_[i] = base_ + next_stub;
        next_stub += sizeof stub;
      } else if (symbol.st_shndx < placed_.size() && placed_[symbol.st_shndx] != unplaced) {
        if (symbol.st_value > sections_[symbol.st_shndx].sh_size) throw UnusableObject("a symbol is malformed");
        addresses_[i] = base_ + placed_[symbol.st_shndx] + symbol.st_value;
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && name_of(symbol) == wanted_) entry_ = addresses_[i];
      }
    }
  }

  void relocate(const Elf64_Shdr& section) {
    const Elf64_Shdr& target = sections_[section.sh_info];
    for (const Elf64_Rela& relocation : table<Elf64_Rela>(section.sh_offset, section.sh_size / sizeof(Elf64_Rela))) {
      std::uint64_t number = ELF64_R_SYM(relocation.r_info);
      if (number >= symbols_.size() || !addresses_[number])
        throw UnusableObject(text("relocation against '", number < symbols_.size() ? name_of(symbols_[number]) : "",
                                  "', which is not loaded"));
      std::uint32_t type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info));
      std::size_t bytes = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
      if (relocation.r_offset > target.sh_size || bytes > target.sh_size - relocation.r_offset)
        throw UnusableObject("a relocation is outside its section");
      write(base_ + placed_[section.sh_info] + relocation.r_offset, type, number, relocation.r_addend);
    }
  }

  void write(char* place, std::uint32_t type, std::uint64_t number, std::int64_t addend) {
    auto value = reinterpret_cast<std::int64_t>(addresses_[number]) + addend;
    auto relative = value - reinterpret_cast<std::int64_t>(place);
    switch (type) {
      case R_X86_64_64:
        std::memcpy(place, &value, 8);
        return;
      case R_X86_64_PC64:
        std::memcpy(place, &relative, 8);
        return;
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX:
        if (!stub_of_[number]) break;  // of our own symbols no table entry is made: code refers to them directly
        write_32(place, relative + static_cast<std::int64_t>(offsetof(Stub, address)));
        return;
      case R_X86_64_PC32:
      case R_X86_64_PLT32:
        write_32(place, relative);
        return;
      default:
        break;
    }
    throw UnusableObject(text("relocation of type ", type, " is not supported"));
  }

  static void write_32(char* place, std::int64_t value) {
    auto small = static_cast<std::int32_t>(value);
    if (small != value) throw UnusableObject("a relocation does not reach");
    std::memcpy(place, &small, 4);
  }

  std::span<const char> object_;
  const std::string& wanted_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::span<const char> names_;
  std::vector<std::size_t> placed_;
  std::size_t stubs_ = 0;
  char* base_ = nullptr;
  std::vector<char*> addresses_, stub_of_;
  char* entry_ = nullptr;
};

}  // namespace

Code load_object(std::span<const char> object, const std::string& symbol) { return Loader(object, symbol).load(); }

}  // namespace stet::cpu
