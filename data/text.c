/* Text as words or characters: train.txt, valid.txt and test.txt, the files of
 * the Penn Treebank or WikiText as they are, or one input.txt, which is cut.
 *
 * Cutting input.txt: of its N tokens the last floor(N * test_share) are the
 * test split, the floor(N * valid_share) before them the validation split, and
 * all others are trained on.
 *
 * Source: Mikolov, Karafiat, Burget, Cernocky, Khudanpur 2010, "Recurrent
 *         neural network based language model" (the Penn Treebank's files);
 *         Merity, Xiong, Bradbury, Socher 2016, "Pointer sentinel mixture
 *         models" (WikiText).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sprat/data.h"

enum { PATH_SIZE = 4096, SHOWN = 60 };

/* The choices of `level` and `vocabulary`. */
enum { WORD, CHAR };
enum { TRAIN, ALL };

static const char single[] = "input.txt";

static const char *const namings[][SP_SPLITS] = {
    { [SP_TRAIN] = "train.txt",
      [SP_VALID] = "valid.txt",
      [SP_TEST] = "test.txt" },
    { [SP_TRAIN] = "ptb.train.txt",
      [SP_VALID] = "ptb.valid.txt",
      [SP_TEST] = "ptb.test.txt" },
    { [SP_TRAIN] = "wiki.train.tokens",
      [SP_VALID] = "wiki.valid.tokens",
      [SP_TEST] = "wiki.test.tokens" },
};

enum { NAMINGS = sizeof namings / sizeof *namings };

/* The order of reading, which numbers the words. */
static const sp_split order[SP_SPLITS] = { SP_TRAIN, SP_VALID, SP_TEST };

static const sp_records_hint hints[] = {
    { "simple-examples/data/ptb.train.txt",
      "is what is looked for; set data.root to its folder" },
    { "data/ptb.train.txt",
      "is what is looked for; set data.root to its folder" },
    { "ptb/ptb.train.txt",
      "is what is looked for; set data.root to its folder" },
    { "wikitext-2/wiki.train.tokens",
      "is what is looked for; set data.root to its folder" },
    { "simple-examples.tgz", "is still packed; unpack it (tar xzf) and set "
                             "data.root to the folder simple-examples/data" },
    { "wikitext-2-v1.zip", "is still packed; unpack it (unzip) and set "
                           "data.root to the folder that this makes" },
    { "val.txt", "is to be named valid.txt" },
    { "wiki.train.raw", "belongs to the raw version; name its files train.txt, "
                        "valid.txt and test.txt" },
};

struct settings {
    int level, vocabulary, vocab;
    double valid_share, test_share;
};

struct text {
    sp_corpus *corpus;
    const int32_t *tokens[SP_SPLITS];
};

/* A folder's files: of one naming, or input.txt alone. */
struct source {
    const char *root;
    const char *const *names; /* NULL: input.txt */
};

#define AT(field) offsetof(struct settings, field)

static const sp_key keys[] = {
    { "level", SP_CHOICE, AT(level), "word", 0, 0,
      "tokens are words, with " SP_EOS " at line ends, or characters of UTF-8",
      "word|char" },
    { "vocabulary", SP_CHOICE, AT(vocabulary), "all", 0, 0,
      "whose words make the vocabulary; train: others become " SP_UNK,
      "train|all" },
    { "vocab", SP_INT, AT(vocab), "0", 0, 1e9,
      "tokens of the vocabulary, checked; 0: as many as the files have", NULL },
    { "valid_share", SP_FLOAT, AT(valid_share), "0.05", 0, 0.9,
      "share of input.txt that is for validation, where that is the file",
      NULL },
    { "test_share", SP_FLOAT, AT(test_share), "0.05", 0, 0.9,
      "share of input.txt, its end, that is for testing", NULL },
};

static sp_err describe(const void *own, sp_data_info *info)
{
    const struct settings *s = own;

    if (s->vocab == 0)
        return sp_fail(SP_EDATA,
                       "data.vocab: how many tokens the vocabulary has stands "
                       "in the files, which are not opened here; set it: it "
                       "is 10000 for the Penn Treebank and 33278 for "
                       "WikiText-2");
    *info = (sp_data_info){ .text = true,
                            .chars = s->level == CHAR,
                            .classes = s->vocab };
    return SP_OK;
}

static sp_err join(char *path, const char *root, const char *file)
{
    if (snprintf(path, PATH_SIZE, "%s/%s", root, file) >= PATH_SIZE)
        return sp_fail(SP_EDATA, "text: %s: the path is too long", root);
    return SP_OK;
}

/* Add to *there whether the folder has the file. */
static sp_err look(const char *root, const char *file, bool *there)
{
    char path[PATH_SIZE];
    struct stat st;

    SP_TRY(join(path, root, file));
    *there = *there || stat(path, &st) == 0;
    return SP_OK;
}

/* Something is missing: say why, if the folder shows it. */
static sp_err hint(const char *root)
{
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        bool there = false;

        SP_TRY(look(root, hints[i].file, &there));
        if (there)
            return sp_fail(SP_EDATA, "text: %s/%s %s", root, hints[i].file,
                           hints[i].text);
    }
    return SP_OK;
}

static sp_err nothing(const char *root)
{
    SP_TRY(hint(root));
    return sp_fail(SP_EDATA,
                   "text: there is no text in %s; looked for train.txt, "
                   "valid.txt and test.txt, for ptb.train.txt, "
                   "wiki.train.tokens and theirs, and for input.txt; set "
                   "data.root to the folder that holds them (tools/get-data "
                   "fetches ptb, wikitext-2 and tinyshakespeare)",
                   root);
}

/* Every file of the naming must be there. */
static sp_err check_complete(const struct source *s)
{
    for (int k = 0; k < SP_SPLITS; k++) {
        bool there = false;

        SP_TRY(look(s->root, s->names[k], &there));
        if (there)
            continue;
        SP_TRY(hint(s->root));
        return sp_fail(SP_EDATA,
                       "text: there is no file %s in %s, which must hold %s, "
                       "%s and %s; bring it (tools/get-data fetches ptb and "
                       "wikitext-2), or make it of a part of the training "
                       "text",
                       s->names[k], s->root, s->names[SP_TRAIN],
                       s->names[SP_VALID], s->names[SP_TEST]);
    }
    return SP_OK;
}

/* Which files the folder has. Two kinds at once leave open which is meant. */
static sp_err find_files(struct source *s)
{
    const char *found = NULL;

    for (int i = 0; i <= NAMINGS; i++) {
        const char *const *names = i < NAMINGS ? namings[i] : NULL;
        bool there = false;

        if (!names)
            SP_TRY(look(s->root, single, &there));
        for (int k = 0; names && k < SP_SPLITS; k++)
            SP_TRY(look(s->root, names[k], &there));
        if (!there)
            continue;
        if (found)
            return sp_fail(SP_EDATA,
                           "text: %s has both %s and %s or files that belong "
                           "to them; move those away that are not meant",
                           s->root, found, names ? names[SP_TRAIN] : single);
        found = names ? names[SP_TRAIN] : single;
        s->names = names;
    }
    if (!found)
        return nothing(s->root);
    return s->names ? check_complete(s) : SP_OK;
}

static sp_err read_files(struct text *x, const struct source *s,
                         sp_data_info *info)
{
    char path[PATH_SIZE];
    size_t before = 0, after;

    for (int k = 0; k < SP_SPLITS; k++) {
        SP_TRY(join(path, s->root, s->names[order[k]]));
        SP_TRY(sp_corpus_read(x->corpus, path));
        sp_corpus_tokens(x->corpus, &after);
        info->count[order[k]] = after - before;
        before = after;
    }
    return SP_OK;
}

/* Read input.txt and cut it. */
static sp_err read_single(struct text *x, const struct source *s,
                          const struct settings *set, sp_data_info *info)
{
    char path[PATH_SIZE];
    size_t all;

    if (set->valid_share + set->test_share >= 1)
        return sp_fail(SP_EDATA,
                       "data.valid_share: %g and data.test_share, %g, leave "
                       "nothing of %s to train on; make them smaller",
                       set->valid_share, set->test_share, single);
    SP_TRY(join(path, s->root, single));
    SP_TRY(sp_corpus_read(x->corpus, path));
    sp_corpus_tokens(x->corpus, &all);
    info->count[SP_TEST] = (size_t)((double)all * set->test_share);
    info->count[SP_VALID] = (size_t)((double)all * set->valid_share);
    info->count[SP_TRAIN] = all - info->count[SP_TEST] - info->count[SP_VALID];
    return SP_OK;
}

/* How many words the first tokens of the stream are: numbers are given in the
 * order of appearance. */
static size_t words_of(const int32_t *tokens, size_t count)
{
    int32_t most = -1;

    for (size_t i = 0; i < count; i++)
        if (tokens[i] > most)
            most = tokens[i];
    return (size_t)(most + 1);
}

static sp_err check_counts(const struct source *s, const sp_data_info *info)
{
    static const char *const shares[SP_SPLITS] = {
        [SP_TRAIN] = "data.valid_share",
        [SP_VALID] = "data.valid_share",
        [SP_TEST] = "data.test_share",
    };

    for (int k = 0; k < SP_SPLITS; k++) {
        if (info->count[k] >= 2)
            continue;
        if (s->names)
            return sp_fail(SP_EDATA,
                           "text: %s/%s has %zu token; at least 2 are needed, "
                           "as each but the first is predicted",
                           s->root, s->names[k], info->count[k]);
        return sp_fail(SP_EDATA,
                       "%s: of the tokens of %s/%s, %zu are for training, %zu "
                       "for validation and %zu for testing; each needs at "
                       "least 2",
                       shares[k], s->root, single, info->count[SP_TRAIN],
                       info->count[SP_VALID], info->count[SP_TEST]);
    }
    return SP_OK;
}

/* The first word that only validation or test has. */
static sp_err not_known(const struct text *x, const struct source *s,
                        const sp_data_info *info, int32_t token)
{
    size_t words;
    const char *told = sp_corpus_words(x->corpus, &words)[token];
    const char *word = *told == '\n' ? "line feed" : told;
    const char *file = s->names ? s->names[SP_TEST] : single;
    size_t shown = strlen(word);

    for (size_t i = 0; s->names && i < info->count[SP_VALID]; i++)
        if (x->tokens[SP_VALID][i] == token)
            file = s->names[SP_VALID];
    /* Not a part of a character. */
    if (shown > SHOWN)
        for (shown = SHOWN; (word[shown] & 0xc0) == 0x80;)
            shown--;
    return sp_fail(
        SP_EDATA,
        "data.vocabulary: %s/%s, line %zu: '%.*s' does not appear "
        "in the training text, and there is no " SP_UNK
        " that it could become; set data.vocabulary to all, or change the text",
        s->root, file, sp_corpus_line(x->corpus, token), (int)shown, word);
}

/* Of the vocabulary's *words only those of the training split stay; others
 * become <unk>. */
static sp_err restrict_words(struct text *x, const struct source *s,
                             sp_data_info *info, size_t *words)
{
    int32_t unknown = sp_corpus_find(x->corpus, SP_UNK);
    size_t all, i = info->count[SP_TRAIN];
    int32_t *tokens = sp_corpus_tokens(x->corpus, &all);
    size_t known = words_of(tokens, i);

    if (known == *words)
        return SP_OK;
    *words = known;
    if (unknown < 0 || (size_t)unknown >= known)
        return not_known(x, s, info, (int32_t)known);
    for (; i < all; i++)
        if ((size_t)tokens[i] >= known) {
            bool valid = i < info->count[SP_TRAIN] + info->count[SP_VALID];

            tokens[i] = unknown;
            info->unknown[valid ? SP_VALID : SP_TEST]++;
        }
    return SP_OK;
}

static sp_err check_vocab(const struct settings *set, const char *root,
                          size_t words)
{
    if (set->vocab == 0 || (size_t)set->vocab == words)
        return SP_OK;
    return sp_fail(SP_EDATA,
                   "data.vocab: is %d, but the files in %s have %zu different "
                   "%s; set it to that number, or to 0 for whatever they have",
                   set->vocab, root, words,
                   set->level == CHAR ? "characters" : "words");
}

static sp_err load(struct text *x, const char *root, const struct settings *set,
                   sp_data_info *info)
{
    struct source s = { .root = root };
    const int32_t *tokens;
    size_t words, all;

    *info = (sp_data_info){ .text = true, .chars = set->level == CHAR };
    SP_TRY(find_files(&s));
    SP_TRY(s.names ? read_files(x, &s, info) : read_single(x, &s, set, info));
    SP_TRY(check_counts(&s, info));
    tokens = sp_corpus_tokens(x->corpus, &all);
    for (int k = 0; k < SP_SPLITS; k++) {
        x->tokens[order[k]] = tokens;
        tokens += info->count[order[k]];
    }
    info->class_names = sp_corpus_words(x->corpus, &words);
    if (set->vocabulary == TRAIN)
        SP_TRY(restrict_words(x, &s, info, &words));
    info->classes = (int)words;
    return check_vocab(set, root, words);
}

static void close_set(void *state)
{
    struct text *x = state;

    sp_corpus_free(x->corpus);
    free(x);
}

static sp_err open_set(const char *root, const void *own, sp_data_info *info,
                       void **state)
{
    const struct settings *set = own;
    struct text *x = calloc(1, sizeof *x);
    sp_err err;

    if (!x)
        return sp_fail(SP_ENOMEM, "text: out of memory");
    x->corpus = sp_corpus_new(set->level == CHAR);
    err = x->corpus ? load(x, root, set, info)
                    : sp_fail(SP_ENOMEM, "text: out of memory");
    if (err) {
        close_set(x);
        return err;
    }
    *state = x;
    return SP_OK;
}

static const int32_t *tokens_of(const void *state, sp_split split)
{
    const struct text *x = state;

    return x->tokens[split];
}

const sp_data_set sp_data_set_text = {
    .entry = { .name = "text",
               .help = "text as words or characters: train.txt, valid.txt and "
                       "test.txt, PTB, WikiText, or one input.txt",
               .cfg_size = sizeof(struct settings),
               .keys = keys,
               .key_count = sizeof keys / sizeof *keys },
    .folder = "text",
    .describe = describe,
    .open = open_set,
    .tokens = tokens_of,
    .close = close_set,
};
