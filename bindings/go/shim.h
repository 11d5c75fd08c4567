// The calls of stair.h that take or give a handle, with the handle as a number.
//
// A handle is opaque: nothing promises that it is an address. Go's runtime ends the process when
// it meets a value of a pointer type that cannot be a pointer, so a handle must not have a pointer
// type on the Go side, not even on the stack. Nothing else is done here.

#ifndef STAIR_GO_SHIM_H
#define STAIR_GO_SHIM_H

#include <stair.h>

typedef uintptr_t go_handle;

// What a fallible call gives back: a new handle (0 if it makes none) or a status and its error.
typedef struct go_reply {
    go_handle handle;
    go_handle error;
    stair_status status;
} go_reply;

// A text that C gives to an exported Go function; cgo has no other way to write the const.
typedef const char go_const_char;

static inline const char *go_error_message(go_handle error, size_t *len) {
    return stair_error_message((const stair_error *)error, len);
}

static inline void go_error_free(go_handle error) {
    stair_error_free((stair_error *)error);
}

static inline go_reply go_model_open(const char *path, size_t path_len,
                                     const stair_model_options *options,
                                     const stair_cancel *cancel) {
    stair_model *model = NULL;
    stair_error *error = NULL;
    stair_status status = stair_model_open(path, path_len, options, cancel, &model, &error);
    return (go_reply){(go_handle)model, (go_handle)error, status};
}

static inline go_reply go_model_get_info(go_handle model, stair_model_info *info) {
    stair_error *error = NULL;
    stair_status status = stair_model_get_info((const stair_model *)model, info, &error);
    return (go_reply){0, (go_handle)error, status};
}

static inline void go_model_free(go_handle model) {
    stair_model_free((stair_model *)model);
}

static inline go_reply go_index_open(const char *path, size_t path_len, uint32_t flags) {
    stair_index *index = NULL;
    stair_error *error = NULL;
    stair_status status = stair_index_open(path, path_len, flags, &index, &error);
    return (go_reply){(go_handle)index, (go_handle)error, status};
}

static inline go_reply go_index_open_buffer(const uint8_t *data, size_t len) {
    stair_index *index = NULL;
    stair_error *error = NULL;
    stair_status status = stair_index_open_buffer(data, len, &index, &error);
    return (go_reply){(go_handle)index, (go_handle)error, status};
}

// The texts stand apart because cgo passes no Go struct with a Go pointer in it.
static inline go_reply go_index_build(go_handle model, const char *document, size_t document_len,
                                      const char *title, size_t title_len,
                                      const stair_build_options *given, const char *questions,
                                      size_t questions_len, const char *split, size_t split_len) {
    stair_build_options options = *given;
    options.questions = questions;
    options.questions_len = questions_len;
    options.split = split;
    options.split_len = split_len;
    stair_index *index = NULL;
    stair_error *error = NULL;
    stair_status status = stair_index_build((const stair_model *)model, document, document_len,
                                            title, title_len, &options, &index, &error);
    return (go_reply){(go_handle)index, (go_handle)error, status};
}

static inline go_reply go_index_save(go_handle index, const char *path, size_t path_len) {
    stair_error *error = NULL;
    stair_status status = stair_index_save((const stair_index *)index, path, path_len, &error);
    return (go_reply){0, (go_handle)error, status};
}

static inline go_reply go_index_peek(const char *path, size_t path_len, stair_index_info *info) {
    stair_error *error = NULL;
    stair_status status = stair_index_peek(path, path_len, info, &error);
    return (go_reply){0, (go_handle)error, status};
}

static inline go_reply go_index_get_info(go_handle index, stair_index_info *info) {
    stair_error *error = NULL;
    stair_status status = stair_index_get_info((const stair_index *)index, info, &error);
    return (go_reply){0, (go_handle)error, status};
}

static inline go_reply go_index_section(go_handle index, uint32_t id, stair_section *section) {
    stair_error *error = NULL;
    stair_status status = stair_index_section((const stair_index *)index, id, section, &error);
    return (go_reply){0, (go_handle)error, status};
}

static inline void go_index_free(go_handle index) {
    stair_index_free((stair_index *)index);
}

// The folder stands apart for the same reason.
static inline go_reply go_retriever_new(go_handle model, go_handle index,
                                        const stair_retriever_options *given, const char *cache_dir,
                                        size_t cache_dir_len) {
    stair_retriever_options with_folder, *options = NULL;
    if (given != NULL) {
        with_folder = *given;
        with_folder.cache_dir = cache_dir;
        with_folder.cache_dir_len = cache_dir_len;
        options = &with_folder;
    }
    stair_retriever *retriever = NULL;
    stair_error *error = NULL;
    stair_status status = stair_retriever_new((const stair_model *)model,
                                              (const stair_index *)index, options, &retriever,
                                              &error);
    return (go_reply){(go_handle)retriever, (go_handle)error, status};
}

static inline go_reply go_retriever_warm(go_handle retriever, const stair_cancel *cancel) {
    stair_error *error = NULL;
    stair_status status = stair_retriever_warm((const stair_retriever *)retriever, cancel, &error);
    return (go_reply){0, (go_handle)error, status};
}

static inline void go_retriever_free(go_handle retriever) {
    stair_retriever_free((stair_retriever *)retriever);
}

static inline go_reply go_retrieve(go_handle retriever, const char *question, size_t question_len,
                                   const stair_retrieve_options *options,
                                   const stair_cancel *cancel) {
    stair_results *results = NULL;
    stair_error *error = NULL;
    stair_status status = stair_retrieve((const stair_retriever *)retriever, question, question_len,
                                         options, cancel, &results, &error);
    return (go_reply){(go_handle)results, (go_handle)error, status};
}

static inline size_t go_results_count(go_handle results) {
    return stair_results_count((const stair_results *)results);
}

static inline go_reply go_results_get(go_handle results, size_t i, stair_hit *hit) {
    stair_error *error = NULL;
    stair_status status = stair_results_get((const stair_results *)results, i, hit, &error);
    return (go_reply){0, (go_handle)error, status};
}

static inline go_reply go_results_path(go_handle results, size_t i, size_t entry,
                                       const char **text, size_t *len) {
    stair_error *error = NULL;
    stair_status status = stair_results_path((const stair_results *)results, i, entry, text, len,
                                             &error);
    return (go_reply){0, (go_handle)error, status};
}

static inline go_reply go_results_stats(go_handle results, stair_stats *stats) {
    stair_error *error = NULL;
    stair_status status = stair_results_stats((const stair_results *)results, stats, &error);
    return (go_reply){0, (go_handle)error, status};
}

static inline void go_results_free(go_handle results) {
    stair_results_free((stair_results *)results);
}

#endif
