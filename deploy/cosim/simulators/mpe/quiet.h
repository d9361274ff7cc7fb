// Upstream's sources print several lines in each cycle.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iostream>
#include <string>
#include <vector>
#define printf(...) ((void)0)
