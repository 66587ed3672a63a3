#include "symbol_name.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace simt {
namespace {

// The file's bytes while the object lives.
class MappedFile {
 public:
  explicit MappedFile(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status{};
    if (file < 0 || fstat(file, &status) != 0) return;
    size_ = static_cast<size_t>(status.st_size);
    void* data = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (data != MAP_FAILED) data_ = static_cast<const unsigned char*>(data);
  }
  ~MappedFile() {
    if (data_ != nullptr) munmap(const_cast<unsigned char*>(data_), size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Null where the file has not as many.
  template <class T>
  const T* at(size_t offset, size_t count = 1) const {
    if (data_ == nullptr || offset > size_ || count > (size_ - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(data_ + offset);
  }

 private:
  const unsigned char* data_ = nullptr;
  size_t size_ = 0;
};

// The symbol that begins at the address, of the file's full table, which holds what is not exported.
const char* find_symbol(const MappedFile& file, uintptr_t address) {
  const auto* header = file.at<ElfW(Ehdr)>(0);
  if (header == nullptr) return nullptr;
  const auto* sections = file.at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
  if (sections == nullptr) return nullptr;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const auto& section = sections[i];
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= header->e_shnum) continue;
    const size_t count = section.sh_size / sizeof(ElfW(Sym));
    const auto* symbols = file.at<ElfW(Sym)>(section.sh_offset, count);
    const auto& names = sections[section.sh_link];
    const auto* text = file.at<char>(names.sh_offset, names.sh_size);
    if (symbols == nullptr || text == nullptr) continue;
    for (size_t k = 0; k < count; ++k) {
      if (symbols[k].st_value == address && (symbols[k].st_info & 15U) == STT_FUNC &&
          symbols[k].st_name < names.sh_size) {
        return text + symbols[k].st_name;
      }
    }
  }
  return nullptr;
}

}  // namespace

void symbol_name(const void* function, char* name, size_t bytes) noexcept {
  Dl_info where{};
  link_map* object = nullptr;
  if (dladdr1(function, &where, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0) {
    std::snprintf(name, bytes, "at %p", function);
    return;
  }
  const bool program = object->l_name == nullptr || object->l_name[0] == '\0';
  const MappedFile file(program ? "/proc/self/exe" : object->l_name);
  const uintptr_t address = reinterpret_cast<uintptr_t>(function) - object->l_addr;
  const char* mangled = find_symbol(file, address);
  if (mangled == nullptr) {
    std::snprintf(name, bytes, "at %s+0x%zx", where.dli_fname, static_cast<size_t>(address));
    return;
  }
  int status = 0;
  char* demangled = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::snprintf(name, bytes, "%s", demangled == nullptr ? mangled : demangled);
  std::free(demangled);
}

}  // namespace simt
