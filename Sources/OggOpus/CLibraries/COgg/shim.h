#ifndef ANTIPHON_COGG_SHIM_H
#define ANTIPHON_COGG_SHIM_H
#include <ogg/ogg.h>
#endif
