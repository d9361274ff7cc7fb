/* Programs include it by this name: all is in one file. */
#include "ZRLMPI.hpp"
