//===- Backend.cpp - where a session's arena lies and its steps run -------===//
#include "Backend.h"

using namespace ckopt::runtime;

Backend::~Backend() = default;
