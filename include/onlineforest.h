/*
 * onlineforest without Python: load a model file, predict, learn, save.
 *
 * EXPERIMENTAL. Functions and types may change with any version of the library. A change that breaks programs raises
 * OF_API_VERSION; compare it with of_api_version() to find out that a program runs with another library.
 *
 * Scope. Order-free forests (OnlineForestClassifier and OnlineForestRegressor) whose features are all numeric. Mondrian
 * forests, categorical features and classes that are times are refused with OF_UNSUPPORTED. What a file holds besides,
 * such as names of features, ids of samples and parameters, is carried through.
 *
 * Promise. Predictions are those of Python, to the last bit. A forest that learns here and is saved is the forest, to
 * the last bit, that learns the same samples in Python.
 *
 * Ownership. of_load makes a forest, of_free frees it. Arrays belong to the caller and are not used after a call.
 *
 * Errors. A function that can fail returns a status. of_last_error() then says what is wrong: it names the quantity,
 * the value and the bound. A call that fails has changed nothing, with one exception: of_learn_* that returns
 * OF_NO_MEMORY may have learned the samples. of_n_samples_seen tells. No function throws or ends the process.
 *
 * Threads. Several threads may use one forest: predictions run side by side, of_learn_* and of_save wait for the
 * others. of_free must be the last call. The library keeps threads of its own, and so must not be unloaded (dlclose).
 */
#ifndef ONLINEFOREST_H
#define ONLINEFOREST_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define OF_API __attribute__((visibility("default")))
#else
#define OF_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define OF_API_VERSION 1

typedef enum of_status {
  OF_OK = 0,
  OF_INVALID_ARGUMENT = 1, /* an argument, or the forest for this call */
  OF_SYSTEM_ERROR = 2,     /* a file cannot be read or written */
  OF_BAD_FILE = 3,         /* not a model file, or a damaged one */
  OF_TOO_LARGE = 4,        /* the forest would take more than max_bytes */
  OF_UNSUPPORTED = 5,      /* a valid model file, but not for this library */
  OF_NO_MEMORY = 6,
  OF_INTERNAL_ERROR = 7 /* a defect of the library */
} of_status;

typedef enum of_kind { OF_CLASSIFIER = 0, OF_REGRESSOR = 1 } of_kind;

typedef struct of_forest of_forest;

/* The OF_API_VERSION that the library was built with. */
OF_API int of_api_version(void);

/* The version of the library, such as "0.1.0". */
OF_API const char* of_library_version(void);

/* The message of the last call that failed on this thread, one line in UTF-8; "" if none has. Valid until the next call
 * on this thread that fails. */
OF_API const char* of_last_error(void);

/*
 * Loads a forest from a model file. *forest is NULL if it fails.
 *
 * max_bytes is the largest memory of the forest, about, as if all trees were grown; 0 is the memory of the machine. A
 * larger file is refused before it is read. Set a limit for files of unknown origin: a small file can demand many
 * trees.
 *
 * Files need not be trusted. The digest and all numbers are checked before they are used. Trees are grown when they are
 * first needed, so the first prediction takes longer.
 */
OF_API of_status of_load(const char* path, uint64_t max_bytes, of_forest** forest);

/* Frees a forest. NULL is allowed. */
OF_API void of_free(of_forest* forest);

/* What a forest is. All are 0 for NULL. */
OF_API of_kind of_get_kind(const of_forest* forest);
OF_API size_t of_n_features(const of_forest* forest);
OF_API uint64_t of_n_samples_seen(const of_forest* forest);   /* learned, forgotten ones included */
OF_API uint64_t of_n_samples_stored(const of_forest* forest); /* held now */

/* Number of classes; 0 for a regressor. It does not change during the life of the forest: classes are numbered in the
 * order of Python's classes_ when the file was saved. A class whose samples have all left a window or reservoir has
 * probability 0, and can be learned again. */
OF_API size_t of_n_classes(const of_forest* forest);

/* The label of a class: n_bytes bytes of text in UTF-8 with a 0 after them, valid until of_free. Labels that are no
 * strings come as in JSON: 7, 7.0, true. n_bytes may be NULL; a label may contain a 0. */
OF_API of_status of_class_label(const of_forest* forest, size_t index, const char** label, size_t* n_bytes);

/*
 * Rows. `rows` holds n_rows rows of n_features values, one row after the other, in the order of features that the
 * forest was trained with. NaN is a missing value; infinite values are errors. n_rows may be 0. n_threads is in [1,
 * 1024] and does not change results. `out` has room for n_out values, which must be at least the number that is
 * written.
 */

/* The most probable class of each row: n_rows indices. The first one of several. */
OF_API of_status of_predict_classes(of_forest* forest, const float* rows, size_t n_rows, size_t n_features,
                                    unsigned n_threads, int32_t* out, size_t n_out);

/* The probability of each class: n_rows * n_classes numbers, row by row. Calibrated like Python's predict_proba. */
OF_API of_status of_predict_proba(of_forest* forest, const float* rows, size_t n_rows, size_t n_features,
                                  unsigned n_threads, double* out, size_t n_out);

/* The predicted number of each row, by a regressor: n_rows numbers. There are no intervals yet. */
OF_API of_status of_predict_numbers(of_forest* forest, const float* rows, size_t n_rows, size_t n_features,
                                    unsigned n_threads, double* out, size_t n_out);

/*
 * Learns samples. `classes` are indices of classes: labels that the forest does not know cannot be learned here yet.
 * `numbers` are in [-1e150, 1e150]. `weights` say how often each sample counts; NULL if each counts once. They are
 * finite, at least 0, and have a sum of at most 2^36. They are rounded to multiples of 2^-16, and samples of weight 0
 * are not learned.
 */
OF_API of_status of_learn_classes(of_forest* forest, const float* rows, size_t n_rows, size_t n_features,
                                  const int32_t* classes, const double* weights, unsigned n_threads);
OF_API of_status of_learn_numbers(of_forest* forest, const float* rows, size_t n_rows, size_t n_features,
                                  const double* numbers, const double* weights, unsigned n_threads);

/*
 * Saves a forest to a model file, which of_load and Python's onlineforest.load read.
 *
 * An existing file is replaced only when the new one is safely on the disk. OF_UNSUPPORTED if the forest comes from a
 * checkpoint with a position in its stream: the position would no longer be that of the forest.
 */
OF_API of_status of_save(const of_forest* forest, const char* path);

#ifdef __cplusplus
}
#endif

#endif
