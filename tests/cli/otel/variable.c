/* The variable that OpenTelemetry's thread context (OTEP 4947) is found by. As a library, or as a part of the program. */
__thread void *otel_thread_ctx_v1;
#ifdef LARGE /* no room for it among the blocks with a fixed place */
static __thread char large[1 << 16];
char *otel_large(void) { return large; }
#endif
void **otel_slot(void) { return &otel_thread_ctx_v1; }
