// libstair: which section of this document answers this question.
// Generated from src/capi with cbindgen; do not edit. To renew it: STAIR_BLESS=1 cargo test --release --test header
//
// In short:
//
//     stair_model *model = NULL;
//     stair_index *index = NULL;
//     stair_retriever *retriever = NULL;
//     stair_results *results = NULL;
//     stair_error *error = NULL;
//     stair_hit hit = {.struct_size = sizeof hit};
//     if (stair_model_open("model.gguf", STAIR_NTS, NULL, NULL, &model, &error) == STAIR_OK &&
//         stair_index_open("handbook.stair", STAIR_NTS, 0, &index, &error) == STAIR_OK &&
//         stair_retriever_new(model, index, NULL, &retriever, &error) == STAIR_OK &&
//         stair_retrieve(retriever, "How long is my notice period?", STAIR_NTS, NULL, NULL, &results,
//                        &error) == STAIR_OK &&
//         stair_results_get(results, 0, &hit, &error) == STAIR_OK)
//         printf("%s %s\n", hit.number, hit.title);
//     else
//         fprintf(stderr, "%s\n", stair_error_message(error, NULL));
//     stair_error_free(error);
//     stair_results_free(results);
//     stair_retriever_free(retriever);
//     stair_index_free(index);
//     stair_model_free(model);
//
// Errors. A function that can fail returns a stair_status. Its last parameter, which may be NULL,
// then receives a stair_error that says the cause and the remedy, and that the caller frees; on
// success it is not touched. Output parameters are written on success only.
//
// Texts are UTF-8. A text argument is a pointer and a length in bytes, or STAIR_NTS when it ends
// with a NUL; the library keeps none. A text that is handed out is borrowed, has a length and ends
// with a NUL; it lives as long as the comment says.
//
// Handles (stair_model, stair_index, stair_retriever, stair_results, stair_error) are opaque and
// are not addresses of anything. Free each once; NULL may always be freed. One that was freed, or
// is of another kind, gives STAIR_ERR_INVALID_HANDLE, and freeing it again does nothing. Each keeps
// alive what it was made from, so the order of freeing does not matter.
//
// Threads. Every function may be called from any thread at any time. Only the memory that results
// and errors lend must not be read after they are freed.
//
// Structs begin with struct_size. Options: set them with their init function; NULL gives the
// defaults. Output structs: set struct_size before the call.
//
// The library prints nothing, installs no signal handler, and catches its own panics
// (STAIR_ERR_PANIC). What may still end the process is listed in docs/abi.md: memory that runs out
// inside llama.cpp, an assertion in it, and a mapped file that is truncated while it is in use.


#ifndef STAIR_H
#define STAIR_H

#include <stddef.h>
#include <stdint.h>

#if defined(STAIR_STATIC)
#define STAIR_API
#elif defined(_WIN32)
#define STAIR_API __declspec(dllimport)
#elif defined(__GNUC__)
#define STAIR_API __attribute__((visibility("default")))
#else
#define STAIR_API
#endif

#if defined(__cplusplus) && __cplusplus >= 201703L
#define STAIR_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define STAIR_NODISCARD __attribute__((warn_unused_result))
#else
#define STAIR_NODISCARD
#endif

// Length of a text that ends with a NUL.
#define STAIR_NTS SIZE_MAX



// Version of the ABI that the header describes. A library serves a program that was built with the
// same number; see `stair_abi_version`.
#define STAIR_ABI_VERSION 1

// Version of the library that the header came with: major.
#define STAIR_VERSION_MAJOR 0

// Version of the library that the header came with: minor.
#define STAIR_VERSION_MINOR 1

// Version of the library that the header came with: patch.
#define STAIR_VERSION_PATCH 0

// Something failed.
#define STAIR_LOG_ERROR 1

// Something is not as it should be.
#define STAIR_LOG_WARN 2

// What is being done.
#define STAIR_LOG_INFO 3

// Details.
#define STAIR_LOG_DEBUG 4

// `stair_index_open`: read the file into memory rather than map it. For network drives, and for
// files that may be truncated while they are used: a mapped one then ends the process (SIGBUS).
#define STAIR_INDEX_COPY 1

// `stair_build_options.format`: Markdown.
#define STAIR_FORMAT_MARKDOWN 1

// `stair_build_options.format`: a toc.json, as docs/toc-json.md describes it.
#define STAIR_FORMAT_TOC_JSON 2

// No page, no parent.
#define STAIR_NONE UINT32_MAX

// `stair_retriever_options.kv_type`: 16-bit floats, the default.
#define STAIR_KV_F16 1

// `stair_retriever_options.kv_type`: 8-bit blocks, half the memory, slightly different scores.
#define STAIR_KV_Q8_0 2

// `stair_retriever_options.kv_type`: 32-bit floats.
#define STAIR_KV_F32 3

// `stair_retrieve_options.k`: 3, or all leaves when there are fewer.
#define STAIR_K_DEFAULT 2147483648

// `stair_retrieve_options.scoring`: exact log-probabilities, the default.
#define STAIR_SCORING_EXACT 0

// `stair_retrieve_options.scoring`: renormalised over what the document allows at each step;
// cheaper, and ranks worse.
#define STAIR_SCORING_LOCAL 1

// Cancels the calls that it is passed to. Unlike the other handles this is a plain pointer, so that
// triggering it takes no lock: free it exactly once, and do not use it afterwards.
typedef struct stair_cancel stair_cancel;

// Why a call failed. Owned by whoever passed the `stair_error **`; free it once.
typedef struct stair_error stair_error;

// An index. It never changes: any number of threads may use it, and it may be freed while
// retrievers made with it live.
typedef struct stair_index stair_index;

// A model. It never changes: any number of threads may use it, and it may be freed while
// retrievers made with it live.
typedef struct stair_model stair_model;

// The answer to one question. It never changes and needs neither retriever nor index.
typedef struct stair_results stair_results;

// A model and an index together, or an index alone. Any number of threads may ask at the same time:
// their questions share the model's work.
typedef struct stair_retriever stair_retriever;

// What a function came to: `STAIR_OK`, or why it failed. 1xx argument, 2xx input and output, 3xx
// document or index, 4xx model, 5xx while answering, 9xx internal. A number never changes its
// meaning; later versions may add some, so treat an unknown one as a failure.
typedef int32_t stair_status;

// Receives a message: its level, its text (UTF-8, of `len` bytes and NUL-terminated, only during
// the call), and the `userdata` of `stair_log_set`. It may be called from any thread, from several
// at a time, and must not call libstair.
typedef void (*stair_log_fn)(int32_t level, const char *message, size_t len, void *userdata);

// How a model is opened. 0 everywhere is the default.
typedef struct stair_model_options {
  // sizeof(stair_model_options).
  uint32_t struct_size;
  // Layers to keep on the graphics processor: 0 for all when there is one, -1 for none.
  int32_t gpu_layers;
  // 1 to read the file rather than map it, for network drives.
  uint32_t disable_mmap;
  // 1 to load the vocabulary only: enough for `stair_index_build`.
  uint32_t vocabulary_only;
  // Memory, in bytes, that the contexts of all retrievers with this model may take together; 0 for
  // as much as they need. Otherwise the context of the retriever that was asked longest ago gives
  // way to the one that is asked, and is made again at its next question: fast with a `cache_dir`,
  // else at the price of decoding the table of contents again. Two retrievers that are asked without
  // a pause, with room for one context, swap it at every handful of questions: both answer, slowly.
  // The weights are not counted. Less than one context takes is STAIR_ERR_OUT_OF_MEMORY when a
  // retriever is made.
  uint64_t context_memory;
} stair_model_options;

// What a model says of itself.
typedef struct stair_model_info {
  // sizeof(stair_model_info).
  uint32_t struct_size;
  // Number of tokens in the vocabulary.
  uint32_t vocab_size;
  // Longest context that it was trained on, in tokens.
  uint32_t context_length;
  // Always 0.
  uint32_t reserved;
  // Number of parameters; 0 for a vocabulary.
  uint64_t parameters;
  // Size of the tensors in bytes; 0 for a vocabulary.
  uint64_t bytes;
  // Fingerprint of the vocabulary; an index goes with it when its own is equal.
  uint64_t fingerprint;
  // The architecture, `"llama"`; until the model is freed.
  const char *architecture;
  // Its length in bytes.
  size_t architecture_len;
} stair_model_info;

// How an index is built. 0 everywhere is the default.
typedef struct stair_build_options {
  // sizeof(stair_build_options).
  uint32_t struct_size;
  // STAIR_FORMAT_MARKDOWN (the default) or STAIR_FORMAT_TOC_JSON.
  uint32_t format;
  // 1 to leave the sections' texts out.
  uint32_t omit_text;
  // 1 to keep cover, copyright and contents as sections.
  uint32_t keep_front_matter;
  // Questions that sections are known to answer: the text (UTF-8) of a file of questions, a JSON
  // object with `id`, `query`, `section` and `split` a line. Their words then count for their
  // sections in every lexical score; they can be read in the index. NULL for none.
  const char *questions;
  // Its length in bytes, or STAIR_NTS.
  size_t questions_len;
  // The split of them to take; NULL for `"train"`.
  const char *split;
  // Its length in bytes, or STAIR_NTS.
  size_t split_len;
} stair_build_options;

// What an index says of itself.
typedef struct stair_index_info {
  // sizeof(stair_index_info).
  uint32_t struct_size;
  // Number of sections, leaves included. Ids go from 0 to this.
  uint32_t sections;
  // Number of leaves: what can be retrieved.
  uint32_t leaves;
  // Number of trie nodes.
  uint32_t trie_nodes;
  // Tokens of the longest title.
  uint32_t longest_title;
  // Tokens of the prompt up to the question.
  uint32_t prefix_tokens;
  // Number of tokens in the vocabulary that it was built for.
  uint32_t vocab_size;
  // 1 if the sections' texts are in the file.
  uint32_t has_text;
  // Fingerprint of the vocabulary that it was built for.
  uint64_t fingerprint;
  // Length of the file in bytes.
  uint64_t bytes;
  // The document's title, until the index is freed; NULL from `stair_index_peek`.
  const char *title;
  // Its length in bytes.
  size_t title_len;
  // Version of the format: major.
  uint32_t version_major;
  // Version of the format: minor.
  uint32_t version_minor;
} stair_index_info;

// One section. Its texts live until the index is freed.
typedef struct stair_section {
  // sizeof(stair_section).
  uint32_t struct_size;
  // Position in document order, from 0.
  uint32_t id;
  // The section that it belongs to, or STAIR_NONE.
  uint32_t parent;
  // 0 for a top-level section.
  uint32_t depth;
  // 1 if it has no subsection.
  uint32_t leaf;
  // Page in the original, or STAIR_NONE.
  uint32_t page;
  // First byte in the original document.
  uint64_t span_start;
  // The byte after its last.
  uint64_t span_end;
  // Its number, `"4.2"`; empty when it has none.
  const char *number;
  // Length of the number in bytes.
  size_t number_len;
  // Its title.
  const char *title;
  // Length of the title in bytes.
  size_t title_len;
  // Its text; NULL when the index was built without texts.
  const char *text;
  // Length of the text in bytes.
  size_t text_len;
} stair_section;

// How a retriever is made. 0 everywhere is the default.
typedef struct stair_retriever_options {
  // sizeof(stair_retriever_options).
  uint32_t struct_size;
  // Threads that compute; 0 for as many as the process may use.
  uint32_t threads;
  // Length of the context in tokens; 0 for what max_parallel questions of 64 tokens need, or a
  // single one of max_question_tokens if that is more.
  uint32_t context_tokens;
  // Room for one question, in tokens; 0 for 512.
  uint32_t max_question_tokens;
  // Questions that share the model's work; 0 for 8. More wait their turn, as do those for which
  // the context has no room beside the others.
  uint32_t max_parallel;
  // STAIR_KV_F16 (the default), STAIR_KV_Q8_0 or STAIR_KV_F32.
  uint32_t kv_type;
  // 1 for one question at a time: bit-equal scores whatever else is asked.
  uint32_t deterministic;
  // Questions that may wait for their turn; 0 for 4,096. Who comes when so many do gets
  // STAIR_ERR_BUSY at once.
  uint32_t max_waiting;
  // Path (UTF-8) of a folder for the warm file: what the model remembers of the table of contents,
  // written after the first answer and read by every later retriever with the same model, index
  // and options, which then need not decode it. It is made when it is not there. A relative path
  // is taken from the working directory at the time of `stair_retriever_new`. A file or a
  // folder that cannot be used is as none, and the log says why at STAIR_LOG_WARN. Whoever may
  // write to the folder can change what is answered. NULL or empty for no file.
  const char *cache_dir;
  // Length of the path in bytes, or STAIR_NTS.
  size_t cache_dir_len;
} stair_retriever_options;

// How a question is asked. 0 is the default of every field but `k`.
typedef struct stair_retrieve_options {
  // sizeof(stair_retrieve_options).
  uint32_t struct_size;
  // Number of sections to find: 1 to the number of leaves, or STAIR_K_DEFAULT, which
  // `stair_retrieve_options_init` sets.
  uint32_t k;
  // STAIR_SCORING_EXACT or STAIR_SCORING_LOCAL.
  uint32_t scoring;
  // Longest wait in milliseconds; 0 for as long as it takes.
  uint32_t timeout_ms;
  // How much a section's words count beside what the model says: a hit is ranked by `log_prob`
  // and this times `lexical`. 0 leaves the words out; else finite and above 0. Without a model
  // only the words count, whatever it is.
  float lexical_weight;
} stair_retrieve_options;

// One section that may answer the question. Its texts live until the results are freed.
typedef struct stair_hit {
  // sizeof(stair_hit).
  uint32_t struct_size;
  // The section's id in the index.
  uint32_t section;
  // Page in the original, or STAIR_NONE.
  uint32_t page;
  // Number of entries that `stair_results_path` gives, the section itself last.
  uint32_t path_len;
  // First byte in the original document.
  uint64_t span_start;
  // The byte after its last.
  uint64_t span_end;
  // Natural logarithm of the probability that the model gives its title; NaN without a model.
  double log_prob;
  // Its number, `"4.2"`; empty when it has none.
  const char *number;
  // Length of the number in bytes.
  size_t number_len;
  // Its title.
  const char *title;
  // Length of the title in bytes.
  size_t title_len;
  // Its text; NULL when the index was built without texts.
  const char *text;
  // Length of the text in bytes.
  size_t text_len;
  // What it is ranked by: `log_prob`, and `lexical_weight` times `lexical` when that was asked
  // for; `lexical` without a model.
  double score;
  // Its lexical score for the question: BM25 of number, title and text, and of passages and known
  // questions; 0 when they share no word. NaN with a model and a `lexical_weight` of 0. The
  // formula may change between versions.
  double lexical;
} stair_hit;

// What the answer cost.
typedef struct stair_stats {
  // sizeof(stair_stats).
  uint32_t struct_size;
  // Decodes that the question had a part in.
  uint32_t decodes;
  // Tokens of the question, with the template's own around it.
  uint32_t question_tokens;
  // Tokens that the search evaluated.
  uint32_t search_tokens;
  // Tokens of the table of contents that were decoded while this question waited; 0 when it
  // was decoded before.
  uint32_t prefix_tokens;
  // Tokens of the table of contents that were read from the warm file while this question waited,
  // rather than decoded.
  uint32_t restored_tokens;
  // How much of its probability the model gave to tokens that this document allows, along the
  // best hit, 0 to 1: low when it wanted something that is not in this document. NaN without a
  // model.
  double legal_mass;
  // Time for the table of contents, decoded or read.
  double prefill_ms;
  // Time for the question and the search.
  double search_ms;
  // Time for the whole call, with waiting.
  double total_ms;
} stair_stats;

// It worked.
#define STAIR_OK 0

// An argument is outside its documented range.
#define STAIR_ERR_INVALID_ARGUMENT 100

// A pointer that must not be NULL is NULL.
#define STAIR_ERR_NULL_POINTER 101

// A text is not UTF-8.
#define STAIR_ERR_INVALID_UTF8 102

// A question contains a NUL character.
#define STAIR_ERR_NUL_IN_QUESTION 103

// A question has no visible character.
#define STAIR_ERR_EMPTY_QUESTION 104

// A question has more tokens than the room kept for it.
#define STAIR_ERR_QUESTION_TOO_LONG 105

// The number of hits asked for is 0 or above the number of leaves.
#define STAIR_ERR_INVALID_K 106

// The `struct_size` of an options or output struct is not one this library knows.
#define STAIR_ERR_STRUCT_SIZE 107

// A handle was never given out, was freed, or is of another kind.
#define STAIR_ERR_INVALID_HANDLE 108

// A file could not be read or written.
#define STAIR_ERR_IO 200

// A file does not exist.
#define STAIR_ERR_NOT_FOUND 201

// The file system refused access.
#define STAIR_ERR_PERMISSION_DENIED 202

// A path names something that is not a regular file.
#define STAIR_ERR_NOT_A_FILE 203

// A document cannot be read as its format.
#define STAIR_ERR_DOCUMENT 300

// A document has no headings, so there is nothing to retrieve.
#define STAIR_ERR_NO_HEADINGS 301

// A prompt template is not usable.
#define STAIR_ERR_TEMPLATE 302

// A `tokenizer.json` is not usable.
#define STAIR_ERR_TOKENIZER 303

// A title's tokens depend on what stands before it.
#define STAIR_ERR_UNSTABLE_BOUNDARY 304

// A document is beyond a limit of the index format.
#define STAIR_ERR_TOO_LARGE 305

// A file is not a `.stair` index.
#define STAIR_ERR_NOT_AN_INDEX 310

// An index was written in a version of the format that this library does not read.
#define STAIR_ERR_INDEX_VERSION 311

// An index is truncated or damaged.
#define STAIR_ERR_INDEX_CORRUPT 312

// A file of questions is not usable.
#define STAIR_ERR_QUESTIONS 320

// A file is not a GGUF model.
#define STAIR_ERR_NOT_A_MODEL 400

// A model file is truncated or damaged.
#define STAIR_ERR_MODEL_CORRUPT 401

// A model's architecture is unknown to this build of llama.cpp, or does not generate text.
#define STAIR_ERR_MODEL_ARCHITECTURE 402

// A model file has no usable vocabulary.
#define STAIR_ERR_MODEL_VOCABULARY 403

// llama.cpp refused a model for a reason of its own.
#define STAIR_ERR_MODEL_LOAD 404

// An index was built for another vocabulary.
#define STAIR_ERR_VOCABULARY_MISMATCH 405

// No compute backend could be loaded.
#define STAIR_ERR_BACKEND 406

// An adapter is not one, is damaged, or does not belong to the model.
#define STAIR_ERR_ADAPTER 407

// The context is too small for the table of contents, a question and the search.
#define STAIR_ERR_CONTEXT_TOO_SMALL 500

// The caller cancelled.
#define STAIR_ERR_CANCELLED 501

// The deadline passed.
#define STAIR_ERR_TIMEOUT 502

// Memory ran out.
#define STAIR_ERR_OUT_OF_MEMORY 503

// llama.cpp failed to decode.
#define STAIR_ERR_DECODE 504

// The retriever was closed.
#define STAIR_ERR_CLOSED 505

// Too many questions wait for the retriever already.
#define STAIR_ERR_BUSY 506

// The library contradicted itself; please report it.
#define STAIR_ERR_INTERNAL 900

// The library panicked; the panic was caught at the C boundary.
#define STAIR_ERR_PANIC 901

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The ABI version of the loaded library. Compare it with `STAIR_ABI_VERSION` before anything else.
STAIR_API uint32_t stair_abi_version(void);

// The library's version, `"0.1.0"`. Static.
STAIR_API const char *stair_version(void);

// How the library was built: version, target, features. Static.
STAIR_API const char *stair_build_info(void);

// The name of a status, `"INVALID_K"` for example; `"UNKNOWN"` for a number that is none. Static.
STAIR_API const char *stair_status_name(stair_status status);

// The status that the call returned; STAIR_OK for NULL.
STAIR_API stair_status stair_error_code(const struct stair_error *error);

// The cause and the remedy, in English: UTF-8 and NUL-terminated, until the error is freed. `len`
// may be NULL. An empty text for NULL and for a handle that is not live.
STAIR_API const char *stair_error_message(const struct stair_error *error, size_t *len);

// Frees an error. NULL is allowed.
STAIR_API void stair_error_free(struct stair_error *error);

// A new token, not triggered; NULL only when memory ran out.
STAIR_API struct stair_cancel *stair_cancel_new(void);

// Cancels the calls that have this token or will get it. Sticky. From any thread, and from a
// signal handler. NULL is allowed.
STAIR_API void stair_cancel_trigger(const struct stair_cancel *cancel);

// 1 if it was triggered, else 0; 0 for NULL.
STAIR_API int32_t stair_cancel_triggered(const struct stair_cancel *cancel);

// Frees a token; calls that were given it keep their own reference. NULL is allowed.
STAIR_API void stair_cancel_free(struct stair_cancel *cancel);

// Sends messages of the library and of llama.cpp, up to level `max_level`, to `callback`; with
// NULL to nobody, which is the default. For the whole process. A call that is under way may still
// end after this returns, so keep `userdata` alive.
STAIR_API void stair_log_set(stair_log_fn callback, void *userdata, int32_t max_level);

// Sets `*options`, of `size` bytes (`sizeof *options`), to the defaults.
//
// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE.
STAIR_NODISCARD STAIR_API stair_status stair_model_options_init(struct stair_model_options *options, size_t size);

// Loads the GGUF model at `path` (UTF-8). May take seconds; `cancel` stops it. `options` and
// `cancel` may be NULL. Free `*out` with `stair_model_free`.
//
// STAIR_ERR_NOT_FOUND, STAIR_ERR_PERMISSION_DENIED, STAIR_ERR_NOT_A_FILE, STAIR_ERR_IO,
// STAIR_ERR_NOT_A_MODEL, STAIR_ERR_MODEL_CORRUPT, STAIR_ERR_MODEL_ARCHITECTURE,
// STAIR_ERR_MODEL_VOCABULARY, STAIR_ERR_MODEL_LOAD, STAIR_ERR_BACKEND, STAIR_ERR_CANCELLED, and
// those of bad arguments.
STAIR_NODISCARD STAIR_API
stair_status stair_model_open(const char *path,
                              size_t path_len,
                              const struct stair_model_options *options,
                              const struct stair_cancel *cancel,
                              struct stair_model **out,
                              struct stair_error **error);

// Fills `*info`; set its `struct_size` before.
//
// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE, STAIR_ERR_INVALID_HANDLE.
STAIR_NODISCARD STAIR_API
stair_status stair_model_get_info(const struct stair_model *model,
                                  struct stair_model_info *info,
                                  struct stair_error **error);

// Frees a model. NULL is allowed; a call that uses it ends undisturbed.
STAIR_API void stair_model_free(struct stair_model *model);

// Sets `*options`, of `size` bytes (`sizeof *options`), to the defaults.
//
// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE.
STAIR_NODISCARD STAIR_API stair_status stair_build_options_init(struct stair_build_options *options, size_t size);

// Opens the index at `path` (UTF-8) and checks all of it. `flags` is 0 or STAIR_INDEX_COPY. Free
// `*out` with `stair_index_free`. While a mapped file is open, replace it only by renaming
// another over it.
//
// STAIR_ERR_NOT_FOUND, STAIR_ERR_PERMISSION_DENIED, STAIR_ERR_NOT_A_FILE, STAIR_ERR_IO,
// STAIR_ERR_NOT_AN_INDEX, STAIR_ERR_INDEX_VERSION, STAIR_ERR_INDEX_CORRUPT, and those of bad
// arguments.
STAIR_NODISCARD STAIR_API
stair_status stair_index_open(const char *path,
                              size_t path_len,
                              uint32_t flags,
                              struct stair_index **out,
                              struct stair_error **error);

// Copies an index out of memory and checks all of it.
//
// STAIR_ERR_NOT_AN_INDEX, STAIR_ERR_INDEX_VERSION, STAIR_ERR_INDEX_CORRUPT, and those of bad
// arguments.
STAIR_NODISCARD STAIR_API
stair_status stair_index_open_buffer(const uint8_t *data,
                                     size_t len,
                                     struct stair_index **out,
                                     struct stair_error **error);

// Builds an index of a document in memory, for the vocabulary of `model` (which may have been
// opened with `vocabulary_only`). `title` may be NULL: then the document's own is taken.
// `options` may be NULL. Free `*out` with `stair_index_free`; write it to a file with
// `stair_index_save`.
//
// STAIR_ERR_DOCUMENT, STAIR_ERR_NO_HEADINGS, STAIR_ERR_TOKENIZER, STAIR_ERR_TEMPLATE,
// STAIR_ERR_UNSTABLE_BOUNDARY, STAIR_ERR_TOO_LARGE, STAIR_ERR_QUESTIONS, and those of bad
// arguments.
STAIR_NODISCARD STAIR_API
stair_status stair_index_build(const struct stair_model *model,
                               const char *document,
                               size_t document_len,
                               const char *title,
                               size_t title_len,
                               const struct stair_build_options *options,
                               struct stair_index **out,
                               struct stair_error **error);

// Writes an index to the file at `path` (UTF-8), whole or not at all: under a temporary name in
// the same folder, then renamed.
//
// STAIR_ERR_NOT_FOUND (of the folder), STAIR_ERR_PERMISSION_DENIED, STAIR_ERR_NOT_A_FILE,
// STAIR_ERR_IO, and those of bad arguments.
STAIR_NODISCARD STAIR_API
stair_status stair_index_save(const struct stair_index *index,
                              const char *path,
                              size_t path_len,
                              struct stair_error **error);

// Fills `*info` from the header of the file at `path` (UTF-8) alone: cheap, and not checked as
// `stair_index_open` checks. Set `info->struct_size` before.
//
// As `stair_index_open`, and STAIR_ERR_STRUCT_SIZE.
STAIR_NODISCARD STAIR_API
stair_status stair_index_peek(const char *path,
                              size_t path_len,
                              struct stair_index_info *info,
                              struct stair_error **error);

// Fills `*info`; set its `struct_size` before.
//
// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE, STAIR_ERR_INVALID_HANDLE.
STAIR_NODISCARD STAIR_API
stair_status stair_index_get_info(const struct stair_index *index,
                                  struct stair_index_info *info,
                                  struct stair_error **error);

// Fills `*section` with the section `id`; set its `struct_size` before.
//
// STAIR_ERR_INVALID_ARGUMENT when there is no such section, STAIR_ERR_NULL_POINTER,
// STAIR_ERR_STRUCT_SIZE, STAIR_ERR_INVALID_HANDLE.
STAIR_NODISCARD STAIR_API
stair_status stair_index_section(const struct stair_index *index,
                                 uint32_t id,
                                 struct stair_section *section,
                                 struct stair_error **error);

// Frees an index. NULL is allowed; a call that uses it ends undisturbed.
STAIR_API void stair_index_free(struct stair_index *index);

// Sets `*options`, of `size` bytes (`sizeof *options`), to the defaults.
//
// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE.
STAIR_NODISCARD STAIR_API
stair_status stair_retriever_options_init(struct stair_retriever_options *options,
                                          size_t size);

// Sets `*options`, of `size` bytes (`sizeof *options`), to the defaults; `k` to STAIR_K_DEFAULT.
//
// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE.
STAIR_NODISCARD STAIR_API
stair_status stair_retrieve_options_init(struct stair_retrieve_options *options,
                                         size_t size);

// A retriever over `index` with `model`, both of which may be freed afterwards. It starts one
// thread; the table of contents is decoded, or read from the warm file, for the first question or by
// `stair_retriever_warm`. Where `context_memory` has no room, it waits until other retrievers have
// answered whom they serve, five minutes at most. `options` may be NULL. Free `*out` with `stair_retriever_free`.
//
// `model` may be NULL. Then the words that the question has in common with sections and known questions decide:
// nothing is decoded, no thread is started, and `options` are checked but not used. For any `k` there
// are `k` hits; those that share no word with the question score 0 and stand in document order.
//
// STAIR_ERR_VOCABULARY_MISMATCH, STAIR_ERR_CONTEXT_TOO_SMALL, STAIR_ERR_OUT_OF_MEMORY (also when
// nobody gave way in time), and those of bad arguments.
STAIR_NODISCARD STAIR_API
stair_status stair_retriever_new(const struct stair_model *model,
                                 const struct stair_index *index,
                                 const struct stair_retriever_options *options,
                                 struct stair_retriever **out,
                                 struct stair_error **error);

// Reads the sections' words and, with a model, decodes the table of contents or reads it from the
// warm file, where that is not done yet, and returns when it is: then the first question need not
// wait. `cancel` may be NULL.
//
// STAIR_ERR_CANCELLED, STAIR_ERR_DECODE, STAIR_ERR_BUSY, STAIR_ERR_OUT_OF_MEMORY when the context
// had given way and cannot be made again, STAIR_ERR_CLOSED, STAIR_ERR_INVALID_HANDLE.
STAIR_NODISCARD STAIR_API
stair_status stair_retriever_warm(const struct stair_retriever *retriever,
                                  const struct stair_cancel *cancel,
                                  struct stair_error **error);

// Finds the sections that answer `question` (UTF-8). `options` may be NULL: the 3 best, or all
// when there are fewer. `cancel` may be NULL. Free `*out` with `stair_results_free`; it does not
// need the retriever any more.
//
// STAIR_ERR_EMPTY_QUESTION, STAIR_ERR_INVALID_UTF8, STAIR_ERR_NUL_IN_QUESTION,
// STAIR_ERR_QUESTION_TOO_LONG (with a model), STAIR_ERR_INVALID_K, STAIR_ERR_INVALID_ARGUMENT for a
// `lexical_weight` that is negative or not finite, STAIR_ERR_CANCELLED, STAIR_ERR_TIMEOUT,
// STAIR_ERR_DECODE, STAIR_ERR_BUSY, STAIR_ERR_OUT_OF_MEMORY when the context had given way and cannot
// be made again, STAIR_ERR_CLOSED, and those of bad arguments.
STAIR_NODISCARD STAIR_API
stair_status stair_retrieve(const struct stair_retriever *retriever,
                            const char *question,
                            size_t question_len,
                            const struct stair_retrieve_options *options,
                            const struct stair_cancel *cancel,
                            struct stair_results **out,
                            struct stair_error **error);

// Frees a retriever and ends its thread. NULL is allowed. Calls that are under way end first,
// undisturbed, on their own threads; a warm file is written to its end. Where no call is under way this
// waits for the thread's current decode and for that file; so let all calls return first to be sure that
// nothing of it is left.
STAIR_API
void stair_retriever_free(struct stair_retriever *retriever);

// Number of hits; 0 for NULL and for a handle that is not live.
STAIR_API size_t stair_results_count(const struct stair_results *results);

// Fills `*hit` with hit `i`, best first, from 0; set its `struct_size` before.
//
// STAIR_ERR_INVALID_ARGUMENT when there is no such hit, STAIR_ERR_NULL_POINTER,
// STAIR_ERR_STRUCT_SIZE, STAIR_ERR_INVALID_HANDLE.
STAIR_NODISCARD STAIR_API
stair_status stair_results_get(const struct stair_results *results,
                               size_t i,
                               struct stair_hit *hit,
                               struct stair_error **error);

// Gives entry `entry` of hit `i`'s path, from the chapter (0) down to the section itself: number
// and title, until the results are freed. `len` may be NULL.
//
// STAIR_ERR_INVALID_ARGUMENT when there is no such hit or entry, STAIR_ERR_NULL_POINTER,
// STAIR_ERR_INVALID_HANDLE.
STAIR_NODISCARD STAIR_API
stair_status stair_results_path(const struct stair_results *results,
                                size_t i,
                                size_t entry,
                                const char **text,
                                size_t *len,
                                struct stair_error **error);

// Fills `*stats`; set its `struct_size` before.
//
// STAIR_ERR_NULL_POINTER, STAIR_ERR_STRUCT_SIZE, STAIR_ERR_INVALID_HANDLE.
STAIR_NODISCARD STAIR_API
stair_status stair_results_stats(const struct stair_results *results,
                                 struct stair_stats *stats,
                                 struct stair_error **error);

// Frees results. NULL is allowed.
STAIR_API void stair_results_free(struct stair_results *results);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* STAIR_H */
