/* Data sets by name, and the way from a sample to the network's input.
 *
 * A data set gives either images of bytes, all of one size, or text: a stream
 * of tokens for each split. Cutting, mirroring and normalising images, and
 * cutting text into columns, are common to all and done when a batch is
 * prepared.
 */
#ifndef SPRAT_DATA_H
#define SPRAT_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "sprat/config.h"

/* What a data set has files of. A set without a validation split of its own
 * leaves it empty; `data.valid` then holds training samples out. */
typedef enum sp_split { SP_TRAIN, SP_TEST, SP_VALID, SP_SPLITS } sp_split;

/* What is trained on, compared by, and tested on. */
typedef enum sp_part {
    SP_PART_TRAIN,
    SP_PART_VALID,
    SP_PART_TEST,
    SP_PARTS
} sp_part;

/* What a data set is. */
typedef struct sp_data_info {
    bool text;                      /* streams of tokens, not images */
    bool chars;                     /* text: tokens are characters, not words */
    int h, w, c;                    /* of every image; 0 for text */
    int classes;                    /* text: tokens of the vocabulary */
    size_t count[SP_SPLITS];        /* images, or tokens */
    const char *const *class_names; /* `classes` of them (text: the
                                       vocabulary), or NULL; owned by the data
                                       set */
    size_t unknown[SP_SPLITS];      /* text: tokens that stand as `<unk>` since
                                       the vocabulary lacks them */
} sp_data_info;

/* The keys that all data sets share. */
typedef struct sp_data_cfg {
    const char *root; /* "": the data set's usual folder; of no meaning to a
                         set that opens no files */
    int valid;        /* images held out of the training part; 0 for text */
    int augment;      /* choices: none|crop|flip|crop_flip */
    int pad;          /* pixels around the image before a crop */
    int pad_mode;     /* choices: zero|reflect */
    bool pad_raw;     /* pad before normalising: zeros are black, not grey */
    int normalize;    /* a choice of mean and standard deviation */
    int workers;      /* threads that prepare batches */
} sp_data_cfg;

/* A data set: its name in `data.name`, its keys and functions. */
typedef struct sp_data_set {
    sp_entry entry;
    const char *folder; /* usual root, for sp_data_find(); NULL: opens no
                           files */

    /* What can be said from the keys alone, opening nothing: fill `text`, h,
     * w, c and classes. May fail with SP_EDATA where only the files can
     * tell. */
    sp_err (*describe)(const void *own, sp_data_info *info);

    /* Open and check everything that can be checked now. `root` is the folder
     * that was found (NULL for a set that opens no files). On success *state is
     * the set's own. Errors: SP_EDATA or SP_EIO, naming file and remedy. */
    sp_err (*open)(const char *root, const void *own, sp_data_info *info,
                   void **state);

    /* Image `i` of a split: h*w*c bytes (NHWC order), and its label. A pure
     * function of its arguments, called by several threads at once. */
    sp_err (*read)(const void *state, sp_split split, size_t i, uint8_t *image,
                   int *label);

    /* For text, in place of `read`: the split's tokens, count[split] of them in
     * [0, classes), owned by the state. */
    const int32_t *(*tokens)(const void *state, sp_split split);
    void (*close)(void *state);

    /* Hand what tells a split from another one to `add`, for the ranks of a job
     * to compare; for images that are costly to read. NULL: they are read. */
    sp_err (*fingerprint)(const void *state, sp_split split,
                          void (*add)(void *arg, const void *bytes, size_t n),
                          void *arg);
} sp_data_set;

/* ---- Helpers for readers ------------------------------------------------ */

/* Where a data folder is: `root` as given, then (unless it is absolute) under
 * $SPRAT_DATA, then under /usr/share/datasets. *path is the caller's to free.
 * Errors: SP_EIO, listing the places that were tried; SP_EDATA for a file,
 * such as an archive, in the folder's place. */
SP_MUST sp_err sp_data_find(const char *root, char **path);

/* Read a whole file, unpacking it when it is gzip. *bytes is the caller's to
 * free. Errors: SP_EIO, SP_EFORMAT (damaged gzip), SP_ENOMEM; `limit` bounds
 * the unpacked size (SP_EFORMAT beyond it). */
SP_MUST sp_err sp_read_file(const char *path, size_t limit, uint8_t **bytes,
                            size_t *size);

/* Read a PNG as an image of exactly h x w pixels and c channels (1 grey, 3
 * RGB) of bytes. Conversion: palettes become RGB; 1, 2, 4 bits widen to 8; of
 * 16 bits the high byte counts; transparency is laid over black; grey becomes
 * RGB by repetition; RGB is refused for c = 1. An image of another size is
 * refused unless `resize`, which takes the mean over source areas
 * (enlarging: nearest pixel).
 * Errors: SP_EDATA naming the file: not a PNG, truncated, bad checksum,
 * size out of range (1 to 16384), wrong kind; SP_EARG for a bad h, w or c. */
SP_MUST sp_err sp_png_read(const char *path, int h, int w, int c, bool resize,
                           uint8_t *image);

/* The size and channels (after conversion: 1 or 3) a PNG declares. */
SP_MUST sp_err sp_png_size(const char *path, int *h, int *w, int *c);

/* ---- Text --------------------------------------------------------------- */

/* What the end of a line is as a word, and a word that is not known. */
#define SP_EOS "<eos>"
#define SP_UNK "<unk>"

/* The tokens of text files, one stream, and the words or characters that they
 * are the numbers of, in the order of their first appearance.
 *   words       what stands between ASCII white space, carriage return
 *               included, and `<eos>` at the end of every line, an empty one
 *               and a last one without line feed too
 *   characters  the code points, line feed included; a carriage return before
 *               a line feed is left out
 * A byte-order mark is skipped at the start of a file; elsewhere it is a
 * character like others. */
typedef struct sp_corpus sp_corpus;

/* An empty one, of words or of characters. NULL: out of memory. */
sp_corpus *sp_corpus_new(bool chars);
void sp_corpus_free(sp_corpus *c);

/* Append the tokens of a file, which may be gzip. Errors: SP_EIO, SP_EFORMAT,
 * SP_ENOMEM; SP_EDATA naming file, line and column: not UTF-8, a NUL, a word
 * of more than 65536 bytes, an empty file. */
SP_MUST sp_err sp_corpus_read(sp_corpus *c, const char *path);

/* All tokens so far, which may be changed, and the words. Valid until the next
 * reading. */
int32_t *sp_corpus_tokens(sp_corpus *c, size_t *count);
const char *const *sp_corpus_words(const sp_corpus *c, size_t *count);

/* The number of a word, or -1; and the line of its first appearance. */
int32_t sp_corpus_find(const sp_corpus *c, const char *word);
size_t sp_corpus_line(const sp_corpus *c, int32_t token);

/* The tokens of a text by the vocabulary of an opened data set, as above, but
 * that a last line without line feed is still open: it has no `<eos>`. An
 * unknown word is `<unk>` if the vocabulary has that. *tokens is the caller's
 * to free. Errors: SP_EDATA: not UTF-8, an unknown word, a data set that has
 * no words; SP_ENOMEM. */
SP_MUST sp_err sp_text_encode(const sp_data_info *info, const char *text,
                              int32_t **tokens, size_t *count);

/* ---- Files of records --------------------------------------------------- */

/* A file or folder whose presence tells what is wrong with a data folder. */
typedef struct sp_records_hint {
    const char *file; /* relative to the root */
    const char *text; /* what it means and what to do */
} sp_records_hint;

/* Files of records of one size: label bytes, then c planes of h x w bytes. */
typedef struct sp_records {
    const char *set; /* its name, for messages */
    int h, w, c, classes;
    int label_bytes, label_at;  /* bytes before the image; which one counts */
    size_t per_file[SP_SPLITS]; /* records in each file */
    const char *const *files[SP_SPLITS]; /* names; each list ends with NULL;
                                            no list: no such split */
    const char *const *class_names;      /* or NULL */
    const char *names_file; /* class names, one a line: read if it is there;
                               or NULL */
    const sp_records_hint *hints; /* tried in order when a file is missing */
    size_t hint_count;
} sp_records;

/* The functions of a data set whose files are described by `format`, which
 * must outlive *state. Opening reads all files and checks every label.
 * Errors: SP_EDATA, SP_EIO: a file missing, of another size, with a label out
 * of range (naming file, record and value). */
void sp_records_describe(const sp_records *format, sp_data_info *info);
SP_MUST sp_err sp_records_open(const sp_records *format, const char *root,
                               sp_data_info *info, void **state);
sp_err sp_records_read(const void *state, sp_split split, size_t i,
                       uint8_t *image, int *label);
void sp_records_close(void *state);

#endif
