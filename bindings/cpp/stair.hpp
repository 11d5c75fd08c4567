/// \file
/// libstair for C++17: which section of this document answers this question.
///
///     stair::model model = stair::model::open("stair.gguf");
///     stair::index index = stair::index::open("handbook.stair");
///     stair::retriever retriever = stair::retriever::make(model, index);
///     for (const stair::hit& hit : retriever.retrieve("How do I claim a receipt?")) {
///         std::cout << hit.identifier() << "  " << hit.log_prob << '\n';
///     }
///
/// A thin, header-only layer over `stair.h`; link with libstair. It adds ownership, types and
/// errors, and no behaviour of its own.
///
/// **Two forms.** Every operation that can fail has two: `open(...)` throws `stair::error`, and
/// `try_open(...)` returns a `stair::result`, which is `std::expected<T, stair::error>` where the
/// standard library has it and a small class with the same accessors elsewhere. With
/// `STAIR_NO_EXCEPTIONS` defined, or exceptions switched off in the compiler, the first form does
/// not exist. (Running out of memory inside the standard library still throws `std::bad_alloc`,
/// or ends the process where there are no exceptions.)
///
/// **Ownership.** `model`, `index`, `retriever`, `results` and `cancel_source` own one handle each:
/// they move, they do not copy, and they free it when they go. They may go in any order: a
/// retriever keeps what it needs of its model and its index. An object that was moved from only
/// takes an assignment or its destructor; a call on it fails with `errc::null_pointer`.
///
/// **Text.** All text is UTF-8, in and out. What is passed in is not kept. A `std::string_view`
/// that is handed out lives as long as the object that it came from says; copy it to keep it
/// longer. Moving that object does not end the view.
///
/// **Threads.** Const member functions may be called from any number of threads at once: share one
/// `retriever` among all of them, and their questions share the model's work. Assigning to an
/// object or destroying it needs the usual exclusive access.
///
/// **Mixed files.** Files of one program may be compiled with and without exceptions, and with and
/// without `std::expected`. An error that one of them throws is caught in any other, and they may
/// hand each other errors, tokens, options and plain data. What depends on the form of `result`
/// they cannot exchange: `result` itself, `model`, `index`, `results` and `retriever` are other
/// types there, and a program that tries does not link. For the same reason these cannot be
/// declared ahead as `namespace stair { class model; }`: include this header. A file with neither
/// exceptions nor RTTI has an `error` of its own as well. One with exceptions and `-fno-rtti` throws what
/// others catch, but `dynamic_cast` to `error` may crash in a program that has such a file: give it RTTI.
///
/// **Versions.** The first call compares the ABI version of the loaded library with the one that
/// this header was compiled against; if they differ, it fails with `errc::struct_size` and a
/// message that names both.

#ifndef STAIR_HPP
#define STAIR_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#if __has_include(<version>)
#include <version>
#endif

#include "stair.h"

#if !defined(STAIR_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define STAIR_NO_EXCEPTIONS 1
#endif
#ifdef __cpp_lib_expected
#include <expected>
#endif

// What the operations return depends on how a file is compiled, and so do the classes that have them.
// For each combination they lie in an inline namespace of their own, so that the linker never takes
// one for the other. Everything else is the same in all files, and must read the same there: no #if.
//
// A file with neither exceptions nor RTTI throws no error, but its vtable of `error` has no type in
// it. It is kept apart too: where the linker chose it for all files, their dynamic_cast would crash.
#if defined(STAIR_NO_EXCEPTIONS) && !defined(__cpp_rtti)
#define STAIR_DETAIL_NO_RTTI 1
#endif
#if defined(__cpp_lib_expected) && defined(STAIR_DETAIL_NO_RTTI)
#define STAIR_DETAIL_FLAVOUR expected_only_no_rtti
#elif defined(__cpp_lib_expected) && defined(STAIR_NO_EXCEPTIONS)
#define STAIR_DETAIL_FLAVOUR expected_only
#elif defined(__cpp_lib_expected)
#define STAIR_DETAIL_FLAVOUR throwing_expected
#elif defined(STAIR_DETAIL_NO_RTTI)
#define STAIR_DETAIL_FLAVOUR result_only_no_rtti
#elif defined(STAIR_NO_EXCEPTIONS)
#define STAIR_DETAIL_FLAVOUR result_only
#else
#define STAIR_DETAIL_FLAVOUR throwing_result
#endif

namespace stair {

// ---------------------------------------------------------------------------------------- errors

/// What kind of thing went wrong; the numbers are those of `STAIR_ERR_*` and never change.
enum class errc : std::int32_t {
  invalid_argument = STAIR_ERR_INVALID_ARGUMENT,        ///< outside its documented range
  null_pointer = STAIR_ERR_NULL_POINTER,                ///< here: an object that was moved from
  invalid_utf8 = STAIR_ERR_INVALID_UTF8,                ///< a text is not UTF-8
  nul_in_question = STAIR_ERR_NUL_IN_QUESTION,          ///< a question contains a NUL character
  empty_question = STAIR_ERR_EMPTY_QUESTION,            ///< a question has no visible character
  question_too_long = STAIR_ERR_QUESTION_TOO_LONG,      ///< more tokens than the room kept for it
  invalid_k = STAIR_ERR_INVALID_K,                      ///< k is 0 or above the number of leaves
  struct_size = STAIR_ERR_STRUCT_SIZE,                  ///< header and library do not fit together
  invalid_handle = STAIR_ERR_INVALID_HANDLE,            ///< freed, or of another kind
  io = STAIR_ERR_IO,                                    ///< a file could not be read or written
  not_found = STAIR_ERR_NOT_FOUND,                      ///< a file does not exist
  permission_denied = STAIR_ERR_PERMISSION_DENIED,      ///< the file system refused access
  not_a_file = STAIR_ERR_NOT_A_FILE,                    ///< not a regular file
  document = STAIR_ERR_DOCUMENT,                        ///< a document is not in its format
  no_headings = STAIR_ERR_NO_HEADINGS,                  ///< nothing to retrieve in a document
  template_ = STAIR_ERR_TEMPLATE,                       ///< a prompt template is not usable
  tokenizer = STAIR_ERR_TOKENIZER,                      ///< a tokenizer is not usable
  unstable_boundary = STAIR_ERR_UNSTABLE_BOUNDARY,      ///< a title's tokens depend on the prompt
  too_large = STAIR_ERR_TOO_LARGE,                      ///< beyond a limit of the index format
  not_an_index = STAIR_ERR_NOT_AN_INDEX,                ///< not a .stair file
  index_version = STAIR_ERR_INDEX_VERSION,              ///< a format version that is not read here
  index_corrupt = STAIR_ERR_INDEX_CORRUPT,              ///< truncated or damaged
  questions = STAIR_ERR_QUESTIONS,                      ///< a file of questions is not usable
  not_a_model = STAIR_ERR_NOT_A_MODEL,                  ///< not a GGUF file
  model_corrupt = STAIR_ERR_MODEL_CORRUPT,              ///< truncated or damaged
  model_architecture = STAIR_ERR_MODEL_ARCHITECTURE,    ///< unknown, or does not generate text
  model_vocabulary = STAIR_ERR_MODEL_VOCABULARY,        ///< no usable vocabulary in the model
  model_load = STAIR_ERR_MODEL_LOAD,                    ///< refused by llama.cpp
  vocabulary_mismatch = STAIR_ERR_VOCABULARY_MISMATCH,  ///< index built for another vocabulary
  backend = STAIR_ERR_BACKEND,                          ///< no compute backend could be loaded
  adapter = STAIR_ERR_ADAPTER,                          ///< not one, or not for this model
  context_too_small = STAIR_ERR_CONTEXT_TOO_SMALL,      ///< for contents, question and search
  cancelled = STAIR_ERR_CANCELLED,                      ///< by the caller
  timeout = STAIR_ERR_TIMEOUT,                          ///< the deadline passed
  out_of_memory = STAIR_ERR_OUT_OF_MEMORY,              ///< memory ran out
  decode = STAIR_ERR_DECODE,                            ///< llama.cpp failed to decode
  closed = STAIR_ERR_CLOSED,                            ///< the retriever was closed
  busy = STAIR_ERR_BUSY,                                ///< too many questions wait already
  internal = STAIR_ERR_INTERNAL,                        ///< a bug: please report it
  panic = STAIR_ERR_PANIC,                              ///< a bug: please report it
};

/// The code's name, the same in every language: `"VOCABULARY_MISMATCH"`. Static.
inline const char* name(errc code) noexcept {
  return stair_status_name(static_cast<stair_status>(code));
}

#ifdef STAIR_DETAIL_NO_RTTI
inline namespace no_rtti {
#endif

/// What went wrong; `what()` says the cause and the remedy.
class error : public std::runtime_error {
 public:
  error(errc code, const std::string& message) : std::runtime_error(message), code_(code) {}

  /// The kind of error, to branch on.
  errc code() const noexcept { return code_; }
  /// The name of `code()`, such as `"NOT_FOUND"`. Static.
  const char* name() const noexcept { return stair::name(code_); }

 private:
  errc code_;
};

#ifdef STAIR_DETAIL_NO_RTTI
}  // namespace no_rtti
#endif

namespace detail {
inline namespace STAIR_DETAIL_FLAVOUR {

#ifdef __cpp_lib_expected
using failure = std::unexpected<error>;
#else
struct failure {
  explicit failure(stair::error reason) : error(std::move(reason)) {}
  stair::error error;
};
#endif

}  // namespace STAIR_DETAIL_FLAVOUR
}  // namespace detail

inline namespace STAIR_DETAIL_FLAVOUR {

#ifdef __cpp_lib_expected

/// What a `try_` function returns: a `T` or an `error`.
template <class T>
using result = std::expected<T, error>;

#else

/// What a `try_` function returns: a `T` or an `error`. It has `has_value`, `*`, `->`, `error` and
/// `value_or` of `std::expected`, with the same preconditions: look before you read.
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(detail::failure failure) : state_(std::in_place_index<1>, std::move(failure.error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// The value. Undefined unless `has_value()`.
  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  /// The value, or `other` if there is none.
  template <class U>
  T value_or(U&& other) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(other));
  }
  template <class U>
  T value_or(U&& other) && {
    return has_value() ? *std::move(*this) : static_cast<T>(std::forward<U>(other));
  }

  /// The error. Undefined if `has_value()`.
  stair::error& error() & noexcept { return *std::get_if<1>(&state_); }
  const stair::error& error() const& noexcept { return *std::get_if<1>(&state_); }
  stair::error&& error() && noexcept { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, stair::error> state_;
};

/// Of a function that returns nothing: done, or an `error`.
template <>
class [[nodiscard]] result<void> {
 public:
  result() = default;
  result(detail::failure failure) : error_(std::move(failure.error)) {}

  bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  /// Nothing. Undefined unless `has_value()`.
  void operator*() const noexcept {}

  /// The error. Undefined if `has_value()`.
  stair::error& error() & noexcept { return *error_; }
  const stair::error& error() const& noexcept { return *error_; }
  stair::error&& error() && noexcept { return *std::move(error_); }

 private:
  std::optional<stair::error> error_;
};

#endif  // __cpp_lib_expected

}  // namespace STAIR_DETAIL_FLAVOUR

namespace detail {

struct releaser {
  void operator()(stair_error* handle) const noexcept { stair_error_free(handle); }
  void operator()(stair_model* handle) const noexcept { stair_model_free(handle); }
  void operator()(stair_index* handle) const noexcept { stair_index_free(handle); }
  void operator()(stair_retriever* handle) const noexcept { stair_retriever_free(handle); }
  void operator()(stair_results* handle) const noexcept { stair_results_free(handle); }
  void operator()(stair_cancel* handle) const noexcept { stair_cancel_free(handle); }
};

template <class T>
using handle = std::unique_ptr<T, releaser>;

/// A text of C, which may be NULL where its length is 0.
inline std::string_view text(const char* data, std::size_t length) noexcept {
  return data == nullptr ? std::string_view() : std::string_view(data, length);
}

/// The data of a view, never NULL: an empty text is a text.
inline const char* data(std::string_view text) noexcept {
  return text.data() == nullptr ? "" : text.data();
}

inline namespace STAIR_DETAIL_FLAVOUR {

/// The error of a call that returned `status`; frees `raw`.
inline failure fail(stair_status status, stair_error* raw) {
  const handle<stair_error> owned(raw);
  std::size_t length = 0;
  const char* message = raw == nullptr ? nullptr : stair_error_message(raw, &length);
  return failure(error(static_cast<errc>(status),
                       message == nullptr ? std::string(stair_status_name(status))
                                          : std::string(message, length)));
}

/// Runs `call(error_out)`, which returns a status.
template <class Call>
result<void> run(Call call) {
  if (stair_abi_version() != STAIR_ABI_VERSION) {
    return failure(error(errc::struct_size,
                         "the program was compiled for ABI version " +
                             std::to_string(STAIR_ABI_VERSION) + " of libstair and has loaded " +
                             std::to_string(stair_abi_version()) +
                             ": use one version of header and library"));
  }
  stair_error* raw = nullptr;
  const stair_status status = call(&raw);
  if (status != STAIR_OK) return fail(status, raw);
  return {};
}

/// Runs `call(out, error_out)`, which makes a handle.
template <class Raw, class Call>
result<handle<Raw>> make(Call call) {
  Raw* out = nullptr;
  auto done = run([&](stair_error** error) { return call(&out, error); });
  if (!done) return failure(done.error());
  return handle<Raw>(out);
}

/// Runs `call(struct, error_out)`, which fills in a sized struct.
template <class Struct, class Call>
result<Struct> fill(Call call) {
  Struct out{};
  out.struct_size = sizeof out;
  auto done = run([&](stair_error** error) { return call(&out, error); });
  if (!done) return failure(done.error());
  return out;
}

#ifndef STAIR_NO_EXCEPTIONS
/// The value, or throws the error.
template <class T>
T value(result<T> result) {
  if (!result) throw stair::error(result.error());
  return *std::move(result);
}
inline void value(result<void> result) {
  if (!result) throw stair::error(result.error());
}
#endif

}  // namespace STAIR_DETAIL_FLAVOUR
}  // namespace detail

// -------------------------------------------------------------------------------------- versions

/// The version of the loaded library, such as `"0.1.0"`. Static.
inline std::string_view version() noexcept { return stair_version(); }

/// What the loaded library was built with and from. Static.
inline std::string_view build_info() noexcept { return stair_build_info(); }

// ---------------------------------------------------------------------------------- cancellation

/// Looks at a `cancel_source`. Copies are cheap and keep what they look at alive, so a token may
/// outlive its source. A default-constructed token is never cancelled.
class cancel_token {
 public:
  cancel_token() = default;

  /// Whether the source was cancelled. Any thread.
  bool cancelled() const noexcept { return stair_cancel_triggered(handle_.get()) != 0; }

  /// For calls into the C API; NULL for a default-constructed token.
  const stair_cancel* native_handle() const noexcept { return handle_.get(); }

 private:
  friend class cancel_source;
  explicit cancel_token(std::shared_ptr<stair_cancel> handle) : handle_(std::move(handle)) {}

  std::shared_ptr<stair_cancel> handle_;
};

/// Cancels, from any thread, the calls that were given its token. Cancelling is for good: one
/// source for each thing that is to be cancelled. A cancelled call returns after at most one step
/// of the model, with `errc::cancelled`.
class cancel_source {
 public:
  cancel_source() : token_(allocate()) {}
  cancel_source(cancel_source&&) noexcept = default;
  cancel_source& operator=(cancel_source&&) noexcept = default;
  cancel_source(const cancel_source&) = delete;
  cancel_source& operator=(const cancel_source&) = delete;

  /// Cancels. Any thread, any number of times, and from a signal handler.
  void cancel() const noexcept { stair_cancel_trigger(token_.native_handle()); }

  /// Whether it was cancelled. Any thread.
  bool cancelled() const noexcept { return token_.cancelled(); }

  /// What to give to the calls that this source cancels.
  cancel_token token() const noexcept { return token_; }

 private:
  static cancel_token allocate() {
    stair_cancel* handle = stair_cancel_new();
    // The standard library throws std::bad_alloc, or ends the process where it does not throw.
    if (handle == nullptr) static_cast<void>(std::allocator<char>().allocate(SIZE_MAX));
    return cancel_token(std::shared_ptr<stair_cancel>(handle, detail::releaser()));
  }

  cancel_token token_;
};

// ----------------------------------------------------------------------------------------- model

/// How to load a model.
struct model_options {
  /// Layers to keep on the GPU: 0 = all of them if there is one, -1 = none, n = n of them.
  std::int32_t gpu_layers = 0;
  /// Map the file rather than read it. Off for network drives.
  bool memory_map = true;
  /// Load the vocabulary alone: enough to build indexes, too little to answer.
  bool vocabulary_only = false;
  /// Memory, in bytes, of the contexts of all retrievers with this model; 0: what they need. With less,
  /// the one that was asked longest ago gives way, and comes back at its next question.
  std::uint64_t context_memory = 0;
};

/// What a model is.
struct model_info {
  std::uint32_t vocab_size;       ///< in tokens
  std::uint32_t context_length;   ///< in tokens, as it was trained
  std::uint64_t parameters;       ///< their number; 0 for a vocabulary
  std::uint64_t bytes;            ///< of its tensors; 0 for a vocabulary
  std::uint64_t fingerprint;      ///< of its vocabulary; compare with that of an index
  std::string_view architecture;  ///< such as `"llama"`; lives as long as the model
};

inline namespace STAIR_DETAIL_FLAVOUR {

/// A GGUF model. Loading takes a while; share one among all retrievers.
class model {
 public:
  /// Loads the model at `path`. Cancellable.
  static result<model> try_open(std::string_view path, const model_options& options = {},
                                const cancel_token& cancel = {}) {
    stair_model_options raw{};
    raw.struct_size = sizeof raw;
    raw.gpu_layers = options.gpu_layers;
    raw.disable_mmap = options.memory_map ? 0 : 1;
    raw.vocabulary_only = options.vocabulary_only ? 1 : 0;
    raw.context_memory = options.context_memory;
    auto made = detail::make<stair_model>([&](stair_model** out, stair_error** error) {
      return stair_model_open(detail::data(path), path.size(), &raw, cancel.native_handle(), out,
                              error);
    });
    if (!made) return detail::failure(made.error());
    return model(*std::move(made));
  }

  /// What it is.
  result<model_info> try_info() const {
    const auto raw = detail::fill<stair_model_info>([&](auto* out, stair_error** error) {
      return stair_model_get_info(handle_.get(), out, error);
    });
    if (!raw) return detail::failure(raw.error());
    return model_info{raw->vocab_size,  raw->context_length,
                      raw->parameters,  raw->bytes,
                      raw->fingerprint, detail::text(raw->architecture, raw->architecture_len)};
  }

#ifndef STAIR_NO_EXCEPTIONS
  /// As `try_open`, but throws.
  static model open(std::string_view path, const model_options& options = {},
                    const cancel_token& cancel = {}) {
    return detail::value(try_open(path, options, cancel));
  }
  /// As `try_info`, but throws.
  model_info info() const { return detail::value(try_info()); }
#endif

  /// For calls into the C API. Still owned by this object.
  const stair_model* native_handle() const noexcept { return handle_.get(); }

 private:
  explicit model(detail::handle<stair_model> handle) : handle_(std::move(handle)) {}

  detail::handle<stair_model> handle_;
};

}  // namespace STAIR_DETAIL_FLAVOUR

// ----------------------------------------------------------------------------------------- index

/// How to hold an index file in memory.
enum class access : std::uint32_t {
  mapped = 0,                 ///< map it: nothing to load, and shared with other processes
  copied = STAIR_INDEX_COPY,  ///< read it: for files that somebody might overwrite or truncate
};

/// What a document is written in.
enum class document_format : std::uint32_t {
  markdown = STAIR_FORMAT_MARKDOWN,  ///< Markdown: its headings are the table of contents
  toc_json = STAIR_FORMAT_TOC_JSON,  ///< a `toc.json`: the table of contents alone
};

/// How to build an index.
struct build_options {
  document_format format = document_format::markdown;
  /// The title of the document. Empty: the document's own.
  std::string_view title = {};
  /// Keep the text of the sections in the index, so that hits come with it.
  bool keep_text = true;
  /// Keep cover, copyright and contents as sections.
  bool keep_front_matter = false;
  /// Questions that sections are known to answer: the text of a file of questions, a JSON object
  /// with `id`, `query`, `section` and `split` a line. Their words then count for their sections in
  /// every lexical score. Empty: none.
  std::string_view questions = {};
  /// The split of them to take.
  std::string_view split = "train";
};

/// What an index holds.
struct index_info {
  std::uint32_t sections;       ///< their number; ids run from 0
  std::uint32_t leaves;         ///< those that can be answers; the most that `k` can be
  std::uint32_t trie_nodes;     ///< in the token trie of the titles
  std::uint32_t longest_title;  ///< in tokens
  std::uint32_t prefix_tokens;  ///< of the prompt up to the question
  std::uint32_t vocab_size;     ///< of the vocabulary it was built for
  bool has_text;                ///< whether it keeps the text of the sections
  std::uint64_t fingerprint;    ///< of the vocabulary it was built for
  std::uint64_t bytes;          ///< of the whole file
  std::string_view title;       ///< of the document; as long as the index; empty from `peek`
  std::uint32_t version_major;  ///< of the file format
  std::uint32_t version_minor;  ///< of the file format
};

/// A section of a document. The views live as long as the index.
struct section {
  std::uint32_t id;                      ///< in order of the document, from 0
  std::optional<std::uint32_t> parent;   ///< the id of the section that this one is part of
  std::uint32_t depth;                   ///< 0 for a section that is part of no other
  bool leaf;                             ///< whether it can be an answer
  std::optional<std::uint32_t> page;     ///< where the document has pages
  std::uint64_t span_start;              ///< its first byte in the document
  std::uint64_t span_end;                ///< the byte after its last
  std::string_view number;               ///< such as `"4.2"`; may be empty
  std::string_view title;                ///< without the number
  std::optional<std::string_view> text;  ///< where the index keeps it
};

inline namespace STAIR_DETAIL_FLAVOUR {

/// The index of one document: its table of contents, ready to be searched. Immutable.
class index {
 public:
  /// Opens and validates the index at `path`. A mapped file must stay as it is while it is open;
  /// replace it by renaming another one over it, or open it with `access::copied`.
  static result<index> try_open(std::string_view path, access how = access::mapped) {
    return make([&](stair_index** out, stair_error** error) {
      return stair_index_open(detail::data(path), path.size(), static_cast<std::uint32_t>(how), out,
                              error);
    });
  }

  /// Opens and validates the `size` bytes of an index at `data`. They are copied.
  static result<index> try_open_buffer(const void* data, std::size_t size) {
    // An empty container may have no data; that is no bytes, not no pointer.
    const void* bytes = size == 0 ? "" : data;
    return make([&](stair_index** out, stair_error** error) {
      return stair_index_open_buffer(static_cast<const std::uint8_t*>(bytes), size, out, error);
    });
  }

  /// Builds the index of `document` for the vocabulary of `model`.
  static result<index> try_build(const model& model, std::string_view document,
                                 const build_options& options = {}) {
    stair_build_options raw{};
    raw.struct_size = sizeof raw;
    raw.format = static_cast<std::uint32_t>(options.format);
    raw.omit_text = options.keep_text ? 0 : 1;
    raw.keep_front_matter = options.keep_front_matter ? 1 : 0;
    raw.questions = options.questions.empty() ? nullptr : options.questions.data();
    raw.questions_len = options.questions.size();
    raw.split = detail::data(options.split);
    raw.split_len = options.split.size();
    const char* title = options.title.empty() ? nullptr : options.title.data();
    return make([&](stair_index** out, stair_error** error) {
      return stair_index_build(model.native_handle(), detail::data(document), document.size(),
                               title, options.title.size(), &raw, out, error);
    });
  }

  /// What the index at `path` holds, from its header alone: no validation, no title.
  static result<index_info> try_peek(std::string_view path) {
    return info_of([&](stair_index_info* out, stair_error** error) {
      return stair_index_peek(detail::data(path), path.size(), out, error);
    });
  }

  /// Writes it to `path`, whole or not at all: a file that is there already is replaced by rename.
  result<void> try_save(std::string_view path) const {
    return detail::run([&](stair_error** error) {
      return stair_index_save(handle_.get(), detail::data(path), path.size(), error);
    });
  }

  /// What it holds.
  result<index_info> try_info() const {
    return info_of([&](stair_index_info* out, stair_error** error) {
      return stair_index_get_info(handle_.get(), out, error);
    });
  }

  /// The section with this id.
  result<stair::section> try_section(std::uint32_t id) const {
    const auto raw = detail::fill<stair_section>([&](stair_section* out, stair_error** error) {
      return stair_index_section(handle_.get(), id, out, error);
    });
    if (!raw) return detail::failure(raw.error());
    stair::section section{};
    section.id = raw->id;
    if (raw->parent != STAIR_NONE) section.parent = raw->parent;
    section.depth = raw->depth;
    section.leaf = raw->leaf != 0;
    if (raw->page != STAIR_NONE) section.page = raw->page;
    section.span_start = raw->span_start;
    section.span_end = raw->span_end;
    section.number = detail::text(raw->number, raw->number_len);
    section.title = detail::text(raw->title, raw->title_len);
    if (raw->text != nullptr) section.text = detail::text(raw->text, raw->text_len);
    return section;
  }

  /// All sections in order of the document: the table of contents. A section's place is its id.
  result<std::vector<stair::section>> try_sections() const {
    const auto info = try_info();
    if (!info) return detail::failure(info.error());
    std::vector<stair::section> sections;
    sections.reserve(info->sections);
    for (std::uint32_t id = 0; id < info->sections; ++id) {
      auto section = try_section(id);
      if (!section) return detail::failure(section.error());
      sections.push_back(*section);
    }
    return sections;
  }

#ifndef STAIR_NO_EXCEPTIONS
  /// As `try_open`, but throws.
  static index open(std::string_view path, access how = access::mapped) {
    return detail::value(try_open(path, how));
  }
  /// As `try_open_buffer`, but throws.
  static index open_buffer(const void* data, std::size_t size) {
    return detail::value(try_open_buffer(data, size));
  }
  /// As `try_build`, but throws.
  static index build(const model& model, std::string_view document,
                     const build_options& options = {}) {
    return detail::value(try_build(model, document, options));
  }
  /// As `try_peek`, but throws.
  static index_info peek(std::string_view path) { return detail::value(try_peek(path)); }
  /// As `try_save`, but throws.
  void save(std::string_view path) const { detail::value(try_save(path)); }
  /// As `try_info`, but throws.
  index_info info() const { return detail::value(try_info()); }
  /// As `try_section`, but throws.
  stair::section section(std::uint32_t id) const { return detail::value(try_section(id)); }
  /// As `try_sections`, but throws.
  std::vector<stair::section> sections() const { return detail::value(try_sections()); }
#endif

  /// For calls into the C API. Still owned by this object.
  const stair_index* native_handle() const noexcept { return handle_.get(); }

 private:
  explicit index(detail::handle<stair_index> handle) : handle_(std::move(handle)) {}

  template <class Call>
  static result<index> make(Call call) {
    auto made = detail::make<stair_index>(call);
    if (!made) return detail::failure(made.error());
    return index(*std::move(made));
  }

  template <class Call>
  static result<index_info> info_of(Call call) {
    const auto raw = detail::fill<stair_index_info>(call);
    if (!raw) return detail::failure(raw.error());
    index_info info{};
    info.sections = raw->sections;
    info.leaves = raw->leaves;
    info.trie_nodes = raw->trie_nodes;
    info.longest_title = raw->longest_title;
    info.prefix_tokens = raw->prefix_tokens;
    info.vocab_size = raw->vocab_size;
    info.has_text = raw->has_text != 0;
    info.fingerprint = raw->fingerprint;
    info.bytes = raw->bytes;
    info.title = detail::text(raw->title, raw->title_len);
    info.version_major = raw->version_major;
    info.version_minor = raw->version_minor;
    return info;
  }

  detail::handle<stair_index> handle_;
};

}  // namespace STAIR_DETAIL_FLAVOUR

// --------------------------------------------------------------------------------------- results

/// A section that answers the question. The views live as long as the `results`.
struct hit {
  std::uint32_t section;                 ///< its id in the index
  double score;     ///< what it is ranked by: see `retrieve_options::lexical_weight`
  double log_prob;  ///< natural logarithm of its probability: 0 is certain; NaN without a model
  /// lexical score for the question: BM25 of number, title and text, and of passages and known
  /// questions; 0 when they share no word; NaN with a model and a `lexical_weight` of 0.
  double lexical;
  std::optional<std::uint32_t> page;     ///< where the document has pages
  std::uint64_t span_start;              ///< its first byte in the document
  std::uint64_t span_end;                ///< the byte after its last
  std::string_view number;               ///< such as `"4.2"`; may be empty
  std::string_view title;                ///< without the number
  std::optional<std::string_view> text;  ///< where the index keeps it
  /// From the outermost section to the hit itself, each as `"4.2 Claim window"`; never empty.
  std::vector<std::string_view> path;

  /// Number and title: `"4.2 Claim window"`.
  std::string_view identifier() const noexcept { return path.empty() ? title : path.back(); }
};

/// What an answer took.
struct statistics {
  std::uint32_t decodes;          ///< runs of the model that the question had a part in
  std::uint32_t question_tokens;  ///< of the question, with the template's own around it
  std::uint32_t search_tokens;    ///< that the search evaluated
  std::uint32_t prefix_tokens;    ///< of the contents, decoded for this question: 0 when warm
  std::uint32_t restored_tokens;  ///< of the contents, read from the warm file for this question
  /// How much of its probability the model gave to what this document allows, along the best hit,
  /// 0 to 1: low when it wanted something that is not in this document. NaN without a model.
  double legal_mass;
  double prefill_ms;  ///< milliseconds for the table of contents, decoded or read
  double search_ms;   ///< milliseconds for the question and the search
  double total_ms;    ///< milliseconds for the whole call, waiting included
};

inline namespace STAIR_DETAIL_FLAVOUR {

/// The answer to one question: a random-access range of `hit`, the best first. It stands
/// alone: retriever, index and model may go before it.
class results {
 public:
  using value_type = hit;
  using const_iterator = std::vector<hit>::const_iterator;
  using iterator = const_iterator;
  using size_type = std::size_t;

  const_iterator begin() const noexcept { return hits_.begin(); }
  const_iterator end() const noexcept { return hits_.end(); }
  std::size_t size() const noexcept { return hits_.size(); }
  bool empty() const noexcept { return hits_.empty(); }
  /// The hit of rank `i + 1`. Undefined unless `i < size()`.
  const hit& operator[](std::size_t i) const noexcept { return hits_[i]; }

  /// What it took.
  const statistics& stats() const noexcept { return stats_; }

  /// For calls into the C API. Still owned by this object.
  const stair_results* native_handle() const noexcept { return handle_.get(); }

 private:
  friend class retriever;
  explicit results(detail::handle<stair_results> handle) : handle_(std::move(handle)) {}

  static result<results> read(detail::handle<stair_results> handle) {
    results results(std::move(handle));
    const stair_results* raw = results.handle_.get();

    const auto stats = detail::fill<stair_stats>([&](stair_stats* out, stair_error** error) {
      return stair_results_stats(raw, out, error);
    });
    if (!stats) return detail::failure(stats.error());
    results.stats_ = {stats->decodes,       stats->question_tokens, stats->search_tokens,
                      stats->prefix_tokens, stats->restored_tokens, stats->legal_mass,
                      stats->prefill_ms,    stats->search_ms,       stats->total_ms};

    const std::size_t count = stair_results_count(raw);
    results.hits_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      auto hit = read_hit(raw, i);
      if (!hit) return detail::failure(hit.error());
      results.hits_.push_back(*std::move(hit));
    }
    return results;
  }

  static result<hit> read_hit(const stair_results* results, std::size_t i) {
    const auto raw = detail::fill<stair_hit>([&](stair_hit* out, stair_error** error) {
      return stair_results_get(results, i, out, error);
    });
    if (!raw) return detail::failure(raw.error());
    hit hit{};
    hit.section = raw->section;
    hit.score = raw->score;
    hit.log_prob = raw->log_prob;
    hit.lexical = raw->lexical;
    if (raw->page != STAIR_NONE) hit.page = raw->page;
    hit.span_start = raw->span_start;
    hit.span_end = raw->span_end;
    hit.number = detail::text(raw->number, raw->number_len);
    hit.title = detail::text(raw->title, raw->title_len);
    if (raw->text != nullptr) hit.text = detail::text(raw->text, raw->text_len);
    hit.path.reserve(raw->path_len);
    for (std::size_t entry = 0; entry < raw->path_len; ++entry) {
      const char* data = nullptr;
      std::size_t length = 0;
      auto done = detail::run([&](stair_error** error) {
        return stair_results_path(results, i, entry, &data, &length, error);
      });
      if (!done) return detail::failure(done.error());
      hit.path.push_back(detail::text(data, length));
    }
    return hit;
  }

  detail::handle<stair_results> handle_;
  std::vector<hit> hits_;
  statistics stats_{};
};

}  // namespace STAIR_DETAIL_FLAVOUR

// ------------------------------------------------------------------------------------- retriever

/// What keys and values of the context are kept as: memory against precision.
enum class kv_type : std::uint32_t {
  f16 = STAIR_KV_F16,    ///< the default
  q8_0 = STAIR_KV_Q8_0,  ///< half the memory, slightly different scores
  f32 = STAIR_KV_F32,    ///< twice the memory
};

/// How to make a retriever. 0 leaves a number to the library.
struct retriever_options {
  std::uint32_t threads = 0;              ///< that compute; 0: as many as the process may use
  std::uint32_t context_tokens = 0;       ///< 0: what contents, questions and search need
  std::uint32_t max_question_tokens = 0;  ///< the longest question; 0: 512
  std::uint32_t max_parallel = 0;         ///< questions that share the work; more wait; 0: 8
  std::uint32_t max_waiting = 0;          ///< that may wait; more get `errc::busy`; 0: 4,096
  stair::kv_type kv_type = stair::kv_type::f16;
  /// One question at a time: the same bits whatever else is asked.
  bool deterministic = false;
  /// A folder, in UTF-8, for the warm file: what the model remembers of the table of contents, written
  /// after the first answer and read by every later retriever of its kind, which then need not decode
  /// it. A file or folder that cannot be used is as none; the log says why. Empty: no file.
  std::string cache_dir;
};

/// How titles are scored.
enum class scoring : std::uint32_t {
  exact = STAIR_SCORING_EXACT,  ///< under the model's whole vocabulary
  local = STAIR_SCORING_LOCAL,  ///< among the tokens that titles allow: cheaper, ranks less well
};

/// How to answer a question.
struct retrieve_options {
  /// Hits to return, 1 to the number of leaves in the index. The default is 3, or all leaves when
  /// there are fewer.
  std::uint32_t k = STAIR_K_DEFAULT;
  stair::scoring scoring = stair::scoring::exact;
  /// Give up, with `errc::timeout`, after this time. 0: never, so give what is left until a deadline as 1
  /// at least. Rounded up to 1 ms if negative.
  std::chrono::milliseconds timeout{0};
  /// How much a section's words count beside what the model says: a hit is ranked by `log_prob` and
  /// this times `lexical`. 0 leaves the words out; else finite and above 0. Without a model only the
  /// words count, whatever it is.
  float lexical_weight = 0;
};

inline namespace STAIR_DETAIL_FLAVOUR {

/// Answers questions about one document, with a model or by words alone. Make one and share it among all threads.
class retriever {
 public:
  /// Pairs `model` and `index`; fails if the index was built for another vocabulary. The table of
  /// contents is decoded, or read from the warm file, for the first question, or by `warm`.
  static result<retriever> try_make(const model& model, const index& index,
                                    const retriever_options& options = {}) {
    stair_retriever_options raw{};
    raw.struct_size = sizeof raw;
    raw.threads = options.threads;
    raw.context_tokens = options.context_tokens;
    raw.max_question_tokens = options.max_question_tokens;
    raw.max_parallel = options.max_parallel;
    raw.max_waiting = options.max_waiting;
    raw.kv_type = static_cast<std::uint32_t>(options.kv_type);
    raw.deterministic = options.deterministic ? 1 : 0;
    raw.cache_dir = options.cache_dir.data();
    raw.cache_dir_len = options.cache_dir.size();
    // Without a model the C function makes a retriever by words alone, which nobody asked for here.
    if (model.native_handle() == nullptr) {
      return detail::failure(
          error(errc::null_pointer, "the model was moved from: pass one that is open"));
    }
    return make_raw(model.native_handle(), index, &raw);
  }

  /// A retriever without a model: it ranks by the words that the question has in common with
  /// sections and their known questions. For any `k` there are `k` hits; those that share no word with
  /// the question score 0 and stand in document order.
  static result<retriever> try_make_lexical(const index& index) {
    return make_raw(nullptr, index, nullptr);
  }

  /// Decodes the table of contents, if it is not yet, and returns when that is done: then the first
  /// question need not wait for it. Without a model it reads the sections' words. Cancellable.
  result<void> try_warm(const cancel_token& cancel = {}) const {
    return detail::run([&](stair_error** error) {
      return stair_retriever_warm(handle_.get(), cancel.native_handle(), error);
    });
  }

  /// The sections that answer `question`, as `options` says. Any number of threads. Cancellable.
  result<results> try_retrieve(std::string_view question, const retrieve_options& options,
                               const cancel_token& cancel = {}) const {
    stair_retrieve_options raw{};
    raw.struct_size = sizeof raw;
    raw.k = options.k;
    raw.scoring = static_cast<std::uint32_t>(options.scoring);
    raw.timeout_ms = milliseconds(options.timeout);
    raw.lexical_weight = options.lexical_weight;
    return retrieve_raw(question, &raw, cancel);
  }

  /// The three sections that answer `question` best, or all if there are fewer.
  result<results> try_retrieve(std::string_view question) const {
    return retrieve_raw(question, nullptr, {});
  }

#ifndef STAIR_NO_EXCEPTIONS
  /// As `try_make`, but throws.
  static retriever make(const model& model, const index& index,
                        const retriever_options& options = {}) {
    return detail::value(try_make(model, index, options));
  }
  /// As `try_make_lexical`, but throws.
  static retriever make_lexical(const index& index) {
    return detail::value(try_make_lexical(index));
  }
  /// As `try_warm`, but throws.
  void warm(const cancel_token& cancel = {}) const { detail::value(try_warm(cancel)); }
  /// As `try_retrieve`, but throws.
  results retrieve(std::string_view question, const retrieve_options& options,
                   const cancel_token& cancel = {}) const {
    return detail::value(try_retrieve(question, options, cancel));
  }
  /// As `try_retrieve`, but throws.
  results retrieve(std::string_view question) const {
    return detail::value(try_retrieve(question));
  }
#endif

  /// For calls into the C API. Still owned by this object.
  const stair_retriever* native_handle() const noexcept { return handle_.get(); }

 private:
  explicit retriever(detail::handle<stair_retriever> handle) : handle_(std::move(handle)) {}

  static result<retriever> make_raw(const stair_model* model, const index& index,
                                    const stair_retriever_options* options) {
    auto made = detail::make<stair_retriever>([&](stair_retriever** out, stair_error** error) {
      return stair_retriever_new(model, index.native_handle(), options, out, error);
    });
    if (!made) return detail::failure(made.error());
    return retriever(*std::move(made));
  }

  static std::uint32_t milliseconds(std::chrono::milliseconds time) noexcept {
    const auto count = time.count();
    if (count < 0) return 1;
    return count > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(count);
  }

  result<results> retrieve_raw(std::string_view question, const stair_retrieve_options* options,
                               const cancel_token& cancel) const {
    auto made = detail::make<stair_results>([&](stair_results** out, stair_error** error) {
      return stair_retrieve(handle_.get(), detail::data(question), question.size(), options,
                            cancel.native_handle(), out, error);
    });
    if (!made) return detail::failure(made.error());
    return results::read(*std::move(made));
  }

  detail::handle<stair_retriever> handle_;
};

}  // namespace STAIR_DETAIL_FLAVOUR

// ------------------------------------------------------------------------------------------- log

/// How much a log message matters.
enum class log_level : std::int32_t {
  error = STAIR_LOG_ERROR,
  warn = STAIR_LOG_WARN,
  info = STAIR_LOG_INFO,
  debug = STAIR_LOG_DEBUG,
};

/// Takes log messages. The text lives for the call only.
using log_function = std::function<void(log_level, std::string_view)>;

namespace detail {

struct log_sink {
  std::mutex setting;  // held while it is changed, here and in the library
  std::mutex mutex;
  std::shared_ptr<const log_function> function;
};

/// Never destroyed, because a thread of the library may log while the process ends.
inline log_sink& log() {
  static log_sink* const sink = new log_sink;
  return *sink;
}

inline namespace STAIR_DETAIL_FLAVOUR {

/// An exception must not reach C: one that `function` throws ends here, with its message unlogged.
inline void log_message(std::int32_t level, const char* message, std::size_t length,
                        void*) noexcept {
#ifndef STAIR_NO_EXCEPTIONS
  try {
#endif
    std::shared_ptr<const log_function> function;
    {
      const std::lock_guard<std::mutex> lock(log().mutex);
      function = log().function;
    }
    if (function) (*function)(static_cast<log_level>(level), text(message, length));
#ifndef STAIR_NO_EXCEPTIONS
  } catch (...) {
  }
#endif
}

}  // namespace STAIR_DETAIL_FLAVOUR
}  // namespace detail

inline namespace STAIR_DETAIL_FLAVOUR {

/// Sends the log of the library, and of llama.cpp in it, to `function`, up to `max_level`. There is
/// one for the process; an empty function makes the library silent again, as it is by default.
/// `function` is called from any thread, also from several at once, and must not call libstair. A
/// call of the previous function that runs on another thread at this moment still finishes.
inline result<void> try_set_log(log_function function, log_level max_level = log_level::warn) {
  const bool silent = !function;
  return detail::run([&](stair_error**) -> stair_status {
    // Two that set it at the same time must not leave one's function with the other's silence.
    const std::lock_guard<std::mutex> setting(detail::log().setting);
    {
      const std::lock_guard<std::mutex> lock(detail::log().mutex);
      detail::log().function =
          silent ? nullptr : std::make_shared<const log_function>(std::move(function));
    }
    stair_log_set(silent ? nullptr : detail::log_message, nullptr,
                  static_cast<std::int32_t>(max_level));
    return STAIR_OK;
  });
}

#ifndef STAIR_NO_EXCEPTIONS
/// As `try_set_log`, but throws.
inline void set_log(log_function function, log_level max_level = log_level::warn) {
  detail::value(try_set_log(std::move(function), max_level));
}
#endif

}  // namespace STAIR_DETAIL_FLAVOUR
}  // namespace stair

#undef STAIR_DETAIL_FLAVOUR
#undef STAIR_DETAIL_NO_RTTI

#endif  // STAIR_HPP
