/* What the C tests share: counting checks, and calling everything with a handle that is no good. */
#ifndef CHECK_H
#define CHECK_H

#include <stair.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned checks, failures;

/* Counts a check; says what failed. */
#define CHECK(condition) check(__LINE__, #condition, (condition) ? 1 : 0)

static inline void check(int line, const char *what, int good)
{
    checks++;
    if (!good) {
        failures++;
        fprintf(stderr, "line %d: not so: %s\n", line, what);
    }
}

/* Any error will do. */
#define ANY (-1)

/* Expects `call`, which names its last argument `e`, to fail with the status `want`: once with an
 * error object, which must say the same, and once without. */
#define FAILS(want, call)                                      \
    do {                                                       \
        stair_error *error_ = NULL, **e = &error_;             \
        stair_status status_ = (call);                         \
        check_error(__LINE__, #call, want, status_, error_);   \
        e = NULL;                                              \
        status_ = (call);                                      \
        check_status(__LINE__, #call, want, status_);          \
    } while (0)

/* Expects `call` to succeed and to leave no error object. */
#define WORKS(call)                                            \
    do {                                                       \
        stair_error *error_ = NULL, **e = &error_;             \
        stair_status status_ = (call);                         \
        checks++;                                              \
        if (status_ != STAIR_OK || error_ != NULL) {           \
            failures++;                                        \
            fprintf(stderr, "line %d: %s: %s: %s\n", __LINE__, #call, stair_status_name(status_), \
                    error_ != NULL ? stair_error_message(error_, NULL) : "");                     \
            stair_error_free(error_);                          \
        }                                                      \
    } while (0)

static inline void check_status(int line, const char *call, stair_status want, stair_status got)
{
    checks++;
    if (got == STAIR_OK || (want != ANY && got != want) ||
        strcmp(stair_status_name(got), "UNKNOWN") == 0) {
        failures++;
        fprintf(stderr, "line %d: %s: status %d %s, expected %s\n", line, call, (int)got,
                stair_status_name(got), want == ANY ? "an error" : stair_status_name(want));
    }
}

static inline void check_error(int line, const char *call, stair_status want, stair_status got,
                               stair_error *error)
{
    size_t len = 0;
    const char *message;
    check_status(line, call, want, got);
    checks++;
    if (error == NULL) {
        failures++;
        fprintf(stderr, "line %d: %s: no error object\n", line, call);
        return;
    }
    message = stair_error_message(error, &len);
    if (stair_error_code(error) != got || message == NULL || len == 0 || strlen(message) != len) {
        failures++;
        fprintf(stderr, "line %d: %s: code %d and message of %zu bytes for status %d\n", line, call,
                (int)stair_error_code(error), len, (int)got);
    }
    stair_error_free(error);
}

static inline int report(const char *test)
{
    if (failures > 0)
        fprintf(stderr, "%s: %u of %u checks failed\n", test, failures, checks);
    else
        printf("%s: %u checks\n", test, checks);
    return failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

enum kind { NONE, ERROR, MODEL, INDEX, RETRIEVER, RESULTS };

/* Calls every function that takes a handle of another kind than `kind` with this `handle`, and
 * expects `want`. Whatever it is, nothing may be written and nothing may be freed. */
static inline void sweep(void *handle, enum kind kind, stair_status want)
{
    static int untouched;
    void *const mark = &untouched;
    const char *path = "/nonexistent/file", *text = mark;
    size_t len = 77;

    if (kind != ERROR) {
        const char *message = stair_error_message(handle, &len);
        CHECK(stair_error_code(handle) == (handle == NULL ? STAIR_OK : want));
        CHECK(message != NULL && message[0] == '\0' && len == 0);
        (void)stair_error_message(handle, NULL);
        stair_error_free(handle);
    }
    if (kind != MODEL) {
        stair_model_info info = {.struct_size = sizeof info};
        stair_index *index = mark;
        FAILS(want, stair_model_get_info(handle, &info, e));
        FAILS(ANY, stair_model_get_info(handle, NULL, e));
        FAILS(want, stair_index_build(handle, "# A\n", STAIR_NTS, NULL, 0, NULL, &index, e));
        FAILS(ANY, stair_index_build(handle, NULL, 0, NULL, 0, NULL, NULL, e));
        CHECK(info.vocab_size == 0 && index == mark);
        stair_model_free(handle);
    }
    if (kind != INDEX) {
        stair_index_info info = {.struct_size = sizeof info};
        stair_section section = {.struct_size = sizeof section};
        FAILS(want, stair_index_save(handle, path, STAIR_NTS, e));
        FAILS(ANY, stair_index_save(handle, NULL, 0, e));
        FAILS(want, stair_index_get_info(handle, &info, e));
        FAILS(ANY, stair_index_get_info(handle, NULL, e));
        FAILS(want, stair_index_section(handle, 0, &section, e));
        FAILS(ANY, stair_index_section(handle, UINT32_MAX, NULL, e));
        CHECK(info.sections == 0 && section.title == NULL);
        stair_index_free(handle);
    }
    if (kind != MODEL && kind != INDEX) {
        stair_retriever *retriever = mark;
        FAILS(want, stair_retriever_new(handle, handle, NULL, &retriever, e));
        FAILS(ANY, stair_retriever_new(handle, handle, NULL, NULL, e));
        CHECK(retriever == mark);
    }
    if (kind != RETRIEVER) {
        stair_results *results = mark;
        FAILS(want, stair_retriever_warm(handle, NULL, e));
        FAILS(want, stair_retrieve(handle, "Why?", STAIR_NTS, NULL, NULL, &results, e));
        FAILS(ANY, stair_retrieve(handle, NULL, 0, NULL, NULL, NULL, e));
        CHECK(results == mark);
        stair_retriever_free(handle);
    }
    if (kind != RESULTS) {
        stair_hit hit = {.struct_size = sizeof hit};
        stair_stats stats = {.struct_size = sizeof stats};
        CHECK(stair_results_count(handle) == 0);
        FAILS(want, stair_results_get(handle, 0, &hit, e));
        FAILS(ANY, stair_results_get(handle, SIZE_MAX, NULL, e));
        len = 77;
        FAILS(want, stair_results_path(handle, 0, 0, &text, &len, e));
        FAILS(want, stair_results_path(handle, 0, 0, &text, NULL, e));
        FAILS(ANY, stair_results_path(handle, 0, 0, NULL, NULL, e));
        FAILS(want, stair_results_stats(handle, &stats, e));
        FAILS(ANY, stair_results_stats(handle, NULL, e));
        CHECK(hit.title == NULL && text == mark && len == 77 && stats.decodes == 0);
        stair_results_free(handle);
    }
}

/* An options struct of the type `type`, named `object` in `call`: one that is too small is refused,
 * and so is a larger one with something in it that this library does not know. */
#define REFUSES_SIZES(type, object, call)                                       \
    do {                                                                        \
        union { type as; unsigned char bytes[sizeof(type) + 64]; } room_;       \
        type *const object = &room_.as;                                         \
        static const size_t wrong_[] = {0, 1, 4, sizeof(type) - 1};             \
        for (size_t i_ = 0; i_ < sizeof wrong_ / sizeof *wrong_; i_++) {        \
            memset(&room_, 0, sizeof room_);                                    \
            object->struct_size = (uint32_t)wrong_[i_];                         \
            FAILS(STAIR_ERR_STRUCT_SIZE, call);                                 \
        }                                                                       \
        for (size_t i_ = sizeof(type); i_ < sizeof room_; i_ += 8) {            \
            memset(&room_, 0, sizeof room_);                                    \
            room_.bytes[i_] = 1;                                                \
            object->struct_size = sizeof room_;                                 \
            FAILS(STAIR_ERR_STRUCT_SIZE, call);                                 \
        }                                                                       \
    } while (0)

/* A struct that `call` fills in: one that is too small is refused and left alone; of a larger one,
 * nothing is written beyond its end. */
#define FILLS_SIZES(type, object, call)                                         \
    do {                                                                        \
        union { type as; unsigned char bytes[sizeof(type) + 64]; } room_;       \
        type *const object = &room_.as;                                         \
        static const size_t sizes_[] = {0, 1, 4, sizeof(type) - 1,              \
                                        sizeof(type) + 32};                     \
        for (size_t i_ = 0; i_ < sizeof sizes_ / sizeof *sizes_; i_++) {        \
            const size_t end_ = sizes_[i_] < sizeof(type) ? 4 : sizes_[i_];     \
            size_t left_ = end_;                                                \
            memset(&room_, 0xAA, sizeof room_);                                 \
            object->struct_size = (uint32_t)sizes_[i_];                         \
            if (sizes_[i_] < sizeof(type)) {                                    \
                FAILS(STAIR_ERR_STRUCT_SIZE, call);                             \
            } else {                                                            \
                stair_error **e = NULL;                                         \
                stair_status status_ = (call);                                  \
                CHECK(status_ == STAIR_OK || status_ == STAIR_ERR_STRUCT_SIZE); \
            }                                                                   \
            while (left_ < sizeof room_ && room_.bytes[left_] == 0xAA)          \
                left_++;                                                        \
            CHECK(left_ == sizeof room_);                                       \
        }                                                                       \
    } while (0)

#endif
