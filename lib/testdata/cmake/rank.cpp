#include "rank.c"
