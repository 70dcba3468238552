//===- AllocationHook.cpp - who allocates during a step -------------------===//
//
// Problem: to show that no tensor or workspace is allocated outside the arena,
// by our code or by a library, without a preloaded library and without paying
// anything when no one looks. Method: every loaded object calls the allocation
// functions through slots of its global offset table; while a hook lives, these
// slots (found through the dynamic section's relocations) point at counters
// that pass the call on. Sees: malloc, calloc, realloc, memalign and its kin,
// mmap, as called by any object loaded before the hook, operator new included
// (libstdc++ calls malloc through its slot). Does not see: libc's calls to
// itself, which make no tensors. Cost: one pass over all relocations; when off,
// nothing.
//
//===----------------------------------------------------------------------===//
#include "AllocationHook.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <iterator>
#include <link.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace ckopt::runtime;

namespace {

constexpr int64_t kLarge = 64 * 1024;

std::atomic<bool> counting{false};
std::atomic<int64_t> calls{0}, large{0}, largest{0}, largeBytes{0};
std::atomic<const void *> largestCaller{nullptr};

void count(size_t size, const void *caller) {
  if (!counting.load(std::memory_order_relaxed))
    return;
  auto bytes = static_cast<int64_t>(size);
  calls.fetch_add(1, std::memory_order_relaxed);
  if (bytes < kLarge)
    return;
  large.fetch_add(1, std::memory_order_relaxed);
  largeBytes.fetch_add(bytes, std::memory_order_relaxed);
  int64_t seen = largest.load();
  while (bytes > seen && !largest.compare_exchange_weak(seen, bytes))
    ;
  if (bytes > seen)
    largestCaller.store(caller);
}

// The real functions; set before any slot is changed.
void *(*realMalloc)(size_t);
void *(*realCalloc)(size_t, size_t);
void *(*realRealloc)(void *, size_t);
int (*realPosixMemalign)(void **, size_t, size_t);
void *(*realAlignedAlloc)(size_t, size_t);
void *(*realMemalign)(size_t, size_t);
void *(*realMmap)(void *, size_t, int, int, int, off_t);

void *hookMalloc(size_t size) {
  count(size, __builtin_return_address(0));
  return realMalloc(size);
}
void *hookCalloc(size_t n, size_t size) {
  count(n * size, __builtin_return_address(0));
  return realCalloc(n, size);
}
void *hookRealloc(void *old, size_t size) {
  count(size, __builtin_return_address(0));
  return realRealloc(old, size);
}
int hookPosixMemalign(void **out, size_t alignment, size_t size) {
  count(size, __builtin_return_address(0));
  return realPosixMemalign(out, alignment, size);
}
void *hookAlignedAlloc(size_t alignment, size_t size) {
  count(size, __builtin_return_address(0));
  return realAlignedAlloc(alignment, size);
}
void *hookMemalign(size_t alignment, size_t size) {
  count(size, __builtin_return_address(0));
  return realMemalign(alignment, size);
}
void *hookMmap(void *at, size_t size, int protection, int flags, int fd,
               off_t offset) {
  count(size, __builtin_return_address(0));
  return realMmap(at, size, protection, flags, fd, offset);
}

template <typename Fn> bool resolve(Fn *&real, const char *name) {
  real = reinterpret_cast<Fn *>(dlsym(RTLD_DEFAULT, name));
  return real != nullptr;
}

struct Hook {
  const char *name;
  void *replacement;
};

const Hook kHooks[] = {
    {"malloc", reinterpret_cast<void *>(hookMalloc)},
    {"calloc", reinterpret_cast<void *>(hookCalloc)},
    {"realloc", reinterpret_cast<void *>(hookRealloc)},
    {"posix_memalign", reinterpret_cast<void *>(hookPosixMemalign)},
    {"aligned_alloc", reinterpret_cast<void *>(hookAlignedAlloc)},
    {"memalign", reinterpret_cast<void *>(hookMemalign)},
    {"mmap", reinterpret_cast<void *>(hookMmap)},
    {"mmap64", reinterpret_cast<void *>(hookMmap)},
};

struct Slot {
  void **at;
  void *original;
  bool closed; ///< lies in a page that is read-only outside of patching
};

std::mutex hooksMutex;
int hooksAlive = 0;
std::vector<Slot> slots;

uintptr_t pageFloor(uintptr_t address) {
  return address & ~(static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) - 1);
}

/// Most slots lie in pages that the loader made read-only after relocation:
/// they are opened for the moment of a change.
bool store(const Slot &slot, void *value) {
  auto *page =
      reinterpret_cast<void *>(pageFloor(reinterpret_cast<uintptr_t>(slot.at)));
  auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (slot.closed && mprotect(page, size, PROT_READ | PROT_WRITE) != 0)
    return false;
  *slot.at = value;
  if (slot.closed)
    mprotect(page, size, PROT_READ);
  return true;
}

/// The part of an object's data that the loader closes (PT_GNU_RELRO).
struct Object {
  ElfW(Addr) base, closedBegin = 0, closedEnd = 0;
  const ElfW(Sym) *symbols = nullptr;
  const char *strings = nullptr;

  void patch(const ElfW(Rela) * relocations, size_t bytes) const {
    for (size_t i = 0; i < bytes / sizeof(ElfW(Rela)); ++i) {
      auto type = ELF64_R_TYPE(relocations[i].r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
        continue;
      const char *name =
          strings + symbols[ELF64_R_SYM(relocations[i].r_info)].st_name;
      auto hook = std::find_if(
          std::begin(kHooks), std::end(kHooks),
          [&](const Hook &h) { return !std::strcmp(h.name, name); });
      if (hook != std::end(kHooks))
        replace(base + relocations[i].r_offset, hook->replacement);
    }
  }

  void replace(ElfW(Addr) address, void *replacement) const {
    auto **at = reinterpret_cast<void **>(address);
    Slot slot{at, *at, address >= closedBegin && address < closedEnd};
    if (store(slot, replacement))
      slots.push_back(slot);
  }
};

int patchObject(dl_phdr_info *info, size_t, void *) {
  Object object{info->dlpi_addr};
  const ElfW(Dyn) *dynamic = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = info->dlpi_phdr[i];
    if (header.p_type == PT_DYNAMIC)
      dynamic =
          reinterpret_cast<const ElfW(Dyn) *>(info->dlpi_addr + header.p_vaddr);
    if (header.p_type == PT_GNU_RELRO) {
      // The loader closes whole pages only.
      ElfW(Addr) begin = info->dlpi_addr + header.p_vaddr;
      object.closedBegin = pageFloor(begin);
      object.closedEnd = pageFloor(begin + header.p_memsz);
    }
  }
  if (!dynamic || info->dlpi_name == nullptr ||
      std::strstr(info->dlpi_name, "linux-vdso"))
    return 0;
  const ElfW(Rela) *plt = nullptr, *rela = nullptr;
  size_t pltBytes = 0, relaBytes = 0;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    ElfW(Addr) at = dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB)
      object.symbols = reinterpret_cast<const ElfW(Sym) *>(at);
    else if (dynamic->d_tag == DT_STRTAB)
      object.strings = reinterpret_cast<const char *>(at);
    else if (dynamic->d_tag == DT_JMPREL)
      plt = reinterpret_cast<const ElfW(Rela) *>(at);
    else if (dynamic->d_tag == DT_PLTRELSZ)
      pltBytes = dynamic->d_un.d_val;
    else if (dynamic->d_tag == DT_RELA)
      rela = reinterpret_cast<const ElfW(Rela) *>(at);
    else if (dynamic->d_tag == DT_RELASZ)
      relaBytes = dynamic->d_un.d_val;
  }
  if (!object.symbols || !object.strings)
    return 0;
  if (plt)
    object.patch(plt, pltBytes);
  if (rela)
    object.patch(rela, relaBytes);
  return 0;
}

void restoreSlots() {
  for (const Slot &slot : slots)
    store(slot, slot.original);
  slots.clear();
}

} // namespace

AllocationHook::AllocationHook() {
  std::lock_guard<std::mutex> lock(hooksMutex);
  if (hooksAlive++ > 0)
    return;
  calls = large = largest = largeBytes = 0;
  largestCaller = nullptr;
  if (resolve(realMalloc, "malloc") && resolve(realCalloc, "calloc") &&
      resolve(realRealloc, "realloc") &&
      resolve(realPosixMemalign, "posix_memalign") &&
      resolve(realAlignedAlloc, "aligned_alloc") &&
      resolve(realMemalign, "memalign") && resolve(realMmap, "mmap")) {
    slots.reserve(4096); // nothing may allocate while slots change
    dl_iterate_phdr(patchObject, nullptr);
  }
}

AllocationHook::~AllocationHook() {
  std::lock_guard<std::mutex> lock(hooksMutex);
  if (--hooksAlive == 0)
    restoreSlots();
}

void AllocationHook::begin() { counting = true; }

void AllocationHook::end() { counting = false; }

void AllocationHook::read(ckrt_allocation_stats &stats) const {
  stats.calls = calls;
  stats.large = large;
  stats.largest = largest;
  stats.large_bytes = largeBytes;
  stats.largest_by[0] = '\0';
  Dl_info info;
  const void *caller = largestCaller;
  if (caller && dladdr(caller, &info) && info.dli_fname) {
    const char *name = std::strrchr(info.dli_fname, '/');
    name = name ? name + 1 : info.dli_fname;
    size_t length = std::min(std::strlen(name), sizeof(stats.largest_by) - 1);
    std::memcpy(stats.largest_by, name, length);
    stats.largest_by[length] = '\0';
  }
}
