# Where is pid? A number that isn't known before the program is loaded
.license "GPL"
.program where "raw_tp/sched_process_exec"
    r0 = @task.pid
    exit
