/* What is in a PNG file, in words for a shell: "WIDTH HEIGHT MEAN OTHER", the
 * mean brightness (0 to 255) and how many percent of the pixels are not like
 * the first one. */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    png_image image = { .version = PNG_IMAGE_VERSION };
    unsigned char *grey = NULL;
    double sum = 0, other = 0, pixels;

    if (argc != 2 || !png_image_begin_read_from_file(&image, argv[1]))
        goto failed;
    image.format = PNG_FORMAT_GRAY;
    grey = malloc(PNG_IMAGE_SIZE(image));
    if (!grey || !png_image_finish_read(&image, NULL, grey, 0, NULL))
        goto failed;
    pixels = (double)image.width * image.height;
    for (size_t i = 0; i < PNG_IMAGE_SIZE(image); i++) {
        sum += grey[i];
        other += abs(grey[i] - grey[0]) > 16;
    }
    printf("%u %u %.0f %.1f\n", (unsigned)image.width, (unsigned)image.height,
           sum / pixels, 100 * other / pixels);
    free(grey);
    return EXIT_SUCCESS;
failed:
    fprintf(stderr, "%s: %s\n", argc > 1 ? argv[1] : "picture", image.message);
    free(grey);
    return EXIT_FAILURE;
}
