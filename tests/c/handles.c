/* Live handles: freed twice, freed early, freed while in use, of the wrong kind, and every argument
 * beside them that must be refused. Arguments: MODEL.gguf INDEX.stair SMALL.stair. The last is
 * written: a small index, to ask questions of, so that a model of any quality answers soon. */
#include "check.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h> /* usleep */

static const char *model_path, *index_path, *small_path;
static const char QUESTION[] = "How long do I have to hand in a receipt?";

static stair_model *open_model(void)
{
    stair_model *model = NULL;
    WORKS(stair_model_open(model_path, STAIR_NTS, NULL, NULL, &model, e));
    return model;
}

static stair_index *open_index(const char *path)
{
    stair_index *index = NULL;
    WORKS(stair_index_open(path, STAIR_NTS, 0, &index, e));
    return index;
}

static void test_model(stair_model *model)
{
    stair_model *none = NULL;
    stair_cancel *cancel = stair_cancel_new();
    stair_model_info info = {.struct_size = sizeof info};

    WORKS(stair_model_get_info(model, &info, e));
    CHECK(info.struct_size == sizeof info && info.vocab_size > 0 && info.parameters > 0);
    CHECK(strlen(info.architecture) == info.architecture_len && info.architecture_len > 0);
    FAILS(STAIR_ERR_NULL_POINTER, stair_model_get_info(model, NULL, e));
    FILLS_SIZES(stair_model_info, object, stair_model_get_info(model, object, e));

    FAILS(STAIR_ERR_NOT_A_MODEL, stair_model_open(index_path, STAIR_NTS, NULL, NULL, &none, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_model_open(model_path, STAIR_NTS, NULL, NULL, NULL, e));
    stair_cancel_trigger(cancel);
    FAILS(STAIR_ERR_CANCELLED, stair_model_open(model_path, STAIR_NTS, NULL, cancel, &none, e));
    stair_cancel_free(cancel);
    CHECK(none == NULL);
}

static void test_index(stair_index *index)
{
    stair_index_info info = {.struct_size = sizeof info}, peeked = {.struct_size = sizeof peeked};
    stair_section section = {.struct_size = sizeof section};
    stair_index *none = NULL;

    WORKS(stair_index_get_info(index, &info, e));
    WORKS(stair_index_peek(index_path, STAIR_NTS, &peeked, e));
    CHECK(info.struct_size == sizeof info && info.sections > 0 && info.leaves > 0);
    CHECK(info.title != NULL && strlen(info.title) == info.title_len);
    CHECK(peeked.sections == info.sections && peeked.leaves == info.leaves);
    CHECK(peeked.fingerprint == info.fingerprint && peeked.bytes == info.bytes);
    CHECK(peeked.title == NULL && peeked.title_len == 0);
    FAILS(STAIR_ERR_NULL_POINTER, stair_index_get_info(index, NULL, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_index_peek(index_path, STAIR_NTS, NULL, e));
    FAILS(STAIR_ERR_NOT_AN_INDEX, stair_index_peek(model_path, STAIR_NTS, &peeked, e));
    FILLS_SIZES(stair_index_info, object, stair_index_get_info(index, object, e));
    FILLS_SIZES(stair_index_info, object, stair_index_peek(index_path, STAIR_NTS, object, e));

    for (uint32_t id = 0; id < info.sections; id++) {
        WORKS(stair_index_section(index, id, &section, e));
        CHECK(section.id == id && section.title_len > 0);
        CHECK(strlen(section.title) == section.title_len);
        CHECK(strlen(section.number) == section.number_len);
        CHECK(section.parent == STAIR_NONE ? section.depth == 0 : section.parent < id);
        CHECK(section.span_start <= section.span_end);
        CHECK(section.text != NULL || section.text_len == 0);
    }
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_index_section(index, info.sections, &section, e));
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_index_section(index, UINT32_MAX, &section, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_index_section(index, 0, NULL, e));
    FILLS_SIZES(stair_section, object, stair_index_section(index, 0, object, e));

    FAILS(STAIR_ERR_NOT_AN_INDEX, stair_index_open(model_path, STAIR_NTS, 0, &none, e));
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_index_open(index_path, STAIR_NTS, 2, &none, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_index_save(index, NULL, 0, e));
    FAILS(STAIR_ERR_NOT_FOUND, stair_index_save(index, "/nonexistent/file", STAIR_NTS, e));
    FAILS(ANY, stair_index_save(index, "/", STAIR_NTS, e));
    FAILS(ANY, stair_index_save(index, "", 0, e));
    CHECK(none == NULL);
}

/* The bytes of a file; the caller frees them. */
static uint8_t *read_file(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        abort();
    *len = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(*len);
    if (bytes == NULL || fread(bytes, 1, *len, file) != *len)
        abort();
    fclose(file);
    return bytes;
}

/* Cut short or changed anywhere, a buffer is refused; whole, it needs not outlive the call. */
static void test_buffers(void)
{
    size_t len;
    uint8_t *bytes = read_file(index_path, &len);
    stair_index *index = NULL;
    stair_section section = {.struct_size = sizeof section};

    for (size_t cut = 0; cut < len; cut += cut < 200 ? 1 : len / 50 + 1)
        FAILS(ANY, stair_index_open_buffer(bytes, cut, &index, e));
    for (size_t at = 0; at < len; at += at < 200 ? 1 : len / 50 + 1) {
        bytes[at] ^= 0x10;
        FAILS(ANY, stair_index_open_buffer(bytes, len, &index, e));
        bytes[at] ^= 0x10;
    }
    CHECK(index == NULL);
    WORKS(stair_index_open_buffer(bytes, len, &index, e));
    memset(bytes, 0xFF, len);
    free(bytes);
    WORKS(stair_index_section(index, 0, &section, e));
    CHECK(strlen(section.title) == section.title_len);
    stair_index_free(index);
}

static void test_build(stair_model *model)
{
    static const char document[] = "# Handbook\n\n"
                                   "## 1 Leave\n\n"
                                   "### 1.1 Parental leave\n\nMonths.\n\n"
                                   "### 1.2 Notice\n\nWeeks.\n\n"
                                   "## 2 Travel\n\n"
                                   "### 2.1 Claim window\n\nDays.\n\n"
                                   "## Glossary\n\nWords.\n";
    stair_index *built = NULL, *none = NULL;
    stair_index_info info = {.struct_size = sizeof info};
    stair_section section = {.struct_size = sizeof section};
    stair_build_options options = {.struct_size = sizeof options, .format = 99};

    WORKS(stair_index_build(model, document, STAIR_NTS, NULL, 0, NULL, &built, e));
    WORKS(stair_index_save(built, small_path, STAIR_NTS, e));
    stair_index_free(built);
    WORKS(stair_index_open(small_path, STAIR_NTS, STAIR_INDEX_COPY, &built, e));
    WORKS(stair_index_get_info(built, &info, e));
    CHECK(info.sections == 6 && info.leaves == 4 && info.has_text == 1);
    CHECK(strcmp(info.title, "Handbook") == 0);
    WORKS(stair_index_section(built, 4, &section, e));
    CHECK(strcmp(section.number, "2.1") == 0 && strcmp(section.title, "Claim window") == 0);
    CHECK(section.parent == 3 && section.depth == 1 && section.leaf == 1);
    CHECK(strstr(section.text, "Days.") != NULL && strlen(section.text) == section.text_len);
    stair_index_free(built);

    WORKS(stair_index_build(model, document, sizeof document - 1, "Given", 5, NULL, &built, e));
    WORKS(stair_index_get_info(built, &info, e));
    CHECK(strcmp(info.title, "Given") == 0);
    stair_index_free(built);

    FAILS(STAIR_ERR_NULL_POINTER,
          stair_index_build(model, document, STAIR_NTS, NULL, 0, NULL, NULL, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_index_build(model, NULL, 9, NULL, 0, NULL, &none, e));
    FAILS(ANY, stair_index_build(model, "", 0, NULL, 0, NULL, &none, e));
    FAILS(STAIR_ERR_NO_HEADINGS, stair_index_build(model, "Text.", 5, NULL, 0, NULL, &none, e));
    FAILS(STAIR_ERR_INVALID_UTF8,
          stair_index_build(model, "# A\n\xFF\n", STAIR_NTS, NULL, 0, NULL, &none, e));
    FAILS(STAIR_ERR_INVALID_UTF8,
          stair_index_build(model, document, STAIR_NTS, "\xFF", 1, NULL, &none, e));
    FAILS(ANY, stair_index_build(model, document, SIZE_MAX - 1, NULL, 0, NULL, &none, e));
    FAILS(STAIR_ERR_INVALID_ARGUMENT,
          stair_index_build(model, document, STAIR_NTS, NULL, 0, &options, &none, e));
    options = (stair_build_options){.struct_size = sizeof options, .omit_text = 2};
    FAILS(STAIR_ERR_INVALID_ARGUMENT,
          stair_index_build(model, document, STAIR_NTS, NULL, 0, &options, &none, e));
    options.omit_text = 0;
    options.format = STAIR_FORMAT_TOC_JSON;
    FAILS(STAIR_ERR_DOCUMENT,
          stair_index_build(model, document, STAIR_NTS, NULL, 0, &options, &none, e));
    REFUSES_SIZES(stair_build_options, object,
                  stair_index_build(model, document, STAIR_NTS, NULL, 0, object, &none, e));
    CHECK(none == NULL);
}

/* A section that only a known question's words find. */
static void test_known_questions(stair_model *model)
{
    static const char document[] = "# A\n\n## B\n\nb\n\n## C\n\nc\n";
    static const char known[] =
        "{\"id\": 1, \"query\": \"Zebras?\", \"section\": \"2 C\", \"split\": \"train\"}\n"
        "{\"id\": 2, \"query\": \"Where do cats go?\", \"section\": \"1 B\", \"split\": \"dev\"}\n";
    static const struct {
        const char *split, *found, *other;
    } splits[] = {{NULL, "zebra", "cat"}, {"dev", "cat", "zebra"}};
    stair_index *index = NULL, *none = NULL;
    stair_retriever *retriever = NULL;
    stair_results *results = NULL;
    stair_hit hit = {.struct_size = sizeof hit};
    stair_build_options options = {.struct_size = sizeof options,
                                   .questions = known,
                                   .questions_len = STAIR_NTS};

    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        options.split = splits[i].split;
        options.split_len = options.split == NULL ? 0 : STAIR_NTS;
        WORKS(stair_index_build(model, document, STAIR_NTS, NULL, 0, &options, &index, e));
        WORKS(stair_retriever_new(NULL, index, NULL, &retriever, e));
        WORKS(stair_retrieve(retriever, splits[i].found, STAIR_NTS, NULL, NULL, &results, e));
        WORKS(stair_results_get(results, 0, &hit, e));
        CHECK(hit.score > 0 && strcmp(hit.title, i == 0 ? "C" : "B") == 0);
        stair_results_free(results);
        WORKS(stair_retrieve(retriever, splits[i].other, STAIR_NTS, NULL, NULL, &results, e));
        WORKS(stair_results_get(results, 0, &hit, e));
        CHECK(hit.score == 0);
        stair_results_free(results);
        stair_retriever_free(retriever);
        stair_index_free(index);
    }

    /* A caller of the first header has no such fields. */
    options.struct_size = 16;
    WORKS(stair_index_build(model, document, STAIR_NTS, NULL, 0, &options, &index, e));
    WORKS(stair_retriever_new(NULL, index, NULL, &retriever, e));
    WORKS(stair_retrieve(retriever, "cat", STAIR_NTS, NULL, NULL, &results, e));
    WORKS(stair_results_get(results, 0, &hit, e));
    CHECK(hit.score == 0);
    stair_results_free(results);
    stair_retriever_free(retriever);
    stair_index_free(index);

    options.struct_size = sizeof options;
    options.split = "test";
    FAILS(STAIR_ERR_INVALID_ARGUMENT,
          stair_index_build(model, document, STAIR_NTS, NULL, 0, &options, &none, e));
    options.split = "\xFF";
    FAILS(STAIR_ERR_INVALID_UTF8,
          stair_index_build(model, document, STAIR_NTS, NULL, 0, &options, &none, e));
    /* NULL is "train", whatever stands for its length; but it is not so long as that. */
    options.split = NULL;
    WORKS(stair_index_build(model, document, STAIR_NTS, NULL, 0, &options, &index, e));
    stair_index_free(index);
    options.split_len = 1;
    FAILS(STAIR_ERR_NULL_POINTER,
          stair_index_build(model, document, STAIR_NTS, NULL, 0, &options, &none, e));
    options.split_len = 0;
    options.questions_len = 9;
    FAILS(STAIR_ERR_QUESTIONS,
          stair_index_build(model, document, STAIR_NTS, NULL, 0, &options, &none, e));
    options.questions = NULL;
    FAILS(STAIR_ERR_NULL_POINTER,
          stair_index_build(model, document, STAIR_NTS, NULL, 0, &options, &none, e));
    CHECK(none == NULL);
}

static void test_making(stair_model *model, stair_index *index)
{
    stair_retriever *none = NULL;
    stair_model *words = NULL;
    stair_model_options vocabulary = {.struct_size = sizeof vocabulary, .vocabulary_only = 1};
    stair_retriever_options options = {.struct_size = sizeof options, .kv_type = 99};

    FAILS(STAIR_ERR_NULL_POINTER, stair_retriever_new(model, NULL, NULL, &none, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_retriever_new(model, index, NULL, NULL, e));
    FAILS(STAIR_ERR_INVALID_HANDLE,
          stair_retriever_new((void *)index, (void *)model, NULL, &none, e));
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_retriever_new(model, index, &options, &none, e));
    options.kv_type = 0;
    options.deterministic = 2;
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_retriever_new(model, index, &options, &none, e));
    options.deterministic = 1;
    options.context_tokens = 16;
    FAILS(STAIR_ERR_CONTEXT_TOO_SMALL, stair_retriever_new(model, index, &options, &none, e));
    options.context_tokens = 0;
    options.cache_dir_len = 4;
    FAILS(STAIR_ERR_NULL_POINTER, stair_retriever_new(model, index, &options, &none, e));
    options.cache_dir = "a\xff.";
    options.cache_dir_len = 3;
    FAILS(STAIR_ERR_INVALID_UTF8, stair_retriever_new(model, index, &options, &none, e));
    options.cache_dir = "a\0b";
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_retriever_new(model, index, &options, &none, e));
    REFUSES_SIZES(stair_retriever_options, object,
                  stair_retriever_new(model, index, object, &none, e));

    WORKS(stair_model_open(model_path, STAIR_NTS, &vocabulary, NULL, &words, e));
    FAILS(ANY, stair_retriever_new(words, index, NULL, &none, e));
    stair_model_free(words);
    CHECK(none == NULL);
}

static void test_questions(stair_retriever *retriever, uint32_t leaves)
{
    stair_results *none = NULL;
    stair_cancel *cancel = stair_cancel_new();
    stair_retrieve_options options = {.struct_size = sizeof options};

    FAILS(STAIR_ERR_EMPTY_QUESTION, stair_retrieve(retriever, NULL, 0, NULL, NULL, &none, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_retrieve(retriever, NULL, 4, NULL, NULL, &none, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_retrieve(retriever, NULL, STAIR_NTS, NULL, NULL, &none, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_retrieve(retriever, "Why?", 4, NULL, NULL, NULL, e));
    FAILS(STAIR_ERR_EMPTY_QUESTION, stair_retrieve(retriever, "", 0, NULL, NULL, &none, e));
    FAILS(STAIR_ERR_EMPTY_QUESTION, stair_retrieve(retriever, " \n\t", 3, NULL, NULL, &none, e));
    FAILS(STAIR_ERR_NUL_IN_QUESTION, stair_retrieve(retriever, "a\0b", 3, NULL, NULL, &none, e));
    FAILS(STAIR_ERR_INVALID_UTF8, stair_retrieve(retriever, "a\xFF", 2, NULL, NULL, &none, e));
    FAILS(ANY, stair_retrieve(retriever, "a", SIZE_MAX - 1, NULL, NULL, &none, e));

    FAILS(STAIR_ERR_INVALID_K, stair_retrieve(retriever, "Why?", 4, &options, NULL, &none, e));
    options.k = leaves + 1;
    FAILS(STAIR_ERR_INVALID_K, stair_retrieve(retriever, "Why?", 4, &options, NULL, &none, e));
    options.k = UINT32_MAX;
    FAILS(STAIR_ERR_INVALID_K, stair_retrieve(retriever, "Why?", 4, &options, NULL, &none, e));
    options.k = 1;
    options.scoring = 99;
    FAILS(STAIR_ERR_INVALID_ARGUMENT,
          stair_retrieve(retriever, "Why?", 4, &options, NULL, &none, e));
    REFUSES_SIZES(stair_retrieve_options, object,
                  stair_retrieve(retriever, "Why?", 4, object, NULL, &none, e));

    stair_cancel_trigger(cancel);
    FAILS(STAIR_ERR_CANCELLED, stair_retrieve(retriever, "Why?", 4, NULL, cancel, &none, e));
    stair_cancel_free(cancel);
    CHECK(none == NULL);
}

static void test_results(stair_results *results)
{
    const size_t count = stair_results_count(results);
    stair_hit hit = {.struct_size = sizeof hit};
    stair_stats stats = {.struct_size = sizeof stats};
    const char *text = NULL;
    size_t len = 0;
    double before = 0;

    CHECK(count > 0);
    for (size_t i = 0; i < count; i++) {
        WORKS(stair_results_get(results, i, &hit, e));
        CHECK(hit.log_prob <= before);
        before = hit.log_prob;
        CHECK(strlen(hit.title) == hit.title_len && strlen(hit.number) == hit.number_len);
        CHECK(hit.path_len > 0);
        for (uint32_t entry = 0; entry < hit.path_len; entry++) {
            WORKS(stair_results_path(results, i, entry, &text, NULL, e));
            WORKS(stair_results_path(results, i, entry, &text, &len, e));
            CHECK(strlen(text) == len && len > 0);
        }
        CHECK(len >= hit.title_len && strcmp(text + len - hit.title_len, hit.title) == 0);
        FAILS(STAIR_ERR_INVALID_ARGUMENT,
              stair_results_path(results, i, hit.path_len, &text, &len, e));
    }
    WORKS(stair_results_stats(results, &stats, e));
    CHECK(stats.legal_mass >= 0 && stats.legal_mass <= 1.0001 && stats.decodes > 0);

    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_results_get(results, count, &hit, e));
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_results_get(results, SIZE_MAX, &hit, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_results_get(results, 0, NULL, e));
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_results_path(results, count, 0, &text, &len, e));
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_results_path(results, 0, SIZE_MAX, &text, &len, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_results_path(results, 0, 0, NULL, &len, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_results_stats(results, NULL, e));
    FILLS_SIZES(stair_hit, object, stair_results_get(results, 0, object, e));
    FILLS_SIZES(stair_stats, object, stair_results_stats(results, object, e));
}

/* A hit's score is what it is ranked by, and every part of it is told. */
static void test_lexical_weight(const stair_retriever *retriever, uint32_t leaves)
{
    static const float wrong[] = {-1, -1e-30f, NAN, INFINITY, -INFINITY};
    stair_results *results = NULL;
    stair_hit hit = {.struct_size = sizeof hit};
    stair_retrieve_options options = {.struct_size = sizeof options, .k = leaves};
    double before = INFINITY;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.lexical_weight = wrong[i];
        FAILS(STAIR_ERR_INVALID_ARGUMENT,
              stair_retrieve(retriever, "Why?", 4, &options, NULL, &results, e));
    }
    options.lexical_weight = 0.5f;
    WORKS(stair_retrieve(retriever, "claim windows", STAIR_NTS, &options, NULL, &results, e));
    for (size_t i = 0; i < leaves; i++) {
        WORKS(stair_results_get(results, i, &hit, e));
        CHECK(fabs(hit.score - (hit.log_prob + 0.5 * hit.lexical)) < 1e-5);
        CHECK(hit.score <= before && hit.log_prob <= 0);
        CHECK((hit.lexical > 0) == (strcmp(hit.title, "Claim window") == 0));
        before = hit.score;
    }
    stair_results_free(results);

    /* A caller that does not know the weight yet: what stands after its struct is not read. */
    options.struct_size = 16;
    options.k = 1;
    options.lexical_weight = NAN;
    WORKS(stair_retrieve(retriever, "claim windows", STAIR_NTS, &options, NULL, &results, e));
    WORKS(stair_results_get(results, 0, &hit, e));
    CHECK(hit.score == hit.log_prob && isnan(hit.lexical));
    stair_results_free(results);
}

/* Words alone: a retriever without a model. */
static void test_without_model(const stair_index *index, uint32_t leaves)
{
    stair_retriever *retriever = NULL;
    stair_results *results = NULL;
    stair_hit hit = {.struct_size = sizeof hit};
    stair_stats stats = {.struct_size = sizeof stats};
    stair_retrieve_options options = {.struct_size = sizeof options, .k = leaves};
    uint32_t last = 0;

    WORKS(stair_retriever_new(NULL, index, NULL, &retriever, e));
    WORKS(stair_retriever_warm(retriever, NULL, e));
    sweep(retriever, RETRIEVER, STAIR_ERR_INVALID_HANDLE);
    test_questions(retriever, leaves);
    WORKS(stair_retrieve(retriever, "claim windows", STAIR_NTS, NULL, NULL, &results, e));
    CHECK(stair_results_count(results) == 3);
    WORKS(stair_results_get(results, 0, &hit, e));
    CHECK(strcmp(hit.title, "Claim window") == 0 && strstr(hit.text, "Days.") != NULL);
    CHECK(hit.score > 0 && hit.score == hit.lexical && isnan(hit.log_prob));
    WORKS(stair_results_stats(results, &stats, e));
    CHECK(stats.decodes == 0 && stats.search_tokens == 0 && isnan(stats.legal_mass));
    stair_results_free(results);

    /* Without a known word: every leaf in order, and the score says so. */
    WORKS(stair_retrieve(retriever, "zebra?", STAIR_NTS, &options, NULL, &results, e));
    CHECK(stair_results_count(results) == leaves);
    for (size_t i = 0; i < leaves; i++) {
        WORKS(stair_results_get(results, i, &hit, e));
        CHECK(hit.score == 0 && hit.lexical == 0 && hit.section >= last);
        last = hit.section + 1;
    }
    stair_results_free(results);
    stair_retriever_free(retriever);
}

struct asking {
    const stair_retriever *retriever;
    atomic_uint answered, ended;
};

/* Asks until it is refused. Returns the status that ended it. */
static void *ask_on(void *argument)
{
    struct asking *asking = argument;
    stair_status status = STAIR_OK;
    while (status == STAIR_OK) {
        stair_results *results = NULL;
        status = stair_retrieve(asking->retriever, QUESTION, STAIR_NTS, NULL, NULL, &results, NULL);
        if (status == STAIR_OK)
            atomic_fetch_add(&asking->answered, 1);
        stair_results_free(results);
    }
    atomic_fetch_add(&asking->ended, 1);
    return (void *)(intptr_t)status;
}

/* A retriever freed under the threads that ask it: each of them gets an answer or a status. */
static void test_freed_in_use(stair_retriever *retriever)
{
    struct asking asking = {.retriever = retriever};
    pthread_t threads[3];
    void *status;
    for (size_t i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, ask_on, &asking);
    while (atomic_load(&asking.answered) < 2 && atomic_load(&asking.ended) == 0)
        usleep(1000);
    stair_retriever_free(retriever);
    for (size_t i = 0; i < 3; i++) {
        pthread_join(threads[i], &status);
        CHECK((intptr_t)status == STAIR_ERR_INVALID_HANDLE || (intptr_t)status == STAIR_ERR_CLOSED);
    }
}

static void on_log(int32_t level, const char *message, size_t len, void *userdata)
{
    CHECK(level >= STAIR_LOG_ERROR && level <= STAIR_LOG_INFO);
    CHECK(strlen(message) == len);
    atomic_fetch_add((atomic_uint *)userdata, 1);
}

static void test_log(void)
{
    static atomic_uint lines;
    unsigned heard;
    stair_log_set(on_log, &lines, STAIR_LOG_INFO);
    stair_model_free(open_model());
    stair_log_set(NULL, NULL, 0);
    heard = atomic_load(&lines);
    CHECK(heard > 0);
    stair_model_free(open_model());
    CHECK(atomic_load(&lines) == heard);
}

/* A live handle with one bit changed is none; the lowest bits could make another live one of it. */
static void test_forged(void *handle)
{
    for (unsigned bit = 12; bit < 8 * sizeof(uintptr_t); bit++)
        sweep((void *)((uintptr_t)handle ^ (uintptr_t)1 << bit), NONE, STAIR_ERR_INVALID_HANDLE);
}

int main(int argc, char **argv)
{
    stair_model *one_model, *next_model;
    stair_index *one_index, *next_index;
    stair_retriever *retriever = NULL, *next_retriever = NULL;
    stair_results *answer = NULL, *next_answer = NULL;
    stair_index_info info = {.struct_size = sizeof info};
    if (argc != 4) {
        fprintf(stderr, "usage: handles MODEL.gguf INDEX.stair SMALL.stair\n");
        return 2;
    }
    model_path = argv[1];
    index_path = argv[2];
    small_path = argv[3];

    one_model = open_model();
    one_index = open_index(index_path);
    if (failures > 0)
        return report("handles");
    test_model(one_model);
    test_index(one_index);
    test_buffers();
    test_build(one_model);
    test_known_questions(one_model);
    test_making(one_model, one_index);
    test_log();
    stair_index_free(one_index);
    one_index = open_index(small_path);

    /* The retriever keeps what it needs of them, and results stand alone. */
    WORKS(stair_retriever_new(one_model, one_index, NULL, &retriever, e));
    WORKS(stair_index_get_info(one_index, &info, e));
    sweep(one_model, MODEL, STAIR_ERR_INVALID_HANDLE);
    sweep(one_index, INDEX, STAIR_ERR_INVALID_HANDLE);
    sweep(retriever, RETRIEVER, STAIR_ERR_INVALID_HANDLE);
    test_forged(one_model);
    test_forged(one_index);
    test_forged(retriever);
    WORKS(stair_index_get_info(one_index, &info, e));
    const uint32_t leaves = info.leaves;
    test_without_model(one_index, leaves);
    stair_model_free(one_model);
    stair_index_free(one_index);
    WORKS(stair_retriever_warm(retriever, NULL, e));
    test_questions(retriever, leaves);
    test_lexical_weight(retriever, leaves);
    WORKS(stair_retrieve(retriever, QUESTION, STAIR_NTS, NULL, NULL, &answer, e));
    WORKS(stair_retrieve(retriever, QUESTION, sizeof QUESTION - 1, NULL, NULL, &next_answer, e));
    test_freed_in_use(retriever);
    test_results(answer);
    sweep(answer, RESULTS, STAIR_ERR_INVALID_HANDLE);
    stair_results_free(answer);
    CHECK(stair_results_count(next_answer) > 0);

    /* Freed handles are none, also when new ones have come. */
    next_model = open_model();
    next_index = open_index(small_path);
    WORKS(stair_retriever_new(next_model, next_index, NULL, &next_retriever, e));
    for (int again = 0; again < 2; again++) {
        stair_model_free(one_model);
        stair_index_free(one_index);
        stair_retriever_free(retriever);
        stair_results_free(answer);
    }
    sweep(one_model, NONE, STAIR_ERR_INVALID_HANDLE);
    sweep(one_index, NONE, STAIR_ERR_INVALID_HANDLE);
    sweep(retriever, NONE, STAIR_ERR_INVALID_HANDLE);
    sweep(answer, NONE, STAIR_ERR_INVALID_HANDLE);
    WORKS(stair_index_get_info(next_index, &info, e));

    /* A retriever that was never asked goes in any order. */
    stair_results_free(next_answer);
    stair_model_free(next_model);
    stair_retriever_free(next_retriever);
    stair_index_free(next_index);
    return report("handles");
}
