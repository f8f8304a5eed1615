/* manifest.json: what a checkpoint is, and the checksums of its files. It is
 * written last and guards itself: its last line is the SHA-256 of all lines
 * before it. */
#ifndef SP_TRAIN_MANIFEST_H
#define SP_TRAIN_MANIFEST_H

#include "base/safetensors.h"
#include "train/state.h"

enum { SP_CHECKPOINT_FORMAT = 1, SP_CHECKPOINT_FILES = 3 };

/* The files of a checkpoint, in the order of sp_manifest.stamps. */
enum { SP_FILE_MODEL, SP_FILE_OPTIM, SP_FILE_RANK };
extern const char *const sp_checkpoint_files[SP_CHECKPOINT_FILES];

typedef struct sp_manifest {
    sp_st_stamp stamps[SP_CHECKPOINT_FILES];
    char *config;    /* the effective configuration, YAML */
    char *isa;       /* the instruction set that computed it */
    char *winograd;  /* the tiles that were chosen: sp_graph_tiles() */
    char *optimizer; /* whose state optim.safetensors is */
    int64_t batches; /* of an epoch, and ... */
    int64_t batch;   /* ... their samples: what state.batch counts */
    int64_t bptt;    /* of text: tokens of each column in a batch; else 0 */
    sp_train_state state;
    bool text, chars;   /* what it was trained on: sp_data_info */
    int h, w, c;        /* of the images */
    int classes;        /* of the data set; tokens of the vocabulary */
    char **class_names; /* or NULL */
} sp_manifest;

/* Write `m` into a checkpoint's folder, synced. */
SP_MUST sp_err sp_manifest_write(const char *folder, const sp_manifest *m);

/* Read it, and check that the files are those it speaks of. On success the
 * texts are freed by sp_manifest_free().
 * Errors: SP_EIO, SP_EFORMAT naming the file and what is wrong. */
SP_MUST sp_err sp_manifest_read(const char *folder, sp_manifest *m);
void sp_manifest_free(sp_manifest *m);

#endif
