// SPDX-License-Identifier: Apache-2.0
#pragma once

// Static probes for bpftrace, perf and SystemTap, of the provider ojs_shm: an instruction that does
// nothing until a tracer sets a breakpoint there. A job is the two halves of its
// id; an ack knows it by its slot. Compiled away where <sys/sdt.h> is missing, and in builds with
// crash points.
// docs/monitoring.md lists them with their arguments.

#if __has_include(<sys/sdt.h>) && !defined(OJS_SHM_TEST_HOOKS)
#include <sys/sdt.h>
#define OJS_SHM_PROBE2(name, a, b) DTRACE_PROBE2(ojs_shm, name, a, b)
#define OJS_SHM_PROBE3(name, a, b, c) DTRACE_PROBE3(ojs_shm, name, a, b, c)
#define OJS_SHM_PROBE4(name, a, b, c, d) DTRACE_PROBE4(ojs_shm, name, a, b, c, d)
#define OJS_SHM_PROBE6(name, a, b, c, d, e, f) DTRACE_PROBE6(ojs_shm, name, a, b, c, d, e, f)
#else
#define OJS_SHM_PROBE2(name, a, b) static_cast<void>(0)
#define OJS_SHM_PROBE3(name, a, b, c) static_cast<void>(0)
#define OJS_SHM_PROBE4(name, a, b, c, d) static_cast<void>(0)
#define OJS_SHM_PROBE6(name, a, b, c, d, e, f) static_cast<void>(0)
#endif
