/* Every function of stair.h with what must not be passed: NULL, handles that are none, sizes, flags
 * and paths that are wrong. Each is to be refused with a status; none may crash. Needs no model. */
#include "check.h"

static const char MISSING[] = "/nonexistent/file";

static void status_and_version(void)
{
    CHECK(stair_abi_version() == STAIR_ABI_VERSION);
    CHECK(stair_version() != NULL && stair_version()[0] != '\0');
    CHECK(stair_build_info() != NULL && stair_build_info()[0] != '\0');
    CHECK(strcmp(stair_status_name(STAIR_OK), "OK") == 0);
    CHECK(strcmp(stair_status_name(STAIR_ERR_INVALID_K), "INVALID_K") == 0);
    CHECK(strcmp(stair_status_name(STAIR_ERR_PANIC), "PANIC") == 0);
    CHECK(strcmp(stair_status_name(1), "UNKNOWN") == 0);
    CHECK(strcmp(stair_status_name(INT32_MIN), "UNKNOWN") == 0);
    CHECK(strcmp(stair_status_name(INT32_MAX), "UNKNOWN") == 0);
}

static void options(void)
{
    union { unsigned char bytes[256]; uint64_t align; } room;
    stair_model_options model;
    stair_build_options build;
    stair_retriever_options retriever;
    stair_retrieve_options retrieve;

    CHECK(stair_model_options_init(NULL, sizeof model) == STAIR_ERR_NULL_POINTER);
    CHECK(stair_build_options_init(NULL, sizeof build) == STAIR_ERR_NULL_POINTER);
    CHECK(stair_retriever_options_init(NULL, sizeof retriever) == STAIR_ERR_NULL_POINTER);
    CHECK(stair_retrieve_options_init(NULL, sizeof retrieve) == STAIR_ERR_NULL_POINTER);

    memset(&room, 0xAA, sizeof room);
    for (size_t size = 0; size < sizeof retrieve; size++) {
        stair_retrieve_options *object = (void *)&room;
        if (size == 16) /* its size before lexical_weight */
            continue;
        CHECK(stair_retrieve_options_init(object, size) == STAIR_ERR_STRUCT_SIZE);
        CHECK(object->k == 0xAAAAAAAA);
    }
    CHECK(stair_retrieve_options_init((void *)&room, 16) == STAIR_OK);
    CHECK(room.bytes[0] == 16 && room.bytes[7] == 0x80 && room.bytes[16] == 0xAA);
    CHECK(stair_model_options_init((void *)&room, sizeof model - 1) == STAIR_ERR_STRUCT_SIZE);
    CHECK(stair_build_options_init((void *)&room, sizeof build - 1) == STAIR_ERR_STRUCT_SIZE);
    CHECK(stair_retriever_options_init((void *)&room, sizeof retriever - 1) ==
          STAIR_ERR_STRUCT_SIZE);
    CHECK(stair_model_options_init((void *)&room, SIZE_MAX) == STAIR_ERR_STRUCT_SIZE);

    memset(&model, 0xAA, sizeof model);
    memset(&build, 0xAA, sizeof build);
    memset(&retriever, 0xAA, sizeof retriever);
    memset(&retrieve, 0xAA, sizeof retrieve);
    CHECK(stair_model_options_init(&model, sizeof model) == STAIR_OK);
    CHECK(stair_build_options_init(&build, sizeof build) == STAIR_OK);
    CHECK(stair_retriever_options_init(&retriever, sizeof retriever) == STAIR_OK);
    CHECK(stair_retrieve_options_init(&retrieve, sizeof retrieve) == STAIR_OK);
    CHECK(model.struct_size == sizeof model && model.gpu_layers == 0 && model.disable_mmap == 0);
    CHECK(build.struct_size == sizeof build && build.omit_text == 0);
    CHECK(retriever.struct_size == sizeof retriever && retriever.deterministic == 0);
    CHECK(retrieve.struct_size == sizeof retrieve && retrieve.k == STAIR_K_DEFAULT &&
          retrieve.timeout_ms == 0);
    CHECK(retrieve.lexical_weight == 0);
}

static void paths(void)
{
    static int untouched;
    void *const mark = &untouched;
    stair_model *model = mark;
    stair_index *index = mark;
    stair_index_info info = {.struct_size = sizeof info};
    stair_model_options odd = {.struct_size = sizeof odd, .vocabulary_only = 2};
    static const struct {
        const char *text;
        size_t len;
        stair_status status;
    } wrong[] = {
        {NULL, 0, STAIR_ERR_NULL_POINTER},
        {NULL, 5, STAIR_ERR_NULL_POINTER},
        {NULL, STAIR_NTS, STAIR_ERR_NULL_POINTER},
        {"", 0, STAIR_ERR_INVALID_ARGUMENT},
        {"a\0b", 3, STAIR_ERR_INVALID_ARGUMENT},
        {"\xFF\xFE", 2, STAIR_ERR_INVALID_UTF8},
        {"x", SIZE_MAX - 1, STAIR_ERR_INVALID_ARGUMENT},
        {MISSING, STAIR_NTS, STAIR_ERR_NOT_FOUND},
        {MISSING, sizeof MISSING - 1, STAIR_ERR_NOT_FOUND},
        {"/", 1, STAIR_ERR_NOT_A_FILE},
        {"/dev/null", 9, STAIR_ERR_NOT_A_FILE},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *text = wrong[i].text;
        size_t len = wrong[i].len;
        FAILS(wrong[i].status, stair_model_open(text, len, NULL, NULL, &model, e));
        FAILS(wrong[i].status, stair_index_open(text, len, 0, &index, e));
        FAILS(wrong[i].status, stair_index_open(text, len, STAIR_INDEX_COPY, &index, e));
        FAILS(wrong[i].status, stair_index_peek(text, len, &info, e));
    }

    FAILS(STAIR_ERR_NULL_POINTER, stair_model_open(MISSING, STAIR_NTS, NULL, NULL, NULL, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_index_open(MISSING, STAIR_NTS, 0, NULL, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_index_peek(MISSING, STAIR_NTS, NULL, e));
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_index_open(MISSING, STAIR_NTS, 2, &index, e));
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_index_open(MISSING, STAIR_NTS, UINT32_MAX, &index, e));
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_model_open(MISSING, STAIR_NTS, &odd, NULL, &model, e));
    odd = (stair_model_options){.struct_size = sizeof odd, .disable_mmap = UINT32_MAX};
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_model_open(MISSING, STAIR_NTS, &odd, NULL, &model, e));
    odd = (stair_model_options){.struct_size = sizeof odd, .gpu_layers = -2};
    FAILS(STAIR_ERR_INVALID_ARGUMENT, stair_model_open(MISSING, STAIR_NTS, &odd, NULL, &model, e));
    REFUSES_SIZES(stair_model_options, object,
                  stair_model_open(MISSING, STAIR_NTS, object, NULL, &model, e));

    FAILS(STAIR_ERR_NULL_POINTER, stair_index_open_buffer(NULL, 5, &index, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_index_open_buffer(NULL, 0, &index, e));
    FAILS(STAIR_ERR_NULL_POINTER, stair_index_open_buffer((const uint8_t *)"x", 1, NULL, e));
    FAILS(STAIR_ERR_NOT_AN_INDEX, stair_index_open_buffer((const uint8_t *)"x", 0, &index, e));
    FAILS(STAIR_ERR_NOT_AN_INDEX, stair_index_open_buffer((const uint8_t *)"x", 1, &index, e));
    FAILS(STAIR_ERR_INVALID_ARGUMENT,
          stair_index_open_buffer((const uint8_t *)"x", SIZE_MAX, &index, e));
    FAILS(STAIR_ERR_INVALID_ARGUMENT,
          stair_index_open_buffer((const uint8_t *)"x", SIZE_MAX / 2 + 1, &index, e));

    CHECK(model == mark && index == mark && info.sections == 0);
}

static void handles(void)
{
    stair_error *live = NULL, *other = NULL;
    stair_index *index = NULL;
    uint64_t stack[8] = {0};

    sweep(NULL, NONE, STAIR_ERR_NULL_POINTER);
    sweep(stack, NONE, STAIR_ERR_INVALID_HANDLE);
    sweep((void *)(uintptr_t)1, NONE, STAIR_ERR_INVALID_HANDLE);
    sweep((void *)(uintptr_t)8, NONE, STAIR_ERR_INVALID_HANDLE);
    sweep((void *)UINTPTR_MAX, NONE, STAIR_ERR_INVALID_HANDLE);

    /* A live error passed as anything else survives it; freed, it is no handle any more. */
    CHECK(stair_index_open(MISSING, STAIR_NTS, 0, &index, &live) == STAIR_ERR_NOT_FOUND);
    sweep(live, ERROR, STAIR_ERR_INVALID_HANDLE);
    CHECK(stair_error_code(live) == STAIR_ERR_NOT_FOUND);
    CHECK(strstr(stair_error_message(live, NULL), MISSING) != NULL);
    stair_error_free(live);
    sweep(live, NONE, STAIR_ERR_INVALID_HANDLE);

    /* Nor when there is a new one. */
    CHECK(stair_index_open(MISSING, STAIR_NTS, 0, &index, &other) == STAIR_ERR_NOT_FOUND);
    CHECK(live != other);
    sweep(live, NONE, STAIR_ERR_INVALID_HANDLE);
    CHECK(stair_error_code(other) == STAIR_ERR_NOT_FOUND);
    stair_error_free(other);
    stair_error_free(other);
}

static void cancel_and_log(void)
{
    stair_cancel *cancel = stair_cancel_new();
    CHECK(cancel != NULL);
    CHECK(stair_cancel_triggered(cancel) == 0);
    stair_cancel_trigger(cancel);
    stair_cancel_trigger(cancel);
    CHECK(stair_cancel_triggered(cancel) == 1);
    stair_cancel_free(cancel);

    stair_cancel_trigger(NULL);
    CHECK(stair_cancel_triggered(NULL) == 0);
    stair_cancel_free(NULL);

    stair_log_set(NULL, NULL, 0);
    stair_log_set(NULL, NULL, INT32_MIN);
    stair_log_set(NULL, NULL, INT32_MAX);
}

int main(void)
{
    status_and_version();
    options();
    paths();
    handles();
    cancel_and_log();
    return report("null_sweep");
}
