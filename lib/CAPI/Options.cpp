//===- Options.cpp - options and models, in C -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Handles.h"

#include "ckopt/Planner/Request.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <charconv>
#include <cstdlib>

using namespace ckopt;
using namespace ckopt::capi;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static ckopt_status createOptions(ckopt_options **options, bool graph) {
  return guarded([&]() -> llvm::Error {
    if (!options)
      return misuse("the result is NULL");
    *options = nullptr;
    auto made = std::make_unique<ckopt_options>();
    made->graph = graph;
    made->help = graph ? planner::requestHelp(SettingStyle::Named)
                       : settingsHelp(SettingStyle::Named);
    *options = made.release();
    return llvm::Error::success();
  });
}

ckopt_status ckopt_options_create(ckopt_options **options) {
  return createOptions(options, /*graph=*/false);
}

ckopt_status ckopt_options_create_for_graph(ckopt_options **options) {
  return createOptions(options, /*graph=*/true);
}

void ckopt_options_destroy(ckopt_options *options) { delete options; }

const char *ckopt_options_help(const ckopt_options *options) {
  return options ? options->help.c_str() : nullptr;
}

static llvm::Error setOption(ckopt_options *options, const char *name,
                             std::string value) {
  if (!options || !name)
    return misuse("the options or the name are NULL");
  // The flag table would take what follows an equals sign for the value.
  if (!llvm::all_of(llvm::StringRef(name),
                    [](char c) { return llvm::isAlnum(c) || c == '-'; }))
    return usageError("'" + llvm::Twine(name) +
                      "' is no option: names have letters, digits and dashes");
  GivenSetting setting(name, std::move(value));
  if (llvm::Error error = options->graph
                              ? planner::readRequest(setting).takeError()
                              : checkSetting(setting))
    return error;
  options->settings.push_back(std::move(setting));
  return llvm::Error::success();
}

ckopt_status ckopt_options_set(ckopt_options *options, const char *name,
                               const char *value) {
  return guarded([&] { return setOption(options, name, value ? value : ""); });
}

ckopt_status ckopt_options_set_int(ckopt_options *options, const char *name,
                                   int64_t value) {
  return guarded([&] { return setOption(options, name, llvm::itostr(value)); });
}

ckopt_status ckopt_options_set_real(ckopt_options *options, const char *name,
                                    double value) {
  return guarded([&]() -> llvm::Error {
    char text[32]; // the shortest text that is read as this number
    auto end = std::to_chars(text, text + sizeof(text), value).ptr;
    return setOption(options, name, std::string(text, end));
  });
}

ckopt_status ckopt_options_set_message_handler(ckopt_options *options,
                                               ckopt_message_handler handler,
                                               void *user) {
  return guarded([&]() -> llvm::Error {
    if (!options)
      return misuse("the options are NULL");
    options->handler = handler;
    options->user = user;
    options->print = false;
    return llvm::Error::success();
  });
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void Messages::add(const Message &message) {
  if (message.severity != Message::Severity::Note)
    kind = message.severity;
  Message said = message;
  said.text = nameGivenBytes(message.text, temporary).in(SettingStyle::Named);
  errors.add(message);
  if (handler)
    handler(user, int32_t(said.severity), said.where.c_str(),
            said.text.inShell().c_str());
  else if (print && kind == Message::Severity::Warning)
    printMessage(said);
}

llvm::Error Messages::explain(llvm::Error error) {
  MessageText before = errors.take();
  if (!error)
    return error;
  ErrorText text = takeErrorText(std::move(error));
  return makeError(text.code, nameGivenBytes(text.after(before), temporary));
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

ModelFile::~ModelFile() {
  if (folder.empty())
    return;
  llvm::sys::fs::remove(path);
  llvm::sys::fs::remove(folder);
}

static llvm::Error makeModel(std::unique_ptr<ModelFile> file,
                             ckopt_model **model) {
  *model = new ckopt_model{std::move(file)};
  return llvm::Error::success();
}

ckopt_status ckopt_model_from_file(const char *path, ckopt_model **model) {
  return guarded([&]() -> llvm::Error {
    if (!model)
      return misuse("the result is NULL");
    *model = nullptr;
    if (!path)
      return misuse("the path is NULL");
    auto file = std::make_unique<ModelFile>();
    file->path = path;
    return makeModel(std::move(file), model);
  });
}

static llvm::Error writeTemporary(llvm::StringRef bytes, ModelFile &file) {
  llvm::SmallString<128> folder;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, folder);
  llvm::sys::path::append(folder, "ckopt-XXXXXX");
  std::string name = folder.str().str();
  if (!mkdtemp(name.data()))
    return ioError("cannot make a folder '" + name + "'");
  file.folder = name;
  file.path = file.folder + "/model.onnx";
  std::error_code code;
  llvm::raw_fd_ostream out(file.path, code);
  if (!code) {
    out << bytes;
    out.close();
    code = out.error();
    out.clear_error();
  }
  if (code)
    return ioError("cannot write '" + file.path + "': " + code.message());
  return llvm::Error::success();
}

ckopt_status ckopt_model_from_memory(const void *data, size_t bytes,
                                     ckopt_model **model) {
  return guarded([&]() -> llvm::Error {
    if (!model)
      return misuse("the result is NULL");
    *model = nullptr;
    if (!data)
      return misuse("the bytes are NULL");
    auto file = std::make_unique<ModelFile>();
    if (llvm::Error error = writeTemporary(
            llvm::StringRef(static_cast<const char *>(data), bytes), *file))
      return error;
    return makeModel(std::move(file), model);
  });
}

void ckopt_model_destroy(ckopt_model *model) { delete model; }

llvm::Expected<Request> capi::readRequest(const ckopt_model *model,
                                          const ckopt_options *options) {
  if (!model)
    return misuse("the model is NULL");
  if (options && options->graph)
    return misuse("the options are those of ckopt_plan_graph");
  auto settings =
      readSettings(model->file->path,
                   options ? options->settings : std::vector<GivenSetting>());
  if (!settings)
    return settings.takeError();
  auto messages = std::make_shared<Messages>();
  if (options) {
    messages->handler = options->handler;
    messages->user = options->user;
    messages->print = options->print;
  }
  if (!model->file->folder.empty()) {
    messages->temporary = model->file->path;
    settings->compile.modelName = kGivenAsBytes;
  }
  settings->compile.messages = [messages](const Message &message) {
    messages->add(message);
  };
  return Request{model->file, messages, std::move(*settings)};
}
