#include SP_HEADER

int main(void) { return 0; }
