//===- NcclWire.cpp - how the stand-in's ranks are connected --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "NcclWire.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

using namespace ckopt::runtime;
using namespace standin;

void Peer::progress() {
  while (!out.empty() && !gone) {
    ssize_t sent = ::send(fd, out.data(), out.size(), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
      break;
    if (sent < 0)
      gone = true;
    else
      out.erase(0, static_cast<size_t>(sent));
  }
  char block[1 << 16];
  for (;;) {
    ssize_t got = ::recv(fd, block, sizeof(block), 0);
    if (got < 0 && errno == EINTR)
      continue;
    if (got == 0 || (got < 0 && errno != EAGAIN))
      gone = true;
    if (got <= 0)
      break;
    in.append(block, static_cast<size_t>(got));
  }
  for (Header header; in.size() >= sizeof(header);) {
    std::memcpy(&header, in.data(), sizeof(header));
    size_t bytes =
        header.type == kTaken
            ? 0
            : header.count * static_cast<size_t>(kNcclTypeBytes[header.type]);
    if (in.size() < sizeof(header) + bytes)
      break;
    if (header.type == kTaken)
      ++taken;
    else
      messages.push_back({header, in.substr(sizeof(header), bytes)});
    in.erase(0, sizeof(header) + bytes);
  }
}

void Peer::post(uint32_t type, uint64_t count, const void *bytes) {
  Header header;
  header.type = type;
  header.count = count;
  out.append(reinterpret_cast<const char *>(&header), sizeof(header));
  if (type != kTaken)
    out.append(static_cast<const char *>(bytes),
               count * static_cast<size_t>(kNcclTypeBytes[type]));
}

namespace {

/// What two ranks tell each other first.
struct Hello {
  int32_t rank = 0, ranks = 0, device = 0;
};

std::string nameOf(const cuda::NcclId &id, int rank) {
  return std::string(id.internal) + "-" + std::to_string(rank);
}

sockaddr_un addressOf(const std::string &name, socklen_t &length) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // An abstract name, which ends with its process.
  std::memcpy(address.sun_path + 1, name.data(),
              std::min(name.size(), sizeof(address.sun_path) - 1));
  length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

bool transferAll(int fd, void *data, size_t bytes, bool sends) {
  auto *at = static_cast<char *>(data);
  while (bytes > 0) {
    ssize_t count =
        sends ? ::send(fd, at, bytes, MSG_NOSIGNAL) : ::recv(fd, at, bytes, 0);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    at += count;
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

/// Returns a socket to a rank that listens already or will do so.
int dial(const cuda::NcclId &id, int rank) {
  socklen_t length = 0;
  sockaddr_un address = addressOf(nameOf(id, rank), length);
  for (;;) {
    int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<sockaddr *>(&address), length) == 0)
      return fd;
    ::close(fd);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

} // namespace

Meeting standin::connectAll(const cuda::NcclId &id, int rank, int ranks,
                            int device, std::vector<Peer> &peers) {
  socklen_t length = 0;
  sockaddr_un address = addressOf(nameOf(id, rank), length);
  int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(listener, reinterpret_cast<sockaddr *>(&address), length) != 0 ||
      ::listen(listener, ranks) != 0) {
    ::close(listener);
    return Meeting::Twice;
  }
  Meeting result = Meeting::Good;
  peers.resize(static_cast<size_t>(ranks));
  for (int i = 0; i + 1 < ranks && result == Meeting::Good; ++i) {
    int fd = i < rank ? dial(id, i)
                      : ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    Hello own = {rank, ranks, device}, other;
    if (!transferAll(fd, &own, sizeof(own), true) ||
        !transferAll(fd, &other, sizeof(other), false)) {
      result = Meeting::Gone;
      break;
    }
    if (other.ranks != ranks || other.device == device)
      result = Meeting::Differs;
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    peers[static_cast<size_t>(other.rank)].fd = fd;
  }
  ::close(listener);
  return result;
}
