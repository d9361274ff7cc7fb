/* Programs include this name, but everything is in ZRLMPI.hpp. */
#include "ZRLMPI.hpp"
