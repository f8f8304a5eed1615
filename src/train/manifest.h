/* manifest.json: what a checkpoint is, and the checksums of its files. It is
 * written last and guards itself: its last line is the SHA-256 of all lines
 * before it. */
#ifndef SP_TRAIN_MANIFEST_H
#define SP_TRAIN_MANIFEST_H

#include "base/safetensors.h"
#include "train/autorank.h"
#include "train/state.h"

/* Format 1 was that of runs on one rank without a compressor, and can still be
 * read. */
enum { SP_CHECKPOINT_FORMAT = 2, SP_COMMON_FILES = 2 };

/* The files of all ranks together, in the order of sp_manifest.stamps. */
enum { SP_FILE_MODEL, SP_FILE_OPTIM };
extern const char *const sp_common_files[SP_COMMON_FILES];

/* A rank's own file: "rank-0003.safetensors". */
enum { SP_RANK_FILE_ROOM = 40 };
const char *sp_rank_file(char out[SP_RANK_FILE_ROOM], int rank);

/* Open that file of a checkpoint; sp_st_close() closes it. Errors: those of
 * sp_st_open(), SP_ENOMEM. */
SP_MUST sp_err sp_rank_file_open(sp_st_file **f, const char *folder, int rank);

typedef struct sp_rank_stamp {
    sp_st_stamp stamp;
    bool keeps; /* arrays of the compressor are in it */
} sp_rank_stamp;

typedef struct sp_manifest {
    sp_st_stamp stamps[SP_COMMON_FILES];
    int ranks;                  /* that trained, and ... */
    sp_rank_stamp *rank_stamps; /* ... the file of each */
    char *compressor;           /* its name */
    bool dense;   /* up to here nothing was compressed: the optimizer holds all
                     momentum */
    bool low;     /* its program is that of low rank */
    char *config; /* the effective configuration, YAML */
    char *isa;    /* the instruction set that computed it */
    char *winograd;  /* the tiles that were chosen: sp_graph_tiles() */
    char *optimizer; /* whose state optim.safetensors is */
    int64_t batches; /* of an epoch, and ... */
    int64_t batch;   /* ... their samples: what state.batch counts */
    int64_t bptt;    /* of text: tokens of each column in a batch; else 0 */
    sp_train_state state;
    sp_autorank autorank; /* what training has seen of ranks; may be empty */
    bool text, chars;     /* what it was trained on: sp_data_info */
    int h, w, c;          /* of the images */
    int classes;          /* of the data set; tokens of the vocabulary */
    char **class_names;   /* or NULL */
} sp_manifest;

/* Write `m` into a checkpoint's folder, synced. */
SP_MUST sp_err sp_manifest_write(const char *folder, const sp_manifest *m);

/* Read it. On success what it owns is freed by sp_manifest_free().
 * Errors: SP_EIO, SP_EFORMAT naming the file and what is wrong. */
SP_MUST sp_err sp_manifest_read(const char *folder, sp_manifest *m);
void sp_manifest_free(sp_manifest *m);

/* The ranks of its program of low rank, where training has chosen them; else
 * NULL. */
const sp_autorank *sp_manifest_ranks(const sp_manifest *m);

/* Check that the files are those that the manifest speaks of: the weights by
 * their checksum, the others by their sizes. Errors: SP_EIO, SP_EFORMAT. */
SP_MUST sp_err sp_manifest_check(const char *folder, const sp_manifest *m);

/* Check all by their checksums, of which this is share `rank` of `ranks`. */
SP_MUST sp_err sp_manifest_check_all(const char *folder, const sp_manifest *m,
                                     int rank, int ranks);

#endif
