/* Preloaded before libstair: counts the handles that a program is given and those that it frees,
 * and fails it at its end if they differ. A leak checker cannot see a forgotten handle, because
 * the library knows all of them. Wraps what the examples call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stair.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long models, indexes, retrievers, results, errors;

/* The function of the library behind the wrapper of this name. */
static void *next(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (function == NULL)
        abort();
    return function;
}

/* Defines a wrapper around a fallible function: counts into `made` what success gives, if it gives
 * anything, and the error otherwise. */
#define WRAPS(name, parameters, arguments, made)                       \
    stair_status name parameters                                       \
    {                                                                  \
        stair_status (*real) parameters;                               \
        *(void **)&real = next(#name);                                 \
        stair_status status = real arguments;                          \
        if (status == STAIR_OK)                                        \
            made;                                                      \
        else if (error != NULL && *error != NULL)                      \
            errors++;                                                  \
        return status;                                                 \
    }

#define FREES(name, type, count)                                       \
    void name(type *handle)                                            \
    {                                                                  \
        void (*real)(type *);                                          \
        *(void **)&real = next(#name);                                 \
        if (handle != NULL)                                            \
            count--;                                                   \
        real(handle);                                                  \
    }

WRAPS(stair_model_open,
      (const char *path, size_t path_len, const stair_model_options *options,
       const stair_cancel *cancel, stair_model **out, stair_error **error),
      (path, path_len, options, cancel, out, error), models++)
WRAPS(stair_index_open,
      (const char *path, size_t path_len, uint32_t flags, stair_index **out, stair_error **error),
      (path, path_len, flags, out, error), indexes++)
WRAPS(stair_retriever_new,
      (const stair_model *model, const stair_index *index, const stair_retriever_options *options,
       stair_retriever **out, stair_error **error),
      (model, index, options, out, error), retrievers++)
WRAPS(stair_retrieve,
      (const stair_retriever *retriever, const char *question, size_t question_len,
       const stair_retrieve_options *options, const stair_cancel *cancel, stair_results **out,
       stair_error **error),
      (retriever, question, question_len, options, cancel, out, error), results++)
WRAPS(stair_results_get,
      (const stair_results *results_, size_t i, stair_hit *hit, stair_error **error),
      (results_, i, hit, error), (void)0)
WRAPS(stair_results_path,
      (const stair_results *results_, size_t i, size_t entry, const char **text, size_t *len,
       stair_error **error),
      (results_, i, entry, text, len, error), (void)0)

FREES(stair_model_free, stair_model, models)
FREES(stair_index_free, stair_index, indexes)
FREES(stair_retriever_free, stair_retriever, retrievers)
FREES(stair_results_free, stair_results, results)
FREES(stair_error_free, stair_error, errors)

__attribute__((destructor)) static void balance(void)
{
    if (models != 0 || indexes != 0 || retrievers != 0 || results != 0 || errors != 0) {
        fprintf(stderr,
                "not freed: %ld models, %ld indexes, %ld retrievers, %ld results, %ld errors\n",
                (long)models, (long)indexes, (long)retrievers, (long)results, (long)errors);
        fflush(NULL);
        _exit(99);
    }
}
