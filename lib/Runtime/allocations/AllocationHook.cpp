//===- AllocationHook.cpp - who allocates during a step -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: show that no tensor or workspace is allocated outside the arena, by
// compiled code or by a library, without a preloaded library and without cost
// while no one is counting. Method: every loaded object calls the allocation
// functions through slots of its global offset table; while a hook lives, these
// slots (found through the dynamic section's relocations) point at counters
// that pass the call on. The hook is a library of its own, since programs that
// only train have no use for code that rewrites their tables. Sees: malloc,
// calloc, realloc, memalign and its kin, mmap, as called by any object loaded
// before the hook, operator new included (libstdc++ calls malloc through its
// slot). Memory that is made executable afterwards holds code, which libraries
// generate when a kernel first runs; it is counted apart. Does not see: libc's
// calls to itself, which make no tensors. Cost: one pass over all relocations;
// when off, nothing.
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

std::atomic<int64_t> largeFrom{64 * 1024};

/// One large allocation; `code` is set if its memory was made executable.
struct Block {
  std::atomic<uintptr_t> at{0};
  std::atomic<int64_t> bytes{0};
  std::atomic<const void *> caller{nullptr};
  std::atomic<bool> code{false};
};
// The most allocations that are listed one by one; sums count all of them.
constexpr int64_t kBlocks = 1024;
Block blocks[kBlocks];

std::atomic<bool> counting{false};
std::atomic<int64_t> calls{0}, large{0}, largeBytes{0}, codeBytes{0};

void count(size_t size, const void *result, const void *caller) {
  if (!counting.load(std::memory_order_relaxed))
    return;
  auto bytes = static_cast<int64_t>(size);
  calls.fetch_add(1, std::memory_order_relaxed);
  if (bytes < largeFrom)
    return;
  int64_t index = large.fetch_add(1, std::memory_order_relaxed);
  largeBytes.fetch_add(bytes, std::memory_order_relaxed);
  if (index >= kBlocks)
    return;
  blocks[index].caller = caller;
  blocks[index].bytes = bytes;
  blocks[index].at = reinterpret_cast<uintptr_t>(result);
}

/// Marks the newest block that overlaps [at, at + size) as code.
void markCode(const void *at, size_t size) {
  auto begin = reinterpret_cast<uintptr_t>(at);
  for (int64_t i = std::min(large.load(), kBlocks); i-- > 0;) {
    Block &block = blocks[i];
    if (block.at < begin + size && begin < block.at + block.bytes) {
      if (!block.code.exchange(true))
        codeBytes.fetch_add(block.bytes);
      return;
    }
  }
}

// The real functions; set before any slot is changed.
void *(*realMalloc)(size_t);
void *(*realCalloc)(size_t, size_t);
void *(*realRealloc)(void *, size_t);
int (*realPosixMemalign)(void **, size_t, size_t);
void *(*realAlignedAlloc)(size_t, size_t);
void *(*realMemalign)(size_t, size_t);
void *(*realMmap)(void *, size_t, int, int, int, off_t);
int (*realMprotect)(void *, size_t, int);

void *hookMalloc(size_t size) {
  void *result = realMalloc(size);
  count(size, result, __builtin_return_address(0));
  return result;
}
void *hookCalloc(size_t n, size_t size) {
  void *result = realCalloc(n, size);
  count(n * size, result, __builtin_return_address(0));
  return result;
}
void *hookRealloc(void *old, size_t size) {
  void *result = realRealloc(old, size);
  count(size, result, __builtin_return_address(0));
  return result;
}
int hookPosixMemalign(void **out, size_t alignment, size_t size) {
  int status = realPosixMemalign(out, alignment, size);
  count(size, status == 0 ? *out : nullptr, __builtin_return_address(0));
  return status;
}
void *hookAlignedAlloc(size_t alignment, size_t size) {
  void *result = realAlignedAlloc(alignment, size);
  count(size, result, __builtin_return_address(0));
  return result;
}
void *hookMemalign(size_t alignment, size_t size) {
  void *result = realMemalign(alignment, size);
  count(size, result, __builtin_return_address(0));
  return result;
}
void *hookMmap(void *at, size_t size, int protection, int flags, int fd,
               off_t offset) {
  void *result = realMmap(at, size, protection, flags, fd, offset);
  count(size, result, __builtin_return_address(0));
  return result;
}
int hookMprotect(void *at, size_t size, int protection) {
  if ((protection & PROT_EXEC) && counting.load(std::memory_order_relaxed))
    markCode(at, size);
  return realMprotect(at, size, protection);
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
    {"mprotect", reinterpret_cast<void *>(hookMprotect)},
};

struct Slot {
  void **at;
  void *original;
  bool closed; ///< in a page that is read-only except while it is patched
};

std::mutex hooksMutex;
int hooksAlive = 0;
std::vector<Slot> slots;
/// Some slot could not be changed: its calls are not counted.
bool slotsLeft = false;

uintptr_t pageFloor(uintptr_t address) {
  return address & ~(static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) - 1);
}

/// Most slots lie in pages that the loader made read-only after relocation:
/// they are made writable just for the change.
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

/// The part of an object's data that the loader makes read-only (PT_GNU_RELRO).
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
    else
      slotsLeft = true;
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
      // The loader protects whole pages only.
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

const char *startHook() {
  std::lock_guard<std::mutex> lock(hooksMutex);
  if (hooksAlive > 0) {
    ++hooksAlive;
    return nullptr;
  }
  calls = large = largeBytes = codeBytes = 0;
  for (Block &block : blocks) {
    block.at = 0;
    block.bytes = 0;
    block.code = false;
  }
  if (!resolve(realMalloc, "malloc") || !resolve(realCalloc, "calloc") ||
      !resolve(realRealloc, "realloc") ||
      !resolve(realPosixMemalign, "posix_memalign") ||
      !resolve(realAlignedAlloc, "aligned_alloc") ||
      !resolve(realMemalign, "memalign") || !resolve(realMmap, "mmap") ||
      !resolve(realMprotect, "mprotect"))
    return "the C library lacks an allocation function";
  slots.reserve(4096); // nothing may allocate while slots change
  slotsLeft = false;
  dl_iterate_phdr(patchObject, nullptr);
  if (slotsLeft || slots.empty()) {
    bool none = slots.empty();
    restoreSlots();
    return none ? "no loaded object calls an allocation function"
                : "the tables of loaded objects cannot be changed";
  }
  hooksAlive = 1;
  return nullptr;
}

void stopHook() {
  std::lock_guard<std::mutex> lock(hooksMutex);
  if (--hooksAlive == 0)
    restoreSlots();
}

void beginCounting() { counting = true; }

void endCounting() { counting = false; }

void readCounters(ckrt_allocation_stats &stats) {
  stats.calls = calls;
  stats.large = large;
  stats.large_bytes = largeBytes - codeBytes;
  stats.code_bytes = codeBytes;
  stats.largest = 0;
  stats.largest_by[0] = '\0';
  const void *caller = nullptr;
  for (const Block &block : blocks) {
    if (block.code) {
      --stats.large;
    } else if (block.bytes > stats.largest) {
      stats.largest = block.bytes;
      caller = block.caller;
    }
  }
  Dl_info info;
  if (caller && dladdr(caller, &info) && info.dli_fname) {
    const char *name = std::strrchr(info.dli_fname, '/');
    name = name ? name + 1 : info.dli_fname;
    size_t length = std::min(std::strlen(name), sizeof(stats.largest_by) - 1);
    std::memcpy(stats.largest_by, name, length);
    stats.largest_by[length] = '\0';
  }
}

void setLarge(int64_t bytes) { largeFrom = bytes; }

} // namespace

const AllocationHook ckopt_allocation_hook = {
    startHook, stopHook, beginCounting, endCounting, readCounters, setLarge};
