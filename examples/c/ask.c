/* Asks a document: which of its sections answer these questions?
 *
 *     cc -std=c11 ask.c -o ask $(pkg-config --cflags --libs stair) -pthread
 *     ./ask MODEL.gguf INDEX.stair "How long do I have to hand in a receipt?"
 *
 * With --callers N, N threads then ask everything once more, all at the same time and on the one
 * retriever, and compare their answers with the first ones.
 */
#include <pthread.h>
#include <stair.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the callers share. A retriever takes questions from any number of threads. */
struct session {
    const stair_retriever *retriever;
    char **questions;
    stair_results **answers; /* to the questions, in their order */
    size_t count;
};

struct caller {
    pthread_t thread;
    const struct session *session;
    size_t differ;
    stair_status status;
    stair_error *error;
};

/* Prints the error, frees it, and returns the exit status. */
static int fail(stair_status status, stair_error *error)
{
    fprintf(stderr, "error: %s: %s\n", stair_status_name(status), stair_error_message(error, NULL));
    stair_error_free(error);
    return EXIT_FAILURE;
}

/*   1. 4.2 Claim window  (4 Travel and expenses > 4.2 Claim window)  -0.312 */
static stair_status print_hit(const stair_results *results, size_t i, stair_error **error)
{
    stair_hit hit = {.struct_size = sizeof hit};
    stair_status status = stair_results_get(results, i, &hit, error);
    if (status != STAIR_OK)
        return status;
    printf("  %zu. %.*s%s%.*s  (", i + 1, (int)hit.number_len, hit.number,
           hit.number_len > 0 ? " " : "", (int)hit.title_len, hit.title);
    for (size_t entry = 0; entry < hit.path_len; entry++) {
        const char *text;
        size_t len;
        status = stair_results_path(results, i, entry, &text, &len, error);
        if (status != STAIR_OK)
            return status;
        printf("%s%.*s", entry > 0 ? " > " : "", (int)len, text);
    }
    printf(")  %.3f\n", hit.score);
    return STAIR_OK;
}

/* Asks every question, keeps the answers in the session and prints them. */
static stair_status ask(const struct session *session, stair_error **error)
{
    for (size_t q = 0; q < session->count; q++) {
        stair_status status = stair_retrieve(session->retriever, session->questions[q], STAIR_NTS,
                                             NULL, NULL, &session->answers[q], error);
        if (status != STAIR_OK)
            return status;
        printf("%s\n", session->questions[q]);
        for (size_t i = 0; i < stair_results_count(session->answers[q]); i++) {
            status = print_hit(session->answers[q], i, error);
            if (status != STAIR_OK)
                return status;
        }
        printf("\n");
    }
    return STAIR_OK;
}

/* Whether two answers name the same sections with exactly the same log-probabilities. */
static stair_status same(const stair_results *a, const stair_results *b, int *out,
                         stair_error **error)
{
    *out = stair_results_count(a) == stair_results_count(b);
    for (size_t i = 0; *out && i < stair_results_count(a); i++) {
        stair_hit x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
        stair_status status = stair_results_get(a, i, &x, error);
        if (status == STAIR_OK)
            status = stair_results_get(b, i, &y, error);
        if (status != STAIR_OK)
            return status;
        *out = x.section == y.section && x.log_prob == y.log_prob;
    }
    return STAIR_OK;
}

/* One thread: asks everything and counts the answers that differ from the first ones. */
static void *call(void *argument)
{
    struct caller *caller = argument;
    const struct session *session = caller->session;
    for (size_t q = 0; q < session->count && caller->status == STAIR_OK; q++) {
        stair_results *results = NULL;
        int equal = 0;
        caller->status = stair_retrieve(session->retriever, session->questions[q], STAIR_NTS,
                                        NULL, NULL, &results, &caller->error);
        if (caller->status == STAIR_OK)
            caller->status = same(results, session->answers[q], &equal, &caller->error);
        if (!equal)
            caller->differ++;
        stair_results_free(results);
    }
    return NULL;
}

/* Runs the callers and reports. Returns the exit status. */
static int ask_at_once(const struct session *session, size_t callers)
{
    int exit_status = EXIT_SUCCESS;
    size_t started = 0, differ = 0;
    struct caller *list = calloc(callers, sizeof *list);
    for (; list != NULL && started < callers; started++) {
        list[started].session = session;
        if (pthread_create(&list[started].thread, NULL, call, &list[started]) != 0)
            break;
    }
    for (size_t i = 0; i < started; i++) {
        pthread_join(list[i].thread, NULL);
        differ += list[i].differ;
        if (list[i].status != STAIR_OK)
            exit_status = fail(list[i].status, list[i].error);
    }
    free(list);
    if (started < callers) {
        fprintf(stderr, "error: only %zu of %zu threads started\n", started, callers);
        return EXIT_FAILURE;
    }
    if (exit_status != EXIT_SUCCESS)
        return exit_status;
    printf("%zu callers, %zu answers each: ", callers, session->count);
    if (differ == 0) {
        printf("all the same\n");
        return EXIT_SUCCESS;
    }
    printf("%zu differ\n", differ);
    return EXIT_FAILURE;
}

/* The number that the text is, or 0. */
static size_t number(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return text[digits] == '\0' && digits < 6 ? strtoul(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    size_t callers = 0;
    int first = 3; /* question */
    int usable = argc > first;
    if (usable && strcmp(argv[3], "--callers") == 0) {
        first = 5;
        callers = argc > first ? number(argv[4]) : 0;
        usable = callers > 0;
    }
    if (!usable) {
        fprintf(stderr, "usage: ask MODEL.gguf INDEX.stair [--callers N] QUESTION...\n");
        return 2;
    }

    stair_model *model = NULL;
    stair_index *index = NULL;
    stair_retriever *retriever = NULL;
    stair_error *error = NULL;
    int exit_status = EXIT_FAILURE;
    struct session session = {.questions = argv + first, .count = (size_t)(argc - first)};
    session.answers = calloc(session.count, sizeof *session.answers);
    if (session.answers == NULL)
        return EXIT_FAILURE;

    stair_status status = stair_model_open(argv[1], STAIR_NTS, NULL, NULL, &model, &error);
    if (status == STAIR_OK)
        status = stair_index_open(argv[2], STAIR_NTS, 0, &index, &error);
    if (status == STAIR_OK) {
        /* Deterministic: an answer is the same bits whatever else is asked at the time. */
        stair_retriever_options options = {.struct_size = sizeof options, .deterministic = 1};
        status = stair_retriever_new(model, index, &options, &retriever, &error);
    }
    if (status == STAIR_OK) {
        session.retriever = retriever;
        status = ask(&session, &error);
    }
    if (status != STAIR_OK)
        exit_status = fail(status, error);
    else
        exit_status = callers > 0 ? ask_at_once(&session, callers) : EXIT_SUCCESS;

    /* Every free function takes NULL, and the order does not matter. */
    for (size_t q = 0; q < session.count; q++)
        stair_results_free(session.answers[q]);
    free(session.answers);
    stair_retriever_free(retriever);
    stair_index_free(index);
    stair_model_free(model);
    return exit_status;
}
