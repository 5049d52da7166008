// A server in miniature: each request is parsed, worked on and answered by three threads, one after the other. Each step says
// whose request it works on: on_request(id). correlate.py puts together what belongs together.
//
//     cc -O1 -fno-omit-frame-pointer -pthread -o requests requests.c
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { REQUESTS = 6, STEPS = 3 };

__attribute__((noinline)) void on_request(uint64_t id) { __asm__ volatile("" : : "r"(id) : "memory"); }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static int ready[STEPS + 1]; // requests that may enter a step

static void pass(int step) {
    pthread_mutex_lock(&lock);
    ready[step]++;
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
}

// Every third request has much to do.
__attribute__((noinline)) static void work(int request, int step) {
    on_request(0x100 + (uint64_t)request);
    usleep(step == 1 && request % 3 == 2 ? 30000 : 1000);
    __asm__ volatile("" : : : "memory");
}

static void *step(void *number) {
    int own = (int)(intptr_t)number;
    for (int request = 0; request < REQUESTS; request++) {
        pthread_mutex_lock(&lock);
        while (ready[own] <= request) pthread_cond_wait(&news, &lock);
        pthread_mutex_unlock(&lock);
        work(request, own);
        pass(own + 1);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[STEPS];
    for (intptr_t i = 0; i < STEPS; i++)
        if (pthread_create(&threads[i], NULL, step, (void *)i)) return 1;
    for (int i = 0; i < REQUESTS; i++) pass(0);
    for (int i = 0; i < STEPS; i++) pthread_join(threads[i], NULL);
    return 0;
}
