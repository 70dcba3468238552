//===- DeviceArrays.cpp - arrays and weights that stay on a device --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// DLPack both ways: arrays of a device come in by capsules, and weights go out
// as arrays that hold their step. Python has put them into the order of a
// stream before (python/ckopt/_device.py).
//
//===----------------------------------------------------------------------===//
#include "Step.h"

using namespace ckopt;
using namespace ckopt::python;

DeviceArray GivenArray::named(std::string name, void *stream) const {
  DeviceArray result;
  result.name = std::move(name);
  result.dtype = dtype;
  result.data = const_cast<void *>(array.data());
  result.stream = own ? own : stream;
  for (size_t i = 0; i < array.ndim(); ++i) {
    result.shape.push_back(int64_t(array.shape(i)));
    result.strides.push_back(array.stride(i));
  }
  return result;
}

GivenBatch python::toBatch(const nb::dict &arrays, const Step &step) {
  GivenBatch batch;
  nb::dict host;
  for (auto [key, value] : arrays)
    if (nb::isinstance<GivenArray>(value))
      batch.onDevice.push_back(nb::cast<GivenArray &>(value).named(
          nb::cast<std::string>(key), step.stream()));
    else
      host[key] = value;
  batch.host = toTensors(host);
  return batch;
}

llvm::Error Step::order(StepRun &of, bool before) {
  if (!hasViews)
    return llvm::Error::success();
  return before ? of.waitFor(callers) : of.letWait(callers);
}

void Step::setStream(uintptr_t given) {
  // Who read in the old one is waited for.
  check(plain([&](StepRun &run) { return order(run, /*before=*/true); }),
        words);
  callers = reinterpret_cast<void *>(given);
}

void Step::letStreamWait() {
  hasViews = true;
  check(plain([&](StepRun &run) { return order(run, /*before=*/false); }),
        words);
}

HostTensor Step::toHost(const GivenArray &given) {
  DeviceArray array = given.named("array", callers);
  return take(plain([&](StepRun &run) { return run.readArray(array); }), words);
}

/// Weights by name, read-only, as arrays without a library that hold the step.
static nb::dict viewWeights(nb::handle_t<Step> self) {
  Step &step = nb::cast<Step &>(self);
  auto places = step.locked([](StepRun &run) { return run.locateWeights(); });
  nb::dict result;
  for (const WeightPlace &place : places) {
    std::vector<size_t> shape(place.spec.shape.begin(), place.spec.shape.end());
    bool isHost = place.device < 0;
    nb::ndarray<nb::array_api, nb::ro> array(
        place.data, shape.size(), shape.data(), self, place.strides.data(),
        dlpackOf(place.spec.dtype),
        isHost ? nb::device::cpu::value : nb::device::cuda::value,
        isHost ? 0 : place.device);
    result[place.spec.name.c_str()] =
        std::tuple(array.cast(), std::string(dtypeName(place.spec.dtype)),
                   place.spec.shape);
  }
  return result;
}

/// An array that says where it is, and in which stream (0: in that of the
/// step).
static GivenArray arrayAt(nb::handle owner, uintptr_t data,
                          const std::vector<size_t> &shape,
                          const std::vector<int64_t> &strides,
                          std::pair<int, int> type, int device,
                          uintptr_t stream) {
  const nb::dlpack::dtype element = {uint8_t(type.first), uint8_t(type.second),
                                     1};
  auto known = typeOf(element);
  if (!known || strides.size() != shape.size())
    throw Failure{ExitInputError,
                  "elements are of a type that ckopt does not know"};
  return {GivenArray::Array(reinterpret_cast<void *>(data), shape.size(),
                            shape.data(), owner, strides.data(), element,
                            nb::device::cuda::value, device),
          *known, reinterpret_cast<void *>(stream)};
}

void python::bindDevice(nb::module_ &module, nb::class_<Step> &step) {
  nb::class_<GivenArray>(module, "DeviceArray")
      .def(
          "__init__",
          [](GivenArray *self, GivenArray::Array array) {
            auto type = typeOf(array.dtype());
            if (!type)
              throw Failure{ExitInputError,
                            "elements are of a type that ckopt does not know"};
            new (self) GivenArray{std::move(array), *type};
          },
          nb::arg("array").noconvert())
      .def_static("at", arrayAt, nb::arg("owner"), nb::arg("data"),
                  nb::arg("shape"), nb::arg("strides"), nb::arg("type"),
                  nb::arg("device"), nb::arg("stream"))
      .def_prop_ro("device",
                   [](GivenArray &self) { return self.array.device_id(); })
      .def_prop_ro("dtype",
                   [](GivenArray &self) {
                     return std::string(dtypeTable[size_t(self.dtype)].numpy);
                   })
      .def_prop_ro("shape",
                   [](GivenArray &self) {
                     return nb::tuple(nb::cast(self.named("", {}).shape));
                   })
      .def_prop_ro("strides",
                   [](GivenArray &self) {
                     return nb::tuple(nb::cast(self.named("", {}).strides));
                   })
      .def_prop_ro("ndim", [](GivenArray &self) { return self.array.ndim(); })
      .def("__len__", [](GivenArray &self) {
        return self.array.ndim() ? self.array.shape(0) : 0;
      });
  step.def_prop_ro("device", [](Step &self) {
    return self.plain([](StepRun &run) { return run.device(); });
  });
  step.def("set_stream", &Step::setStream, nb::arg("stream"));
  step.def("let_stream_wait", &Step::letStreamWait);
  step.def(
      "to_host",
      [](Step &self, const GivenArray &array) {
        TensorMap one;
        one.set("array", self.toHost(array));
        return nb::object(toArrays(std::move(one))["array"]);
      },
      nb::arg("array"));
  step.def("views", &viewWeights);
}
