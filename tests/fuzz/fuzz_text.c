/* Texts, by words and by characters: the input is the one file of a data set,
 * and then a prompt to its vocabulary. */
#include <stdlib.h>

#include "fuzz.h"
#include "sprat/data.h"

static void read_as(const sp_config *c, const char *prompt)
{
    const sp_data_set *set = (const sp_data_set *)sp_config_entry(c, "data");
    sp_data_info info;
    void *state;
    int32_t *tokens;
    size_t count;

    if (set->open(fuzz_folder(), sp_config_own(c, "data"), &info, &state) !=
        SP_OK)
        return;
    for (int s = 0; s < SP_SPLITS; s++)
        for (size_t i = 0; i < info.count[s]; i++) {
            int32_t token = set->tokens(state, (sp_split)s)[i];
            fuzz_law(token >= 0 && token < info.classes, "tokens fit");
        }
    if (sp_text_encode(&info, prompt, &tokens, &count) == SP_OK) {
        for (size_t i = 0; i < count; i++)
            fuzz_law(tokens[i] >= 0 && tokens[i] < info.classes,
                     "tokens of a prompt fit");
        free(tokens);
    }
    set->close(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static sp_config *c[4];
    static const char *const level[] = { "data.level=word", "data.level=char" };
    static const char *const words[] = { "data.vocabulary=all",
                                         "data.vocabulary=train" };
    char *prompt = fuzz_string(bytes, size);

    fuzz_file("input.txt", bytes, size);
    for (int i = 0; i < 4; i++) {
        if (!c[i])
            c[i] = fuzz_config((const char *const[]){
                "model.name=lstm_lm", "data.name=text", level[i % 2],
                words[i / 2], "data.valid_share=0.3", "data.test_share=0.3",
                NULL });
        read_as(c[i], prompt);
    }
    free(prompt);
    return 0;
}
